#!/usr/bin/env python3
"""torch_smart.py - the best that expert use of PyTorch and numpy gives: the whole set in one uint8
tensor, a random permutation per epoch, index_select, normalized by one multiply and one add into
buffers allocated once. Also the set normalized before the first epoch, in four times the
memory; and the bytes alone.

"gather 1024, views" takes 1,024 rows (or a batch, if that is more) at once and hands out parts of them, so that a call's fixed cost is shared by
many batches. The rows handed out stay valid for one such group, like the loader's batches.

Prints one JSON object per line: the median of the repeats, each one or more whole epochs.

usage: torch_smart.py [--threads 1,2] [--batch-sizes 64,512] [--repeats 5]
"""
import argparse
import json
import statistics
import tempfile
import time

import find_torch
import mnist_folder

MEAN, STD = 0.1307, 0.3081
SECONDS = 0.3  # least length of a repeat


def normalized(torch, images, batch):
    """One epoch of float32 batches."""
    picked = torch.empty((batch, *images.shape[1:]), dtype=torch.uint8)
    out = torch.empty(picked.shape, dtype=torch.float32)
    scale, shift = 1 / (255 * STD), -MEAN / STD

    def epoch():
        for chosen in torch.randperm(len(images)).split(batch):
            rows = picked if len(chosen) == batch else picked[:len(chosen)]
            result = out if len(chosen) == batch else out[:len(chosen)]
            torch.index_select(images, 0, chosen, out=rows)
            torch.mul(rows, scale, out=result).add_(shift)
    return epoch


def select_alone(torch, images, batch):
    """One epoch of batches as stored."""
    picked = torch.empty((batch, *images.shape[1:]), dtype=images.dtype)

    def epoch():
        for chosen in torch.randperm(len(images)).split(batch):
            rows = picked if len(chosen) == batch else picked[:len(chosen)]
            torch.index_select(images, 0, chosen, out=rows)
    return epoch


def normalized_before(torch, images, batch):
    """One epoch of float32 batches from a set normalized beforehand: four times the memory."""
    return select_alone(torch, images.float().mul_(1 / (255 * STD)).sub_(MEAN / STD), batch)


GROUP = 1024


def grouped(torch, images, batch, normalize):
    """Float32 batches, or batches as stored: many rows at once, handed out as views."""
    group = max(GROUP, batch) // batch * batch
    rows = torch.empty((group, *images.shape[1:]), dtype=images.dtype)
    out = torch.empty(rows.shape, dtype=torch.float32) if normalize else rows
    scale, shift = 1 / (255 * STD), -MEAN / STD

    def epoch():
        for chosen in torch.randperm(len(images)).split(group):
            count = len(chosen)
            torch.index_select(images, 0, chosen, out=rows[:count])
            if normalize:
                torch.mul(rows[:count], scale, out=out[:count]).add_(shift)
            for begin in range(0, count, batch):
                out[begin:begin + batch]  # what the training loop is given
    return epoch


def grouped_float(torch, images, batch):
    return grouped(torch, images, batch, True)


def grouped_before(torch, images, batch):
    return grouped(torch, images.float().mul_(1 / (255 * STD)).sub_(MEAN / STD), batch, False)


def grouped_bytes(torch, images, batch):
    return grouped(torch, images, batch, False)


def numpy_float(torch, images, batch):
    """numpy alone: take and normalize many rows at once, hand out views."""
    import numpy
    rows = images.numpy()
    group = max(GROUP, batch) // batch * batch
    taken = numpy.empty((group, *rows.shape[1:]), rows.dtype)
    out = numpy.empty(taken.shape, numpy.float32)
    random = numpy.random.default_rng()
    scale, shift = numpy.float32(1 / (255 * STD)), numpy.float32(-MEAN / STD)

    def epoch():
        order = random.permutation(len(rows))
        for begin in range(0, len(rows), group):
            chosen = order[begin:begin + group]
            count = len(chosen)
            numpy.take(rows, chosen, axis=0, out=taken[:count], mode="clip")
            numpy.multiply(taken[:count], scale, out=out[:count])
            out[:count] += shift
            for first in range(0, count, batch):
                out[first:first + batch]
    return epoch


def rate(epoch, samples):
    begin = time.perf_counter()
    epochs = 0
    while time.perf_counter() - begin < SECONDS:
        epoch()
        epochs += 1
    return epochs * samples / (time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--batch-sizes", default="64,512")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    find_torch.ensure()
    import torch
    from torchvision import datasets

    with tempfile.TemporaryDirectory() as root:
        mnist_folder.unpack(root)
        images = datasets.MNIST(root, train=True, download=False).data.contiguous()
    for threads in map(int, arguments.threads.split(",")):
        torch.set_num_threads(threads)
        for batch in map(int, arguments.batch_sizes.split(",")):
            for peer, dtype, make in (("torch index_select", "float32", normalized),
                                      ("torch normalized before", "float32", normalized_before),
                                      ("torch gather 1024, views", "float32", grouped_float),
                                      ("torch before + views", "float32", grouped_before),
                                      ("numpy gather 1024, views", "float32", numpy_float),
                                      ("torch index_select", "uint8", select_alone),
                                      ("torch gather 1024, views", "uint8", grouped_bytes)):
                epoch = make(torch, images, batch)
                epoch()
                rates = [rate(epoch, len(images)) for _ in range(arguments.repeats)]
                print(json.dumps({"peer": peer, "batch_size": batch,
                                  "threads": threads, "dtype": dtype,
                                  "samples_per_s": statistics.median(rates),
                                  "version": torch.__version__}), flush=True)


if __name__ == "__main__":
    main()
