#!/usr/bin/env python3
"""check_kernels.py - what ptxas reports of each kernel: there for each architecture, no spills, no local memory.

usage: check_kernels.py NAMES REPORT    NAMES is a program that prints the kernels of the table
"""
import re
import subprocess
import sys

ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
MEMORY = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def entries(report):
    """{(kernel, architecture): (stack, spill stores, spill loads)}"""
    found = {}
    current = None
    for line in report.splitlines():
        entry = ENTRY.search(line)
        memory = MEMORY.search(line)
        if entry:
            current = entry.groups()
            found[current] = None
        elif memory and current and found[current] is None:
            found[current] = tuple(map(int, memory.groups()))
    return found


def complaints(names, report):
    found = entries(report)
    architectures = sorted({architecture for _, architecture in found})
    if not architectures:
        yield "the report names no kernel"
    for name in names:
        for architecture in architectures:
            memory = found.pop((name, architecture), "absent")
            if memory == "absent":
                yield f"{name} is not there for {architecture}"
            elif memory is None:
                yield f"{name}, {architecture}: no report of its memory"
            elif memory != (0, 0, 0):
                yield (f"{name}, {architecture}: {memory[0]} bytes of stack, "
                       f"{memory[1]} + {memory[2]} bytes spilled")
    for name, architecture in found:
        yield f"{name}, {architecture}, is not in the table"


def self_test():
    line = "ptxas info    : Compiling entry function 'k' for '%s'\n    %d bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    good = line % ("sm_80", 0) + line % ("sm_90", 0)
    assert not list(complaints(["k"], good))
    assert len(list(complaints(["k"], line % ("sm_80", 8) + line % ("sm_90", 0)))) == 1
    other = good + line.replace("'k'", "'l'") % ("sm_80", 0)
    assert len(list(complaints(["k", "l"], other))) == 1
    assert len(list(complaints(["k"], ""))) == 1
    assert len(list(complaints(["k", "l"], good))) == 2
    assert len(list(complaints([], good))) == 2


def main():
    self_test()
    names = subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout.split()
    with open(sys.argv[2], encoding="utf-8") as file:
        found = list(complaints(names, file.read()))
    for line in found:
        print(line, file=sys.stderr)
    print(f"{len(names)} kernels, {len(found)} complaints")
    return 1 if found or not names else 0


if __name__ == "__main__":
    sys.exit(main())
