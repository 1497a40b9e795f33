"""What a batch costs in Python: batch size 1, samples of 8 bytes and a label in memory, no workers.

usage: overhead.py [--rounds N] [--batches N]

Everything is in it: the C library's part, the iterator, the named tuple and the arrays. torch's own DataLoader over the same arrays is
measured in turn. Targets: 2 us for output="dlpack", 5 us for two torch tensors.
"""
import argparse
import itertools
import time

from turns import in_turns, libraries, machine, middle, spread

TARGETS_US = {"dlpack": 2.0, "torch": 5.0}


def arrays(count):
    import array

    rows, labels = array.array("f", bytes(8 * count)), array.array("q", bytes(8 * count))
    return memoryview(rows).cast("B").cast("f", (count, 2)), labels


def loop(loader, batches):
    """A function that takes `batches` batches and returns nanoseconds per batch."""
    def run():
        iterator = iter(loader)
        for _ in itertools.islice(iterator, 100):
            pass
        start = time.perf_counter_ns()
        for _ in itertools.islice(iterator, batches):
            pass
        return (time.perf_counter_ns() - start) / batches
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batches", type=int, default=20000)
    options = parser.parse_args()
    import stoker

    print(machine())
    rows, labels = arrays(options.batches + 200)
    have = libraries()
    candidates = {}
    for output in ["dlpack"] + have:
        loader = stoker.DataLoader(stoker.from_arrays(rows, labels), batch_size=1, num_workers=0, output=output)
        candidates[output] = loop(loader, options.batches)
    if "torch" in have:
        import torch

        data = torch.utils.data.TensorDataset(torch.zeros(options.batches + 200, 2), torch.zeros(options.batches + 200).long())
        candidates["torch's DataLoader"] = loop(torch.utils.data.DataLoader(data, batch_size=1), options.batches // 20)
    results = in_turns(candidates, options.rounds)
    missed = 0
    for name, values in results.items():
        us, target = middle(values) / 1000, TARGETS_US.get(name)
        judged = "" if target is None else f"  target {target:.1f}: {'met' if us <= target else 'NOT MET'}"
        missed += target is not None and us > target
        print(f"{name:20} {us:8.2f} us a batch, least {min(values) / 1000:.2f}, spread {spread(values):.0%}{judged}")
    return missed


if __name__ == "__main__":
    main()
