#!/usr/bin/env python3
"""torch_dataloader.py - the common loader: torchvision's MNIST, ToTensor, Normalize,
DataLoader(shuffle=True, batch_size=64), with 0, 1, 2, 4 and 8 workers.

Prints one JSON object per line. Each figure is one whole epoch after an untimed one.

usage: torch_dataloader.py [--workers 0,1,2,4,8] [--epochs N]
"""
import argparse
import json
import tempfile
import time

import find_torch
import mnist_folder

BATCH = 64


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", default="0,1,2,4,8")
    parser.add_argument("--epochs", type=int, default=1)
    arguments = parser.parse_args()
    find_torch.ensure()
    import torch
    from torchvision import datasets, transforms

    with tempfile.TemporaryDirectory() as root:
        mnist_folder.unpack(root)
        digits = datasets.MNIST(root, train=True, download=False, transform=transforms.Compose([
            transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))]))
        for workers in map(int, arguments.workers.split(",")):
            loader = torch.utils.data.DataLoader(digits, batch_size=BATCH, shuffle=True,
                                                 num_workers=workers)
            epoch(loader)
            for _ in range(arguments.epochs):
                begin = time.perf_counter()
                samples = epoch(loader)
                seconds = time.perf_counter() - begin
                print(json.dumps({"peer": "torch DataLoader", "batch_size": BATCH,
                                  "workers": workers, "dtype": "float32",
                                  "samples_per_s": samples / seconds,
                                  "version": torch.__version__}), flush=True)


def epoch(loader):
    """Takes every batch and reads one value of it."""
    samples = 0
    for images, labels in loader:
        samples += len(labels)
        images[0, 0, 0, 0].item()
    return samples


if __name__ == "__main__":
    main()
