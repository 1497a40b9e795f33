"""Stoker keeps accelerators fed: batches of training data, read, decoded and transformed by C threads.

    import stoker
    train = stoker.DataLoader("mnist:data/mnist", batch_size=64, shuffle=True, dtype="float32", output="torch")
    for images, labels in train:
        ...

Importing this package imports neither torch nor NumPy nor JAX: a DataLoader does, if its output asks for one.
"""

from typing import Dict as _Dict

from ._arrays import Ragged
from ._core import features as _features
from ._core import version as _version
from ._datasets import Dataset, Storage, concat, from_arrays, open
from ._errors import (
    AccessDenied,
    BatchTimeout,
    CorruptSample,
    DatasetChanged,
    DeviceError,
    ForkedLoader,
    FormatError,
    IsADirectory,
    LoaderError,
    MissingFile,
    NotSupported,
    OptionError,
    OptionTypeError,
    OutOfMemory,
    StateError,
    StokerError,
    StorageError,
    TooManyBadSamples,
)
from ._files import from_files
from ._loader import DataLoader
from ._mix import Mix, mix
from ._options import FieldOptions
from ._outputs import Padded
from ._python_dataset import from_python
from ._samples import Field
from ._stats import Stats
from ._tokens import documents, pack, tokens
from ._transform import IMAGENET_MEAN, IMAGENET_STD, Transform

__version__ = _version()


def features() -> _Dict[str, bool]:
    """What this build of the library can do: {"png": True, "jpeg": True, "webp": ..., "gzip": ..., "lz4": ..., "zstd": ...,
    "io_uring": ..., "cuda": ..., "cuda_kernels": ...}. False: what it needs was not found when it was built."""
    return _features()


__all__ = [
    "AccessDenied",
    "BatchTimeout",
    "CorruptSample",
    "DataLoader",
    "Dataset",
    "DatasetChanged",
    "DeviceError",
    "Field",
    "FieldOptions",
    "ForkedLoader",
    "FormatError",
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "IsADirectory",
    "LoaderError",
    "MissingFile",
    "Mix",
    "NotSupported",
    "OptionError",
    "OptionTypeError",
    "OutOfMemory",
    "Padded",
    "Ragged",
    "StateError",
    "Stats",
    "StokerError",
    "Storage",
    "StorageError",
    "TooManyBadSamples",
    "Transform",
    "concat",
    "documents",
    "features",
    "from_arrays",
    "from_files",
    "from_python",
    "mix",
    "open",
    "pack",
    "tokens",
]
