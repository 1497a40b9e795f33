#!/usr/bin/env python3
"""make_npz_golden.py - archives as NumPy and Python's zipfile write them.

usage: make_npz_golden.py tests/golden/npz     (needs NumPy; NumPy 1.24.2 and Python 3.11 wrote the files kept there)

The arrays are made here and in the test by the same formulas; the archives are kept byte by byte.
"""
import io
import os
import sys
import zipfile

import numpy

STAMP = (1980, 1, 1, 0, 0, 0)
ROWS = 6


def arrays():
    """As golden_row() and so on in the test."""
    pixels = (numpy.arange(ROWS * 12) * 7 % 256).astype(numpy.uint8).reshape(ROWS, 3, 4)
    targets = (numpy.arange(ROWS * 2) * 0.5 - 1).astype(">f4").reshape(ROWS, 2)
    label = (numpy.arange(ROWS) ** 2 % 5).astype(numpy.int16)
    return {"x": pixels, "t": targets, "y": label}


def npy(array):
    out = io.BytesIO()
    numpy.lib.format.write_array(out, array, version=(1, 0))
    return out.getvalue()


def archive(method, zip64=False, comment=b"", folder=False):
    """With fixed times, so that each run writes the same bytes. zip64: numbers over 100 take 64 bits."""
    out = io.BytesIO()
    zipfile.ZIP64_LIMIT = 100 if zip64 else (1 << 31) - 1
    with zipfile.ZipFile(out, "w", method) as zip_file:
        if folder:
            zip_file.writestr(zipfile.ZipInfo("more/", STAMP), b"")
            zip_file.writestr(zipfile.ZipInfo("read.me", STAMP), b"no array")
        for name, array in arrays().items():
            info = zipfile.ZipInfo(name + ".npy", STAMP)
            info.compress_type = method
            with zip_file.open(info, "w", force_zip64=zip64) as member:
                member.write(npy(array))
        zip_file.comment = comment
    return out.getvalue()


def main():
    archives = {"stored": archive(zipfile.ZIP_STORED),
                "deflated": archive(zipfile.ZIP_DEFLATED),
                "zip64": archive(zipfile.ZIP_STORED, zip64=True),
                "commented": archive(zipfile.ZIP_STORED, comment=b"PK\5\6 is no end", folder=True)}
    for name, data in archives.items():
        with open(os.path.join(sys.argv[1], name + ".npz"), "wb") as file:
            file.write(data)


main()
