#!/usr/bin/env python3
"""peer_memory.py - the best that expert use of PyTorch and NumPy gives: MNIST in one tensor of uint8, a random
permutation per epoch, and index_select, normalized by one multiplication and one addition into buffers allocated once.

usage: peer_memory.py rows|views|rows-before|views-before|numpy FOLDER    of $STOKER_DATA/mnist; FOLDER is not read
  rows     a batch at a time
  views    1,024 rows (or a batch, if that is more) at a time, handed out as views, so that many batches share a call's
           fixed cost; the rows stay valid for one such group, like the loader's batches
  ...-before   the set normalized before the first epoch, in four times the memory
  numpy    views, by numpy.take
"""
import os
import sys

import turns

GROUP = 1024
SCALE, SHIFT = 1 / (255 * turns.DIGIT_STD), -turns.DIGIT_MEAN / turns.DIGIT_STD


def by_torch(torch, images, batch, group, before):
    if before:
        images = images.float().mul_(SCALE).add_(SHIFT)
    rows = torch.empty((group, *images.shape[1:]), dtype=images.dtype)
    out = rows if before else torch.empty(rows.shape)
    while True:
        for chosen in torch.randperm(len(images)).split(group):
            count = len(chosen)
            picked, result = (rows, out) if count == group else (rows[:count], out[:count])
            torch.index_select(images, 0, chosen, out=picked)
            if not before:
                torch.mul(picked, SCALE, out=result).add_(SHIFT)
            if count == batch:
                yield result
            else:
                for begin in range(0, count - batch + 1, batch):
                    yield result[begin:begin + batch]


def by_numpy(numpy, images, batch, group):
    rows = numpy.empty((group, *images.shape[1:]), images.dtype)
    out = numpy.empty(rows.shape, numpy.float32)
    random, scale, shift = numpy.random.default_rng(), numpy.float32(SCALE), numpy.float32(SHIFT)
    while True:
        order = random.permutation(len(images))
        for begin in range(0, len(images), group):
            chosen = order[begin:begin + group]
            count = len(chosen)
            numpy.take(images, chosen, axis=0, out=rows[:count], mode="clip")
            numpy.multiply(rows[:count], scale, out=out[:count])
            out[:count] += shift
            for first in range(0, count - batch + 1, batch):
                yield out[first:first + batch]


def main():
    arguments = turns.arguments_of(__doc__)
    torch, numpy = turns.need("torch", "numpy")
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../peers"))
    import mnist_idx
    torch.set_num_threads(arguments.threads)
    images = mnist_idx.load(torch, True)[0].unsqueeze(1).contiguous()
    batch = arguments.batch_size
    group = batch if arguments.mode.startswith("rows") else max(GROUP, batch) // batch * batch
    if arguments.mode == "numpy":
        batches, version = by_numpy(numpy, images.numpy(), batch, group), f"NumPy {numpy.__version__}"
    else:
        batches = by_torch(torch, images, batch, group, arguments.mode.endswith("before"))
        version = f"torch {torch.__version__}"
    turns.serve(batches, batch, version, 0, touched=False)


if __name__ == "__main__":
    main()
