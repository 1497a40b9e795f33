#!/usr/bin/env python3
"""torch_folder.py - a folder of PNG files as torchvision reads it: ImageFolder with its own loader
(Pillow), and with torchvision.io.read_image, batch 64, shuffled, to float32.

Prints one JSON object per line. Each figure is an epoch without its first batches, in which
workers start.

usage: torch_folder.py FOLDER [--workers 0,1,2,4] [--samples N]
"""
import argparse
import json
import time

import find_torch

BATCH = 64
SKIPPED_BATCHES = 16


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--workers", default="0,1,2,4")
    parser.add_argument("--samples", type=int, default=12000)
    arguments = parser.parse_args()
    find_torch.ensure()
    import torch
    import torchvision
    from torchvision import datasets, transforms

    normalize = transforms.Normalize((0.1307,), (0.3081,))

    def from_bytes(image):
        return normalize(image.float().div(255))

    peers = {
        "ImageFolder": datasets.ImageFolder(
            arguments.folder, transform=transforms.Compose([transforms.ToTensor(), normalize])),
        "torchvision.io": datasets.ImageFolder(
            arguments.folder, loader=torchvision.io.read_image, transform=from_bytes),
    }
    for name, pictures in peers.items():
        for workers in map(int, arguments.workers.split(",")):
            loader = torch.utils.data.DataLoader(pictures, batch_size=BATCH, shuffle=True,
                                                 num_workers=workers)
            print(json.dumps({"peer": name, "set": "folder", "batch_size": BATCH,
                              "workers": workers, "dtype": "float32",
                              "samples_per_s": rate(loader, arguments.samples),
                              "version": torch.__version__}), flush=True)


def rate(loader, limit):
    """Takes batches and reads one value of each."""
    begin, samples = 0.0, 0
    for index, (images, labels) in enumerate(loader):
        images[0, 0, 0, 0].item()
        if index == SKIPPED_BATCHES:
            begin, samples = time.perf_counter(), 0
        elif index > SKIPPED_BATCHES:
            samples += len(labels)
        if samples >= limit:
            break
    return samples / (time.perf_counter() - begin)


if __name__ == "__main__":
    main()
