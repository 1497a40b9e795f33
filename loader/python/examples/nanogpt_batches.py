"""nanoGPT's get_batch() by Stoker: the same windows, drawn alike, read ahead by threads, and resumable.

    python nanogpt_batches.py data/openwebtext             # a folder with nanoGPT's train.bin and val.bin
    python nanogpt_batches.py                              # one that it makes up

nanoGPT draws the windows of each batch with torch.randint(len(data) - block_size, (batch_size,)), and copies them from a mapped file between
two steps. order="uniform" draws the same offsets, all alike and with replacement, by a generator of its own; iterate with shuffle=True
instead, and every window comes once before any comes again.
"""
import argparse
import os
import tempfile

import numpy as np
import torch

import stoker


class Batches:
    """get_batch("train") and get_batch("val") as in nanoGPT's train.py, on the device, without an end."""

    def __init__(self, data_dir, block_size, batch_size, device="cpu", seed=1337):
        self.loaders, self.endless = {}, {}
        for split in ("train", "val"):
            windows = stoker.tokens(os.path.join(data_dir, f"{split}.bin"), block_size, stride=1, stored="uint16",
                                    fields=("inputs", "targets"), dtype="int64")  # fmt: skip
            self.loaders[split] = stoker.DataLoader(windows, batch_size, order="uniform", seed=seed, device=device, drop_last=True)

    def get_batch(self, split):
        """x and y, int64 of [batch_size, block_size]; y is x one token later."""
        for _ in range(2):
            if split not in self.endless:
                self.endless[split] = iter(self.loaders[split])
            batch = next(self.endless[split], None)
            if batch is not None:
                return batch
            del self.endless[split]  # an epoch, as many draws as there are windows, is over
        raise RuntimeError(f"{split}.bin has not enough tokens for a batch")

    def state_dict(self):
        return {split: loader.state_dict() for split, loader in self.loaders.items()}

    def load_state_dict(self, state):
        for split, loader in self.loaders.items():
            loader.load_state_dict(state[split])
        self.endless.clear()


def write_tokens(folder, count):
    """Files in which token i is i, so that every batch says where it is from."""
    for split in ("train", "val"):
        (np.arange(count) % 50257).astype(np.uint16).tofile(os.path.join(folder, f"{split}.bin"))


def show(data_dir, options):
    batches = Batches(data_dir, options.block_size, options.batch_size, options.device)
    first = [batches.get_batch("train") for _ in range(options.batches)]
    state = batches.state_dict()
    second = [batches.get_batch("train") for _ in range(options.batches)]
    batches.load_state_dict(state)  # in a checkpoint: torch.save({..., "data": state}, "ckpt.pt")
    again = [batches.get_batch("train") for _ in range(options.batches)]
    assert all(torch.equal(x, again_x) for (x, _), (again_x, _) in zip(second, again))
    x, y = batches.get_batch("val")
    print(f"train: {len(batches.loaders['train'].dataset)} windows; a batch: {tuple(x.shape)} {x.dtype} on {x.device}")
    print(f"the first window begins {x[0, :4].tolist()}, its targets {y[0, :4].tolist()}")
    return first + second


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", nargs="?")
    parser.add_argument("--block-size", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=12)
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args(arguments)
    if options.data_dir:
        return show(options.data_dir, options)
    with tempfile.TemporaryDirectory() as folder:
        write_tokens(folder, 20000)
        return show(folder, options)


if __name__ == "__main__":
    main()
