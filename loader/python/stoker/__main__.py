"""python -m stoker PROGRAM ...: the programs that are installed with the package.

    bench ...   loaderbench: how fast a data set is delivered here, and what limits it
    pack ...    stoker-pack: write a data set as shards or as tar archives

They take the place of this process; `python -m stoker bench --help` prints their options.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import List, Optional

_PROGRAMS = {"bench": "loaderbench", "pack": "stoker-pack"}


def _find(program: str) -> Optional[str]:
    """The program in the package, else beside this Python, else that of an installation on PATH."""
    for folder in (os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin"), os.path.dirname(sys.executable)):
        path = os.path.join(folder, program)
        if os.access(path, os.X_OK):
            return path
    return shutil.which(program)


def main(arguments: List[str]) -> int:
    """Returns the exit status; 2 for wrong usage, 127 if the program is missing. Does not return otherwise."""
    if arguments and arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    if not arguments or arguments[0] not in _PROGRAMS:
        given = f"no program {arguments[0]!r}" if arguments else "no program is named"
        print(f"python -m stoker: {given}: one of {', '.join(_PROGRAMS)} is expected; try --help", file=sys.stderr)
        return 2
    name = _PROGRAMS[arguments[0]]
    path = _find(name)
    if path is None:
        print(
            f"python -m stoker: {name} is neither in the package nor on PATH: this package was built without the programs; "
            "build and install the project with CMake to have them",
            file=sys.stderr,
        )
        return 127
    os.execv(path, [name] + arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
