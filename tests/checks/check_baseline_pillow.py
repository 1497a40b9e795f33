#!/usr/bin/env python3
"""check_baseline_pillow.py - stoker-pack --baseline: other files with the same pixels and markers, by Pillow.

usage: check_baseline_pillow.py STOKER_PACK
"""
import glob
import io
import os
import subprocess
import sys
import tempfile

import find_pillow

find_pillow.ensure("what stoker-pack --baseline writes")
from PIL import Image  # noqa: E402

MODES = ("L", "RGB", "RGB", "CMYK")


def picture(number):
    """A file: every third one is baseline already, the last one is damaged."""
    side, mode = 40 + 7 * number, MODES[number % len(MODES)]
    image = Image.effect_noise((side, side + 9), 90).convert("RGB").convert(mode)
    exif = Image.Exif()
    exif[0x010E] = f"picture {number}"
    file = io.BytesIO()
    image.save(file, "JPEG", quality=60 + 3 * number, subsampling=number % 3, progressive=number % 3 != 2, exif=exif,
               comment=b"a comment", icc_profile=b"p" * 300)
    return file.getvalue()


def frame(data):
    """0xC0 of a baseline file, 0xC2 of a progressive one."""
    at = 2
    while not 0xC0 <= data[at + 1] <= 0xC2:
        at += 2 + int.from_bytes(data[at + 2:at + 4], "big")
    return data[at + 1]


def main():
    with tempfile.TemporaryDirectory() as scratch:
        files = [picture(number) for number in range(12)]
        damaged = bytearray(files[0])
        damaged[len(damaged) // 2:] = b"\xff\xd9"
        os.makedirs(f"{scratch}/from/a")
        for number, data in enumerate([*files, damaged]):
            with open(f"{scratch}/from/a/{number:02}.jpg", "wb") as file:
                file.write(data)
        command = [sys.argv[1], "--codec", "keep", "--baseline", f"folder:{scratch}/from?channels=3"]
        subprocess.run([*command, f"folder:{scratch}/to"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([*command, f"shards:{scratch}/shards"], check=True, stdout=subprocess.DEVNULL)
        stored = b"".join(open(path, "rb").read() for path in glob.glob(f"{scratch}/shards/*.stk"))
        made = [open(path, "rb").read() for path in sorted(glob.glob(f"{scratch}/to/*/*.jpg"))]
        assert len(made) == 13 and made[12] == damaged, "a damaged file was changed or is missing"
        for number, (before, after) in enumerate(zip(files, made)):
            one, other = Image.open(io.BytesIO(before)), Image.open(io.BytesIO(after))
            assert (frame(before) == 0xC0) == (before == after), f"file {number}: not left alone"
            assert frame(after) == 0xC0 and after in stored, f"file {number}: not baseline"
            assert one.tobytes() == other.tobytes(), f"file {number}: other pixels"
            for name in ("exif", "icc_profile", "comment", "jfif"):
                assert one.info.get(name) == other.info.get(name), f"file {number}: another {name}"
    print("12 files: baseline, with the pixels and markers of before")


if __name__ == "__main__":
    main()
