"""Data sets written in Python: anything with __getitem__ and __len__, such as a torch.utils.data.Dataset."""

from __future__ import annotations

import struct
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _core
from ._arrays import is_torch, memory_of
from ._batches import SINGULARS
from ._datasets import Dataset
from ._errors import OptionError, refusing
from ._samples import Field


class _Column(NamedTuple):
    """A field, and where a sample has it."""

    name: str
    field: Field
    longest: int  # of the first axis, if it varies
    key: Union[int, str, None]  # index or key in the sample; None: the sample is the field


def from_python(
    dataset: Any,
    fields: Optional[Mapping[str, Field]] = None,
    longest: Union[int, Mapping[str, int]] = 0,
    fingerprint: int = 0,
) -> Dataset:
    """A data set whose samples are made by dataset[i], 0 <= i < len(dataset). DataLoader(dataset) calls it.

    A sample is an array, a number, or a tuple, dict or named tuple of these: NumPy arrays, torch tensors, ints (int64), floats
    (float64), bools, str and bytes. All samples have the types and shapes of dataset[0], which is asked once for them. Of a
    tuple of two the fields are "image" (uint8 of [height, width, 1..4]) or "row", and "label"; of a longer one "row",
    "field1", "field2", ...; of a dict they are its keys.

    fields       describes the fields instead of dataset[0]; needed for rows of different lengths (a shape that starts with
                 None), whose longest length, `longest`, is a number or one per field. Text is such a row of uint8
    fingerprint  a number that differs in every version of the data: a saved state is refused if it does

    It runs in the loader's threads. Where Python has a GIL, only one of them makes a sample at a time: the threads help with
    code that waits for files or releases the GIL (NumPy, Pillow's decoders, torch), and pure Python is as fast as with one
    thread. It must be safe to call from several threads. Nothing is cached. An exception makes the sample bad: see
    on_bad_sample; it is the __cause__ of CorruptSample. KeyboardInterrupt, SystemExit and MemoryError are no fault of the sample:
    next() raises them at once if it makes the samples (num_workers=0), and may be called again; in a worker they end the run.

    Randomness: dataset[i] alone cannot know the epoch. If the data set has a method `make(i, seed)`, that is called instead:
    seed < 2^64 is a function of the loader's seed, the epoch and i, so that a run can be repeated and resumed.
    """
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        raise OptionError(
            f"dataset is {type(dataset).__name__}: a name, a stoker.Dataset, or an object with __getitem__ and __len__ is "
            "expected. Of an iterable data set, shard the files and open them by name"
        )
    count = len(dataset)
    if count < 1:
        raise OptionError("the data set has no samples")
    make = getattr(dataset, "make", None)
    sample = make if callable(make) else lambda index, seed: dataset[index]
    columns = _described(fields, longest) if fields is not None else _inferred(sample(0, 0))
    infos = [
        (column.name, column.field.kind, column.field.dtype, _stored_shape(column), column.longest > 0, column.field.classes or 0)
        for column in columns
    ]
    with refusing:
        return Dataset(_core.Dataset.python(infos, count, _maker(sample, columns), fingerprint))


def _stored_shape(column: _Column) -> Tuple[int, ...]:
    shape: Any = column.field.shape
    return (column.longest, *shape[1:]) if column.longest else tuple(shape)


def _maker(sample: Callable[[int, int], Any], columns: Sequence[_Column]) -> Callable[[int, int], List[Any]]:
    """What the C extension calls for each sample."""

    def make(index: int, seed: int) -> List[Any]:
        made = sample(index, seed)
        return [_bytes_of(column, made if column.key is None else made[column.key]) for column in columns]

    return make


_NUMBERS = {"int64": "<q", "float64": "<d", "bool": "?"}


def _bytes_of(column: _Column, value: Any) -> Any:
    """The bytes of one field of one sample, checked against its description."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, (bytes, bytearray)):
        if column.field.kind != "bytes":
            raise OptionError(f"{column.name} is bytes: {column.field.dtype}{list(column.field.shape)} is expected")
        return value
    if isinstance(value, (bool, int, float)) and column.field.dtype in _NUMBERS and not column.field.shape:
        return struct.pack(_NUMBERS[column.field.dtype], value)
    memory = memory_of(column.name, value)
    expected = tuple(column.field.shape)
    fits = len(memory.shape) == len(expected) and all(
        want in (None, got) or (column.longest and axis == 0)
        for axis, (want, got) in enumerate(zip(expected, memory.shape))
    )
    if column.field.kind in ("image", "mask") and memory.shape + (1,) == expected:
        fits = True
    if memory.dtype != column.field.dtype or not fits:
        raise OptionError(
            f"{column.name} is {memory.dtype}{list(memory.shape)}: {column.field.dtype}{list(expected)} is expected, as in sample "
            "0; rows of different lengths need from_python(dataset, fields=..., longest=...)"
        )
    return _buffer(memory.owner)


def _buffer(owner: Any) -> Any:
    """What memoryview() takes. Of a tensor NumPy's view, by way of bytes if NumPy lacks the type."""
    if not is_torch(owner):
        return owner.view("u1") if owner.ndim and owner.dtype.kind not in "biuf" else owner
    import torch

    return owner.reshape(-1).view(torch.uint8).numpy() if owner.numel() else b""


def _described(fields: Mapping[str, Field], longest: Union[int, Mapping[str, int]]) -> List[_Column]:
    columns = []
    for index, (name, field) in enumerate(fields.items()):
        field = Field(*field)
        most = longest if isinstance(longest, int) else longest.get(name, 0)
        varies = bool(field.shape) and field.shape[0] is None
        if varies and most < 1:
            raise OptionError(f"{name} differs in length: longest={{{name!r}: ...}} is needed, the most that a sample has")
        key: Union[int, str] = name
        columns.append(_Column(SINGULARS.get(name, name), field, most if varies else 0, key))
    return columns


def _inferred(sample: Any) -> List[_Column]:
    """The fields of a data set with samples like this one."""
    if hasattr(sample, "_fields"):
        named: Dict[Any, Any] = dict(zip(sample._fields, sample))
        names = list(named)
        keys: List[Any] = list(range(len(names)))
    elif isinstance(sample, Mapping):
        named, keys = dict(sample), list(sample)
        names = [str(key) for key in keys]
    elif isinstance(sample, (tuple, list)):
        keys = list(range(len(sample)))
        named = dict(zip(keys, sample))
        names = ["", "label"] if len(sample) == 2 else [""] + [f"field{index}" for index in keys[1:]]
    else:
        named, keys, names = {None: sample}, [None], [""]
    values = list(named.values())
    if not values:
        raise OptionError("dataset[0] is empty: at least one field is expected")
    return [_column(SINGULARS.get(name, name), value, key, first) for first, name, value, key in
            zip([True] + [False] * len(values), names, values, keys)]


def _column(name: str, value: Any, key: Any, first: bool) -> _Column:
    if isinstance(value, (str, bytes, bytearray)):
        raise OptionError(
            f"{name or 'the sample'} is {type(value).__name__}, whose length differs: describe it, for example with from_python("
            f'dataset, fields={{"{name or "text"}": stoker.Field("uint8", (None,), "bytes"), ...}}, longest=...)'
        )
    for kind, dtype in ((bool, "bool"), (int, "int64"), (float, "float64")):
        if isinstance(value, kind):
            return _Column(name or "row", Field(dtype, ()), 0, key)
    memory = memory_of(name or "dataset[0]", value)
    shape: Tuple[int, ...] = memory.shape
    pixels = len(shape) == 3 and 1 <= shape[2] <= 4 and memory.dtype == "uint8"
    if (first or name.startswith("image")) and pixels:
        return _Column(name or "image", Field(memory.dtype, shape, "image"), 0, key)
    return _Column(name or "row", Field(memory.dtype, shape), 0, key)
