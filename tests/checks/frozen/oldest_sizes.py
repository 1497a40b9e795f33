"""oldest_sizes.py - each struct that begins with struct_size has its size checked, up to a member that it has.

usage: oldest_sizes.py INCLUDE... -- SOURCE_FOLDER...
"""
import pathlib
import re
import sys

import headers


def main():
    cut = sys.argv.index("--")
    structs = {}
    for include in sys.argv[1:cut]:
        structs.update(headers.structs(headers.read(include)))
    checked, failures = set(), 0
    for folder in sys.argv[cut + 1:]:
        for path in sorted(pathlib.Path(folder).rglob("*.c")):
            for struct, member in re.findall(r"STK_SIZE_UP_TO\((\w+),\s*(\w+)\)", path.read_text()):
                checked.add(struct)
                if member not in dict(structs.get(struct, [])):
                    print(f"{path}: {struct} has no {member}", file=sys.stderr)
                    failures += 1
    sized = {name for name, members in structs.items() if members[0][0] == "struct_size"}
    filled = {"stoker_reader_setup", "stoker_hook_sample", "stoker_hook_batch", "stoker_decoded"}  # by the library
    for name in sorted(sized - checked - filled):
        print(f"{name}: its size is never checked", file=sys.stderr)
        failures += 1
    print(f"{len(checked)} oldest sizes")
    return 1 if failures or len(checked) < 15 else 0


if __name__ == "__main__":
    sys.exit(main())
