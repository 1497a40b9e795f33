#!/usr/bin/env python3
"""train_mnist.py - PyTorch's examples/mnist network, trained as fast as PyTorch does it on a CPU:
the twin of `stoker-mnist --preset pytorch`.

The whole set lies in one tensor, normalized beforehand, and is gathered by index_select: no
DataLoader, no process, no conversion. Same network, loss, Adadelta, rate 1
times 0.7 per epoch, same batches, same count of epochs or steps.

--precision bfloat16 computes under autocast; --compile through torch.compile (its first steps, which compile, are not
counted). --keep-memory starts the program again with an allocator that keeps freed memory
(MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_), which spares the page faults of every step: on two cores it
gains 15 %, so it is the default.

Before that, a matrix product of 1024 x 1024 is timed. Debian's torch computes with whichever BLAS
the system names: with the reference one it is 3.5 to 4 times slower, and to beat that would mean
nothing. Under --least-gflops a core the program says so and ends with 77, no peer.

Prints one JSON object: samples_per_s and cpu_seconds of training alone (tests left out), accuracy, gflops.

usage: train_mnist.py [--threads N] [--batch-size 64] [--epochs 3] [--steps N] [--seed 0]
                      [--precision float32|bfloat16] [--compile] [--no-keep-memory]
"""
import argparse
import contextlib
import json
import os
import sys
import tempfile
import time

import find_torch
import mnist_folder

SKIP = 77
MEAN, STD = 0.1307, 0.3081


def network(torch):
    """conv1 3x3x32, conv2 3x3x64, pooling, dropout, 128, dropout, 10."""
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(), nn.Linear(9216, 128),
                         nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10))


def load(root, train):
    from torchvision import datasets
    mnist = datasets.MNIST(root, train=train, download=False)
    return mnist.data.unsqueeze(1).float().div_(255).sub_(MEAN).div_(STD), mnist.targets


def gflops(torch):
    """The best of a few products; the first ones warm up the threads."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    best = float("inf")
    for _ in range(6):
        begin = time.perf_counter()
        torch.mm(a, b)
        best = min(best, time.perf_counter() - begin)
    return 2 * 1024 ** 3 / best / 1e9


KEEP = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "4294967296", "MALLOC_TOP_PAD_": "268435456"}


def keep_memory():
    """Starts the program again with the settings, which the allocator reads once."""
    if any(name not in os.environ for name in KEEP):
        os.execve(sys.executable, [sys.executable] + sys.argv, {**os.environ, **KEEP})


def compiled(torch, net, arguments):
    """Compiles for a whole batch; a smaller one would be compiled again."""
    net = torch.compile(net)
    with precision(torch, arguments):
        net(torch.zeros(arguments.batch_size, 1, 28, 28)).sum().backward()
    return net


def precision(torch, arguments):
    if arguments.precision == "bfloat16":
        return torch.autocast("cpu", dtype=torch.bfloat16)
    return contextlib.nullcontext()


def train(torch, net, images, labels, arguments):
    """Returns samples and seconds."""
    optimizer = torch.optim.Adadelta(net.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    loss_of = torch.nn.CrossEntropyLoss()
    samples = steps = 0
    net.train()
    begin = time.perf_counter()
    for _ in range(arguments.epochs):
        for chosen in torch.randperm(len(images)).split(arguments.batch_size):
            if arguments.compile and len(chosen) < arguments.batch_size:
                continue
            optimizer.zero_grad(set_to_none=True)
            with precision(torch, arguments):
                scores = net(images.index_select(0, chosen))
            loss_of(scores.float(), labels.index_select(0, chosen)).backward()
            optimizer.step()
            samples += len(chosen)
            steps += 1
            if steps == arguments.steps:
                return samples, time.perf_counter() - begin
        schedule.step()
    return samples, time.perf_counter() - begin


def accuracy(torch, net, images, labels):
    net.eval()
    with torch.no_grad():
        right = sum(int((net(x).argmax(1) == y).sum())
                    for x, y in zip(images.split(1000), labels.split(1000)))
    return right / len(labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=0, help="stop after N steps; 0 = no limit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--least-gflops", type=float, default=20.0, help="a core, to count")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--keep-memory", action=argparse.BooleanOptionalAction, default=True)
    arguments = parser.parse_args()
    find_torch.ensure()
    if arguments.keep_memory:
        keep_memory()
    import torch

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    speed = gflops(torch)
    if speed < arguments.least_gflops * arguments.threads:
        print(f"train_mnist.py: the BLAS under torch makes {speed:.0f} GFLOP/s with "
              f"{arguments.threads} threads: too slow for a fair comparison "
              "(Debian: install libopenblas0-pthread)", file=sys.stderr)
        sys.exit(SKIP)
    with tempfile.TemporaryDirectory() as root:
        mnist_folder.unpack(root)
        images, labels = load(root, True)
        test_images, test_labels = load(root, False)
    net = network(torch)
    trained = compiled(torch, net, arguments) if arguments.compile else net
    cpu = time.process_time()
    samples, seconds = train(torch, trained, images, labels, arguments)
    cpu = time.process_time() - cpu
    print(json.dumps({"peer": "torch " + torch.__version__, "precision": arguments.precision,
                      "compiled": arguments.compile, "keep_memory": arguments.keep_memory, "threads": arguments.threads,
                      "batch_size": arguments.batch_size, "samples": samples,
                      "seconds": round(seconds, 3), "cpu_seconds": round(cpu, 3), "samples_per_s": round(samples / seconds, 1),
                      "accuracy": accuracy(torch, net, test_images, test_labels),
                      "gflops": round(speed, 1)}), flush=True)


if __name__ == "__main__":
    main()
