#!/usr/bin/env python3
"""readme_block.py - measures MNIST, as ./run demo does, and rewrites the measured table of README.md.

usage: bench/readme_block.py [--build DIR]     takes about 2 minutes; default build/release

The lines between "measured: begin" and the end of the table are replaced; the text behind the table is not, and must still be true.
Needs MNIST ($STOKER_DATA/mnist or data/mnist) and an idle machine: figures of a busy one are refused, and the page stays as it is.
Exit status: 0 rewritten, 1 a program failed or printed something else, or the machine is busy, 77 no MNIST or no build.
"""
import argparse
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(TOP, "README.md")
BEGIN = "<!-- measured: begin -->\n"
HIDDEN = (" RSS +MB",)  # columns that the page leaves out
LOAD_MAX = 0.5  # runnable threads before the run
SPREAD_MAX = 25.0  # % between the repeats of a row


class Failed(Exception):
    """A program failed, or its output lacks something."""


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {done.returncode}: {done.stderr[-400:]}")
    return done.stdout.split("\n")


def without_columns(header, line):
    """Cuts the hidden columns, right-aligned below their names."""
    for name in sorted(HIDDEN, key=header.index, reverse=True):
        at = header.index(name)
        line = line[:at] + line[at + len(name):]
    return line.rstrip()


def find(lines, pattern):
    for line in lines:
        found = re.match(pattern, line)
        if found:
            return found
    raise Failed(f"no line like \"{pattern}\"")


def shown_rows(lines):
    """The rows of workers that page-lock, and of none that does not."""
    header = find(lines, r"# workers .*").group(0)
    rows = [line for line in lines if re.match(r" +(0 +off|[12] +on|auto:\d+ +on) ", line)]
    if len(rows) != 8:
        raise Failed(f"{len(rows)} rows instead of 8")
    spread = max(float(re.search(r" ([0-9.]+)% ", row).group(1)) for row in rows)
    if spread > SPREAD_MAX:
        raise Failed(f"the machine is busy: repeats of a row differ by {spread} %, at most {SPREAD_MAX} %")
    return [find(lines, r"# cpu, .*").group(0), without_columns(header, header)] + [
        without_columns(header, row) for row in rows]


def caption(lines):
    version = find(lines, r"# loaderbench ([0-9.]+),").group(1)
    when = find(lines, r"# when +([0-9-]+)T.* load ([0-9.]+),.*(gcc [0-9.]+)")
    machine = find(lines, r"# machine +(.*), (\d+) CPUs, .*Linux ([0-9.]+)")
    if float(when.group(2)) > LOAD_MAX:
        raise Failed(f"the machine is busy: load {when.group(2)} before the run, at most {LOAD_MAX}")
    return (f"`./run demo` sweeps MNIST, then trains on it. Selected lines and columns, version {version}, {when.group(1)}, on\n"
            f"{machine.group(2)} virtual CPUs of an {machine.group(1)} (Linux {machine.group(3)}, {when.group(3)}):\n")


def block(build, data):
    swept = run(os.path.join(build, "bench", "loaderbench"), "--workers", "0,1,2,auto", "--batch-size", "64,512", data)
    trained = run(os.path.join(build, "trainer", "stoker-mnist"), "--quiet", "--data", data)
    shown = shown_rows(swept) + ["", "..."] + [find(trained, r"trained .*").group(0), find(trained, r"test accuracy.*").group(0)]
    return caption(swept) + "\n```\n" + "\n".join(shown) + "\n```\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("STOKER_BUILD", os.path.join(TOP, "build", "release")))
    build = os.path.abspath(parser.parse_args().build)
    folder = os.path.join(os.environ.get("STOKER_DATA", os.path.join(TOP, "data")), "mnist")
    if not os.path.isdir(folder) or not os.path.exists(os.path.join(build, "bench", "loaderbench")):
        print(f"readme_block.py: no {folder}, or no {build}/bench/loaderbench", file=sys.stderr)
        return 77
    try:
        text = block(build, f"mnist:{folder}")
    except Failed as why:
        print(f"readme_block.py: {why}", file=sys.stderr)
        return 1
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    begin = page.index(BEGIN) + len(BEGIN)
    end = page.index("```\n", page.index("```\n", begin) + 4) + 4
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page[:begin] + text + page[end:])
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
