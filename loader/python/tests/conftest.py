"""What the tests share: small data sets whose right answers are known.

Run them with the package on the path: PYTHONPATH=BUILD/python pytest loader/python/tests. Tests of torch and JAX are skipped
if those are not installed.
"""

import os
import struct
import threading
import zlib

import pytest

import stoker

# The launcher of the tests, if there is one, must not make them a rank of anything.
for variable in list(os.environ):
    if variable in ("RANK", "WORLD_SIZE", "LOCAL_RANK") or variable.startswith(("OMPI_", "PMI_", "SLURM_")):
        del os.environ[variable]


def png(height, width, level):
    """A gray PNG file, all of one level."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes([level]) * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.fixture
def pictures(tmp_path):
    """A folder of two classes with six 8 x 8 images each; image i is of level 10 x i."""
    for index in range(12):
        folder = tmp_path / "pictures" / ("cats", "dogs")[index // 6]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{index:02}.png").write_bytes(png(8, 8, 10 * index))
    return tmp_path / "pictures"


@pytest.fixture
def hundred():
    """100 samples in memory: row i is [i, i + 0.5], its label i % 10."""
    numpy = pytest.importorskip("numpy", reason="NumPy is not installed")
    rows = numpy.arange(100, dtype=numpy.float32)[:, None] + numpy.array([0, 0.5], dtype=numpy.float32)
    return stoker.from_arrays(rows, numpy.arange(100) % 10)


@pytest.fixture
def loader(hundred):
    """Makes DataLoaders of `hundred`, in batches of 10, as NumPy arrays; closes them."""
    made = []

    def make(dataset=hundred, **options):
        chosen = {"batch_size": 10, "output": "numpy", "num_workers": 1, **options}
        made.append(stoker.DataLoader(dataset, **chosen))
        return made[-1]

    yield make
    for each in made:
        each.close()


class Blocked:
    """A data set of four samples that wait until `held` is set. Sample 0 does not the first time: it is asked for its type."""

    def __init__(self):
        self.held, self.asked = threading.Event(), threading.Event()
        self.probed = False

    def __len__(self):
        return 4

    def __getitem__(self, index):
        if self.probed:
            self.asked.set()
            self.held.wait()
        self.probed = True
        return float(index)


def ids_of(batches):
    """The samples of an iterable of batches, in order."""
    return [int(id) for batch in batches for id in batch.ids]
