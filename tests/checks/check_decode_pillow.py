#!/usr/bin/env python3
"""check_decode_pillow.py - images of many kinds, decoded by us and by Pillow.

usage: check_decode_pillow.py LIBSTOKER.SO

Each kind of image is a data set folder:DIR of a few random files, read as gray, RGB and RGBA. Holds
if no byte differs from Pillow's by more than the kind allows: see KINDS. Without Pillow it skips.
"""
import ctypes
import os
import random
import struct
import sys
import tempfile
import zlib

import find_pillow

find_pillow.ensure("decoding was compared with literal values only")
import PIL  # noqa: E402
from PIL import Image  # noqa: E402

WIDTH, HEIGHT = 37, 29
FILES = 6
NOT_IN_BUILD = "STOKER_ENOTSUP"
FIELDS_MAX = 128  # STOKER_FIELDS_MAX
MODES = {1: "L", 3: "RGB", 4: "RGBA"}


# ---- our side --------------------------------------------------------------------

class Row(ctypes.Structure):
    """stoker_row"""
    _fields_ = [("data", ctypes.c_void_p), ("bytes_max", ctypes.c_size_t), ("length", ctypes.c_uint64),
                ("reserved", ctypes.c_uint64)]


def open_library(path):
    library = ctypes.CDLL(path)
    library.stoker_dataset_open.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    library.stoker_dataset_read.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]
    library.stoker_error_name.restype = ctypes.c_char_p
    return library


def read_all(library, folder, channels):
    """The rows of a folder's files, or the name of the error of the first that has one."""
    dataset = ctypes.c_void_p()
    spec = f"folder:{folder}?height={HEIGHT}&width={WIDTH}&channels={channels}"
    rc = library.stoker_dataset_open(ctypes.byref(dataset), spec.encode(), None, None)
    rows = []
    for i in range(FILES if rc == 0 else 0):
        row = ctypes.create_string_buffer(WIDTH * HEIGHT * channels)
        wanted = (Row * FIELDS_MAX)()
        wanted[0].data, wanted[0].bytes_max = ctypes.addressof(row), len(row)
        rc = library.stoker_dataset_read(dataset, i, wanted, None)
        if rc != 0:
            break
        rows.append(row.raw)
    if dataset:
        library.stoker_dataset_close(ctypes.byref(dataset))
    return rows if rc == 0 else library.stoker_error_name(rc).decode()


# ---- images ----------------------------------------------------------------------

def png_chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(path, generator, color, depth):
    """A PNG file of random samples; 16 bits are of no concern to Pillow's writer."""
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    line_bytes = (WIDTH * samples * depth + 7) // 8
    lines = b"".join(b"\0" + generator.randbytes(line_bytes) for _ in range(HEIGHT))
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, depth, color, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", head))
        if color == 3:
            file.write(png_chunk(b"PLTE", generator.randbytes(3 << depth)))
        file.write(png_chunk(b"IDAT", zlib.compress(lines)) + png_chunk(b"IEND", b""))


def smooth(generator, mode, low=0, high=255):
    """A picture without hard edges, which JPEG stores without leaving the range of RGB by much."""
    small = Image.new(mode, (5, 4))
    bands = len(small.getbands())
    pixels = [tuple(generator.randint(low, high) for _ in range(bands)) for _ in range(20)]
    small.putdata(pixels if bands > 1 else [p[0] for p in pixels])
    return small.resize((WIDTH, HEIGHT), Image.BICUBIC)


def png_kind(color, depth):
    return lambda path, generator: png(path + ".png", generator, color, depth)


def jpeg_kind(mode, low, high, **options):
    return lambda path, generator: smooth(generator, mode, low, high).save(
        path + ".jpg", "JPEG", quality=95, **options)


def cmyk(path, generator, adobe=True):
    """A CMYK file; without the segment by which Adobe says that inks are inverted Pillow still inverts."""
    jpeg_kind("CMYK", 0, 255)(path, generator)
    if not adobe:
        with open(path + ".jpg", "rb+") as file:
            bytes_ = file.read()
            at = bytes_.index(b"\xff\xee")
            file.seek(0)
            file.truncate()
            file.write(bytes_[:at] + bytes_[at + 2 + struct.unpack(">H", bytes_[at + 2:at + 4])[0]:])


def webp_kind(mode, **options):
    def write(path, generator):
        if options.get("lossless"):
            size = WIDTH * HEIGHT * len(mode)
            image = Image.frombytes(mode, (WIDTH, HEIGHT), generator.randbytes(size))
        else:
            image = smooth(generator, mode)
        image.save(path + ".webp", "WEBP", **options)
    return write


def jpeg_with_strays(path, generator):
    """Bytes before the end marker that belong to nothing: Pillow passes over them."""
    jpeg_kind("RGB", 40, 215)(path, generator)
    with open(path + ".jpg", "rb+") as file:
        bytes_ = file.read()
        file.seek(0)
        file.write(bytes_[:-2] + b"these bytes belong to nothing" + bytes_[-2:])


KEEP_RGB_SINCE = (10, 2)  # an older Pillow ignores the option and stores YCC

# name, writer, by how much gray, RGB and RGBA may differ (None: Pillow does something else), and the first
# Pillow that can write the kind.
# 16 bits: Pillow truncates where we round, and clips 16-bit gray. JPEG files of all colors store some that lie
# outside of RGB: their luma as stored would be up to 3 levels off.
KINDS = [
    ("PNG gray 8", png_kind(0, 8), (0, 0, 0)),
    ("PNG gray 1", png_kind(0, 1), (0, 0, 0)),
    ("PNG RGB 8", png_kind(2, 8), (0, 0, 0)),
    ("PNG RGB 16", png_kind(2, 16), (1, 1, 1)),
    ("PNG palette 8", png_kind(3, 8), (0, 0, 0)),
    ("PNG palette 2", png_kind(3, 2), (0, 0, 0)),
    ("PNG gray and alpha 8", png_kind(4, 8), (0, 0, 0)),
    ("PNG RGBA 8", png_kind(6, 8), (0, 0, 0)),
    ("PNG RGBA 16", png_kind(6, 16), (1, 1, 1)),
    ("JPEG gray", jpeg_kind("L", 0, 255), (0, 0, 0)),
    ("JPEG color 4:4:4", jpeg_kind("RGB", 0, 255, subsampling=0), (0, 0, 0)),
    ("JPEG color 4:2:0", jpeg_kind("RGB", 0, 255, subsampling=2), (0, 0, 0)),
    ("JPEG color progressive", jpeg_kind("RGB", 0, 255, progressive=True), (0, 0, 0)),
    ("JPEG with stray bytes", jpeg_with_strays, (0, 0, 0)),
    ("JPEG CMYK", cmyk, (0, 0, 0)),
    ("JPEG CMYK, not Adobe's", lambda path, generator: cmyk(path, generator, False), (0, 0, 0)),
    ("WebP lossy", webp_kind("RGB"), (0, 0, 0)),
    ("WebP lossy with alpha", webp_kind("RGBA"), (0, 0, 0)),
    ("WebP lossless", webp_kind("RGB", lossless=True), (0, 0, 0)),
    ("WebP lossless with alpha", webp_kind("RGBA", lossless=True, exact=True), (0, 0, 0)),
    ("WebP with metadata", webp_kind("RGB", exif=b"Exif\0\0MM\0*"), (0, 0, 0)),
    ("JPEG RGB kept", jpeg_kind("RGB", 0, 255, keep_rgb=True), (0, 0, 0), KEEP_RGB_SINCE),
]


# ---- comparing -------------------------------------------------------------------

def worst_of(ours, theirs):
    return max(abs(a - b) for a, b in zip(ours, theirs))


def check(library, name, write, allowed):
    """True if every file of a kind is as Pillow has it."""
    generator = random.Random(name)
    holds = True
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "a"))
        for i in range(FILES):
            write(os.path.join(folder, "a", str(i)), generator)
        paths = sorted(os.path.join(folder, "a", f) for f in os.listdir(os.path.join(folder, "a")))
        found = []
        for channels, most in zip((1, 3, 4), allowed):
            rows = read_all(library, folder, channels)
            if rows == NOT_IN_BUILD:
                print(f"{name}: SKIPPED, not in this build")
                return True
            if isinstance(rows, str):
                print(f"{name}, {channels} channels: {rows}")
                return False
            differ = 0
            for path, row in zip(paths, rows):
                with Image.open(path) as image:
                    differ = max(differ, worst_of(row, image.convert(MODES[channels]).tobytes()))
            found.append(differ)
            holds = holds and differ <= most
    print(f"{name}: {found} of at most {list(allowed)}{'' if holds else '  DIFFERS'}")
    return holds


def main():
    library = open_library(sys.argv[1])
    version = tuple(int(part) for part in PIL.__version__.split(".")[:2])
    kinds = [kind[:3] for kind in KINDS if version >= (kind[3] if len(kind) > 3 else (0, 0))]
    wrong = sum(not check(library, *kind) for kind in kinds)
    print(f"Pillow {PIL.__version__}: {len(kinds)} of {len(KINDS)} kinds, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
