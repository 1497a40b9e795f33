"""find_torch.py - run the program under a Python that has torch and torchvision.

Tried in turn: $STOKER_PYTHON, python3, /usr/bin/python3. If none has both, say so and end with 77.
"""
import os
import subprocess
import sys

SKIP = 77


def _has_torch(python):
    try:
        return subprocess.run([python, "-c", "import torch, torchvision"], check=False,
                              capture_output=True).returncode == 0
    except OSError:
        return False


def ensure():
    """Return if this Python will do; else become one that will."""
    try:
        import torch  # noqa: F401
        import torchvision  # noqa: F401
        return
    except ImportError:
        pass
    for python in (os.environ.get("STOKER_PYTHON"), "python3", "/usr/bin/python3"):
        if python and _has_torch(python):
            os.execvp(python, [python] + sys.argv)
    print("no Python here has torch and torchvision (Debian: python3-torch, python3-torchvision); "
          "or set STOKER_PYTHON", file=sys.stderr)
    sys.exit(SKIP)
