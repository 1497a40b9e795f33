"""What is installed beside the code."""
import os
import re
import shutil
import subprocess
import sys

import pytest

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


def test_features_say_what_is_built_in(pictures):
    found = stoker.features()
    assert {"png", "jpeg", "webp", "gzip", "lz4", "zstd", "io_uring", "cuda", "cuda_kernels"} == set(found)
    assert all(isinstance(present, bool) for present in found.values())
    if found["png"]:
        assert len(stoker.open(pictures)) == 12
    else:
        with pytest.raises(stoker.NotSupported, match="made without libpng"):
            stoker.open(pictures)


@pytest.mark.parametrize("switches, message", [
    ((), "STOKER_PNG=OFF"), (("-DSTOKER_PNG=OFF",), "STOKER_JPEG=OFF"), (("-DSTOKER_PNG=OFF", "-DSTOKER_JPEG=OFF"), None),
])  # fmt: skip
def test_a_package_that_reads_no_images_is_only_built_if_asked_for(tmp_path, switches, message):
    """Where pkg-config finds nothing, pip fails, and says what to install or switch off."""
    cmake = shutil.which("cmake")
    if cmake is None or not os.path.exists(os.path.join(HERE, "..", "CMakeLists.txt")):
        pytest.skip("no CMake, or no sources beside these tests")
    off = [f"-DSTOKER_{part}=OFF" for part in ("NVCC_KERNELS", "CUDA", "PYTHON_PROGRAMS")]
    run = subprocess.run(
        [cmake, "-S", os.path.join(HERE, ".."), "-B", tmp_path / "build", f"-DPython_EXECUTABLE={sys.executable}", *off, *switches],
        env={**os.environ, "PKG_CONFIG_LIBDIR": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert (message in run.stdout) if message else run.returncode == 0, run.stdout
    assert (run.returncode == 0) == (message is None)


def test_all_that_is_public_is_listed_and_documented():
    assert [name for name in dir(stoker) if not name.startswith("_") and name not in stoker.__all__] == []
    for name in stoker.__all__:
        value = getattr(stoker, name)
        if isinstance(value, tuple):
            continue
        assert value.__doc__, name
        methods = vars(value).items() if isinstance(value, type) else ()
        assert [method for method, code in methods if not method.startswith("_") and callable(code) and not code.__doc__] == [], name
