#!/usr/bin/env python3
"""make_resize_golden.py - what Pillow's BILINEAR makes of some images, as a C header.

usage: make_resize_golden.py > tests/golden/resize.h     (needs Pillow and NumPy)

Made with Pillow 9.4, whose weights have 22 bits, as ours: no byte differs. Pillow 13 differs from both
by one level in one byte of twenty, which is what is promised, and no more.

The images are made here and in the test by the same formula, so only what comes out is kept: a
checksum of all bytes, and the first of them for a person to look at.
"""
import sys

import numpy
import PIL
from PIL import Image

# channels, height, width, to height, to width
CASES = [
    (1, 28, 28, 32, 32), (1, 28, 28, 14, 14), (1, 37, 53, 16, 23), (1, 1, 1, 6, 7),
    (3, 256, 256, 224, 224), (3, 375, 500, 224, 224), (3, 64, 48, 20, 28), (3, 7, 5, 31, 40),
    (3, 200, 150, 5, 3), (3, 1, 9, 5, 17), (3, 9, 1, 17, 4), (3, 24, 31, 24, 15),
    (3, 31, 24, 15, 24), (3, 480, 640, 128, 128), (4, 64, 64, 56, 56), (4, 33, 97, 20, 58),
    (4, 2, 3, 1, 1), (4, 5, 5, 64, 64),
]
MODES = {1: "L", 3: "RGB", 4: "RGBX"}


def image(channels, height, width):
    """Slopes, edges and noise, byte by byte: as golden_image() in the test."""
    index = numpy.arange(height * width * channels, dtype=numpy.uint64)
    state = (index * numpy.uint64(6364136223846793005) + numpy.uint64(1442695040888963407))
    noise = (state >> numpy.uint64(56)).astype(numpy.uint8)
    pixel = index // numpy.uint64(channels)
    y, x = pixel // numpy.uint64(width), pixel % numpy.uint64(width)
    slope = ((x * numpy.uint64(3) + y * numpy.uint64(5)) & numpy.uint64(255)).astype(numpy.uint8)
    edge = ((x // numpy.uint64(8) + y // numpy.uint64(8)) % numpy.uint64(3)).astype(numpy.uint8)
    out = numpy.where(edge == 0, noise, numpy.where(edge == 1, slope, numpy.uint8(255)))
    shape = (height, width) if channels == 1 else (height, width, channels)
    return out.astype(numpy.uint8).reshape(shape)


def checksum(data):
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def resized(channels, height, width, to_height, to_width):
    pixels = image(channels, height, width)
    source = Image.frombytes(MODES[channels], (width, height), pixels.tobytes())
    return source.resize((to_width, to_height), Image.BILINEAR).tobytes()


def main():
    print("/* resize.h - what Pillow", PIL.__version__, "makes of some images: by "
          "make_resize_golden.py. */")
    print("#ifndef TESTS_GOLDEN_RESIZE_H\n#define TESTS_GOLDEN_RESIZE_H\n\n#include <stdint.h>\n")
    print("struct golden_resize {\n    uint32_t channels, height, width, to_height, to_width;\n"
          "    uint64_t checksum;  /* FNV-1a of all bytes */\n    uint8_t first[8]; /* the first of them */\n};\n")
    print("static const struct golden_resize golden_resizes[] = {")
    for case in CASES:
        data = resized(*case)
        first = ", ".join(str(b) for b in (data + bytes(8))[:8])
        numbers = ", ".join(str(n) for n in case)
        print(f"    {{ {numbers}, UINT64_C(0x{checksum(data):016X}), {{ {first} }} }},")
    print("};\n\n#endif")
    return 0


if __name__ == "__main__":
    sys.exit(main())
