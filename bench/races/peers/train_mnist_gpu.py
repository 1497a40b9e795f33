#!/usr/bin/env python3
"""train_mnist_gpu.py - PyTorch's examples/mnist network on a GPU, trained as fast as PyTorch does it: the twin
of `stoker-mnist --preset pytorch --device cuda`.

The set lies in GPU memory, normalized beforehand, and is gathered by index_select: no
DataLoader. Same network, loss, Adadelta, rate 1 times 0.7 per epoch, same batches. Three modes: eager; the whole
step captured as a CUDA graph; torch.compile. In each the optimizer is PyTorch's own with
`capturable`, and the clock starts after the first steps (compiling, capturing and warming up are left out).

Prints one JSON object: samples_per_s of training alone, accuracy, how.

usage: train_mnist_gpu.py --mode eager|graphs|compile [--batch-size 64] [--epochs 3] [--seed 0] [--quick]
                          [--output FILE]
"""
import argparse
import json
import sys
import time

import find_torch
import mnist_idx
from train_mnist import MEAN, STD, accuracy, network

WARM_STEPS = 11


def prepared(torch, train):
    images, labels = mnist_idx.load(torch, train)
    return images.cuda().unsqueeze(1).float().div_(255).sub_(MEAN).div_(STD), labels.cuda()


def optimizer_of(torch, net, rate, capturable):
    """Newer versions have an Adadelta for CUDA graphs: the rate is a tensor, which a graph reads each time."""
    try:
        return torch.optim.Adadelta(net.parameters(), lr=rate, capturable=capturable)
    except TypeError:
        if capturable:
            print("this torch cannot capture Adadelta", file=sys.stderr)
            sys.exit(77)
        return torch.optim.Adadelta(net.parameters(), lr=1.0)


def step_of(torch, net, optimizer, images, labels, batch):
    """One step on the rows that `chosen` names."""
    loss_of = torch.nn.CrossEntropyLoss()

    def step(chosen):
        optimizer.zero_grad(set_to_none=True)
        loss_of(net(images.index_select(0, chosen)), labels.index_select(0, chosen)).backward()
        optimizer.step()

    return step


def captured(torch, step, batch):
    """The step as a graph; batches of another size run without it."""
    chosen = torch.zeros(batch, dtype=torch.int64, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_STEPS):
            step(chosen)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(chosen)

    def run(rows):
        if len(rows) != batch:
            return
        chosen.copy_(rows)
        graph.replay()

    return run


def train(torch, arguments, images, labels):
    """Returns the network, samples and seconds."""
    rate = torch.tensor(1.0, device="cuda") if arguments.mode == "graphs" else 1.0
    net = network(torch).cuda()
    saved = {name: value.clone() for name, value in net.state_dict().items()}
    model = torch.compile(net) if arguments.mode == "compile" else net
    optimizer = optimizer_of(torch, net, rate, arguments.mode == "graphs")
    step = step_of(torch, model, optimizer, images, labels, arguments.batch_size)
    net.train()
    if arguments.mode == "graphs":
        step = captured(torch, step, arguments.batch_size)
    else:
        for _ in range(WARM_STEPS):
            step(torch.arange(arguments.batch_size, device="cuda"))
    with torch.no_grad():  # undo the warm-up: weights and the optimizer's sums
        for name, value in net.state_dict().items():
            value.copy_(saved[name])
        for state in optimizer.state.values():
            for value in state.values():
                if torch.is_tensor(value):
                    value.zero_()
    torch.cuda.synchronize()
    begin, samples = time.perf_counter(), 0
    for _ in range(arguments.epochs):
        for chosen in torch.randperm(len(images), device="cuda").split(arguments.batch_size):
            if len(chosen) == arguments.batch_size:  # a smaller one would be recompiled
                step(chosen)
                samples += len(chosen)
        for group in optimizer.param_groups:
            if torch.is_tensor(group["lr"]):
                group["lr"].mul_(0.7)
            else:
                group["lr"] *= 0.7
    torch.cuda.synchronize()
    return net, samples, time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=("eager", "graphs", "compile"), required=True)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="6400 samples, one epoch")
    parser.add_argument("--output")
    arguments = parser.parse_args()
    torch = find_torch.ensure_gpu()
    if arguments.mode == "compile" and not hasattr(torch, "compile"):
        print(f"torch {torch.__version__} has no torch.compile", file=sys.stderr)
        sys.exit(77)
    torch.manual_seed(arguments.seed)
    images, labels = prepared(torch, True)
    if arguments.quick:
        images, labels, arguments.epochs = images[:6400], labels[:6400], 1
    net, samples, seconds = train(torch, arguments, images, labels)
    out = open(arguments.output, "w", encoding="utf-8") if arguments.output else sys.stdout
    print(json.dumps({"peer": "torch " + torch.__version__, "mode": arguments.mode,
                      "gpu": torch.cuda.get_device_name(), "batch_size": arguments.batch_size,
                      "samples": samples, "seconds": round(seconds, 4),
                      "samples_per_s": round(samples / seconds, 1),
                      "accuracy": accuracy(torch, net, *prepared(torch, False))}), file=out, flush=True)


if __name__ == "__main__":
    main()
