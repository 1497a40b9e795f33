"""peer.py - another library's loader of tokens, for race.py: prints "ready VERSION", then for each line of input the tokens per second and
per second of processor time.

usage: peer.py nanogpt|torch|megatron|grain|mosaic FOLDER SECONDS B T

Every batch is inputs and targets of B x T tokens. The first batches are checked: targets are the inputs shifted by one, and the
inputs lie in the file.
"""
import os
import random
import sys
import time
from importlib.metadata import version

import numpy


def nanogpt(folder, rows, length):
    """get_batch of nanoGPT's train.py, without its copy to a GPU and with NumPy's random numbers."""
    path = os.path.join(folder, "raw.bin")
    while True:
        data = numpy.memmap(path, dtype=numpy.uint16, mode="r")
        places = numpy.random.randint(0, len(data) - length, rows)
        yield (numpy.stack([data[i:i + length].astype(numpy.int64) for i in places]),
               numpy.stack([data[i + 1:i + 1 + length].astype(numpy.int64) for i in places]))


def windows(folder, rows, length):
    """Shuffled windows of the mapped file, a view of one tensor, by index_select into memory that is used again: the fastest way in
    torch that we found. One field as it is stored, of which inputs and targets are views."""
    import torch
    path = os.path.join(folder, "raw.bin")
    data = torch.from_file(path, size=os.path.getsize(path) // 2, dtype=torch.int16).unfold(0, length + 1, length)
    batch = torch.empty((rows, length + 1), dtype=torch.int16)
    tokens = batch.numpy().view(numpy.uint16)
    while True:
        for ids in torch.randperm(len(data)).split(rows)[:-1]:
            torch.index_select(data, 0, ids, out=batch)
            yield tokens[:, :-1], tokens[:, 1:]


def megatron(folder, rows, length):
    """GPTDataset over its shuffled index, and the stacking of a DataLoader without workers."""
    import torch
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.utils import Split

    class Tokenizer:
        eod, pad, vocab_size, unique_identifiers = 50256, 50256, 50257, {"name": "none"}

    config = GPTDatasetConfig(random_seed=1, sequence_length=length, split="1", tokenizer=Tokenizer(),
                              reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False,
                              create_attention_mask=False, path_to_cache=os.path.join(folder, "megatron-cache"))
    prefix = os.path.join(folder, "megatron")
    low = GPTDataset.build_low_level_dataset(prefix, config)
    documents = numpy.arange(GPTDataset.numel_low_level_dataset(low), dtype=numpy.int32)
    data = GPTDataset(low, prefix, documents, None, Split.train, config)
    while True:
        for batch in torch.utils.data.DataLoader(data, batch_size=rows, drop_last=True):
            yield batch["tokens"].numpy(), batch["labels"].numpy()


def grain(folder, rows, length):
    """A data source over a memory map, shuffled and batched by Grain, in this process."""
    import grain.python as grain_python
    data = numpy.memmap(os.path.join(folder, "raw.bin"), dtype=numpy.uint16, mode="r")

    def window(index):
        tokens = data[index * length:index * length + length + 1].astype(numpy.int32)
        return tokens[:-1], tokens[1:]

    windows = grain_python.MapDataset.range((len(data) - 1) // length).seed(1).shuffle().map(window)
    yield from windows.repeat(None).batch(rows, drop_remainder=True)


def mosaic(folder, rows, length):
    """StreamingDataset over its own shards of windows, and the stacking of a DataLoader without workers."""
    import torch
    from streaming import MDSWriter, StreamingDataset
    local = os.path.join(folder, f"mosaic-{length}")
    if not os.path.exists(os.path.join(local, "index.json")):
        data = numpy.memmap(os.path.join(folder, "raw.bin"), dtype=numpy.uint16, mode="r")
        with MDSWriter(out=local, columns={"tokens": f"ndarray:uint16:{length + 1}"}) as writer:
            for i in range(min((len(data) - 1) // length, 20000)):
                writer.write({"tokens": numpy.array(data[i * length:i * length + length + 1])})
    data = StreamingDataset(local=local, shuffle=True, batch_size=rows)

    def collate(samples):
        tokens = numpy.stack([sample["tokens"] for sample in samples]).astype(numpy.int32)
        return tokens[:, :-1], tokens[:, 1:]

    while True:
        yield from torch.utils.data.DataLoader(data, batch_size=rows, drop_last=True, collate_fn=collate)


def check(batches, folder, rows, length):
    data = numpy.memmap(os.path.join(folder, "raw.bin"), dtype=numpy.uint16, mode="r")
    known = set(numpy.unique(data[:1 << 20]).tolist())
    for _ in range(8):
        inputs, targets = next(batches)
        if inputs.shape != (rows, length) or targets.shape != (rows, length):
            sys.exit(f"peer.py: shapes {inputs.shape} and {targets.shape}")
        if not (inputs[:, 1:] == targets[:, :-1]).all() or not set(inputs.ravel().tolist()) <= known:
            sys.exit("peer.py: wrong tokens")


def main():
    side, folder, seconds, rows, length = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
    random.seed(1)
    # What a library prints must not be taken for a figure.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    batches = {"nanogpt": nanogpt, "torch": windows, "megatron": megatron, "grain": grain, "mosaic": mosaic}[side](folder, rows, length)
    check(batches, folder, rows, length)
    package = {"nanogpt": "numpy", "torch": "torch", "megatron": "megatron-core", "grain": "grain", "mosaic": "mosaicml-streaming"}[side]
    print("ready", package, version(package), file=answer, flush=True)
    for _ in sys.stdin:
        begin, cpu_begin, count = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - begin < seconds:
            next(batches)
            count += 1
        elapsed, cpu = time.perf_counter() - begin, time.process_time() - cpu_begin
        tokens = count * rows * length
        print(f"{tokens / elapsed:.0f} {tokens / cpu:.0f}", file=answer, flush=True)


if __name__ == "__main__":
    main()
