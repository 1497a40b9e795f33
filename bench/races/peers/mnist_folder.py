"""mnist_folder.py - the MNIST files as torchvision needs them: root/MNIST/raw, unpacked.

The files come from $STOKER_DATA/mnist, gzip or plain; nothing is downloaded.
"""
import gzip
import os
import shutil
import sys

SKIP = 77
NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte",
         "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def source():
    """The folder with the files; exits with 77 if there is none."""
    base = os.environ.get("STOKER_DATA", "data")
    folder = os.path.join(base, "mnist")
    if not any(os.path.exists(os.path.join(folder, NAMES[0] + end)) for end in ("", ".gz")):
        print(f"no MNIST in {folder}: set STOKER_DATA", file=sys.stderr)
        sys.exit(SKIP)
    return folder


def unpack(root):
    """Fills root/MNIST/raw; returns root."""
    raw = os.path.join(root, "MNIST", "raw")
    os.makedirs(raw)
    folder = source()
    for name in NAMES:
        plain = os.path.join(folder, name)
        if os.path.exists(plain):
            shutil.copyfile(plain, os.path.join(raw, name))
        elif os.path.exists(plain + ".gz"):
            with gzip.open(plain + ".gz", "rb") as packed, open(os.path.join(raw, name), "wb") as out:
                shutil.copyfileobj(packed, out)
    return root
