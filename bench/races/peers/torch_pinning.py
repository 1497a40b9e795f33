#!/usr/bin/env python3
"""torch_pinning.py - the well-known experiment for choosing num_workers and pin_memory, in PyTorch:
four epochs of MNIST in batches of 64 for each number of workers, pinned and not, timed from before
the first worker starts. On a GPU every batch is moved there, as a training loop does.

Prints the lines that `loaderbench --like-pytorch --beside FILE` reads.

usage: torch_pinning.py [--output FILE] [--device cuda|cpu] [--epochs 4] [--workers 0,5,...,45] [--quick]
"""
import argparse
import sys
import time

import find_torch
import mnist_idx


def epochs(torch, digits, arguments, workers, pinned):
    """Seconds of all epochs."""
    begin = time.perf_counter()
    loader = torch.utils.data.DataLoader(digits, batch_size=64, shuffle=True, num_workers=workers,
                                         pin_memory=pinned)
    for _ in range(arguments.epochs):
        for images, labels in loader:
            if arguments.device != "cpu":
                images = images.to(arguments.device, non_blocking=pinned)
                labels = labels.to(arguments.device, non_blocking=pinned)
    if arguments.device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--workers", default="0,5,10,15,20,25,30,35,40,45")
    parser.add_argument("--quick", action="store_true", help="640 samples, two numbers of workers")
    arguments = parser.parse_args()
    if arguments.device == "cpu":
        find_torch.ensure(("torch",))
        import torch
    else:
        torch = find_torch.ensure_gpu()
    images, labels = mnist_idx.load(torch, True)
    if arguments.quick:
        images, labels, arguments.workers, arguments.epochs = images[:640], labels[:640], "0,5", 1
    digits = mnist_idx.Digits(torch, images, labels)
    out = open(arguments.output, "w", encoding="utf-8") if arguments.output else sys.stdout
    print(f"torch {torch.__version__}, {arguments.device}, {digits.how}", file=out)
    for pinned in (True, False):
        print(f"pin_memory={pinned}", file=out)
        for workers in map(int, arguments.workers.split(",")):
            seconds = epochs(torch, digits, arguments, workers, pinned)
            print(f"Finish with: {seconds:.4f} second, num_workers={workers}", file=out, flush=True)


if __name__ == "__main__":
    main()
