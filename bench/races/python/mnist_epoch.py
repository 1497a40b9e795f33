"""The loading part of an epoch of PyTorch's MNIST example, beside torch's DataLoader at its best, in turn.

usage: mnist_epoch.py [DATASET] [--rounds N] [--batch-size N]

torch's candidates: MNIST in memory as normalized float32 in a TensorDataset, with 0 and 2 workers; the same with a batch of indices per
item (batch_size=None and a BatchSampler), which spares the collation; and, beside the point since no DataLoader is left, a loop that
indexes the tensor with a permutation. examples/mnist.py trains with either.
"""
import argparse
import os
import time

import stoker
import torch

from turns import in_turns, machine, middle, ratio, spread

MEAN, STD = 0.1307, 0.3081


def timed(loader):
    def run():
        start = time.perf_counter()
        for images, labels in loader:
            pass
        return time.perf_counter() - start
    return run


class Loop:
    """No DataLoader: a permutation, and one index operation per batch."""

    def __init__(self, images, labels, batch_size):
        self.images, self.labels, self.batch_size = images, labels, batch_size

    def __iter__(self):
        for ids in torch.randperm(len(self.images)).split(self.batch_size):
            yield self.images[ids], self.labels[ids]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    data = os.environ.get("STOKER_DATA")
    spec = options.dataset or (f"mnist:{data}/mnist" if data else "synth:digits?count=60000")

    print(machine())
    how = dict(transform=stoker.Transform(normalize=(MEAN, STD)), layout="NCHW")
    with stoker.DataLoader(spec, 1000, **how) as loader:
        images, labels = (torch.cat(parts) for parts in zip(*((x.clone(), y.clone()) for x, y in loader)))
    tensors = torch.utils.data.TensorDataset(images, labels)
    whole = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(tensors), options.batch_size, False)
    make = torch.utils.data.DataLoader
    candidates = {
        "stoker": timed(stoker.DataLoader(spec, options.batch_size, shuffle=True, **how)),
        "DataLoader, 0 workers": timed(make(tensors, options.batch_size, shuffle=True)),
        "DataLoader, 2 workers": timed(make(tensors, options.batch_size, shuffle=True, num_workers=2, persistent_workers=True)),
        "DataLoader, batches": timed(make(tensors, batch_size=None, sampler=whole)),
        "indexing, no DataLoader": timed(Loop(images, labels, options.batch_size)),
    }
    results = in_turns(candidates, options.rounds)
    print(f"{spec}, {len(tensors)} samples, batch {options.batch_size}")
    for name, values in results.items():
        print(f"{name:24} {middle(values) * 1000:9.1f} ms an epoch, {ratio(results, name, 'stoker'):7.1f} x stoker, "
              f"spread {spread(values):.0%}")


if __name__ == "__main__":
    main()
