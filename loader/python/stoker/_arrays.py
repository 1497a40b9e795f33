"""Arrays of other libraries as memory: where their elements lie, of which type and shape.

Importing this module imports neither NumPy nor PyTorch.
"""

from __future__ import annotations

import array
import sys
from typing import Any, NamedTuple, Sequence, Tuple

from ._errors import OptionError


class Ragged(NamedTuple):
    """Rows of different lengths: row i is values[offsets[i] : offsets[i + 1]]; offsets has one number more than rows."""

    values: Any
    offsets: Any


class Memory(NamedTuple):
    """A dense array: element type, shape, address, and the object that keeps it."""

    dtype: str
    shape: Tuple[int, ...]
    address: int
    owner: Any


def is_torch(value: Any) -> bool:
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def numpy_or_none() -> Any:
    """NumPy if it is installed, else None."""
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def memory_of(name: str, value: Any) -> Memory:
    """The memory of a torch tensor, a NumPy array, or anything that NumPy makes an array of. Copies only what is not
    dense or not in host byte order."""
    if is_torch(value):
        return _of_tensor(name, value)
    numpy = numpy_or_none()
    if numpy is None:
        raise OptionError(f"{name} is a {type(value).__name__}: without NumPy only torch tensors can be read")
    made = numpy.asarray(value, order="C")
    if not made.dtype.isnative:
        made = made.astype(made.dtype.newbyteorder("="))
    if made.dtype.hasobject or made.dtype.kind in "USVmMc":
        raise OptionError(f"{name} has elements of type {made.dtype}: numbers are expected")
    return Memory(made.dtype.name, tuple(made.shape), made.__array_interface__["data"][0], made)


def _of_tensor(name: str, value: Any) -> Memory:
    tensor = value.detach()
    if tensor.device.type != "cpu":
        raise OptionError(f"{name} lies on {tensor.device}: call .cpu() first, batches are copied to the device later")
    tensor = tensor.contiguous()
    return Memory(str(tensor.dtype).split(".")[-1], tuple(tensor.shape), tensor.data_ptr(), tensor)


def packed(code: str, name: str, values: Any) -> Any:
    """Numbers as contiguous memory of C type `code`: "Q" (uint64) or "d" (float64)."""
    numpy = sys.modules.get("numpy")
    if is_torch(values):
        values = values.tolist()
    try:
        if numpy is not None and isinstance(values, numpy.ndarray):
            return _packed_array(numpy, code, values)
        return array.array(code, values)
    except (TypeError, ValueError, OverflowError) as error:
        kind = "sample ids, 0 and above," if code == "Q" else "numbers"
        raise OptionError(f"{name}: {kind} are expected: {error}") from None


def _packed_array(numpy: Any, code: str, values: Any) -> Any:
    if values.ndim != 1:
        raise ValueError(f"an array of one axis, not {values.ndim}")
    if code == "d":
        return numpy.ascontiguousarray(values, dtype=numpy.float64)
    if values.dtype == bool:
        return numpy.flatnonzero(values).astype(numpy.uint64)
    if values.dtype.kind not in "iu":
        raise TypeError(f"integers, not {values.dtype}")
    if values.size > 0 and values.min() < 0:
        raise ValueError(f"{values.min()} is negative")
    return numpy.ascontiguousarray(values, dtype=numpy.uint64)


def highest(values: Any) -> int:
    """The largest of an array's integers; -1 if there is none, or one is negative."""
    if values.shape[0] == 0 or int(values.min()) < 0:
        return -1
    return int(values.max())


def shape_of_rows(shape: Sequence[int]) -> Tuple[int, ...]:
    """The shape of one row of an array."""
    return tuple(shape[1:])
