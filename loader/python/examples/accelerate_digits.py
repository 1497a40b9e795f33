"""Hugging Face Accelerate: prepare() returns Stoker's loader as it is.

    accelerate launch accelerate_digits.py                 # or: python accelerate_digits.py

Of torch's DataLoader it makes one that divides batches among the processes and moves them to the device. Stoker does both itself, from
the ranks of torch.distributed and device=... What Accelerate learns from its own loaders is missing: accumulate() does not notice an
epoch's last batch, and gather_for_metrics() does not leave out samples that fill up the last batch; with drop_last there are none.
"""
import argparse

import torch
import torch.nn.functional as F
from accelerate import Accelerator

import stoker


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="synth:digits?count=4000")
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args(arguments)

    accelerator = Accelerator()
    device = accelerator.device.type if accelerator.device.type == "cpu" else str(accelerator.device)
    train = stoker.DataLoader(options.data, batch_size=50, shuffle=True, drop_last=True, dtype="float32",
                              output="torch", device=device)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    model, optimizer, train = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.2), train)
    accelerator.register_for_checkpointing(train)  # save_state() and load_state() take its place in the epoch along

    for epoch in range(options.epochs):
        right = total = 0
        for images, labels in train:
            optimizer.zero_grad()
            scores = model(images)
            accelerator.backward(F.cross_entropy(scores, labels))
            optimizer.step()
            right += (scores.argmax(1) == labels).sum().item()
            total += len(labels)
        accelerator.print(f"epoch {epoch + 1}: accuracy while training {right / total:.3f}")
    return right / total


if __name__ == "__main__":
    main()
