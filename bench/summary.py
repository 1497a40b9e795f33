#!/usr/bin/env python3
"""summary.py - from rows as JSON Lines to "point: figure (target) holds / does not hold".

usage: summary.py FOLDER     resident-*, warm-*, cold-*, small-*, huge-*.json in FOLDER
"""
import glob
import json
import math
import os
import statistics
import sys


def load(folder, name, kind="cell"):
    path = os.path.join(folder, name + ".json")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row for row in rows if row["kind"] == kind and row.get("error") is None]


def load_runs(folder, name):
    """The cells of NAME-1, NAME-2, ..., run after run."""
    paths = glob.glob(os.path.join(folder, name + "-*.json"))
    runs = sorted(int(path[:-len(".json")].rsplit("-", 1)[1]) for path in paths)
    return [cell for run in runs for cell in load(folder, f"{name}-{run}")]


def merged(cells):
    """One cell for those measured by several runs: all repeats, and medians of the rest."""
    runs = {}
    for cell in cells:
        key = ("dtype", "batch_size", "pin_memory", "auto") + (() if cell["auto"] else ("workers",))
        runs.setdefault(tuple(cell[part] for part in key), []).append(cell)
    found = []
    for same in runs.values():
        cell = dict(same[0], rates=[rate for run in same for rate in run["rates"]])
        for name in ("samples_per_s", "ceiling_share"):
            values = [run[name] for run in same if run[name] is not None]
            cell[name] = statistics.median(values) if values else None
        found.append(cell)
    return found


def millions(rate):
    return f"{rate / 1e6:.2f} M/s" if rate >= 1e5 else f"{rate / 1e3:.2f} k/s"


class Table:
    """Collects the points and prints them at the end."""

    def __init__(self):
        self.lines = []
        self.holding = 0

    def point(self, name, figure, target, holds):
        self.holding += holds
        verdict = "holds" if holds else "DOES NOT HOLD"
        self.lines.append(f"{name:46} {figure:58} ({target}) {verdict}")

    def missing(self, name):
        self.lines.append(f"{name:46} not measured")

    def print(self):
        print("\n" + "\n".join(self.lines))
        print(f"{self.holding} of {len(self.lines)} points hold")


def best(cells, key=lambda cell: cell["samples_per_s"]):
    return max(cells, key=key, default=None)


def share_points(table, title, cells, targets, by_dtype):
    """Every fixed number of workers, each batch size (and type), against its ceiling.

    The same cell with pin_memory on and off counts once, by the worse of the two.
    """
    groups = {}
    for cell in cells:
        if not cell["auto"] and cell["ceiling_share"] is not None:
            key = (cell["dtype"] if by_dtype else "", cell["batch_size"], cell["workers"])
            groups.setdefault(key, []).append(cell)
    if not groups:
        table.missing(title)
    for (dtype, batch, workers), same in sorted(groups.items()):
        cell = min(same, key=lambda c: c["ceiling_share"])
        target = targets.get(dtype, targets["any"])
        name = f"{title} {dtype} batch {batch} workers {workers}".replace("  ", " ")
        figure = f"{millions(cell['samples_per_s'])}, {cell['ceiling_share']:.2f} of {cell['ceiling']}"
        table.point(name, figure, f">= {target:.2f}", cell["ceiling_share"] >= target)


def middle(ratios):
    """The median, and the bounds between which it lies with 99.9 % certainty.

    By order statistics: the number of values below the true median is binomial for any
    distribution. 99.9 %, since there are many pairs.
    """
    ratios = sorted(ratios)
    count, below, left_out = len(ratios), 0, 0
    while left_out < count // 2:
        below += math.comb(count, left_out)
        if below / 2 ** count > 0.0005:
            break
        left_out += 1
    if left_out == 0:
        return statistics.median(ratios), 0.0, math.inf  # too few
    return statistics.median(ratios), ratios[left_out - 1], ratios[count - left_out]


def paired(one, other):
    """The ratios of repeats that were measured next to each other."""
    return [a / b for a, b in zip(one["rates"], other["rates"])]


def auto_point(table, title, cells):
    """Compares auto with the best fixed number of workers."""
    for key in sorted({(c["dtype"], c["batch_size"]) for c in cells}):
        same = [c for c in cells if (c["dtype"], c["batch_size"]) == key]
        found = []
        for pin in {c["pin_memory"] for c in same}:
            auto = best(c for c in same if c["auto"] and c["pin_memory"] == pin)
            fixed = best(c for c in same if not c["auto"] and c["pin_memory"] == pin)
            if auto and fixed:
                found.append(middle(paired(auto, fixed)) + (fixed["workers"],))
        name = f"auto workers / best number, {title} {key[0]} batch {key[1]}"
        if found:
            ratio, low, high, workers = min(found)
            table.point(name, f"x{ratio:.2f} ({low:.2f} to {high:.2f}) of workers {workers}",
                        ">= 0.95", ratio >= 0.95)
        else:
            table.missing(name)


def pin_point(table, cells):
    """Page-locking must cost nothing: "slower" means beyond any noise."""
    found = []
    for on in (c for c in cells if c["pin_memory"] == "on"):
        for off in (c for c in cells if c["pin_memory"] == "off"):
            keys = ("dtype", "batch_size", "auto") + (() if on["auto"] else ("workers",))
            if all(on[key] == off[key] for key in keys):
                found.append(middle(paired(on, off)))
    if not found:
        table.missing("pin_memory on / off")
        return
    slower = sum(high < 1 for _, _, high in found)
    ratios = [ratio for ratio, _, _ in found]
    table.point(f"pin_memory on / off, {len(found)} cells",
                f"x{statistics.median(ratios):.2f} median, x{min(ratios):.2f} at worst, "
                f"{slower} slower beyond noise", "0 slower", slower == 0)


def time_point(table, name, cells, key, limit_ms):
    times = [cell[key] for cell in cells if cell[key] is not None]
    if not times:
        table.missing(name)
        return
    table.point(name, f"{statistics.median(times):.2f} ms median, {max(times):.2f} at worst",
                f"< {limit_ms:g} ms", statistics.median(times) < limit_ms)


def memory_point(table, cells):
    """The process must grow by no more than the loader announces."""
    pairs = [(c["rss_bytes"] - c["rss_base_bytes"], c["announced_bytes"]) for c in cells]
    if not pairs:
        table.missing("memory taken / announced")
        return
    over = max(taken - announced for taken, announced in pairs)
    table.point("memory taken beyond what was announced", f"{over / 1e6:+.2f} MB at most",
                "< 1 MB", over < 1e6)


def size_points(table, small, huge):
    """10^12 samples must cost what 10^5 cost: compares run n of one with run n of the other."""
    pairs = [pair for workers in sorted({cell["workers"] for cell in small})
             for pair in zip(*([cell for cell in cells if cell["workers"] == workers]
                               for cells in (small, huge)))]
    if not pairs:
        table.missing("10^12 samples against 10^5")
        return
    opened = statistics.median(h["create_ms"] for _, h in pairs)
    before = statistics.median(s["create_ms"] for s, _ in pairs)
    table.point("10^12 samples: create", f"{opened:.2f} ms (10^5: {before:.2f} ms)", "< 5 ms",
                opened < 5)
    grown = [(h["rss_bytes"] - h["rss_base_bytes"]) - (s["rss_bytes"] - s["rss_base_bytes"])
             for s, h in pairs]
    table.point("10^12 samples: more memory held", f"{max(grown) / 1e6:+.2f} MB", "<= 1 MB",
                max(grown) <= 1e6)
    for workers in sorted({h["workers"] for _, h in pairs}):
        rates = [(s["samples_per_s"], h["samples_per_s"]) for s, h in pairs if h["workers"] == workers]
        ratio = statistics.median(s / h for s, h in rates)
        table.point(f"10^12 samples: time per sample, workers {workers}",
                    f"x{ratio:.2f} ({1e9 / statistics.median(h for _, h in rates):.0f} ns, "
                    f"10^5: {1e9 / statistics.median(s for s, _ in rates):.0f} ns)", "<= x1.10",
                    ratio <= 1.10)


def points(folder):
    table = Table()
    runs, reads_warm, cold, huge = (load_runs(folder, name)
                                    for name in ("resident", "warm", "cold", "huge"))
    resident, warm = merged(runs), merged(reads_warm)
    share_points(table, "resident", resident, {"float32": 0.90, "any": 0.85}, by_dtype=True)
    pin_point(table, resident)
    auto_point(table, "resident", resident)
    share_points(table, "random reads, warm", warm, {"any": 0.90}, by_dtype=False)
    share_points(table, "random reads, cold", merged(cold), {"any": 0.90}, by_dtype=False)
    auto_point(table, "warm reads,", warm)
    auto_point(table, "cold reads,", merged(cold))
    stayed = [c["cold_resident_share"] for c in cold if c["cold_resident_share"] is not None]
    if stayed:
        table.point("cold: still cached when a repeat started", f"{max(stayed):.1%}", "<= 1 %",
                    max(stayed) <= 0.01)
    time_point(table, "first batch, resident, create included", runs, "first_batch_ms", 5)
    time_point(table, "gap between epochs, resident", runs, "epoch_gap_ms", 0.5)
    memory_point(table, runs)
    time_point(table, "resume within an epoch, create included", runs, "resume_ms", 5)
    time_point(table, "resume at 10^12 samples, create included", huge, "resume_ms", 5)
    size_points(table, load_runs(folder, "small"), huge)
    table.print()


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    points(sys.argv[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
