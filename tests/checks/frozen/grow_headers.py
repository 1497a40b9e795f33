"""grow_headers.py - the public headers of a later version: every struct that begins with struct_size has one member more.

usage: grow_headers.py INCLUDE TO [LEAST]    writes TO/stoker/*.h; fails if fewer structs grew (15)
"""
import pathlib
import re
import sys

STRUCT = re.compile(r"(typedef struct (\w+) \{\s*(?:/\*[^*]*(?:\*(?!/)[^*]*)*\*/\s*)*size_t struct_size;.*?\n)(\} \2;)", re.S)


def main():
    grown = 0
    to = pathlib.Path(sys.argv[2], "stoker")
    to.mkdir(parents=True, exist_ok=True)
    for path in sorted(pathlib.Path(sys.argv[1], "stoker").glob("*.h")):
        text, count = STRUCT.subn(r"\1    uint64_t grown; /* a later version added it */\n\3", path.read_text())
        grown += count
        target = to / path.name
        if not target.exists() or target.read_text() != text:
            target.write_text(text)
    print(f"{grown} structs grew")
    return 0 if grown >= (int(sys.argv[3]) if len(sys.argv) > 3 else 15) else 1


if __name__ == "__main__":
    sys.exit(main())
