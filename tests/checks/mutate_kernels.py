#!/usr/bin/env python3
"""mutate_kernels.py - changes a kernel in one line at a time and runs the kernels' tests: one must fail.

usage: mutate_kernels.py BUILD SEED COUNT                   draws places in all files that become code of a GPU, every fifth
       mutate_kernels.py BUILD 'FILE:LINE:OLD=>NEW' ...     where vectors are taken only if they are aligned

With -DSTOKER_FATBINS_FROM=OTHER_BUILD nvcc does not run each time. Exits 1 if one was missed: a table lacks a case.
"""
import itertools
import pathlib
import random
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
NAMES = ("*.cu*", "train/elements.h", "dropout.h", "frame.h", "retouch.h", "taps.h", "gpu/*_body.h")
FILES = [path for path in sorted(TOP.glob("kernels/**/*.*")) if any(map(path.match, NAMES)) and path.name != "train.cu"]
VECTORS = [(r"\w[\w.>-]* % [\w<>:()]+ == 0\b", "true"), (r"\ba\.elements % \w+ != 0\b", "false"), (r"WIDTH == 1\b", "false"),
           (r"\(width & .*?\) == 0", "true"), (r"first \+ STK_TRAIN_PACK <= count", "true")]
CHANGES = [(r" < (?=[\w(])", " <= "), (r" <= ", " < "), (r" > (?=[\w(])", " >= "), (r" >= ", " > "), (r" == ", " != "),
           (r" != ", " == "), (r" && ", " || "), (r" \|\| ", " && "), (r" \+ ", " - "), (r" - ", " + "), (r" \* (?=[\w(])", " + "),
           (r" / ", " * "), (r" % ", " / "), (r">> ", "<< "), (r"(?<!; \w) [+|]=", " ="), (r"-=", "+="), (r"INFINITY", "1"),
           (r"\(u?int64_t\)", "(uint32_t)"), (r"\buint64_t(?= \w+ =)", "uint32_t"), (r"(fmaf\(.*), ([^,]+)\);", r"\1, -(\2));"),
           (r"__sync\w+\(\);|__threadfence\(\);", ";"), (r", lanes\);", ", lanes / 2);"), (r"(?<=if \().*(?=\)$)", r"!(\g<0>)"),
           (r"\b\d+\.\d+(?=F?\b)", "0.7"), (r"(?<=[ (])\d+(?=[,;) ])", lambda match: str(int(match[0]) + 1))]
TESTS = [r"^unit\.(kernels\.source\..*|trainer\.cuda\.layers)$", r"^unit\.kernels\.threads\.(train|transform)$",
         r"^(thread\.trainer\.cuda\.nccl|unit\.kernels\.(transform|resize_golden|retouch_golden|region|mask))$"]
EQUIVALENT = {  # a part of the line as it becomes: why no launch can tell
    "first <= (count);": "a pack beyond the end has no elements",
    "left <= STK_TRAIN_PACK ? (uint32_t)left": "both are the same then",
    "uint32_t step = planes ?": "sides of an output are at most 16384, so a plane has at most 2^30 bytes",
    "(uint32_t)chunk * bytes": "so three planes have less than 2^32",
    "return (uint32_t)blockIdx": "a grid has fewer than 2^24 blocks, up to 2^37 elements", "return (uint32_t)gridDim": "likewise",
    "none = { {": "nothing is drawn from these words"}


def in_turn(lists):
    return [one for turn in itertools.zip_longest(*lists) for one in turn if one]


def mutants(path, changes, draw):
    """(path, number of the line, the line as it becomes) of each place where a change applies: kinds in turn, else shuffled."""
    kinds = {pattern: [] for pattern, _ in changes}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if re.match(r"\s*(#|//|/\*|\* |static_assert|template|typedef|extern|STK_KERNEL)", line):
            continue
        for pattern, becomes in changes:
            for match in re.finditer(pattern, line.split("/*")[0]):
                new = becomes(match) if callable(becomes) else match.expand(becomes)
                kinds[pattern].append((path, number, line[:match.start()] + new + line[match.end():]))
    return in_turn(draw.sample(kind, len(kind)) for kind in draw.sample(list(kinds.values()), len(kinds)))


def verdict(build):
    for tests in TESTS:
        ctest = ["ctest", "--test-dir", build, "-R", tests, "-j2", "--stop-on-failure", "--timeout", "100"]
        names = re.findall(r"#\d+: (\S+)", subprocess.run([*ctest, "-N"], capture_output=True, text=True).stdout)
        if subprocess.run(["ninja", "-C", build, *(name.replace(".", "_") for name in names)], capture_output=True).returncode:
            return "no build"
        failed = re.findall(r"(\S+) \.*\*+\w", subprocess.run(ctest, capture_output=True, text=True).stdout)
        if failed:
            return "caught by " + " ".join(failed)
    return "MISSED"


build, *words = sys.argv[1:]
if "=>" in words[0]:
    parts = [re.match(r"(.+?):(\d+):(.*)=>(.*)$", word).groups() for word in words]
    chosen = [(TOP / path, int(number), (TOP / path).read_text().splitlines()[int(number) - 1].replace(old, new, 1))
              for path, number, old, new in parts]
else:
    draw, count = random.Random(int(words[0])), int(words[1])
    vectors = [mutant for path in FILES for mutant in mutants(path, VECTORS, draw)]
    others = in_turn([mutants(path, CHANGES, draw) for path in FILES])
    chosen = draw.sample(vectors, count // 5) + others[:count - count // 5]
missed = False
for path, number, line in chosen:
    lines = (kept := path.read_text()).splitlines()
    old, lines[number - 1] = lines[number - 1], line
    assert line != old, f"{path}:{number} does not have that text"
    why = [f"equivalent: {reason}" for part, reason in EQUIVALENT.items() if part in line]
    try:
        path.write_text("\n".join(lines) + "\n")
        found = why[0] if why else verdict(build)
    finally:
        path.write_text(kept)
    missed |= found == "MISSED"
    print(f"{path.relative_to(TOP)}:{number}: {old.strip()}\n    {line.strip()}\n    {found}", flush=True)
sys.exit(missed)
