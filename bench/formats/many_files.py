#!/usr/bin/env python3
"""many_files.py - makes a folder of classes with a million files, to time opening it.

usage: many_files.py FOLDER [COUNT]

COUNT (1000000) files in folders of 1000, each with a path of 29 bytes. The first of a folder is a
PNG image of one pixel; all others are empty, since opening reads names and lengths, not files.
"""
import os
import struct
import sys
import zlib
from multiprocessing import Pool

PER_CLASS = 1000


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


PIXEL = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)) +
         chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b""))


def fill(task):
    root, number, count = task
    folder = os.path.join(root, f"class{number:06}")
    os.mkdir(folder)
    fd = os.open(folder, os.O_RDONLY)
    for file in range(count):
        made = os.open(f"{file:013}.png", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=fd)
        if file == 0:
            os.write(made, PIXEL)
        os.close(made)
    os.close(fd)


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    root, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 1000000
    os.makedirs(root)
    tasks = [(root, first // PER_CLASS, min(PER_CLASS, count - first))
             for first in range(0, count, PER_CLASS)]
    with Pool() as pool:
        pool.map(fill, tasks, chunksize=8)
    return 0


if __name__ == "__main__":
    sys.exit(main())
