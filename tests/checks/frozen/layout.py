"""layout.py - the headers of this version against those of a released one: what a compiled program relies on is unchanged.

usage: layout.py FROZEN CURRENT... -- CC    folders that hold stoker/*.h; those of the current version are one set

  structs      members keep name, type, offset and size. A struct that begins with struct_size, and those that only the
               library hands out (GROWING), may have more members behind the old end; all others keep their size, and
               only `reserved` may shrink.
  enumerators  and macros that are numbers keep their values.
  functions    keep their declarations.
"""
import pathlib
import subprocess
import sys
import tempfile

import headers

GROWING = {"stoker_hook_sample", "stoker_hook_batch"}  # passed to callbacks by pointer, one at a time


def measure(compiler, folders, structs, names, numbers):
    """{what: text} of everything in the lists, as the headers of `folders` have it."""
    lines = ["#include <stddef.h>", "#include <stdio.h>"]
    for folder in folders:
        lines += [f"#include <stoker/{p.name}>" for p in sorted(pathlib.Path(folder, "stoker").glob("*.h"))]
    lines += ["int main(void)", "{"]
    for name, members in structs.items():
        lines.append(f'    printf("{name} %zu\\n", sizeof({name}));')
        for member, _ in members:
            lines.append(f'    printf("{name}.{member} %zu+%zu\\n", offsetof({name}, {member}), '
                         f'sizeof((({name} *)0)->{member}));')
    lines += [f'    printf("{name} %lld\\n", (long long){name});' for name in names]
    lines += [f'    printf("{name} %.17g\\n", (double)({name}));' for name in numbers]
    lines += ["    return 0;", "}"]
    with tempfile.TemporaryDirectory() as scratch:
        source, program = pathlib.Path(scratch, "layout.c"), pathlib.Path(scratch, "layout")
        source.write_text("\n".join(lines) + "\n")
        subprocess.run([compiler, "-std=c11", "-D_GNU_SOURCE", *[f"-I{f}" for f in folders], str(source), "-o",
                        str(program)], check=True)
        output = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    return dict(line.split(" ") for line in output.splitlines())


def compare_struct(name, old, new, was, now):
    """Yields what a compiled program would get wrong."""
    grows = old[0][0] == "struct_size" or name in GROWING
    new_types, size = dict(new), int(was[name])
    for member, declaration in old:
        if member == "reserved" and not grows:
            continue
        key = f"{name}.{member}"
        if member not in new_types:
            yield f"{key} is gone"
        elif new_types[member] != declaration or was[key] != now[key]:
            yield f"{key} was `{declaration}` at {was[key]}, is `{new_types[member]}` at {now[key]}"
    if not grows and was[name] != now[name]:
        yield f"{name} had {size} bytes, has {now[name]}, and must not grow"
    if grows:
        for member, _ in new:
            offset = int(now[f"{name}.{member}"].split("+")[0])
            if member not in dict(old) and offset < size:
                yield f"{name}.{member} is new, but lies at {offset}, within the {size} bytes that old programs have"


def main():
    arguments = sys.argv[1:]
    cut = arguments.index("--")
    frozen, current, compiler = arguments[0], arguments[1:cut], arguments[cut + 1]
    old, new = headers.read(frozen), "".join(headers.read(f) for f in current)
    structs, new_structs = headers.structs(old), headers.structs(new)
    names, numbers = headers.enumerators(old), headers.numbers(old)
    declared = headers.functions(new)
    problems = [f"{name} is gone" for name in structs if name not in new_structs]
    problems += [f"{name}() was `{text}`, is `{declared.get(name)}`"
                 for name, text in headers.functions(old).items() if declared.get(name) != text]
    kept = {name: new_structs[name] for name in structs if name in new_structs}
    was = measure(compiler, [frozen], structs, names, numbers)
    now = measure(compiler, current, kept, names, numbers)
    for name in kept:
        problems += compare_struct(name, structs[name], kept[name], was, now)
    problems += [f"{name} was {was[name]}, is {now[name]}" for name in names + numbers if was[name] != now[name]]
    print(f"{len(structs)} structs, {len(names)} enumerators, {len(numbers)} numbers, {len(declared)} functions")
    if len(structs) < 40 or len(names) < 150 or len(numbers) < 8 or len(declared) < 90:
        problems.append("too little was found in the headers: headers.py does not understand them")
    for problem in problems:
        print(f"layout: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
