#!/usr/bin/env python3
"""page.py - the races of a run as a page: each loader's rate, CPU time, and ratio to ours.

usage: page.py ROWS >PAGE       ROWS: the folder that bench/run.sh peers wrote (STOKER_KEEP)
"""
import json
import os
import statistics
import sys


def median(values):
    good = [value for value in values if value == value]
    return statistics.median(good) if good else None


def photos(rows):
    """photos.json and raw.json: job, loader, rates of its turns."""
    for job in dict.fromkeys(row["job"] for row in rows if row["kind"] == "photos"):
        found = [row for row in rows if row.get("job") == job]
        ours = next((row for row in found if row["rates"] and row["name"].startswith("Stoker")), None)
        print(f"\n## {job}\n\n| | version | threads | samples/s | CPU seconds per million | ours in ratio |")
        print("|---|---|---|---|---|---|")
        for row in sorted(found, key=lambda row: -(median(row["rates"]) or 0)):
            rate, cpu = median(row["rates"]), median(row["cpu_ms"])
            if rate is None:
                print(f"| {row['name']} | {row['why']} | | | | |")
                continue
            ratio = median([a / b for a, b in zip(ours["rates"], row["rates"])]) if ours else None
            cells = (f"{rate:,.0f}", "" if cpu is None else f"{1e3 * cpu:,.0f}", "" if ratio is None else f"{ratio:.2f}")
            print(f"| {row['name']} | {row['version']} | {row['threads']} | {' | '.join(cells)} |")


def tokens(rows):
    llmc = next((row["tokens_per_s"] for row in rows if row["side"].startswith("llm.c")), None)
    print("\n## tokens\n\n| | M tokens/s | CPU seconds per million | of llm.c's |\n|---|---|---|---|")
    for row in sorted(rows, key=lambda row: -row["tokens_per_s"]):
        print(f"| {row['side']} | {row['tokens_per_s'] / 1e6:,.0f} | {1e6 / row['tokens_per_cpu_s']:.5f} | "
              f"{'' if llmc is None else format(row['tokens_per_s'] / llmc, '.2f')} |")


def main():
    print("# Beside other loaders")
    for name in ("photos", "raw"):
        path = os.path.join(sys.argv[1], name + ".json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                rows = [json.loads(line) for line in file]
            about = rows[0]
            print(f"\n{about['date']}, {about['cpus']} x {about['cpu']}, Linux {about['kernel']}, "
                  f"commit {about['commit']}")
            photos(rows)
    path = os.path.join(sys.argv[1], "tokens.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            tokens(json.load(file))


if __name__ == "__main__":
    main()
