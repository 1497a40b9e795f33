#!/usr/bin/env python3
"""scaling.py - measures what ranks cost on this machine, and predicts runs of up to 1,024 of them.

usage: bench/scaling/scaling.py [--rounds N] [--build DIR]   measure (about 3 minutes), keep the costs in
                                                             measured.json, and rewrite the tables of ../scaling.md
       bench/scaling/scaling.py --tables                     rewrite the tables by measured.json, without measuring
       bench/scaling/scaling.py --check                      does ../scaling.md have the tables of measured.json?

Needs a build with MPI (default: build/release), mpirun and an idle machine. STOKER_DATA: the folder that holds mnist/; without it
digits are drawn. model.py has the arithmetic.
Exit status: 0 done, 1 a run failed or the tables differ, 77 no MPI or no build.
"""
import argparse
import csv
import datetime
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile

import model

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
MEASURED = os.path.join(HERE, "measured.json")
PAGE = os.path.join(TOP, "bench", "scaling.md")
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"

RANKS_HERE = (2, 3, 4)
RANKS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
IDLE_LOAD = 0.5
SETTLE = 16  # updates before those that count; the programs report every 16 on several ranks
MEETINGS = 2 + 1 / 16  # of an update: pass, update, report
MNIST_SAMPLES = 60000
# Batch sizes of one rank, for the fixed part of a pass; the last is that of all other runs. Updates of a run.
JOBS = {"fast": {"batches": (32, 128), "updates": 64}, "pytorch": {"batches": (16, 64), "updates": 32}}
# Open MPI: more ranks than CPUs, and root, as tests/mpi/ranks.sh has them.
MPI_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
}

# ---- published costs: scaling.md names the sources ------------------------------------------------------------------

CLUSTER_CPUS = 64  # of a node, a rank and a thread on each
ETHERNET_40G = {"round_s": 1.93e-6, "byte_s": 8 / 37.23e9}
A100_NODES = {"node_ranks": 8, "node_bus": 235e9, "net_bus": 96e9}
A100_PUBLISHED = (("TF32", 938, 7248), ("mixed precision", 2470, 16621))
STRONG_SAMPLES = 8192  # of an update, divided among all ranks
H100_NODES = {"node_ranks": 8, "node_bus": 479.72e9, "net_bus": 330.93e9}
RESNET_50 = {"samples": 256, "sample_s": 1 / 2470, "gradient_bytes": 4 * 25557032, "meetings": MEETINGS}
JPEG_SAMPLES_PER_CPU = 2194 / 2  # bench/README.md, "imagenet", exact


class Failed(Exception):
    """A program failed; the text says which."""


# ---- measuring ------------------------------------------------------------------------------------------------------

def run(command, ranks, folder=None):
    """The output of a program, on several ranks if there are more than one, in a folder (default: this one)."""
    if ranks > 1:
        command = ["mpirun", "-n", str(ranks)] + command
    done = subprocess.run(command, cwd=folder, env={**os.environ, **MPI_ENVIRONMENT}, capture_output=True, text=True,
                          timeout=300)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {done.returncode}: {done.stderr[-400:]}")
    return done.stdout


def find_data():
    folder = os.path.abspath(os.path.join(os.environ.get("STOKER_DATA", os.path.join(TOP, "data")), "mnist"))
    return f"mnist:{folder}" if os.path.isdir(folder) else "synth:digits?count=60000"


def train(build, preset, ranks, batch):
    """Medians over a run's updates: samples/s of all ranks, and the share of time that waited for data."""
    with tempfile.TemporaryDirectory() as scratch:
        log = os.path.join(scratch, "log.csv")
        run([os.path.join(build, "trainer", "stoker-mnist"), "--quiet", "--preset", preset, "--threads", "1", "--workers", "0",
             "--batch-size", str(batch), "--steps", str(JOBS[preset]["updates"] + SETTLE), "--data", find_data(),
             "--test-data", "synth:digits?count=64", "--device", "cpu", "--log", log],
            ranks, scratch)  # an interrupted run saves in its folder
        with open(log, encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if int(row["step"]) > SETTLE]
    return (statistics.median(float(row["train/samples_per_s"]) for row in rows),
            statistics.median(float(row["train/data_wait"]) for row in rows))


def gradient_bytes(build, preset):
    for line in run([os.path.join(build, "trainer", "stoker-mnist"), "--preset", preset, "--data", find_data(), "--summary"],
                    1).splitlines():
        if line.startswith("gradients"):
            return int(line.split()[1].replace(",", ""))
    raise Failed("stoker-mnist --summary names no gradients")


def measure_sums(build, ranks):
    """Seconds by "sum 1048576" and so on."""
    lines = run([os.path.join(build, "bench", "scaling_sums")], ranks).split("\n")
    return {" ".join(line.split()[:2]): float(line.split()[2]) for line in lines if line.startswith(("sum ", "word "))}


def one_round(build, found):
    """All cases once, in turn, so that drifts of the machine meet all of them."""
    for ranks in RANKS_HERE:
        for case, seconds in measure_sums(build, ranks).items():
            found["sums"].setdefault(f"{ranks} {case}", []).append(seconds)
    for preset, job in JOBS.items():
        cases = [(1, batch) for batch in job["batches"]] + [(ranks, job["batches"][-1]) for ranks in RANKS_HERE]
        for ranks, batch in cases:
            rate, waited = train(build, preset, ranks, batch)
            found["rates"].setdefault(f"{preset} {ranks} {batch}", []).append(rate)
            found["waits"].setdefault(f"{preset} {ranks} {batch}", []).append(waited)
            print(f"# {preset}, {ranks} ranks, batch {batch}: {rate:,.0f} samples/s", file=sys.stderr)


def describe(build):
    name = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
                 if line.startswith("model name")), platform.machine())
    version = run([os.path.join(build, "trainer", "stoker-mnist"), "--version"], 1).split("\n")[0]
    mpi = run(["mpirun", "--version"], 1).split("\n")[0]
    load = os.getloadavg()[0]
    return {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), "cpu": name, "cpus": os.cpu_count(),
            "kernel": platform.release().split("-")[0], "version": version, "mpi": mpi, "load": round(load, 1),
            "data": "MNIST" if find_data().startswith("mnist:") else "drawn digits"}


def measure(build, rounds):
    found = {"sums": {}, "rates": {}, "waits": {}}
    machine = describe(build)
    started = {}
    for ranks in (1,) + RANKS_HERE:
        begin = datetime.datetime.now()
        run([os.path.join(build, "trainer", "stoker-mnist"), "--version"], ranks)
        started[str(ranks)] = (datetime.datetime.now() - begin).total_seconds()
    for _ in range(rounds):
        one_round(build, found)
    costs = {kind: {case: statistics.median(values) for case, values in cases.items()} for kind, cases in found.items()}
    return {"machine": machine, "rounds": rounds, "start_s": started, **costs,
            "gradient_bytes": {preset: gradient_bytes(build, preset) for preset in JOBS}}


# ---- what the model takes from it -----------------------------------------------------------------------------------

def machine_of(measured, node_ranks, cpus):
    """Costs of MPI within a node, from two ranks."""
    points = [(int(case.split()[2]), seconds) for case, seconds in measured["sums"].items() if case.startswith("2 sum ")]
    both_rounds_s, half_byte_s = model.fit(points)  # each of two ranks moves and adds half
    return {"node_ranks": node_ranks, "cpus": cpus,
            "mpi": {"round_s": both_rounds_s / 2, "byte_s": 2 * half_byte_s, "word_s": measured["sums"]["2 word 248"]}}


def job_of(measured, preset):
    """Costs of a pass, from one rank with several batch sizes."""
    batches = JOBS[preset]["batches"]
    points, load_s = [], 0.0
    for batch in batches:
        case = f"{preset} 1 {batch}"
        seconds = batch / measured["rates"][case]
        load_s = measured["waits"][case] * seconds / batch
        points.append((batch, seconds - load_s * batch))
    fixed_s, sample_s = model.fit(points)
    return {"samples": batches[-1], "fixed_s": fixed_s, "sample_s": sample_s, "load_s": load_s, "threads": 1,
            "meetings": MEETINGS, "gradient_bytes": measured["gradient_bytes"][preset]}


# ---- tables ---------------------------------------------------------------------------------------------------------

def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---:|" * len(head)] + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def micro(seconds):
    return f"{seconds * 1e6:,.1f}" if seconds < 1e-4 else f"{seconds * 1e6:,.0f}"


def error(predicted, found):
    return f"{(predicted / found - 1) * 100:+.0f} %"


def costs_table(measured, machine):
    mpi = machine["mpi"]
    rows = []
    for preset in JOBS:
        job = job_of(measured, preset)
        rows.append([f"`{preset}`: pass, fixed", micro(job["fixed_s"]) + " us"])
        rows.append([f"`{preset}`: pass, each sample", micro(job["sample_s"]) + " us"])
        rows.append([f"`{preset}`: loading, each sample", f"{job['load_s'] * 1e9:,.0f} ns"])
        rows.append([f"`{preset}`: gradients", f"{job['gradient_bytes']:,} bytes"])
    rows.append(["MPI, a round", micro(mpi["round_s"]) + " us"])
    rows.append(["MPI, a byte moved up and down and added", f"{mpi['byte_s'] * 1e9:.3f} ns"])
    rows.append(["MPI, a word of 248 bytes to the other rank", micro(mpi["word_s"]) + " us"])
    rows += [[f"start and end of {ranks} ranks", f"{seconds:.2f} s"] for ranks, seconds in measured["start_s"].items()]
    return table(["cost", "measured"], rows)


def sums_table(measured, machine):
    """Sums on ranks of this machine, against the model."""
    rows = []
    for case, found in measured["sums"].items():
        ranks, kind, size = case.split()
        crowd = max(1.0, int(ranks) / machine["cpus"])
        node = {name: value * crowd for name, value in machine["mpi"].items()}
        net = {"round_s": 0.0, "byte_s": 0.0}
        if kind == "word":
            predicted = model.words(int(ranks), int(ranks), node, net)
        else:
            predicted = model.mpi_slice(int(ranks), int(ranks), int(size), node, net)
        rows.append([ranks, kind, f"{int(size):,}", micro(found), micro(predicted), error(predicted, found)])
    return table(["ranks", "what", "bytes", "measured us", "model us", "error"], rows)


def check_table(measured, machine):
    """Training on ranks of this machine, against the model."""
    rows = []
    for preset in JOBS:
        job = job_of(measured, preset)
        for ranks in RANKS_HERE:
            parts = model.cpu_update(ranks, job, machine, ETHERNET_40G)
            predicted = model.rate(ranks, job, parts)
            found = measured["rates"][f"{preset} {ranks} {job['samples']}"]
            rows.append([f"`{preset}`", str(ranks), f"{found:,.0f}", f"{predicted:,.0f}", error(predicted, found)])
    return table(["preset", "ranks", "measured samples/s", "model", "error"], rows)


def limit_of(parts):
    """The greatest cost besides the pass, and its share of the update."""
    name = max((name for name in parts if name != "compute"), key=lambda name: parts[name])
    return f"{name} {parts[name] / sum(parts.values()) * 100:.0f} %" if parts[name] > 0 else "-"


def prediction(numbers, job_of_ranks, update):
    """Rows for each number of ranks, and a sentence about its limits. job_of_ranks: what each of R ranks does;
    update: the parts of its updates."""
    first = numbers[0]
    alone = model.rate(1, job_of_ranks(first), update(1, job_of_ranks(first)))
    rows, below = [], {90: None, 50: None}
    for ranks in numbers:
        job = job_of_ranks(ranks)
        parts = update(ranks, job)
        rate = model.rate(ranks, job, parts)
        share = rate / (ranks * alone) * 100
        rows.append([f"{ranks:,}", f"{job['samples']:,}", f"{rate:,.0f}", f"{share:.0f} %", limit_of(parts)])
        for mark in below:
            if share < mark and below[mark] is None:
                below[mark] = f"below {mark} % at {ranks:,} ranks ({limit_of(parts)})"
    marks = [text for text in below.values() if text is not None] or ["above 90 % throughout"]
    return table(["ranks", "samples of a rank", "samples/s", "efficiency", "greatest cost besides the pass"],
                 rows) + [f"Efficiency is {', and '.join(marks)}."]


def cpu_tables(measured):
    lines = []
    cluster = machine_of(measured, CLUSTER_CPUS, CLUSTER_CPUS)
    for preset in JOBS:
        job = job_of(measured, preset)
        lines += [f"**`{preset}`, {job['samples']} samples a rank.**", ""]
        lines += prediction(RANKS, lambda ranks, job=job: job,
                            lambda ranks, job: model.cpu_update(ranks, job, cluster, ETHERNET_40G))
        lines += [f"On more than {MNIST_SAMPLES // job['samples']} ranks an epoch of MNIST has no complete update.", ""]
    return lines


def published_table(node):
    """Eight GPUs of a node, as published, against the model."""
    rows = []
    for name, one, eight in A100_PUBLISHED:
        job = dict(RESNET_50, sample_s=1 / one)
        predicted = model.rate(8, job, model.gpu_update(8, job, A100_NODES, node, ETHERNET_40G))
        rows.append([name, f"{one:,}", f"{eight:,}", f"{predicted:,.0f}", error(predicted, eight)])
    return table(["ResNet-50 on DGX A100", "1 GPU, images/s", "8 GPUs, published", "model", "error"], rows)


def gpu_tables(measured):
    node = machine_of(measured, 1, 1)["mpi"]
    lines = published_table(node)
    fast = dict(RESNET_50, sample_s=RESNET_50["sample_s"] / 4)
    strong = [ranks for ranks in RANKS if ranks >= STRONG_SAMPLES // RESNET_50["samples"]]
    for name, numbers, job_of_ranks, fabric in (
            ("A100, 256 samples each", RANKS, lambda ranks: RESNET_50, A100_NODES),
            ("GPUs four times as fast, with the links of H100 nodes, 256 samples each", RANKS, lambda ranks: fast, H100_NODES),
            (f"The same GPUs, which divide {STRONG_SAMPLES:,} samples among them", strong,
             lambda ranks: dict(fast, samples=STRONG_SAMPLES // ranks), H100_NODES)):
        lines += [f"**{name}.**", ""]
        lines += prediction(numbers, job_of_ranks, lambda ranks, job, fabric=fabric: model.gpu_update(
            ranks, job, fabric, node, ETHERNET_40G))
        cpus = fabric["node_ranks"] / job_of_ranks(numbers[0])["sample_s"] / JPEG_SAMPLES_PER_CPU
        lines += [f"A node's {fabric['node_ranks']} GPUs take the JPEG files that {cpus:.0f} CPUs decode "
                  "([measured](README.md#benchrunsh-photos)).", ""]
    return lines


def tables(measured):
    at = measured["machine"]
    here = machine_of(measured, max(RANKS_HERE), at["cpus"])
    lines = [f"Measured on {at['date']}: {at['cpu']}, {at['cpus']} CPUs, Linux {at['kernel']}, {at['mpi']}, {at['version']}, "
             f"{at['data']}; medians of {measured['rounds']} rounds.", ""]
    if at["load"] > IDLE_LOAD:
        lines += [f"The machine was not idle (load average {at['load']}): ranks waited for each other's turn on a CPU.", ""]
    lines += ["### Costs of one rank and of two", ""] + costs_table(measured, here)
    lines += ["### Check: sums and words", ""] + sums_table(measured, here)
    lines += ["### Check: training", ""] + check_table(measured, here)
    lines += ["### Prediction: CPUs", ""] + cpu_tables(measured)
    lines += ["### Prediction: GPUs", ""] + gpu_tables(measured)
    return "\n".join(lines).rstrip() + "\n"


# ---- the page -------------------------------------------------------------------------------------------------------

def split_page():
    with open(PAGE, encoding="utf-8") as file:
        before, _, rest = file.read().partition(BEGIN + "\n")
    inside, _, after = rest.partition(END)
    return before, inside, after


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("STOKER_BUILD", os.path.join(TOP, "build", "release")))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if not arguments.tables and not arguments.check:
        if shutil.which("mpirun") is None or not os.path.exists(os.path.join(arguments.build, "bench", "scaling_sums")):
            print(f"scaling.py: no mpirun, or no {arguments.build}/bench/scaling_sums: build with MPI", file=sys.stderr)
            return 77
        try:
            measured = measure(os.path.abspath(arguments.build), arguments.rounds)
        except (Failed, subprocess.TimeoutExpired) as why:
            print(f"scaling.py: {why}", file=sys.stderr)
            return 1
        with open(MEASURED, "w", encoding="utf-8") as file:
            json.dump(measured, file, indent=1)
            file.write("\n")
    with open(MEASURED, encoding="utf-8") as file:
        text = tables(json.load(file))
    before, inside, after = split_page()
    if arguments.check:
        if inside != text:
            print("scaling.py: the tables of bench/scaling.md are not those of measured.json: bench/scaling/scaling.py --tables")
        return 0 if inside == text else 1
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + "\n" + text + END + after)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
