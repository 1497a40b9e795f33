"""MNIST as normalized float32, batch 64: the rate in Python beside that of loaderbench, in turn.

usage: mnist_rate.py LOADERBENCH [DATASET] [--workers N] [--rounds N] [--seconds S]

DATASET is mnist:$STOKER_DATA/mnist if STOKER_DATA is set, else drawn digits. Target: dlpack at least 0.9 of the C rate.
"""
import argparse
import json
import os
import subprocess
import time

from turns import in_turns, libraries, machine, middle, ratio, spread


def in_python(spec, output, workers, seconds, batch_size):
    """Samples per second, over whole epochs of at least `seconds`."""
    import stoker

    def run():
        loader = stoker.DataLoader(spec, batch_size, shuffle=True, num_workers=workers, dtype="float32", output=output, drop_last=True)
        with loader:
            for _ in loader:  # fills the cache
                pass
            samples, start = 0, time.perf_counter()
            while True:
                for _ in loader:
                    pass
                samples += len(loader) * batch_size
                elapsed = time.perf_counter() - start
                if elapsed >= seconds:
                    return samples / elapsed
    return run


def in_c(program, spec, workers, seconds, batch_size):
    def run():
        rows = subprocess.run(
            [program, "--workers", str(workers), "--batch-size", str(batch_size), "--dtype", "float32", "--pin-memory", "off",
             "--repeats", "1", "--seconds", str(seconds), "--ceilings", "off", "--format", "json", spec],
            check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True).stdout
        rates = [row["samples_per_s"] for row in map(json.loads, rows.splitlines()) if "samples_per_s" in row]
        return rates[0]
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loaderbench")
    parser.add_argument("dataset", nargs="?")
    parser.add_argument("--workers", default="1", type=lambda text: text if text == "auto" else int(text))
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.3)
    options = parser.parse_args()
    data = os.environ.get("STOKER_DATA")
    spec = options.dataset or (f"mnist:{data}/mnist" if data else "synth:digits?count=60000")

    print(machine())
    how = (options.workers, options.seconds, options.batch_size)
    candidates = {"loaderbench": in_c(options.loaderbench, spec, *how)}
    for output in ["dlpack"] + libraries():
        candidates[output] = in_python(spec, output, *how)
    results = in_turns(candidates, options.rounds)
    print(f"{spec}, batch {options.batch_size}, float32, {options.workers} workers")
    for name, values in results.items():
        share = ratio(results, name, "loaderbench")
        judged = f"  target 0.90: {'met' if share >= 0.9 else 'NOT MET'}" if name == "dlpack" else ""
        print(f"{name:12} {middle(values) / 1e6:7.2f} M samples/s, {share:5.2f} of loaderbench, spread {spread(values):.0%}{judged}")


if __name__ == "__main__":
    main()
