"""find_torch.py - runs the program under a Python that has torch and torchvision, or torch only.

Tried in turn: $STOKER_PYTHON, the environment of environments.sh, python3, /usr/bin/python3. If none has them, says so and exits with 77.
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
    """Returns if this Python has them; else replaces the process by one that does."""
    try:
        for module in modules:
            importlib.import_module(module)
        return
    except ImportError:
        pass
    made = os.path.join(os.environ.get("STOKER_PEERS", "build/peers"), "torch/bin/python")
    for python in (os.environ.get("STOKER_PYTHON"), made, "python3", "/usr/bin/python3"):
        if python and _has_torch(python, modules):
            os.execvp(python, [python] + sys.argv)
    print(f"no Python here has {' and '.join(modules)} (Debian: python3-torch, python3-torchvision); "
          "or set STOKER_PYTHON", file=sys.stderr)
    sys.exit(SKIP)


def ensure_gpu():
    """Imports torch, with a usable GPU; returns it."""
    ensure(("torch",))
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        print(f"torch {torch.__version__} has no GPU here", file=sys.stderr)
        sys.exit(SKIP)
    return torch
