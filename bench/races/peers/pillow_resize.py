#!/usr/bin/env python3
"""pillow_resize.py - one RGB image from 256 x 256 to 224 x 224, antialiased bilinear, on one core:
Pillow's resize and ours, in turn.

usage: pillow_resize.py MICRO

Exit status: 0 measured, 77 there is no Pillow (Debian: python3-pil).
"""
import os
import random
import re
import statistics
import subprocess
import sys
import time

SKIP, ROUNDS, IMAGES, TARGET = 77, 21, 10, 3.0

try:
    import PIL
    from PIL import Image
except ImportError:
    if os.environ.get("STOKER_PYTHON_TRIED") is None and os.path.exists("/usr/bin/python3"):
        os.environ["STOKER_PYTHON_TRIED"] = "1"
        os.execv("/usr/bin/python3", ["/usr/bin/python3"] + sys.argv)
    print("SKIPPED: no Python here has Pillow (Debian: python3-pil)")
    sys.exit(SKIP)


def theirs_ns(image):
    begin = time.perf_counter_ns()
    for _ in range(IMAGES):
        image.resize((224, 224), Image.BILINEAR)
    return (time.perf_counter_ns() - begin) / IMAGES


def ours_ns(program):
    found = subprocess.run([program, "--windows", "1", "resize"], check=True, capture_output=True, text=True)
    return float(re.search(r"^resize-256-224 +([0-9.]+)", found.stdout, re.M).group(1))


def main():
    image = Image.frombytes("RGB", (256, 256), random.Random(1).randbytes(256 * 256 * 3))
    pairs = [(theirs_ns(image), ours_ns(sys.argv[1])) for _ in range(ROUNDS)]
    theirs = statistics.median(pair[0] for pair in pairs)
    ours = statistics.median(pair[1] for pair in pairs)
    ratio = statistics.median(pair[0] / pair[1] for pair in pairs)
    print(f"resize 256 -> 224, RGB, one core: Pillow {PIL.__version__} {theirs / 1e3:.0f} us, "
          f"ours {ours / 1e3:.0f} us: {ratio:.1f} times   >= {TARGET:.0f} "
          f"{'holds' if ratio >= TARGET else 'DOES NOT HOLD'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
