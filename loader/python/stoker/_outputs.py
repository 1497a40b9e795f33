"""Batches as arrays of a framework: torch, NumPy, JAX, or objects with the DLPack protocol. Nothing is copied."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional

from ._batches import ids_as_view
from ._errors import NotSupported, OptionError

NAMES = ("torch", "numpy", "jax", "dlpack")


class Padded(NamedTuple):
    """Rows of different lengths, padded to one: row i is values[i, : lengths[i]]."""

    values: Any
    lengths: Any


class Output(NamedTuple):
    """How parts of a batch become arrays.

    take_ids     of batch_type()
    keeps_batch  from_tensor makes objects that need the batch, which is released with the last of them
    take         DLPack capsule -> array; None: `from_tensor` is used
    from_tensor  stoker tensor -> array
    exchange     None, or the framework's functions for C, which replace `take` in a loop
    versioned    the capsules are those of DLPack 1
    stream       None, or a function: the CUDA stream that uses the batch
    nested       (values, offsets) -> one ragged array; None: they stay apart
    """

    name: str
    take_ids: Callable[[memoryview], Any]
    take: Optional[Callable[[Any], Any]] = None
    from_tensor: Optional[Callable[[Any], Any]] = None
    versioned: bool = False
    exchange: Any = None
    stream: Optional[Callable[[], Optional[int]]] = None
    nested: Optional[Callable[[Any, Any], Any]] = None
    keeps_batch: bool = False


class _Capsule:
    """A capsule for libraries that take only objects with the protocol, once, in host memory."""

    __slots__ = ("capsule",)

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> "tuple[int, int]":
        return (1, 0)  # kDLCPU


class _Interface:
    """A tensor for NumPy before 2.1, whose from_dlpack() makes arrays that cannot be written to."""

    def __init__(self, numpy: Any, tensor: Any) -> None:
        # A capsule that nobody takes keeps the memory as an array of DLPack would: also after the loader is closed, when the
        # tensor's own address is no longer valid.
        self.capsule = tensor.__dlpack__()
        self.__array_interface__ = {
            "version": 3,
            "shape": tensor.shape,
            "typestr": numpy.dtype(tensor.dtype).str,
            "data": (tensor.address, False),
        }


def output_of(name: str, device: str, device_index: int, ragged: Optional[str]) -> Output:
    """The output that DataLoader(output=name) asks for, with batches on this device ("cpu", "cuda", "cuda_host").

    Raises OptionError if the library is not installed, or cannot use such batches."""
    if name not in NAMES:
        raise OptionError(f"output is {name!r}: one of {', '.join(NAMES)} is expected")
    if ragged not in (None, "nested", "offsets"):
        raise OptionError(f'ragged is {ragged!r}: "nested" or "offsets" is expected')
    if ragged == "nested" and name != "torch":
        raise OptionError(f'ragged="nested" is for output="torch", not {name!r}')
    make = {"torch": _torch, "numpy": _numpy, "jax": _jax, "dlpack": _dlpack}[name]
    try:
        output = make(device, device_index)
    except ImportError as error:
        raise OptionError(f"output={name!r}: {error}. Install it, or choose another output") from error
    return output._replace(nested=None) if ragged == "offsets" else output


def _torch(device: str, index: int) -> Output:
    import torch

    if device == "cuda_host":
        raise NotSupported('output="torch" cannot show memory of device="cuda_host": use device="cuda"', code="STOKER_ENOTSUP")
    take = getattr(torch._C, "_from_dlpack", None) or torch.utils.dlpack.from_dlpack
    nested = getattr(torch.nested, "nested_tensor_from_jagged", None)
    if device == "cuda":
        return Output("torch", _torch_ids, take, stream=_torch_stream(torch, index), nested=nested)
    # Not on a GPU, which these functions do not initialize.
    exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    return Output("torch", _torch_ids, take, exchange=exchange, nested=nested)


def _torch_ids(ids: memoryview) -> Any:
    import torch

    return torch.frombuffer(bytearray(ids), dtype=torch.int64) if ids else torch.empty(0, dtype=torch.int64)


def _torch_stream(torch: Any, index: int) -> Callable[[], int]:
    """torch's current stream at the time of the call; 1 is the legacy default stream."""
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None:
        return lambda: raw(index) or 1
    return lambda: torch.cuda.current_stream(index).cuda_stream or 1


def _numpy(device: str, index: int) -> Output:
    import numpy

    if device not in ("cpu", "cuda_host"):
        raise OptionError(f'output="numpy" is for device="cpu", not {device!r}')
    if tuple(int(part) for part in numpy.__version__.split(".")[:2]) < (2, 1):
        return Output("numpy", _numpy_ids, from_tensor=lambda tensor: numpy.asarray(_Interface(numpy, tensor)))
    from_dlpack = numpy.from_dlpack
    return Output("numpy", _numpy_ids, lambda capsule: from_dlpack(_Capsule(capsule)), versioned=True)


def _numpy_ids(ids: memoryview) -> Any:
    import numpy

    return numpy.frombuffer(ids, dtype=numpy.uint64)


def _jax(device: str, index: int) -> Output:
    import jax

    if device == "cuda_host":
        raise NotSupported('output="jax" cannot show memory of device="cuda_host": use device="cuda"', code="STOKER_ENOTSUP")
    from_dlpack = jax.dlpack.from_dlpack
    if device == "cpu":
        return Output("jax", _numpy_ids, lambda capsule: from_dlpack(_Capsule(capsule)))
    return Output("jax", _numpy_ids, from_tensor=from_dlpack)


def _dlpack(device: str, index: int) -> Output:
    return Output("dlpack", ids_as_view, from_tensor=lambda tensor: tensor, keeps_batch=True)
