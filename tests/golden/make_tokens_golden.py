#!/usr/bin/env python3
"""make_tokens_golden.py - Megatron's pairs of files, written by Megatron's own builder.

usage: make_tokens_golden.py FOLDER      (megatron-core 0.16.1, torch)

FOLDER/uint16.{bin,idx}  documents of the lengths in LENGTHS, a sequence each; one of them is empty
FOLDER/int32.{bin,idx}   the same tokens, two sequences to a document where there are two, with modes

Token i of all documents together is (i * 7919) % 50000. tests/unit/datasets/test_tokens.c knows the same.
"""
import os
import sys

import numpy
import torch
from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder

LENGTHS = (5, 1, 40, 0, 17, 2, 100, 33)


def write(folder, dtype, pairs):
    prefix = os.path.join(folder, dtype.__name__)
    builder = IndexedDatasetBuilder(prefix + ".bin", dtype=dtype, multimodal=pairs)
    first = 0
    for length in LENGTHS:
        tokens = [(first + i) * 7919 % 50000 for i in range(length)]
        parts = [tokens[:length // 2], tokens[length // 2:]] if pairs and length > 1 else [tokens]
        for number, part in enumerate(parts):
            builder.add_item(torch.tensor(part, dtype=torch.int64), number)
        builder.end_document()
        first += length
    builder.finalize(prefix + ".idx")
    read = IndexedDataset(prefix, multimodal=pairs)
    assert list(read.document_indices)[-1] == len(read)


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    os.makedirs(sys.argv[1], exist_ok=True)
    write(sys.argv[1], numpy.uint16, False)
    write(sys.argv[1], numpy.int32, True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
