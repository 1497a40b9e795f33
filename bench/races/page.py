#!/usr/bin/env python3
"""page.py - writes docs/race.md, and README.md's table between <!-- race --> and <!-- /race -->.

usage: page.py FOLDER [ROOT]    FOLDER: the rows of `bench/run.sh peers`, and in FOLDER/masked those without AVX-512
                                ROOT: the folder with docs/ and README.md (this repository)

Leaves README.md alone if one of its rows was not measured.
"""
import glob
import json
import os
import re
import sys

from photos.race import middle, ratio

JOBS = {
    "imagenet": "1,000 JPEG files of ImageNet's sizes, random crop to 224, flip, float32",
    "large": "the same of 3000 x 2250",
    "imagenet-tar": "the first set in four tar files",
    "png": "60,000 PNG files of 28 x 28",
    "raw": "raw records, 256 x 256 x 3, as stored",
    "tokens": "windows of 1,024 tokens in the page cache, on one core",
    "tokens-cold": "the same from the disk",
    "mnist": "MNIST in memory, float32, batches of 64",
    "mnist-512": "the same, batches of 512",
    "train": "PyTorch's examples/mnist network, trained on the CPU (CPU time of Stoker: with its test)",
}
# README's columns: title, names; rows: title, job, Stoker's name; sentence about tokens: words, name.
COLUMNS = (("PyTorch", ("torchvision, Pillow", "torchvision.io")), ("tf.data", ("tf.data decode_and_crop", "tf.data")),
           ("DALI, CPU", ("DALI, no antialiasing", "DALI, antialiased", "DALI")), ("FFCV", ("FFCV, its own file",)))
LINES = ((JOBS["imagenet"], "imagenet", "Stoker, exact"), (JOBS["large"], "large", "Stoker, exact"),
         (JOBS["png"], "png", "Stoker, PNG"),
         ("raw records, 256 x 256 x 3, verified by checksum (FFCV: not): each epoch read", "raw", "Stoker, verified"),
         ("by default, later epochs: kept in memory", "raw", "Stoker, default, later epochs"),
         ("mapped (`map=1`)", "raw", "Stoker, map=1"))
TOKENS = (("in order", "Stoker, in order"), ("shuffled", "Stoker, shuffled"), ("llm.c's method in order", "llm.c's rule"),
          ("nanoGPT's `get_batch`", "nanoGPT get_batch (NumPy)"), ("Grain", "Grain"), ("Megatron", "Megatron GPTDataset"))


def load(folder):
    """The machine, and {job: {name: row}}."""
    machine, jobs = None, {}
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        with open(path, encoding="utf-8") as lines:
            for row in (json.loads(line) for line in lines if line.startswith('{"kind"')):
                if row["kind"] == "race":
                    jobs.setdefault(row["job"], {})[row["name"]] = row
                elif "vectors" in row:
                    machine = machine or row
    return machine, jobs


def rate(jobs, job, *names):
    """The best of the rows of these names; None if none was measured."""
    rows = jobs.get(job, {})
    return max((middle(rows[name]["rates"]) or 0 for name in names if name in rows), default=0) or None


def figure(value):
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def short(value):
    return "" if value is None else f"{value / 1e3:.0f} k" if value >= 1e4 else f"{value:,.0f}"


def cells(values, form):
    """The best value in bold."""
    return [f"**{form(value)}**" if value == max(filter(None, values)) else form(value) for value in values]


def table(job, rows):
    """Fastest first; a library that did not run, with the reason."""
    scale, unit, many, cpu_scale = (1e-6, "M tokens", "billion", 1e6) if job.startswith("tokens") else (1, "samples", "million", 1e3)
    mine = next((row for row in rows if row["name"].startswith("Stoker")), None)
    lines = [f"### {job}: {JOBS[job]}\n", f"| | version | threads | {unit}/s | least to most | CPU seconds per {many} | Stoker / it |",
             "|---|---|---|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: -(middle(row["rates"]) or 0)):
        median, cpu = middle(row["rates"]), middle(row["cpu_ms"])
        if median is None:
            lines.append(f"| {row['name']} | {row['why']} | | | | | |")
            continue
        good = [scale * value for value in row["rates"] if value == value]
        share = ratio(mine, row) if mine else None
        lines.append(f"| {row['name']} | {row['version']} | {row['threads']} | {figure(scale * median)} | {figure(min(good))} to "
                     f"{figure(max(good))} | {figure(cpu and cpu_scale * cpu)} | {'' if share is None else format(share, '.2f')} |")
    return "\n".join(lines) + "\n"


def page(runs):
    parts = ["# The race\n\nWritten by `./run bench peers`: medians of turns, each library at its best number of threads or processes.\n"
             "[What each row does](benchmark.md). The last column divides the rate of Stoker's first row, the one with 1.00, by each row's,\n"
             "in turns of the same round.\n"]
    for machine, jobs in runs:
        parts.append(f"## {machine['cpus']} CPUs, {machine['cpu']}, {machine['vectors']}\n\n{machine['date']}, "
                     f"Linux {machine['kernel']}, commit {machine['commit']}, load {machine['load_1m']:.1f} at the start.\n")
        parts += [table(job, list(jobs[job].values())) for job in JOBS if job in jobs]
    return "\n".join(parts)


def readme(runs):
    """The text between the markers; None if a figure of ours is missing."""
    machine, jobs = runs[0]
    if not all(rate(jobs, job, name) for job, name in [line[1:] for line in LINES] + [("tokens", name) for _, name in TOKENS[:3]]):
        return None
    heads = []
    for title, names in COLUMNS:
        versions = [re.search(r"\d+\.\d+", row["version"]) for rows in jobs.values() for row in rows.values() if row["name"] in names]
        heads.append(re.sub(r"(,|$)", rf" {next(filter(None, versions))[0]}\1", title, count=1) if any(versions) else title)
    lines = [f"Samples/s on {machine['cpus']} CPUs ({machine['cpu']}, {machine['vectors']}), {machine['date'][:10]}, "
             "each loader at its best number of threads or processes\n([all figures](docs/race.md), [how we measure](docs/benchmark.md)):\n",
             "| | Stoker | " + " | ".join(heads) + " |", "|---" * (len(heads) + 2) + "|"]
    for title, job, name in LINES:
        rates = [rate(jobs, job, name)] + [rate(jobs, job, *names) for _, names in COLUMNS]
        lines.append(f"| {title} |" + "".join(f" {cell} |" if cell else " |" for cell in cells(rates, short)))
    lines.append("")
    for _, rows in runs[1:]:
        column = [rate(rows, job, name) for _, job, name in LINES]
        if all(column):
            lines.append("Without AVX-512 Stoker's column is " + ", ".join(map(short, column)) + ".\n")
    found = [(words, 1e-3 / middle(jobs["tokens"][name]["cpu_ms"])) for words, name in TOKENS if rate(jobs, "tokens", name)]
    said = [f"{words} {cell}" for (words, _), cell in zip(found, cells([value for _, value in found], figure))]
    lines.append("Windows of 1,024 tokens, M tokens per CPU second: " + ", ".join(said[:2]) + "; " + ", ".join(said[2:]) + ".")
    return "\n".join(lines)


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    root = sys.argv[2] if len(sys.argv) == 3 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    runs = [run for run in map(load, (sys.argv[1], os.path.join(sys.argv[1], "masked"))) if run[0]]
    if not runs:
        print(f"page.py: no race in {sys.argv[1]}", file=sys.stderr)
        return 1
    with open(os.path.join(root, "docs/race.md"), "w", encoding="utf-8") as file:
        file.write(page(runs))
    text = readme(runs)
    if text is None:
        print("page.py: README.md is left alone: not all of its rows were measured")
        return 0
    with open(os.path.join(root, "README.md"), "r+", encoding="utf-8") as file:
        new = re.sub(r"(<!-- race -->\n).*(\n<!-- /race -->)", lambda found: found[1] + text + found[2], file.read(), flags=re.S)
        file.seek(0)
        file.write(new)
        file.truncate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
