"""A language model on a stream of tokens: windows of token files, widened to int64, as inputs and targets.

    python tokens.py 'train_*.bin'                         # token files of llm.c or modded-nanogpt; nanoGPT's: --stored uint16
    python tokens.py                                       # a file that it makes up

Targets are the inputs one token later; both lie in one window, which is read once.
"""
import argparse
import os
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

import stoker


def write_tokens(path, count=40000):
    """A uint16 file in which each token follows from the one before, nine times out of ten."""
    draw = np.random.default_rng(0)
    noise, random = draw.random(count) < 0.1, draw.integers(0, 64, count)
    tokens = np.empty(count, np.uint16)
    tokens[0] = 1
    for i in range(1, count):
        tokens[i] = random[i] if noise[i] else (5 * int(tokens[i - 1]) + 3) % 64
    tokens.tofile(path)


class Bigram(torch.nn.Module):
    """The next token from the last one."""

    def __init__(self, vocabulary, width=32):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.head = torch.nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(F.gelu(self.embedding(tokens)))


def train(files, stored, length, vocabulary, epochs):
    spec = f"tokens:{files}?length={length}&fields=inputs,targets&dtype=int64" + (f"&stored={stored}" if stored else "")
    loader = stoker.DataLoader(spec, batch_size=16, shuffle=True, seed=1, drop_last=True, output="torch")
    print(loader.dataset.description)
    torch.manual_seed(0)
    model = Bigram(vocabulary)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for epoch in range(epochs):
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.3f} nats a token")
    return loss.item()


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="?")
    parser.add_argument("--stored", help="uint16 or uint32, for files without a header")
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--vocabulary", type=int, default=50257)
    parser.add_argument("--epochs", type=int, default=4)
    options = parser.parse_args(arguments)
    if options.files:
        return train(options.files, options.stored, options.length, options.vocabulary, options.epochs)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokens.bin")
        write_tokens(path)
        return train(path, "uint16", options.length, 64, options.epochs)


if __name__ == "__main__":
    main()
