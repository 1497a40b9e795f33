#!/usr/bin/env python3
"""race.py - tokens per second on one core: Stoker beside llm.c's rule, nanoGPT, Megatron, Grain and MosaicML Streaming.

usage: race.py FOLDER [--cold] [--rounds 9] [--seconds 1] [--rows 32] [--length 1024] [--output FILE]

FOLDER gets 100 M tokens of uint16, in the page cache: llmc.bin, raw.bin, megatron.{bin,idx}; at the first run. All sides take
turns, --rounds times, each on the same core: ours by loaderbench, which verifies every window in its first turn, the bare reads and
llm.c's rule by micro (batches of 32 x 1024), the others by peer.py. A figure is the median of its turns, a share the median of its
ratios to the bare reads of the same round. Per second of CPU time: what other processes on the machine disturb less.

With --cold the pages of the file are dropped before each turn, ours read it once, and the ceiling is fio with a ring past the page
cache, 32 reads of 256 KiB in flight. Figures are then per second that passed, since the disk is measured, which others may share.

STOKER_BUILD  the build folder (build/release); STOKER_PEERS  the environments of bench/races/peers/environments.sh (build/peers).
Exit status: 0 measured, 1 one of ours failed.
"""
import argparse
import json
import os
import platform
import re
import shutil
import statistics
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("STOKER_BUILD", "build/release")
PEERS = os.environ.get("STOKER_PEERS", "build/peers")
TOKENS, DOCUMENT = 100_000_000, 1000
BARE = (("the bare reads", "reads"), ("llm.c's rule", "llmc"))
TARGETS = "&fields=inputs,targets&dtype=int32"
# Name, parameters, --shuffle, --cache. By default a file that fits is kept in memory: then the first turn also fills it.
OURS = (("Stoker, in order", TARGETS, "off", "auto"), ("Stoker, in order, read", TARGETS, "off", "none"),
        ("Stoker, in order, map=1", TARGETS + "&map=1", "off", "none"), ("Stoker, shuffled", TARGETS, "on", "auto"),
        ("Stoker, shuffled, read", TARGETS, "on", "none"), ("Stoker, as stored, in order", "", "off", "auto"),
        ("Stoker, as stored, shuffled", "", "on", "auto"))
THEIRS = (("torch unfold, index_select", "torch"), ("nanoGPT get_batch (NumPy)", "nanogpt"), ("Megatron GPTDataset", "megatron"), ("Grain", "grain"),
          ("MosaicML Streaming", "mosaic"))


def write_tokens(folder):
    """One block of a million tokens below 50257, repeated."""
    state, block = 1, bytearray()
    for _ in range(1_000_000):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        block += struct.pack("<H", (state >> 33) % 50257)
    with open(os.path.join(folder, "llmc.bin"), "wb") as llmc, open(os.path.join(folder, "raw.bin"), "wb") as raw:
        llmc.write(struct.pack("<256i", 20240520, 1, TOKENS, *([0] * 253)))
        for _ in range(TOKENS // 1_000_000):
            llmc.write(block)
            raw.write(block)


def write_index(path):
    count = TOKENS // DOCUMENT
    with open(path, "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, count, count + 1))
        file.write(struct.pack(f"<{count}i", *([DOCUMENT] * count)))
        file.write(struct.pack(f"<{count}q", *range(0, 2 * TOKENS, 2 * DOCUMENT)))
        file.write(struct.pack(f"<{count + 1}q", *range(count + 1)))


def prepare(folder):
    os.makedirs(folder, exist_ok=True)
    index = os.path.join(folder, "megatron.idx")
    if not os.path.exists(index):
        write_tokens(folder)
        megatron = os.path.join(folder, "megatron.bin")
        if os.path.exists(megatron):
            os.remove(megatron)
        os.link(os.path.join(folder, "raw.bin"), megatron)
        write_index(index)
    for name in ("llmc.bin", "raw.bin"):
        with open(os.path.join(folder, name), "rb") as file:
            while file.read(1 << 24):
                pass


class Side:
    version = ""

    def close(self):
        pass


class Bare(Side):
    """A row of `micro tokens`."""

    def __init__(self, row, options):
        self.row = row
        self.command = [os.path.join(BUILD, "bench/micro"), "--windows", str(max(1, round(options.seconds / 0.005))), "tokens",
                        os.path.join(options.folder, "llmc.bin")]

    def turn(self):
        done = subprocess.run(self.command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        found = re.search(rf"^{self.row} +([0-9.]+) +([0-9.]+)", done.stdout, re.M)
        return [1e9 / float(ns) for ns in found.groups()] if done.returncode == 0 else None


class Ours(Side):
    """One cell of loaderbench, in the caller's thread."""

    def __init__(self, parameters, shuffle, cache, options):
        self.length, self.checked = options.length, False
        path = os.path.join(options.folder, "llmc.bin")
        self.command = [os.path.join(BUILD, "bench/loaderbench"), "--quiet", "--format", "json", "--workers", "0", "--repeats", "1",
                        "--seconds", str(options.seconds), "--batch-size", str(options.rows), "--dtype", "as-stored", "--cache", cache,
                        "--pin-memory", "off", "--ceilings", "off", "--shuffle", shuffle] + (["--cold"] if options.cold else [])
        self.command.append(f"tokens:{path}?length={options.length}{parameters}")

    def turn(self):
        words = ["--verify", "off"] if self.checked else []
        done = subprocess.run(self.command[:1] + words + self.command[1:], stdout=subprocess.PIPE, text=True,
                              start_new_session=True)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        cell = next((row for row in rows if row["kind"] == "cell" and not row["error"]), None)
        if done.returncode != 0 or cell is None:
            return None
        self.checked = True
        self.version = next(f"{row['library_version']} {row['commit']}" for row in rows if row["kind"] == "machine")
        return [cell["samples_per_s"] * self.length, 1e6 / cell["cpu_s_per_million"] * self.length, cell["cold_resident_share"] or 0]


class Fio(Side):
    """The disk's ceiling."""

    def __init__(self, options):
        self.command = ["fio", "--name=direct", "--filename=" + os.path.join(options.folder, "llmc.bin"), "--readonly", "--rw=read",
                        "--bs=256k", "--ioengine=io_uring", "--iodepth=32", "--direct=1", "--output-format=json"]

    def turn(self):
        if shutil.which("fio") is None:
            return None
        done = subprocess.run(self.command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        if done.returncode != 0:
            return None
        job = json.loads(done.stdout)["jobs"][0]
        tokens = job["read"]["bw_bytes"] / 2
        return [tokens, tokens / max((job["usr_cpu"] + job["sys_cpu"]) / 100, 1e-9)]


class Theirs(Side):
    def __init__(self, side, options):
        command = [os.path.join(PEERS, "tokens/bin/python"), os.path.join(HERE, "peer.py"), side, options.folder,
                   str(options.seconds), str(options.rows), str(options.length)]
        with open(os.path.join(options.folder, side + ".log"), "w") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                                            start_new_session=True)
        self.ready, _, self.version = self.process.stdout.readline().strip().partition(" ")

    def turn(self):
        if self.ready != "ready":
            return None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        words = self.process.stdout.readline().split()
        return [float(word) for word in words] if len(words) == 2 else None

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def start(side, options):
    """A side that cannot be started is named, and left out."""
    try:
        return Theirs(side, options)
    except OSError:
        return None


def race(options):
    # Nothing drops the pages of a mapped file, and what is kept is not read.
    ours = [(name, Ours(parameters, shuffle, cache, options)) for name, parameters, shuffle, cache in OURS
            if not options.cold or (cache == "none" and "map=1" not in parameters)]
    if options.cold:
        sides = [("fio, past the page cache", Fio(options))] + ours
    else:
        sides = [(name, Bare(row, options)) for name, row in BARE] + ours + [(name, start(side, options)) for name, side in THEIRS]
    turns = {name: [] for name, _ in sides}
    for number in range(options.rounds):
        for name, side in sides[number % len(sides):] + sides[:number % len(sides)]:
            turns[name].append(None if side is None else side.turn())
    for _, side in sides:
        if side is not None:
            side.close()
    return turns, {name: "" if side is None else side.version for name, side in sides}


def report(turns, versions, options):
    """The share is of the first side, by CPU time; by the time that passed if the disk is measured."""
    cold = options.cold
    ceiling, figure = next(iter(turns.values())), 0 if cold else 1
    rows = []
    print(f"{'side':35} {'M tokens/s':>12} {'per CPU second':>15} {'of ' + ('fio' if cold else 'the bare reads'):>18}")
    for name, found in turns.items():
        row = {"kind": "race", "job": "tokens-cold" if cold else "tokens", "name": name, "batch_size": options.rows,
               "version": versions[name], "threads": 1, "rates": [], "cpu_ms": [], "why": ""}
        rows.append(row)
        if any(turn is None for turn in found):
            row["why"] = "not installed, or failed"
            print(f"{name:35} {row['why']}")
            continue
        wall, cpu = (statistics.median(turn[i] for turn in found) for i in (0, 1))
        share = statistics.median([turn[figure] / first[figure] for turn, first in zip(found, ceiling) if first is not None] or [0])
        row.update(rates=[turn[0] for turn in found], cpu_ms=[1e3 / turn[1] for turn in found], share=share)
        if any(len(turn) > 2 and turn[2] > 0.1 for turn in found):
            print(f"{name}: pages of the file stayed in the page cache")
        print(f"{name:35} {wall / 1e6:12.1f} {cpu / 1e6:15.1f} {share:18.3f}")
    return rows


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--output")
    options = parser.parse_args()
    prepare(options.folder)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    turns, versions = race(options)
    print(f"# {platform.node()}, {os.cpu_count()} CPUs, {options.rounds} rounds of {options.seconds} s, batch {options.rows} x {options.length}"
          + (", cold" if options.cold else ""))
    rows = report(turns, versions, options)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")
    return 1 if any(row["why"] for row in rows if row["name"].startswith("Stoker")) else 0


if __name__ == "__main__":
    sys.exit(main())
