#!/usr/bin/env python3
"""race.py - photographs to batches: Stoker and other libraries in turn, each at its best setting.

usage: race.py FOLDER [--jobs imagenet,large,imagenet-tar] [--rounds 5] [--seconds 1.5] [--output FILE]

Jobs, each with its set in FOLDER/JOB: RandomResizedCrop to 224 x 224, flip, normalize, float32 (sets of photographs.py)
  imagenet       1,000 files of ImageNet's sizes, batch 64
  large          64 files of 3000 x 2250, batch 16
  imagenet-tar   the files of imagenet in four tar files, batch 64
and (sets of stoker-pack, made by run.sh)
  raw            2,000 raw images of 256 x 256 x 3 in shards, uint8 as stored, batch 64, nothing cached
                 but in "default, later epochs": verified in the first epoch and kept in memory
  png            60,000 PNG files of 28 x 28, normalized, float32, batch 64
and (of $STOKER_DATA/mnist, with PyTorch)
  mnist, mnist-512   MNIST in memory, normalized, float32, batches of 64 and 512
  train          PyTorch's examples/mnist network on the CPU, 200 updates per second of --seconds, batch 64
Ours delivers NCHW; others keep the layout that is cheapest for them. All read from the page cache, and keep no decoded image.

Each library runs in its own process and session, so that the kernel schedules all alike (sched_autogroup), and waits while another's turn
is (turns.py). First its settings are tried, then
the best of each take turns, --rounds times. A figure is the median of its turns; a ratio the median of ours / theirs of the same
round. ms/sample is processor time, which other processes on the machine disturb less.

STOKER_BUILD the build folder (build/release); STOKER_DATA the folder that holds mnist/ (data); STOKER_PEERS the environments
of bench/races/peers/environments.sh (build/peers).
Exit status: 0 measured, 1 one of ours failed.
"""
import argparse
import datetime
import json
import os
import platform
import re
import select
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("STOKER_BUILD", "build/release")
PEERS = os.environ.get("STOKER_PEERS", "build/peers")
DATA = os.environ.get("STOKER_DATA", "data")
START_SECONDS = 240  # FFCV compiles, and writes its file first
CROPPED = ("--dtype", "float32", "--layout", "nchw", "--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225",
           "--random-resized-crop", "224", "--flip", "on")
DIGITS = ("--dtype", "float32", "--layout", "nchw", "--mean", "0.1307", "--std", "0.3081")

# Name, environment, program, mode, thread numbers to try.
FILES = (
    ("tf.data decode_and_crop", "tf", "peer_tf.py", "plain", (2, 4)),
    ("DALI, no antialiasing", "dali", "peer_dali.py", "plain", (2, 3)),
    ("DALI, antialiased", "dali", "peer_dali.py", "antialias", (2,)),
    ("torchvision, Pillow", "torch", "peer_torch.py", "pil", (2, 4)),
    ("torchvision.io", "torch", "peer_torch.py", "io", (2, 4)),
    ("Pillow draft + box", "torch", "peer_torch.py", "draft", (2, 4)),
    ("SPDL", "torch", "peer_spdl.py", "plain", (2, 4)),
    ("FFCV, its own file", "torch", "peer_ffcv.py", "jpeg", (2,)),
)
TARS = (
    ("DALI, no antialiasing", "dali", "peer_dali.py", "plain", (2, 3)),
    ("DALI, antialiased", "dali", "peer_dali.py", "antialias", (2,)),
    ("webdataset, Pillow", "torch", "peer_webdataset.py", "pil", (2, 4)),
    ("webdataset, draft", "torch", "peer_webdataset.py", "draft", (2, 4)),
)
RAW = (("FFCV, its own file", "torch", "peer_ffcv.py", "raw", (1, 2)),)
PNG = (
    ("tf.data", "tf", "peer_tf.py", "png", (2, 4)),
    ("DALI", "dali", "peer_dali.py", "png", (2, 3)),
    ("torchvision, Pillow", "torch", "peer_torch.py", "digits", (2, 4)),
    ("torchvision.io", "torch", "peer_torch.py", "digits-io", (2, 4)),
)
MNIST = (
    ("DataLoader, MNIST", "torch", "peer_torch.py", "mnist", (0, 2, 4)),
    ("index_select", "torch", "peer_memory.py", "rows", (1, 2)),
    ("index_select 1024, views", "torch", "peer_memory.py", "views", (1, 2)),
    ("normalized before", "torch", "peer_memory.py", "rows-before", (1, 2)),
    ("normalized before, views", "torch", "peer_memory.py", "views-before", (1, 2)),
    ("NumPy take 1024, views", "torch", "peer_memory.py", "numpy", (1,)),
)
TRAIN = (  # names and options of train_mnist.py
    ("PyTorch", ()),
    ("PyTorch, default allocator", ("--no-keep-memory",)),
    ("PyTorch, bfloat16", ("--precision", "bfloat16")),
    ("PyTorch, compiled", ("--compile",)),
    ("PyTorch, bfloat16, compiled", ("--precision", "bfloat16", "--compile")),
)

# Batch size, our options, the other libraries, and our ways: name, spec for a folder, more options.
EXACT, FAST = ("--decode-scale", "exact"), ("--decode-scale", "fast")
JOBS = {
    "imagenet": (64, CROPPED, FILES, (("exact", "folder:{}", EXACT), ("decode_scale fast", "folder:{}", FAST),
                                      ("exact, packed", "shards:{}-shards", EXACT), ("fast, packed", "shards:{}-shards", FAST))),
    "large": (16, CROPPED, FILES, (("exact", "folder:{}", EXACT), ("decode_scale fast", "folder:{}", FAST))),
    "imagenet-tar": (64, CROPPED, TARS, (("exact", "tar:{}/{{000..003}}.tar", EXACT),
                                         ("decode_scale fast", "tar:{}/{{000..003}}.tar", FAST))),
    "raw": (64, ("--dtype", "as-stored"), RAW, (("verified", "shards:{}", ()),
                                                ("verify=once", "shards:{}?verify=once", ()),
                                                ("map=1", "shards:{}?map=1", ()),
                                                ("map=1, verify=once", "shards:{}?map=1&verify=once", ()),
                                                ("default, later epochs", "shards:{}", ("--cache", "auto")))),
    "png": (64, DIGITS, PNG, (("PNG", "folder:{}", ()),)),
    "mnist": (64, DIGITS, MNIST, (("in memory", f"mnist:{DATA}/mnist", ()),)),
    "mnist-512": (512, DIGITS, MNIST, (("in memory", f"mnist:{DATA}/mnist", ()),)),
    "train": (64, (), TRAIN, ()),
}


class Peer:
    """A library in its own process."""

    def __init__(self, entry, folder, batch, threads):
        self.name, environment, program, mode, _ = entry
        self.threads, self.version = threads, ""
        self.log = tempfile.TemporaryFile(mode="w+")
        python = os.path.join(PEERS, environment, "bin", "python")
        if not os.path.exists(python):
            raise RuntimeError(f"not installed: no {environment} environment (bench/races/peers/environments.sh)")
        self.process = subprocess.Popen(
            [python, os.path.join(HERE, program), mode, folder, "--batch-size", str(batch), "--threads",
             str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
            start_new_session=True)
        answer = self.answer(START_SECONDS)
        if "missing" in answer:
            self.close()
            raise RuntimeError(f"not installed: {answer['missing']}")
        if not answer["ready"]:
            self.close()
            raise RuntimeError(f"wrong batch: {answer['wrong']}")
        self.version = answer["version"]

    def answer(self, limit):
        """The next line that is one of ours; libraries print there as well."""
        while True:
            ready, _, _ = select.select([self.process.stdout], [], [], limit)
            line = self.process.stdout.readline() if ready else ""
            if not line:
                self.process.kill()
                self.log.seek(0)
                last = [text for text in self.log.read().splitlines() if text.strip()][-1:]
                raise RuntimeError(("failed: " if ready else "no answer: ") + (last[0][:120] if last else ""))
            if line.startswith('{"'):
                return json.loads(line)

    def turn(self, seconds):
        """samples/s and processor milliseconds per sample."""
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        found = self.answer(60 + 20 * seconds)
        return found["samples"] / found["seconds"], 1e3 * found["cpu_seconds"] / found["samples"]

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Stoker:
    """loaderbench, one process a turn."""

    def __init__(self, name, spec, batch, threads, options, verify):
        self.name, self.threads, self.version = name, threads, ""
        self.command = [os.path.join(BUILD, "bench/loaderbench"), "--format", "json", "--quiet", "--repeats", "1",
                        "--ceilings", "off", "--cache", "none", "--pin-memory", "off", "--workers", str(threads),
                        "--batch-size", str(batch), *options]
        self.spec = spec
        if verify:
            self.cell(0.01, "on")

    def cell(self, seconds, verify):
        done = subprocess.run([*self.command, "--seconds", str(seconds), "--verify", verify, self.spec],
                              capture_output=True, text=True, check=False, start_new_session=True)
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        cells = [row for row in rows if row["kind"] == "cell"]
        if done.returncode != 0 or not cells or cells[0].get("error"):
            why = cells[0].get("error") if cells else (done.stderr.splitlines() or ["no output"])[-1]
            raise RuntimeError(f"failed: {why}")
        self.ceilings = {row["name"]: row for row in rows if row["kind"] == "ceiling"}
        self.version = next(f"{row.get('library_version', '')} {row.get('commit', '')}"
                            for row in rows if row["kind"] == "machine")
        return cells[0]

    def turn(self, seconds):
        cell = self.cell(seconds, "off")
        return cell["samples_per_s"], cell["cpu_s_per_million"] / 1e3

    def close(self):
        pass


class Copy(Stoker):
    """What a copy reaches: "decode", records in memory copied to the ring by two threads, as loaderbench measures it."""

    def turn(self, seconds):
        self.cell(seconds, "off")
        return self.ceilings["decode"]["samples_per_s"], float("nan")


class Training(Stoker):
    """A training program, one process a turn."""

    def __init__(self, name, command, threads):
        self.name, self.threads, self.version = name, threads, ""
        self.command = [*command, "--threads", str(threads), "--batch-size", "64", "--seed", "1"]
        if not os.path.exists(command[0]):
            raise RuntimeError(f"not installed: no {command[0]}")

    def turn(self, seconds):
        steps, before = max(1, round(200 * seconds)), os.times()
        done = subprocess.run([*self.command, "--steps", str(steps)], capture_output=True, text=True, check=False,
                              start_new_session=True)
        after = os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        found = re.search(r"^trained .*, (\d+) samples/s.*^test accuracy: ([\d.]+) %", done.stdout, re.M | re.S)
        if done.returncode != 0:
            raise RuntimeError("failed: " + ([""] + done.stderr.splitlines())[-1][:120])
        if found:  # ours; with the test
            rate, right, library = float(found[1]), float(found[2]), "Stoker"
        else:
            row = json.loads(done.stdout.splitlines()[-1])
            rate, right, spent, library = row["samples_per_s"], 100 * row["accuracy"], row["cpu_seconds"], row["peer"]
        self.version = f"{library}, {right:.1f} % right after {steps} updates"
        return rate, 1e3 * spent / (64 * steps)


def has_scale():
    tool = os.path.join(BUILD, "bench/loaderbench")
    return "--decode-scale" in subprocess.run([tool, "--help"], capture_output=True, text=True, check=False).stdout


def ours(job, folder):
    """Starters of Stoker's ways, and of the ceiling of raw records. What is exact is verified first."""
    batch, options, _, ways = JOBS[job]
    if job == "train":
        command = [os.path.join(BUILD, "trainer/stoker-mnist"), "--preset", "pytorch", "--epochs", "3",
                   "--data", f"mnist:{DATA}/mnist", "--eval-every", "0", "--quiet"]
        return [("Stoker", lambda n: Training("Stoker", command, n), (len(os.sched_getaffinity(0)),))]
    found = []
    for way, spec, extra in ways:
        if extra and not has_scale():
            if extra == FAST:
                continue
            extra = ()
        name = f"Stoker, {way}"
        found.append((name, lambda n, name=name, spec=spec, extra=extra: Stoker(
            name, spec.format(folder), batch, n, [*options, *extra], n == 2 and extra != FAST),
                      (0, 1, 2, "auto") if job.startswith("mnist") else (2, "auto")))
    if job == "raw":
        name = "(copy from memory)"
        found.append((name, lambda n: Copy(name, f"shards:{folder}", batch, n, [*options, "--ceilings", "on"], False),
                      (2,)))
    return found


def theirs(job, folder):
    batch, _, entries, _ = JOBS[job]
    if job == "train":
        command = [os.path.join(PEERS, "torch/bin/python"), os.path.join(HERE, "../peers/train_mnist.py")]
        return [(name, lambda n, name=name, options=options: Training(name, [*command, *options], n),
                 (len(os.sched_getaffinity(0)),)) for name, options in entries]
    return [(entry[0], lambda n, entry=entry: Peer(entry, folder, batch, n), entry[4]) for entry in entries]


def best_of(name, start, numbers, seconds):
    """The entrant at its best number of threads; what was tried; or why there is none."""
    best, best_rate, tried, why = None, 0.0, {}, ""
    for number in numbers:
        try:
            entrant = start(number)
            if len(numbers) == 1:
                best = entrant
                break
            rate, _ = entrant.turn(seconds)
        except RuntimeError as error:
            why = str(error)
            continue
        tried[number] = rate
        if rate > best_rate:
            if best is not None:
                best.close()
            best, best_rate = entrant, rate
        else:
            entrant.close()
    print(f"   {name:28} " + (", ".join(f"{n}: {rate:.0f}/s" for n, rate in tried.items())
                               or why or f"{best.threads}"), flush=True)
    return best, tried, why


def race(job, folder, arguments):
    """One job; rows for the table."""
    batch = JOBS[job][0]
    seconds = arguments.seconds * (2 if job == "large" else 1)  # its batches take long, and come two at a time
    folder = os.path.join(folder, job)
    print(f"== {job}: batch {batch}; threads or processes tried:", flush=True)
    rows, entrants = [], []
    for name, start, numbers in ours(job, folder) + theirs(job, folder):
        entrant, tried, why = best_of(name, start, numbers, min(1.0, arguments.seconds))
        row = {"kind": "race", "job": job, "name": name, "batch_size": batch, "tried": tried, "why": why,
               "rates": [], "cpu_ms": [], "version": "", "threads": None}
        rows.append(row)
        if entrant is not None:
            entrants.append((entrant, row))
    for number in range(arguments.rounds):
        turn = number % len(entrants) if entrants else 0
        for entrant, row in entrants[turn:] + entrants[:turn]:
            try:
                rate, cpu = entrant.turn(seconds)
            except RuntimeError as error:
                rate, cpu, row["why"] = float("nan"), float("nan"), str(error)
            row["rates"].append(rate)
            row["cpu_ms"].append(cpu)
    for entrant, row in entrants:
        row.update(version=entrant.version, threads=entrant.threads)
        entrant.close()
    return rows


def middle(values):
    good = [value for value in values if value == value]
    return statistics.median(good) if good else None


def ratio(one, other):
    return middle([a / b for a, b in zip(one["rates"], other["rates"])])


def show(job, rows):
    """A table, fastest first, with the ratio of each of our ways to each row; then ours to the best other."""
    mine = [row for row in rows if row["name"].startswith("Stoker") and row["rates"]]
    print(f"\n{job:28} {'with':>5} {'samples/s':>10} {'least':>9} {'most':>9} {'ms/sample':>10}"
          + "".join(f" {'ours ' + str(number + 1):>7}" for number in range(len(mine))) + "  version")
    for row in sorted(rows, key=lambda row: -(middle(row["rates"]) or 0)):
        rate = middle(row["rates"])
        if rate is None:
            print(f"{row['name']:28} {row['why']}")
            continue
        good = [value for value in row["rates"] if value == value]
        cpu = middle(row["cpu_ms"])
        print(f"{row['name']:28} {row['threads']!s:>5} {rate:10.1f} {min(good):9.1f} {max(good):9.1f} "
              f"{'' if cpu is None else format(cpu, '.3g'):>10}"
              + "".join(f" {format(ratio(way, row), '.2f'):>7}" for way in mine) + f"  {row['version']}")
    best = max((row for row in rows if row["name"][0] != "(" and row not in mine and row["rates"]),
               key=lambda row: middle(row["rates"]) or 0, default=None)
    for number, row in enumerate(mine):
        print(f"ours {number + 1} = {row['name']}" + (
            f": {ratio(row, best):.2f} times the best other, {best['name']}" if best is not None else ""))


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        lines = [line.split(":", 1) for line in file if ":" in line]
    found = {name.strip(): value.strip() for name, value in lines}
    vectors = ("AVX-512" if "avx512f" in found.get("flags", "") else "AVX2" if "avx2" in found.get("flags", "") else "")
    if vectors == "AVX-512" and os.environ.get("STOKER_MASK_AVX512"):
        vectors = "AVX-512 masked"
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return {"kind": "machine", "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "cpu": found.get("model name", platform.machine()), "vectors": vectors,
            "cpus": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "load_1m": os.getloadavg()[0], "commit": commit.stdout.strip()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--jobs", default="imagenet,large,imagenet-tar")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--output")
    arguments = parser.parse_args()
    about = machine()
    print(f"{about['date']}, {about['cpus']} x {about['cpu']}, {about['vectors']}, Linux {about['kernel']}, commit {about['commit']}, "
          f"load {about['load_1m']:.1f}")
    found = {job: race(job, arguments.folder, arguments) for job in arguments.jobs.split(",")}
    for job, rows in found.items():
        show(job, rows)
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            for row in [about] + [row for rows in found.values() for row in rows]:
                file.write(json.dumps(row) + "\n")
    return 0 if all(middle(rows[0]["rates"]) for rows in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
