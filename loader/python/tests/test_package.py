"""What is installed beside the code."""
import os
import re

import stoker

HERE = os.path.dirname(os.path.abspath(__file__))


def test_version_is_that_of_the_headers():
    header = os.path.join(HERE, "..", "..", "include", "stoker", "version.h")
    if not os.path.exists(header):  # in a source distribution
        header = os.path.join(HERE, "..", "source", "loader", "include", "stoker", "version.h")
    with open(header, encoding="utf-8") as file:
        version = re.search(r'STOKER_VERSION_STRING "([^"]+)"', file.read()).group(1)
    assert stoker.__version__ == version


def test_types_are_installed():
    package = os.path.dirname(stoker.__file__)
    assert os.path.exists(os.path.join(package, "py.typed"))
    assert os.path.exists(os.path.join(package, "_core.pyi"))


def test_first_example_of_the_readme():
    """With digits instead of MNIST's files, and an output that needs no other package."""
    with open(os.path.join(HERE, "..", "README.md"), encoding="utf-8") as file:
        code = re.search(r"```python\n(.*?)```", file.read(), re.DOTALL).group(1)
    assert '"mnist:data/mnist"' in code
    code = code.replace("mnist:data/mnist", "synth:digits?count=128").replace('layout="NCHW"', 'layout="NCHW", output="dlpack"')
    code = code.replace("    ...", "    shapes.append((images.shape, labels.shape))")
    shapes = []
    exec(code, {"shapes": shapes})
    assert shapes == [((64, 1, 28, 28), (64,))] * 2
