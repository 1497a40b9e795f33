"""Hugging Face Accelerate: the loader is used as it is; prepare() is for model and optimizer.

    accelerate launch accelerate_digits.py                 # or: python accelerate_digits.py

Accelerate's prepare() would divide batches among processes and move them to the device. Stoker does both itself, from the ranks of
torch.distributed and device=..., so the loader is not passed to it.
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
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.2))
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
