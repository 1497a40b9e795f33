"""A batch of 114 small tensors on a GPU: pinned beside unpinned, and beside the Python time that torch takes for such a batch.

usage: STOKER_CUDART=BUILD/tests/standin_gpu/libcudart.so many_tensors.py [--tensors N] [--batch-size N] [--rounds N]

rf-detr's issue 1396 reports such batches, whose pinning made training slower by a third. On the stand-in for a GPU rates say nothing
about a card; the ratio says that pinning adds no work per batch. Target: pinned at least as fast as unpinned. torch's collation is
measured with the pinning thread's work as far as a machine without a GPU does it: one visit of each tensor.
"""
import argparse
import subprocess
import sys
import time

import stoker

from turns import in_turns, libraries, machine, middle, ratio, spread

# Prints batches per second.
COLLATE = """
import sys, time, torch
items = [{f"tensor_{i}": torch.zeros(64) for i in range(int(sys.argv[1]))} for _ in range(int(sys.argv[2]))]
def collate():
    for tensor in torch.utils.data.default_collate(items).values():
        tensor.is_pinned()
collate()
start = time.perf_counter()
for _ in range(50):
    collate()
print(50 / (time.perf_counter() - start))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tensors", type=int, default=114)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    import numpy

    print(machine())
    arrays = {f"tensor_{i}": numpy.zeros((options.count, 64), numpy.float32) for i in range(options.tensors)}
    data = stoker.from_arrays(**arrays)

    def of_stoker(pin):
        loader = stoker.DataLoader(data, options.batch_size, shuffle=True, num_workers=1, device="cuda", pin_memory=pin,
                                   output="dlpack", drop_last=True)

        def run():
            start = time.perf_counter()
            for batch in loader:
                pass
            return len(loader) / (time.perf_counter() - start)
        return run

    candidates = {"stoker, pinned": of_stoker(True), "stoker, not pinned": of_stoker(False)}
    # In a process of its own: torch's CUDA runtime has the name of the stand-in.
    collate = [sys.executable, "-c", COLLATE, str(options.tensors), str(options.batch_size)]
    if "torch" in libraries():
        candidates["torch, collating only"] = lambda: float(subprocess.check_output(collate))
    else:
        print("torch is not installed: its part is left out")
    results = in_turns(candidates, options.rounds)
    print(f"{options.tensors} tensors of {options.batch_size} x 256 bytes a batch")
    for name, values in results.items():
        print(f"{name:24} {1e6 / middle(values):8.1f} us a batch, {ratio(results, name, 'stoker, not pinned'):5.2f} of unpinned, "
              f"spread {spread(values):.0%}")
    share = ratio(results, "stoker, pinned", "stoker, not pinned")
    print(f"pinned / unpinned {share:.2f}, target 1.00, of which 2 % are noise: {'met' if share >= 0.98 else 'NOT MET'}")


if __name__ == "__main__":
    main()
