#!/usr/bin/env python3
"""torch_smart.py - the best that expert use of PyTorch gives: the whole set in one uint8
tensor, a random permutation per epoch, index_select, normalised by one multiply and one add into
buffers allocated once. Also the set normalised before the first epoch, in four times the
memory; and the bytes alone.

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


def normalised(torch, images, batch):
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


def normalised_before(torch, images, batch):
    """One epoch of float32 batches from a set normalised beforehand: four times the memory."""
    return select_alone(torch, images.float().mul_(1 / (255 * STD)).sub_(MEAN / STD), batch)


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
            for peer, dtype, make in (("torch index_select", "float32", normalised),
                                      ("torch normalised before", "float32", normalised_before),
                                      ("torch index_select", "uint8", select_alone)):
                epoch = make(torch, images, batch)
                epoch()
                rates = [rate(epoch, len(images)) for _ in range(arguments.repeats)]
                print(json.dumps({"peer": peer, "batch_size": batch,
                                  "threads": threads, "dtype": dtype,
                                  "samples_per_s": statistics.median(rates),
                                  "version": torch.__version__}), flush=True)


if __name__ == "__main__":
    main()
