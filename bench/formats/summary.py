#!/usr/bin/env python3
"""summary.py - from the rows of `bench/run.sh formats` to "point: figure (target) holds / does not".

usage: summary.py FOLDER
"""
import glob
import json
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from summary import Table, load, millions  # noqa: E402

MIB = 1 << 20


class FormatTable(Table):
    """Some figures are printed without a target."""

    def figure(self, name, figure):
        self.notes.append(f"{name:46} {figure}")

    def __init__(self):
        super().__init__()
        self.notes = []

    def print(self):
        super().print()
        print("\n" + "\n".join(self.notes))


def one(folder, name):
    """The single object of a file, or None."""
    path = os.path.join(folder, name + ".json")
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def turns(folder, name):
    """The cells of all turns of one sweep."""
    cells = []
    for path in sorted(glob.glob(os.path.join(folder, name + "-[0-9]*.json"))):
        cells += load(folder, os.path.basename(path)[:-len(".json")])
    return cells


def share_of(cells, ceiling):
    """The median over all turns of the share of a ceiling; None if it was not measured."""
    found = [cell["shares"][ceiling] for cell in cells if cell["shares"].get(ceiling)]
    return statistics.median(found) if found else None


def rate_of(cells):
    return statistics.median(rate for cell in cells for rate in cell["rates"])


def share_point(table, name, cells, ceiling, target):
    share = share_of(cells, ceiling)
    if share is None:
        table.missing(name)
    else:
        table.point(name, f"{millions(rate_of(cells))}, {share:.2f} of {ceiling}", f">= {target:.2f}",
                    share >= target)


def by_batch(cells):
    batches = {}
    for cell in cells:
        batches.setdefault(cell["batch_size"], []).append(cell)
    return sorted(batches.items())


def micro(folder, name):
    """{row: [ns, ns of processor time, GB/s, ratio]} of a block of micro."""
    path = os.path.join(folder, name + ".txt")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as lines:
        return {words[0]: list(map(float, words[1:])) for words in list(map(str.split, lines))[1:]}


def png_points(table, folder):
    for name, key, target in (("28x28 gray", "png-mnist", 2.3), ("256x256 RGB", "png-rgb", 2.6)):
        rows = micro(folder, key)
        title = f"PNG fast path / libpng, {name}"
        if not rows:
            table.missing(title)
            continue
        (_, ns, _, ratio), (_, other_ns, _, _) = rows["fast-path"], rows["libpng"]
        table.point(title, f"x{ratio:.2f} ({ns / 1000:.1f} us, libpng {other_ns / 1000:.1f} us)",
                    f">= x{target}", ratio >= target)


def folder_points(table, folder):
    for batch, cells in by_batch(turns(folder, "folder-uring")):
        share_point(table, f"60,000 PNG files, warm, batch {batch}", cells, "parts in turn", 0.85)
    for batch, cells in by_batch(turns(folder, "folder-pread")):
        share = share_of(cells, "parts in turn")
        table.figure(f"the same read by pread, batch {batch}",
                     f"{millions(rate_of(cells))}, {share:.2f} of parts in turn" if share else "-")
    cold = load(folder, "folder-cold")
    if cold:
        table.figure("60,000 PNG files, cold", millions(rate_of(cold)))
    for kind in ("png", "jpeg"):
        cells = load(folder, f"rgb-{kind}")
        share_point(table, f"256x256 RGB {kind.upper()} files", cells, "decode", 0.92)
    cached_points(table, folder)


def ratio_of(cells, others, key):
    """The median of the ratios of turns, which were measured one after the other."""
    return statistics.median(cell[key] / other[key] for cell, other in zip(cells, others))


def cached_points(table, folder):
    resident = dict(by_batch(turns(folder, "held-resident")))
    for key, name in (("mnist-png", "PNG folder"), ("mnist-raw", "shards 28x28 raw"),
                      ("mnist-lz4", "shards 28x28 LZ4")):
        for batch, cells in by_batch(turns(folder, f"held-{key}")):
            ratio = ratio_of(cells, resident[batch], "samples_per_s")
            table.point(f"{name} cached decoded / resident, batch {batch}",
                        f"x{ratio:.2f} ({millions(rate_of(cells))}, {millions(rate_of(resident[batch]))})",
                        ">= x0.95", ratio >= 0.95)


SETS = (("mnist-raw", "28x28 raw"), ("mnist-lz4", "28x28 LZ4"), ("rgb-raw", "256x256 RGB raw"),
        ("large-lz4", "256x256 LZ4"))


def shard_points(table, folder):
    for key, name in SETS:
        cached = turns(folder, f"shards-cached-{key}")
        share_point(table, f"shards {name}, cached as rows",
                    [c for c in cached if c["cache"] == "decoded"], "gather", 0.90)
        encoded = [c for c in cached if c["cache"] == "encoded"]
        if encoded:
            table.figure(f"shards {name}, cached as stored",
                         f"{millions(rate_of(encoded))}, {share_of(encoded, 'decode'):.2f} of decode, "
                         "which sums nothing")
        for reader, bare in (("uring", "io_uring"), ("pread", "pread")):
            share_point(table, f"shards {name}, warm, {bare}", turns(folder, f"shards-{reader}-{key}"),
                        "parts in turn", 0.90)
    cold = turns(folder, "shards-cold")
    share_point(table, "shards 256x256 RGB, cold, by pread", load(folder, "shards-cold-pread"),
                "bare pread", 0.90)
    share_point(table, "shards 256x256 RGB, cold, / bare loop", cold, "bare io_uring", 0.90)
    fio = [one(folder, f"fio-{turn}") for turn in range(1, 6)]
    rates = [row["jobs"][0]["read"]["iops"] for row in fio if row is not None]
    if rates and cold:
        ratio = rate_of(cold) / statistics.median(rates)
        table.point("shards 256x256 RGB, cold, / fio",
                    f"x{ratio:.2f} ({millions(rate_of(cold))}, fio {millions(statistics.median(rates))})",
                    ">= x0.90", ratio >= 0.90)
    else:
        table.figure("shards 256x256 RGB, cold, / fio", "no fio here: see the bare loop")


def reader_figures(table, folder):
    pairs = [("60,000 PNG files", "folder-uring", "folder-pread")]
    pairs += [(f"shards {name}", f"shards-uring-{key}", f"shards-pread-{key}") for key, name in SETS]
    for name, uring, pread in pairs:
        for batch, cells in by_batch(turns(folder, uring)):
            same = [c for c in turns(folder, pread) if c["batch_size"] == batch]
            if same:
                table.figure(f"uring / pread, {name}, warm, batch {batch}",
                             f"x{rate_of(cells) / rate_of(same):.2f}")


def sum_points(table, folder):
    """Processor time of loaders that sum each record on every read, and once: the whole cost of verifying."""
    for key, name in SETS:
        always, once = turns(folder, f"sum-{key}"), turns(folder, f"sum-once-{key}")
        title = f"checksums, shards {name}, warm"
        if not always or not once:
            table.missing(title)
            continue
        cost = ratio_of(always, once, "cpu_s_per_million") - 1
        without = statistics.median(cell["cpu_s_per_million"] for cell in once)
        table.point(title, f"{cost:.1%} ({without * 1000:.0f} ns per sample without)", "<= 3 %", cost <= 0.03)


def bomb_points(table, folder):
    for path in sorted(glob.glob(os.path.join(folder, "bomb-*.json"))):
        name = os.path.basename(path)[len("bomb-"):-len(".json")]
        row = one(folder, f"bomb-{name}")
        if row is None:
            table.missing(f"bomb {name}")
            continue
        answer = row["code"].replace("STOKER_", "") or "read, not unpacked"
        holds = row["ms_min"] < 10 and row["peak_bytes"] < 16 * MIB
        table.point(f"bomb {name}", f"{answer} in {row['ms_min']:.2f} ms, {row['peak_bytes'] / MIB:.1f} MiB",
                    "< 10 ms, < 16 MiB", holds and (row["code"] != "" or "zTXt" in name))


def many_figures(table, folder):
    for key, name in (("many", "a million files: open"), ("many-index", "the same from an index")):
        row = one(folder, key)
        if row is not None:
            table.figure(name, f"{row['ms'] / 1000:.2f} s, {row['kept_bytes'] / MIB:.0f} MiB kept, "
                               f"{row['peak_bytes'] / MIB:.0f} MiB at most, {row['samples']} samples")


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = sys.argv[1]
    table = FormatTable()
    for points in (png_points, folder_points, shard_points, sum_points, bomb_points, reader_figures,
                   many_figures):
        points(table, folder)
    table.print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
