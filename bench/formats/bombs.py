#!/usr/bin/env python3
"""bombs.py - small files that claim to be, or unpack to, something huge; one data set each.

usage: bombs.py FOLDER

Fills FOLDER and prints a line per bomb: name, tab, the spec that opens it. Needs only Python's standard
library. Each must be refused, or read without unpacking what is not needed (a comment).
"""
import os
import struct
import sys
import zlib

SIDE = 28


def png_chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width=SIDE, height=SIDE, pixels=bytes(SIDE * (SIDE + 1)), extra=b""):
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", head) + extra +
            png_chunk(b"IDAT", zlib.compress(pixels, 9)) + png_chunk(b"IEND", b""))


def jpeg_segment(marker, body):
    return bytes((0xFF, marker)) + struct.pack(">H", len(body) + 2) + body


def jpeg(width, height, frame, scans):
    """The start of a gray JPEG file; it is refused before its scans are decoded."""
    counts = bytes([0, 1] + [0] * 14)
    scan = jpeg_segment(0xDA, bytes((1, 1, 0, 0, 0 if frame == 0xC2 else 63, 0))) + b"\x00"
    return (b"\xff\xd8" + jpeg_segment(0xDB, b"\0" + b"\1" * 64) +
            jpeg_segment(frame, struct.pack(">BHHB", 8, height, width, 1) + bytes((1, 0x11, 0))) +
            jpeg_segment(0xC4, b"\0" + counts + b"\0") + scan * scans + b"\xff\xd9")


def crc32c(data):
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


def shard(row_bytes, record):
    """One LZ4 record that claims to hold a row of row_bytes."""
    body = record.ljust(4096, b"\0")
    field = struct.pack("<64sBBBBIIxxxxQ64x", b"row", 0, 1, 1, 0, 0, 0, row_bytes).ljust(160, b"\0")
    index = (field + struct.pack("<QQII", 4096, len(record), crc32c(record), 1)).ljust(4096, b"\0")
    head = bytearray(4096)
    head[0:8] = b"\x89STK\r\n\x1a\n"
    index_at = 4096 + len(body)
    struct.pack_into("<IIQQQQ", head, 8, 3, 4096, 1 << 1, 0, index_at + len(index), index_at)
    struct.pack_into("<IIQQIIQQIIQQ", head, 48, crc32c(index), 8, len(record), 1, 1, 1, 0, 7, 0, 1, 0, 1)
    struct.pack_into("<I", head, 4092, crc32c(head[:4092]))
    return bytes(head) + body + index


def tar_header(name, size, kind=b"0"):
    head = bytearray(512)
    head[0:len(name)] = name
    head[100:108] = b"0000644\0"
    head[124:136] = (b"%011o\0" % size if size < 1 << 33
                     else b"\x80" + size.to_bytes(11, "big"))
    head[156:157] = kind
    head[257:265] = b"ustar\x0000"
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


def npy(header, promised=None):
    length = len(header) if promised is None else promised
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", length) + header


def bombs():
    """name, format, file name, bytes, length of the file if a hole follows."""
    comment = png_chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(100 << 20), 9))
    shape = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 28, 28), }" % 10 ** 15
    yield "png_dimensions", "folder", "c/0.png", png(2 ** 31 - 1, 2 ** 31 - 1), 0
    yield "png_pixels_100MB", "folder", "c/0.png", png(pixels=bytes(100 << 20)), 0
    yield "png_zTXt_100MB", "folder", "c/0.png", png(extra=comment), 0
    yield "jpeg_dimensions", "folder", "c/0.jpg", jpeg(65535, 65535, 0xC0, 1), 0
    yield "jpeg_1000_scans", "folder", "c/0.jpg", jpeg(SIDE, SIDE, 0xC2, 1000), 0
    yield "lz4_row_1GiB", "shards", "0.stk", shard(1 << 30, bytes(100)), 0
    yield "lz4_unpacks_too_far", "shards", "0.stk", shard(2000, b"\x1f\0\1\0" + b"\xff" * 96), 0
    yield "tar_size_2^63", "tar", "0.tar", tar_header(b"0.png", 2 ** 63 - 1), 0
    yield "tar_size_1TB_hole", "tar", "0.tar", tar_header(b"0.png", 1 << 40), (1 << 40) + 2048
    yield "tar_PAX_1GiB", "tar", "0.tar", tar_header(b"0", 1 << 30, b"x"), (1 << 30) + 2048
    yield "npy_header_4GiB", "npy", "0.npy", npy(b"{", 2 ** 32 - 1), 1 << 32
    yield "npy_shape_10^15", "npy", "0.npy", npy(shape.ljust(116) + b"\n"), 0


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    for name, form, file, data, length in bombs():
        root = os.path.join(sys.argv[1], name)
        path = os.path.join(root, file)
        os.makedirs(os.path.dirname(path))
        with open(path, "wb") as out:
            out.write(data)
            if length > len(data):
                out.truncate(length)
        print(f"{name}\t{form}:{root if form in ('folder', 'shards') else path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
