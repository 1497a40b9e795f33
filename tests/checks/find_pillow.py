"""find_pillow.py - run the program under a Python that has Pillow.

Tried in turn: this Python, $STOKER_PYTHON, /usr/bin/python3 (Debian's Pillow belongs to the system's
Python, which need not be the first one). Without any, print why and end with 77.
"""
import importlib
import os
import sys

SKIP = 77


def ensure(without):
    """Return if this Python has Pillow; else become one that has. `without`: what goes unchecked if none has."""
    try:
        importlib.import_module("PIL.Image")
        return
    except ImportError:
        pass
    tried = os.environ.get("STOKER_PYTHONS_TRIED", "").split(":")
    for python in (os.environ.get("STOKER_PYTHON"), "/usr/bin/python3"):
        if python and python not in tried and os.path.exists(python):
            os.environ["STOKER_PYTHONS_TRIED"] = ":".join(tried + [python])
            os.execv(python, [python] + sys.argv)
    print(f"SKIPPED: no Python here has Pillow (Debian: python3-pil; or set STOKER_PYTHON); {without}")
    sys.exit(SKIP)
