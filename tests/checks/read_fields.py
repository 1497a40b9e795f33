#!/usr/bin/env python3
"""read_fields.py - read shards by their description in docs/formats/shard_files.md, and nothing else.

usage: read_fields.py DIRECTORY SHARDS     compares the parts with the files of make_fields.py

Image parts must be the files as they are, raw parts the elements of the arrays and the text.
"""
import glob
import struct
import sys

CASTAGNOLI = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    CASTAGNOLI.append(byte)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CASTAGNOLI[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def parts_of(path):
    """One dictionary a sample: field name to (codec, bytes)."""
    data = open(path, "rb").read()
    assert data[:8] == b"\x89STK\r\n\x1a\n"
    version, header_bytes, needs, hints, file_bytes, index_at = struct.unpack_from("<2I4Q", data, 8)
    index_sum, alignment, longest, count, field_count, part_count = struct.unpack_from("<2I2Q2I", data, 48)
    assert version == 3 and header_bytes == 4096 and hints == 0 and file_bytes == len(data)
    assert crc32c(data[:4092]) == struct.unpack_from("<I", data, 4092)[0]
    assert crc32c(data[index_at:]) == index_sum and index_at % 4096 == 0 and len(data) % 4096 == 0
    names = [None] * part_count
    for i in range(field_count):
        at = index_at + 160 * i
        part = struct.unpack_from("<I", data, at + 68)[0]
        if part != 0xFFFFFFFF:
            names[part] = data[at:at + 64].rstrip(b"\0").decode()
    at = index_at + 160 * field_count
    for sample in range(count):
        found = {}
        for part in range(part_count):
            offset, size, total, codec = struct.unpack_from("<2Q2I", data, at)
            stored = data[offset:offset + size]
            assert offset % alignment == 0 and crc32c(stored) == total and needs >> codec & 1
            assert size <= longest
            found[names[part]] = (codec, stored)
            at += 24
        yield found


def main():
    root, shards = sys.argv[1:]
    i = 0
    for path in sorted(glob.glob(f"{shards}/*.stk")):
        for found in parts_of(path):
            for name, extension in (("image", "png"), ("mask", "png"), ("boxes", "npy"), ("caption", "txt")):
                data = open(f"{root}/{name}/s{i:04}.{extension}", "rb").read()
                if extension == "npy":
                    data = data[10 + struct.unpack_from("<H", data, 8)[0]:]
                codec = 2 if extension == "png" else 0
                assert found[name] == (codec, data), (path, i, name)
            i += 1
    print(i)


main()
