#!/usr/bin/env python3
"""check_resize_pillow.py - our resizing beside Pillow's, on images of random sizes.

usage: check_resize_pillow.py WRITE_RESIZED

Holds if no byte differs by more than one level; prints how many differ at all. Without Pillow it says
so and skips: golden/resize.h holds what Pillow once made.
"""
import random
import subprocess
import sys

import find_pillow

CASES = 150
MODES = {1: "L", 3: "RGB", 4: "RGBX"}  # RGBA would be multiplied by its alpha

find_pillow.ensure("resizing was compared with golden/resize.h only")
from PIL import Image  # noqa: E402


def side(generator):
    """Mostly small, sometimes large."""
    return generator.choice([generator.randint(1, 12), generator.randint(1, 80),
                             generator.randint(100, 400)])


def ours(program, channels, size, to_size, pixels):
    line = f"{channels} {size[1]} {size[0]} {to_size[1]} {to_size[0]}\n"
    program.stdin.write(line.encode() + pixels)
    program.stdin.flush()
    return program.stdout.read(to_size[0] * to_size[1] * channels)


def main():
    generator = random.Random(7)
    differing = total = worst = 0
    with subprocess.Popen(sys.argv[1:2], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        for _ in range(CASES):
            channels = generator.choice([1, 3, 4])
            size, to_size = (side(generator), side(generator)), (side(generator), side(generator))
            pixels = generator.randbytes(size[0] * size[1] * channels)
            image = Image.frombytes(MODES[channels], size, pixels)
            theirs = image.resize(to_size, Image.BILINEAR).tobytes()
            found = ours(program, channels, size, to_size, pixels)
            if len(found) != len(theirs):
                print(f"{channels} channels, {size} to {to_size}: {len(found)} bytes came")
                return 1
            for a, b in zip(found, theirs):
                differing += a != b
                worst = max(worst, abs(a - b))
            total += len(theirs)
        program.stdin.close()
    print(f"{CASES} images, {total} bytes: {differing} differ, by {worst} at most")
    return 0 if worst <= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
