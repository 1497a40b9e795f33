"""The package alone imports none of the frameworks, and says its version."""

import subprocess
import sys

import stoker


def test_import_of_the_package_imports_no_framework():
    code = "import sys, stoker; print([m for m in ('torch', 'numpy', 'jax') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_dlpack_output_needs_no_framework():
    code = (
        "import sys; sys.modules['torch'] = sys.modules['numpy'] = None\n"
        "import stoker\n"
        "with stoker.DataLoader('synth:digits?count=20', batch_size=10, output='dlpack', num_workers=1) as loader:\n"
        "    print([(b.images.shape, b.labels.dtype) for b in loader])\n"
        "print(stoker.open('synth:digits?count=20')[0].image.shape)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n")[:2] == ["[((10, 28, 28, 1), 'int64'), ((10, 28, 28, 1), 'int64')]", "(28, 28, 1)"]


def test_version_is_that_of_the_library():
    assert [part.isdigit() for part in stoker.__version__.split(".")] == [True] * 3


def test_every_public_name_exists_and_is_explained():
    for name in stoker.__all__:
        assert getattr(stoker, name).__doc__
