"""A language model on a stream of tokens: windows of the stream, widened to int64, as inputs and targets.

    python tokens.py tokens.bin                            # uint16 tokens, as nanoGPT writes them
    python tokens.py                                       # a stream that it makes up

A window's offsets are ordinary rows of an array, so nothing is copied before training: NumPy's strided view overlaps by one token.
"""
import argparse

import numpy as np
import torch
import torch.nn.functional as F

import stoker


def windows(tokens, length):
    """Rows of `length` + 1 tokens; each begins with the last token of the one before."""
    count = (len(tokens) - 1) // length
    return np.stack([tokens[i * length : i * length + length + 1] for i in range(count)])


def made_up(count, seed=0):
    """Each token follows from the one before, most of the time."""
    draw = np.random.default_rng(seed)
    tokens = np.empty(count, np.uint16)
    tokens[0] = 1
    noise, random = draw.random(count) < 0.1, draw.integers(0, 64, count)
    for i in range(1, count):
        tokens[i] = random[i] if noise[i] else (5 * int(tokens[i - 1]) + 3) % 64
    return tokens


class Bigram(torch.nn.Module):
    def __init__(self, vocabulary, width=32):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.head = torch.nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(F.gelu(self.embedding(tokens)))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?")
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=4)
    options = parser.parse_args(arguments)

    stream = np.memmap(options.data, np.uint16, "r") if options.data else made_up(40000)
    data = stoker.from_arrays(tokens=windows(stream, options.length))
    train = stoker.DataLoader(data, batch_size=16, shuffle=True, seed=1, drop_last=True, dtype="int64", output="torch")

    torch.manual_seed(0)
    model = Bigram(int(stream.max()) + 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for epoch in range(options.epochs):
        for (tokens,) in train:
            optimizer.zero_grad()
            scores = model(tokens[:, :-1])
            loss = F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.3f} nats a token")
    return loss.item()


if __name__ == "__main__":
    main()
