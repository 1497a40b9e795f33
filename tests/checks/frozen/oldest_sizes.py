"""oldest_sizes.py - the smallest struct that the library takes is that of the first released headers: no smaller one, of
which no program can come, and no larger one, which would refuse programs.

usage: oldest_sizes.py OLDEST_FROZEN SOURCE_FOLDER...
"""
import pathlib
import re
import sys

import headers

# Tables of callbacks, whose last ones are optional.
SHORTER = {("stoker_dataset_ops", "describe"), ("stoker_codec", "verify_into")}


def main():
    structs = headers.structs(headers.read(sys.argv[1]))
    checked, failures = set(), 0
    for folder in sys.argv[2:]:
        for path in sorted(pathlib.Path(folder).rglob("*.c")):
            for struct, member in re.findall(r"STK_SIZE_UP_TO\((\w+),\s*(\w+)\)", path.read_text()):
                checked.add(struct)
                if struct not in structs:  # of a later version, whose headers are not frozen yet
                    continue
                if structs[struct][-1][0] != member and (struct, member) not in SHORTER:
                    print(f"{path}: {struct} ends at {structs[struct][-1][0]} in {sys.argv[1]}, not at {member}",
                          file=sys.stderr)
                    failures += 1
    sized = {name for name, members in structs.items() if members[0][0] == "struct_size"}
    for name in sorted(sized - checked - {"stoker_codec", "stoker_reader_setup"}):
        print(f"{name}: its size is never checked", file=sys.stderr)
        failures += 1
    print(f"{len(checked)} oldest sizes")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
