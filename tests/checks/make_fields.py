#!/usr/bin/env python3
"""make_fields.py - samples with an image, a mask, boxes and a caption, as an archive, with a label, and as folders.

usage: make_fields.py DIRECTORY COUNT     (only the standard library)
"""
import io
import os
import struct
import sys
import tarfile
import zlib


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(rows, channels):
    height, width = len(rows), len(rows[0]) // channels
    head = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    body = b"".join(b"\0" + bytes(row) for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(body)) +
            chunk(b"IEND", b""))


def npy(descr, shape, elements):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(10 + len(text) + 1) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + elements


def members(i):
    image = [[(7 * i + 3 * y + x) % 256 for x in range(3 * 10)] for y in range(8)]
    mask = [[(i + x * y) % 5 for x in range(10)] for y in range(8)]
    count = i * 7 % 4
    boxes = struct.pack(f"<{4 * count}f", *(i + k / 4 for k in range(4 * count)))
    caption = ("a caption " * (i % 3)).encode()
    return {"image": ("png", png(image, 3)), "mask": ("png", png(mask, 1)),
            "boxes": ("npy", npy("<f4", f"({count}, 4)", boxes)), "caption": ("txt", caption)}


def main():
    root, count = sys.argv[1], int(sys.argv[2])
    with tarfile.open(f"{root}/fields.tar", "w") as tar:
        for i in range(count):
            for name, (extension, data) in members(i).items():
                folder = f"{root}/{name}"
                os.makedirs(folder, exist_ok=True)
                with open(f"{folder}/s{i:04}.{extension}", "wb") as file:
                    file.write(data)
                field = extension if name == "image" else f"{name}.{extension}"
                info = tarfile.TarInfo(f"s{i:04}.{field}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
            label = str(i % 7).encode()
            info = tarfile.TarInfo(f"s{i:04}.cls")
            info.size = len(label)
            tar.addfile(info, io.BytesIO(label))


main()
