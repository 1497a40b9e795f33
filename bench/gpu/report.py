#!/usr/bin/env python3
"""report.py - prints the results of `./run gpu`: the steps, then each target and if it is met.

usage: report.py DIR     reads DIR/report.jsonl, DIR/sweep-*.json, DIR/torch-*, DIR/log/
"""
import glob
import json
import os
import re
import statistics
import sys

EQUAL = 0.97  # "equal": within the spread of repeats
MIB = 1 << 20


def lines(path):
    """The JSON objects of a file of lines; none if it is missing."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.startswith("{")]


def cells(folder, name):
    return [r for r in lines(os.path.join(folder, name + ".json"))
            if r["kind"] == "cell" and r["error"] is None]


def log(folder, name):
    path = os.path.join(folder, "log", name + ".txt")
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def verdict(holds, what, detail="not measured"):
    word = "-" if holds is None else "holds" if holds else "DOES NOT HOLD"
    print(f"{word:14} {what}: {detail}")


def ratio(a, b):
    """Median over the repeats, which took turns, of the ratio of a's rate to b's."""
    return statistics.median(x / y for x, y in zip(a["rates"], b["rates"]))


def pinning(folder):
    """Pinned and non_blocking against every other way to the GPU, side by side."""
    what = "pinned + non_blocking is the fastest or equal"
    groups = {}
    for cell in cells(folder, "sweep-mnist"):
        key = ("auto" if cell["auto"] else cell["workers"], cell["batch_size"], cell["convert"])
        groups.setdefault(key, {})[cell["pin_memory"], cell["non_blocking"]] = cell
    worst = []
    for key, ways in groups.items():
        best = ways.get(("on", "on"))
        others = [way for name, way in ways.items() if name != ("on", "on")]
        if best and others:
            worst.append((min(ratio(best, other) for other in others), key))
    if not worst:
        return verdict(None, what)
    least, key = min(worst, key=lambda it: it[0])
    verdict(least >= EQUAL, what, f"least {least:.2f} of the best other way (workers {key[0]}, batch {key[1]}, "
            f"converted on the {key[2]}), {len(worst)} groups, {sum(w >= EQUAL for w, _ in worst)} hold")


def copies(folder):
    what = "copies of 1 MiB and up at 0.95 of the bare pinned copy"
    large = [c for c in cells(folder, "sweep-large") if c["copy_bytes"] >= MIB and c["pinned"]
             and "pinned to GPU" in c["shares"]]
    if not large:
        return verdict(None, what)
    least = min(large, key=lambda c: c["shares"]["pinned to GPU"])
    share = least["shares"]["pinned to GPU"]
    verdict(share >= 0.95, what, f"least {share:.3f} (batch {least['batch_size']}, {least['copy_bytes'] / MIB:.1f} MiB, "
            f"{least['bytes_per_s'] / 1e9:.1f} GB/s, limit: {least['limit']})")


def overlap(folder):
    what = "a step of 200 us loses under 3 % to loading"
    kept = [c for c in cells(folder, "sweep-step") if c["pinned"] and c["non_blocking"] == "on"
            and c["headspace_share"] is not None]
    if not kept:
        return verdict(None, what)
    best = max(kept, key=lambda c: c["headspace_share"])
    verdict(best["headspace_share"] >= 0.97, what, f"{100 * (1 - best['headspace_share']):.1f} % lost "
            f"(workers {best['workers']}, batch {best['batch_size']})")


def sweep(folder, name, what):
    """All rows are there, and the best rate of each batch size."""
    rows = [row for row in lines(os.path.join(folder, name + ".json")) if row["kind"] == "cell"]
    best = {}
    for row in rows:
        best[row["batch_size"]] = max(best.get(row["batch_size"], 0), row["samples_per_s"] or 0)
    verdict(all(row["error"] is None for row in rows) if rows else None, what + ": every row is measured",
            ", ".join(f"batch {size}: {rate / 1e6:.2f} M samples/s" for size, rate in sorted(best.items())) or "not measured")


def trained(text):
    """(seconds, samples/s, accuracy in %) of one run of mnist, or None. Without MNIST each line names the made-up digits."""
    speed = re.search(r"^(?:\[.*\] )?trained ([0-9.]+) s, ([0-9]+) samples/s", text, re.M)
    score = re.search(r"^(?:\[.*\] )?test accuracy: ([0-9.]+) %", text, re.M)
    return (float(speed[1]), float(speed[2]), float(score[1])) if speed and score else None


def training(folder, steps):
    names = sorted(glob.glob(os.path.join(folder, "log", "train-fast-*.txt")))
    runs = [trained(log(folder, os.path.basename(name)[:-4])) for name in names]
    runs = [run for run in runs if run]
    what = "mnist --preset fast: 99.0 % in at most 0.05 s of training"
    if runs:
        score = statistics.mean(run[2] for run in runs)
        seconds = statistics.median(run[0] for run in runs)
        whole = statistics.median(step["seconds"] for step in steps if step["name"].startswith("train-fast-"))
        made_up = ", made-up digits" if "[made-up" in log(folder, os.path.basename(names[0])[:-4]) else ""
        verdict(score >= 99.0 and seconds <= 0.05, what, f"{score:.2f} % (mean of {len(runs)}{made_up}), {seconds:.3f} s, "
                f"{whole:.2f} s from start to end of the process")
    else:
        verdict(None, what)
    ours = trained(log(folder, "train-pytorch"))
    for mode, factor in (("eager", 3.0), ("graphs", 1.3), ("compile", 1.3)):
        what = f"mnist --preset pytorch at {factor} times PyTorch ({mode})"
        rows = lines(os.path.join(folder, f"torch-train-{mode}.json"))
        if not ours or not rows:
            verdict(None, what, f"ours {ours[1] if ours else 'not measured'}, "
                    f"torch {rows[0]['samples_per_s'] if rows else 'not measured'}")
            continue
        times = ours[1] / rows[0]["samples_per_s"]
        verdict(times >= factor, what, f"{times:.2f} times ({ours[1]:.0f} / {rows[0]['samples_per_s']:.0f} samples/s)")


def types(folder):
    what = "mnist --preset pytorch in float32, bfloat16 and float16 within 0.2 %"
    runs = [trained(log(folder, "train-pytorch" + suffix)) for suffix in ("", "-bf16", "-fp16")]
    if None in runs:
        return verdict(None, what)
    scores = [run[2] for run in runs]
    verdict(max(scores) - min(scores) <= 0.2, what, ", ".join(f"{run[2]:.2f} % at {run[1]:.0f} samples/s" for run in runs))


def peers(folder):
    rows = lines(os.path.join(folder, "torch-loading.jsonl"))
    if rows:
        print("\nPyTorch: " + ", ".join(sorted({row["version"] for row in rows})))
        for row in rows:
            print(f"  {row['what']:34} workers {row['workers']}, pinned {row['pin_memory']!s:5} non_blocking "
                  f"{row['non_blocking']!s:5} batch {row['batch_size']:5}: {row['samples_per_s']:12.0f} samples/s")
    path = os.path.join(folder, "pinning.txt")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            table = file.read().partition("\n\n")[2]
        print("\nthe num_workers experiment, 4 epochs, seconds\n" + table.rstrip())


def main():
    folder = sys.argv[1]
    found = lines(os.path.join(folder, "report.jsonl"))
    machine, steps = found[0], found[1:]
    print(f"{machine['gpu']}, {machine['cpu']} x {machine['cpus']}, {machine['kernel']}, {machine['date']}")
    print(f"driver and bus: {machine['nvidia_smi'] or 'unknown'}; torch: {machine['torch'] or 'none'}; "
          f"Stoker {machine['library_version']}; data: {machine['digits']}")
    if machine["quick"]:
        print("QUICK: the steps ran briefly, the figures mean nothing")
    print()
    for step in steps:
        print(f"  {step['name']:28} {step['status']:8} {step['seconds']:8.2f} s")
    print()
    pinning(folder)
    copies(folder)
    overlap(folder)
    sweep(folder, "sweep-host", "batches for a consumer that copies")
    sweep(folder, "sweep-resident", "GPU-resident MNIST")
    training(folder, steps)
    types(folder)
    peers(folder)


if __name__ == "__main__":
    main()
