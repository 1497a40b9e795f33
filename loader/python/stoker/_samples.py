"""One sample as Python objects, for looking at data."""

from __future__ import annotations

import functools
from collections import namedtuple
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple, Type

from ._arrays import numpy_or_none
from ._batches import SINGULARS, identifiers

# Element types for which the module struct, and so memoryview, has a code.
_CODES: Dict[str, str] = {
    "uint8": "B", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "float32": "f", "float64": "d",
    "uint16": "H", "uint32": "I", "uint64": "Q", "bool": "?", "bfloat16": "H",
}  # fmt: skip


class Field(NamedTuple):
    """One named field of every sample, or of a batch.

    dtype    element type: "uint8", "float32", "bfloat16", ...
    shape    of one sample, as stored: images are (height, width, channels). None: an axis whose length varies
    kind     "array", "image", "mask" (classes per pixel) or "bytes" (text and the like)
    classes  values are 0..classes - 1; None if there are none, or unknown
    """

    dtype: str
    shape: Tuple[Optional[int], ...]
    kind: str = "array"
    classes: Optional[int] = None


def field_of(info: Any) -> Field:
    """The description of a field from that of the C extension."""
    shape: Tuple[Optional[int], ...] = tuple(info["shape"])
    if info["varies"]:
        shape = (None,) + shape[1:]
    if info["sizes_differ"]:
        shape = (None, None) + shape[2:]
    return Field(info["dtype"], shape, info["kind"], info["class_count"] or None)


def sample_type(names: Sequence[str]) -> Type[Any]:
    """The class of a data set's samples: a named tuple of its fields, in the singular."""
    return _type_of(tuple(SINGULARS.get(name, name) for name in identifiers(names)))


@functools.lru_cache(maxsize=None)
def _type_of(names: Tuple[str, ...]) -> Type[Any]:
    """Samples are pickled by their names: torch's own DataLoader sends them from its workers."""
    fields = namedtuple("Sample", names)  # type: ignore[misc]
    reduce = {"__reduce__": lambda self: (_rebuild, (names, tuple(self))), "__slots__": (), "__module__": __name__}
    return type("Sample", (fields,), reduce)


def _rebuild(names: Tuple[str, ...], values: Tuple[Any, ...]) -> Any:
    return _type_of(names)(*values)


def value_of(info: Any, data: bytearray) -> Any:
    """A field of one sample. Bytes are bytes, a single number is a number; all others are NumPy arrays, or memoryviews if
    NumPy is not installed. bfloat16, which both lack, are the bits as uint16."""
    if info["kind"] == "bytes":
        return bytes(data)
    shape = tuple(info["shape"])
    whole: Any = memoryview(data)
    flat = whole.cast(_CODES.get(info["dtype"], "H"))
    if info["dtype"] == "float16":
        return _halves(data, shape, info["varies"])
    if not shape:
        return flat[0]
    row = 1
    for length in shape[1:]:
        row *= length
    if info["varies"]:
        shape = (len(flat) // row,) + shape[1:]
    numpy = numpy_or_none()
    if numpy is not None:
        return numpy.asarray(flat).reshape(shape)
    return whole.cast(flat.format, shape) if len(flat) else flat


def _halves(data: bytearray, shape: Tuple[int, ...], varies: bool) -> Any:
    """float16: memoryview reads no such elements, NumPy does."""
    numpy = numpy_or_none()
    if numpy is None:
        return memoryview(data)
    values = numpy.frombuffer(data, dtype=numpy.float16)
    if not shape:
        return float(values[0])
    return values.reshape((-1,) + shape[1:] if varies else shape)
