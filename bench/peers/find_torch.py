"""find_torch.py - run the program under a Python that has torch and torchvision, or torch alone.

Tried in turn: $STOKER_PYTHON, python3, /usr/bin/python3. If none has them, say so and end with 77.
"""
import importlib
import os
import subprocess
import sys

SKIP = 77


def _has_torch(python, modules):
    try:
        return subprocess.run([python, "-c", "import " + ", ".join(modules)], check=False,
                              capture_output=True).returncode == 0
    except OSError:
        return False


def ensure(modules=("torch", "torchvision")):
    """Return if this Python will do; else become one that will."""
    try:
        for module in modules:
            importlib.import_module(module)
        return
    except ImportError:
        pass
    for python in (os.environ.get("STOKER_PYTHON"), "python3", "/usr/bin/python3"):
        if python and _has_torch(python, modules):
            os.execvp(python, [python] + sys.argv)
    print(f"no Python here has {' and '.join(modules)} (Debian: python3-torch, python3-torchvision); "
          "or set STOKER_PYTHON", file=sys.stderr)
    sys.exit(SKIP)


def ensure_gpu():
    """torch alone, and a GPU that it can use; returns torch."""
    ensure(("torch",))
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        print(f"torch {torch.__version__} has no GPU here", file=sys.stderr)
        sys.exit(SKIP)
    return torch
