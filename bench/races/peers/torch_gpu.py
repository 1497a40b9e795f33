#!/usr/bin/env python3
"""torch_gpu.py - MNIST on a GPU with PyTorch: the DataLoader with every setting, and the set kept in
GPU memory and gathered there, which is the best it can do.

Prints one JSON object per line: samples/s of whole epochs after an untimed one, the GPU's work included.

usage: torch_gpu.py [--output FILE] [--workers 0,2,4,8] [--batch-sizes 64,512] [--quick]
"""
import argparse
import json
import sys
import time

import find_torch
import mnist_idx

MEAN, STD = 0.1307, 0.3081


def timed(torch, epoch, least_seconds):
    """Median samples/s of three repeats of whole epochs, each at least `least` seconds."""
    epoch()
    rates = []
    for _ in range(3):
        torch.cuda.synchronize()
        begin, samples = time.perf_counter(), 0
        while time.perf_counter() - begin < least_seconds:
            samples += epoch()
            torch.cuda.synchronize()
        rates.append(samples / (time.perf_counter() - begin))
    return sorted(rates)[1]


def loading(torch, digits, workers, batch, pinned, non_blocking):
    loader = torch.utils.data.DataLoader(digits, batch_size=batch, shuffle=True, num_workers=workers,
                                         pin_memory=pinned, persistent_workers=workers > 0)

    def epoch():
        samples = 0
        for images, labels in loader:
            images.to("cuda", non_blocking=non_blocking)
            labels.to("cuda", non_blocking=non_blocking)
            samples += len(labels)
        return samples

    return epoch


def resident(torch, images, labels, batch, compiled):
    """uint8 rows in GPU memory: gathered and converted there."""
    rows, marks = images.cuda(), labels.cuda()

    def take(chosen):
        picture = rows.index_select(0, chosen).float().mul_(1 / (255 * STD)).sub_(MEAN / STD)
        return picture, marks.index_select(0, chosen)

    if compiled:
        take = torch.compile(take)

    def epoch():
        for chosen in torch.randperm(len(rows), device="cuda").split(batch):
            take(chosen)
        return len(rows)

    return epoch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output")
    parser.add_argument("--workers", default="0,2,4,8")
    parser.add_argument("--batch-sizes", default="64,512")
    parser.add_argument("--quick", action="store_true", help="640 samples, no workers")
    arguments = parser.parse_args()
    torch = find_torch.ensure_gpu()
    images, labels = mnist_idx.load(torch, True)
    least = 1.0
    if arguments.quick:
        images, labels, arguments.workers, least = images[:640], labels[:640], "0", 0.01
    digits = mnist_idx.Digits(torch, images, labels)
    out = open(arguments.output, "w", encoding="utf-8") if arguments.output else sys.stdout

    def report(what, batch, rate, workers=0, pinned=None, non_blocking=None):
        print(json.dumps({"what": what, "workers": workers, "pin_memory": pinned,
                          "non_blocking": non_blocking, "batch_size": batch, "samples_per_s": rate,
                          "version": torch.__version__, "gpu": torch.cuda.get_device_name()}),
              file=out, flush=True)

    for batch in map(int, arguments.batch_sizes.split(",")):
        for workers in map(int, arguments.workers.split(",")):
            for pinned in (True, False):
                for non_blocking in (True, False):
                    epoch = loading(torch, digits, workers, batch, pinned, non_blocking)
                    report("DataLoader, " + digits.how, batch, timed(torch, epoch, least), workers, pinned,
                           non_blocking)
        report("resident, gathered", batch, timed(torch, resident(torch, images, labels, batch, False), least))
        if hasattr(torch, "compile"):
            try:
                report("resident, compiled", batch,
                       timed(torch, resident(torch, images, labels, batch, True), least))
            except Exception as error:  # no compiler on this machine: no figure for this one
                print(f"torch.compile: {str(error)[:200]}", file=sys.stderr)


if __name__ == "__main__":
    main()
