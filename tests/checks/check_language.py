#!/usr/bin/env python3
"""check_language.py - habits of phrasing that make a contract hard to read.

Scans the comments and strings of C sources, and the whole text of Markdown, shell, Python and CMake files. A pattern has
a budget per room for the uses that are left: one more is an error. Lower the budget when uses disappear.

usage: check_language.py              check the project's files
       check_language.py --count      print the uses per pattern and room
       check_language.py --show NAME  print each use of one pattern
"""
import collections
import os
import re
import subprocess
import sys

ROOMS = ("loader", "datasets", "kernels", "trainer", "bench", "tests", "top")

# name: pattern, what to write instead, a text that it catches, uses left per room
PATTERNS = {
    "tell": (r"(?i)\b(?:tell|tells|told|telling)\b", "report, return, print", "/* told by create */",
             {}),
    "dangling": (r"/\*+ of\b", "name the subject", "int rows; /* of a batch */",
                 {}),
    "stands": (r"\bstands\b", "lies in, is at", "// what stands behind it",
               {}),
    "whether": (r"\bWhether\b", "True if ..., Returns true if ...", "/* Whether it fits. */",
                {}),
    "who": (r"(?i)\b(?:who|whoever|whom)\b", "it, the caller, the worker", "/* for who copies */",
            {}),
    "he": (r"(?i)\b(?:he|his|him|himself)\b", "it, its, the caller", "/* a worker and his core */",
           {}),
    "go on": (r"(?i)\b(?:go|goes|going|gone|went) on\b", "continue, resume", "/* Go on behind it. */",
              {}),
    "so many": (r"(?i)\bso many\b", "N, count", '"stop after so many"',
                {}),
    "begin": (r"\b(?:the|its|their|at|a|of|from|very) begin\b|\bbegin of\b", "start", "/* from the begin */",
              {}),
    "where": (r"\b[Ww]here (?:there (?:is|are|was) (?:no|none|one|any)|none|nothing|no)\b", "if", "/* where none is */",
              {}),
    "had": (r"\b(?:be|is|are) had\b", "available", "/* if it is to be had */",
            {}),
    "archaic": (r"(?i)\banew\b|\bcomes? to be\b|\bwhence\b|\blest\b|\bno matter\b|\bas good as nothing\b",
                "again, becomes, from where, regardless", "/* No matter on the CPU. */",
                {}),
}

# file (a prefix), text of the line, reason: uses that are right
ALLOWED = (
    ("tests/checks/check_language.py", "", "the patterns themselves"),
    ("tests/checks/cudnn/graphs.h", "He, Zhang", "an author"),
    ("loader/pipeline/ledger.c", "too early to tell", "an idiom"),
    ("", r"may be gone on return|text goes on a line|stands in for", "other words"),
)
SPOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
FILES = ("*.c", "*.h", "*.cu", "*.cuh", "*.md", "*.sh", "*.py", "*.cmake", "*CMakeLists.txt", "*.in", "run", ".ci/run")


def room_of(path):
    first = path.split("/")[0]
    return first if first in ROOMS else "top"


def spoken(path, text):
    """What people read in a file, as (line, text)."""
    if not path.endswith((".c", ".h", ".cu", ".cuh")):
        yield 1, text
        return
    for match in SPOKEN.finditer(text):
        if match.group()[0] != "'":
            yield text.count("\n", 0, match.start()) + 1, match.group()


def allowed(path, line):
    return any(path.startswith(prefix) and re.search(pattern, line) for prefix, pattern, _ in ALLOWED)


def uses(path, text):
    """Each use of a pattern in a file, as (name, line number, line)."""
    lines = text.split("\n")
    for first, piece in spoken(path, text):
        for name, (pattern, _, _, _) in PATTERNS.items():
            for match in re.finditer(pattern, piece):
                number = first + piece.count("\n", 0, match.start())
                if not allowed(path, lines[number - 1]):
                    yield name, number, lines[number - 1].strip()


def self_test():
    clean = "/* Returns true if the batch has N rows; 0 = none. */ int tell_begin; char he = 'h';"
    assert not list(uses("x.c", clean)), list(uses("x.c", clean))
    for name, (_, _, sample, _) in PATTERNS.items():
        assert [name] == [use[0] for use in uses("x.c", "int x;\n" + sample + "\n") if use[1] == 2 and use[0] == name], name
        assert name in [use[0] for use in uses("x.md", sample)], name
        limit = PATTERNS[name][3].get("kernels", 0)
        over = collections.defaultdict(list, {(name, "kernels"): ["x"] * (limit + 1)})
        assert len(verdict(over)) == limit + 2, name
    assert not verdict(collections.defaultdict(list))


def read_uses(top):
    """{(name, room): ["file:line: text"]} over the project's files."""
    names = subprocess.run([os.path.join(top, "tests/checks/sources.sh"), *FILES], check=True, capture_output=True,
                           text=True).stdout.split()
    found = collections.defaultdict(list)
    for path in names:
        with open(os.path.join(top, path), encoding="utf-8") as file:
            for name, number, line in uses(path, file.read()):
                found[name, room_of(path)].append(f"{path}:{number}: {line}")
    return len(names), found


def print_counts(found):
    print(f"{'':9}" + "".join(f"{room:>9}" for room in ROOMS) + f"{'sum':>9}")
    for name in PATTERNS:
        counts = [len(found[name, room]) for room in ROOMS]
        print(f"{name:9}" + "".join(f"{count:9}" for count in counts) + f"{sum(counts):9}")


def verdict(found):
    """A line for each budget that is exceeded, and its uses."""
    wrong = []
    for name, (_, instead, _, budget) in PATTERNS.items():
        for room in ROOMS:
            count, limit = len(found[name, room]), budget.get(room, 0)
            if count > limit:
                wrong += [f"{name}: {count} uses in {room}, budget {limit}; write {instead}"] + found[name, room]
    return wrong


def main():
    self_test()
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    files, found = read_uses(top)
    if sys.argv[1:] == ["--count"]:
        print_counts(found)
        return
    if len(sys.argv) == 3 and sys.argv[1] == "--show":
        print("\n".join(line for room in ROOMS for line in found[sys.argv[2], room]))
        return
    wrong = verdict(found)
    print("\n".join(wrong + [f"{files} files"]))
    sys.exit(1 if wrong or not files else 0)


if __name__ == "__main__":
    main()
