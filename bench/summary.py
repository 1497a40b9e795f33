#!/usr/bin/env python3
"""summary.py - from rows as JSON Lines to "point: figure (target) holds / does not hold".

usage: summary.py points FOLDER     resident, warm, cold, small, huge .json in FOLDER
       summary.py peers FOLDER      peers.json and ours-*.json in FOLDER
"""
import glob
import json
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


def millions(rate):
    return f"{rate / 1e6:.2f} M/s" if rate >= 1e5 else f"{rate / 1e3:.2f} k/s"


class Table:
    """The points, printed at the end in one piece."""

    def __init__(self):
        self.lines = []
        self.holding = 0

    def point(self, name, figure, target, holds):
        self.holding += holds
        verdict = "holds" if holds else "DOES NOT HOLD"
        self.lines.append(f"{name:44} {figure:42} ({target}) {verdict}")

    def missing(self, name):
        self.lines.append(f"{name:44} not measured")

    def print(self):
        print("\n" + "\n".join(self.lines))
        print(f"{self.holding} of {len(self.lines)} points hold")


def best(cells, key=lambda cell: cell["samples_per_s"]):
    return max(cells, key=key, default=None)


def workers_of(cell):
    return f"{'auto:' if cell['auto'] else ''}{cell['workers']}"


def share_points(table, title, cells, target, by_dtype):
    """The fastest cell of each batch size (and type) against its ceiling."""
    keys = sorted({(cell["dtype"] if by_dtype else "", cell["batch_size"]) for cell in cells})
    if not keys:
        table.missing(title)
    for dtype, batch in keys:
        cell = best(c for c in cells if c["batch_size"] == batch and
                    (not by_dtype or c["dtype"] == dtype) and c["ceiling_share"] is not None)
        name = f"{title} {dtype} batch {batch}".replace("  ", " ")
        if cell is None:
            table.missing(name)
            continue
        table.point(name, f"{millions(cell['samples_per_s'])}, {cell['ceiling_share']:.1%} of "
                    f"{cell['ceiling']} (w={workers_of(cell)})",
                    f">= {target:.0%}", cell["ceiling_share"] >= target)


def auto_point(table, cells):
    """Does auto find what the best fixed number of workers gives?"""
    ratios = []
    for key in {(c["dtype"], c["batch_size"], c["pin_memory"]) for c in cells}:
        same = [c for c in cells if (c["dtype"], c["batch_size"], c["pin_memory"]) == key]
        auto = best(c for c in same if c["auto"])
        fixed = best(c for c in same if not c["auto"])
        if auto and fixed:
            ratios.append(auto["samples_per_s"] / fixed["samples_per_s"])
    if not ratios:
        table.missing("workers = auto against the best number")
        return
    ratio = statistics.median(ratios)
    table.point("workers = auto against the best number",
                f"x{ratio:.2f} in the middle, x{min(ratios):.2f} at worst", "middle >= 0.95",
                ratio >= 0.95)


def pin_point(table, cells):
    """Page-locking must cost nothing."""
    ratios = []
    for on in (c for c in cells if c["pin_memory"] == "on"):
        key = [on[k] for k in ("dtype", "batch_size", "auto")]
        for off in cells:
            same_workers = on["auto"] or on["workers"] == off["workers"]
            if off["pin_memory"] == "off" and same_workers and \
                    key == [off[k] for k in ("dtype", "batch_size", "auto")]:
                ratios.append(on["samples_per_s"] / off["samples_per_s"])
    if not ratios:
        table.missing("pin_memory on / off")
        return
    ratio = statistics.median(ratios)
    table.point("pin_memory on / off",
                f"x{ratio:.2f} in the middle, x{min(ratios):.2f} at worst", "middle >= 0.97",
                ratio >= 0.97)


def time_point(table, name, cells, key, limit_ms):
    times = [cell[key] for cell in cells if cell[key] is not None]
    if not times:
        table.missing(name)
        return
    table.point(name, f"{statistics.median(times):.2f} ms in the middle, {max(times):.2f} at worst",
                f"<= {limit_ms:.0f} ms", statistics.median(times) <= limit_ms)


def size_points(table, small, huge):
    """10^12 samples must cost what 10^5 cost."""
    pairs = [(s, h) for s in small for h in huge if s["workers"] == h["workers"]]
    if not pairs:
        table.missing("10^12 samples against 10^5")
        return
    opened = statistics.median(h["create_ms"] for _, h in pairs)
    before = statistics.median(s["create_ms"] for s, _ in pairs)
    table.point("10^12 samples: create", f"{opened:.2f} ms (10^5: {before:.2f} ms)", "<= 2x + 1 ms",
                opened <= 2 * before + 1)
    grown = [(h["rss_bytes"] - h["rss_base_bytes"]) - (s["rss_bytes"] - s["rss_base_bytes"])
             for s, h in pairs]
    table.point("10^12 samples: more memory held", f"{max(grown) / 1e6:+.2f} MB", "<= 1 MB",
                max(grown) <= 1e6)
    for s, h in pairs:
        ratio = s["samples_per_s"] / h["samples_per_s"]
        table.point(f"10^12 samples: time per sample, workers {h['workers']}",
                    f"x{ratio:.2f} ({1e9 / h['samples_per_s']:.0f} ns, "
                    f"10^5: {1e9 / s['samples_per_s']:.0f} ns)", "<= x1.15", ratio <= 1.15)


def points(folder):
    table = Table()
    resident = load(folder, "resident")
    warm = load(folder, "warm")
    cold = load(folder, "cold")
    huge = load(folder, "huge")
    share_points(table, "resident", resident, 0.90, by_dtype=True)
    auto_point(table, resident)
    pin_point(table, resident)
    share_points(table, "random reads, warm", warm, 0.90, by_dtype=False)
    share_points(table, "random reads, cold", cold, 0.90, by_dtype=False)
    stayed = [c["cold_resident_share"] for c in cold if c["cold_resident_share"] is not None]
    if stayed:
        table.point("cold: still cached when a repeat began", f"{max(stayed):.1%}", "<= 1 %",
                    max(stayed) <= 0.01)
    time_point(table, "first batch, resident", resident, "first_batch_ms", 50)
    time_point(table, "resume to first batch, resident", resident, "resume_ms", 50)
    time_point(table, "resume to first batch, 10^12 samples", huge, "resume_ms", 50)
    size_points(table, load(folder, "small"), huge)
    table.print()


def peers(folder):
    ours = {}
    for path in sorted(glob.glob(os.path.join(folder, "ours-*.json"))):
        found = {}
        for cell in load(folder, os.path.basename(path)[:-len(".json")]):
            key = (cell["dtype"], cell["batch_size"])
            found[key] = max(found.get(key, 0), cell["samples_per_s"])
        for key, rate in found.items():
            ours.setdefault(key, []).append(rate)
    theirs = {}
    with open(os.path.join(folder, "peers.json"), encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            threads = f"{row['workers']} workers" if "workers" in row else f"{row['threads']} threads"
            key = (row["peer"], row["dtype"], row["batch_size"], threads)
            theirs.setdefault(key, []).append(row["samples_per_s"])
    print(f"\n{'peer':26} {'dtype':8} {'batch':>5} {'with':10} {'samples/s':>12} {'ours':>12} ratio")
    for (peer, dtype, batch, threads), rates in sorted(theirs.items()):
        mine = ours.get((dtype, batch))
        if mine is None:
            print(f"{peer:26} {dtype:8} {batch:5} {threads:10} {millions(statistics.median(rates)):>12}")
            continue
        ratio = statistics.median(mine) / statistics.median(rates)
        print(f"{peer:26} {dtype:8} {batch:5} {threads:10} {millions(statistics.median(rates)):>12} "
              f"{millions(statistics.median(mine)):>12} x{ratio:.2f}")
    if not theirs:
        print("no peer could run here")


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("points", "peers"):
        print(__doc__, file=sys.stderr)
        return 2
    {"points": points, "peers": peers}[sys.argv[1]](sys.argv[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
