"""The arguments of DataLoader as options of the C library, and what torch.utils.data.DataLoader has beside them."""

from __future__ import annotations

import logging
import operator
import sys
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, Union

from ._arrays import packed
from ._errors import OptionError, wrong_type
from ._order import EpochOrder
from ._transform import Transform

_log = logging.getLogger("stoker")

# Arguments of torch's DataLoader that cannot mean anything here, and what to use instead.
REFUSED = {
    "sampler": "the order is made in C. Use shuffle=True, weights=..., order=lambda epoch: list(sampler), or dataset.select(ids); "
    "ranks divide every epoch by themselves, so DistributedSampler is not needed",
    "batch_sampler": "batches are consecutive positions of the order. Use batch_size, drop_last and "
    "order=lambda epoch: [id for batch in sampler for id in batch]",
    "collate_fn": "C threads write samples into the batch directly. Rows of different lengths need nothing (see ragged and fields); "
    "use batch_transform=... to change finished batches",
}


@dataclass(frozen=True)
class FieldOptions:
    """What a DataLoader does with one field: DataLoader(..., fields={"tokens": FieldOptions(pad="max")}).

    dtype       element type as delivered: a wider integer type, or a float type; None: as stored. Field 0 has the dtype of
                the DataLoader instead
    pad         for rows of different lengths. None: they come one after the other, with offsets. "longest": padded to the
                longest row of the batch; a number: then up to a multiple of it; "max": to the longest of the data set
    pad_value   value of padding
    fill_value  of masks beside an image with a Transform: the value if the image has no pixel there, for example 255
    """

    dtype: Any = None
    pad: Union[int, str, None] = None
    pad_value: float = 0
    fill_value: float = 0

    def members(self) -> Dict[str, Any]:
        """The members of stoker_field_options."""
        members: Dict[str, Any] = {"pad_value": float(self.pad_value), "fill_value": float(self.fill_value)}
        if self.dtype is not None:
            members["dtype"] = dtype_name(self.dtype)
        if isinstance(self.pad, int):
            members.update(form="padded_multiple", multiple=self.pad)
        elif self.pad is not None:
            forms = {"longest": "padded", "max": "padded_max"}
            if self.pad not in forms:
                raise OptionError(f'pad is {self.pad!r}: None, "longest", "max" or a number is expected')
            members["form"] = forms[self.pad]
        return members


def dtype_name(dtype: Any) -> str:
    """ "float16" for "float16", torch.float16, numpy.float16 and numpy.dtype("float16")."""
    if isinstance(dtype, str):
        return dtype
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return str(name).split(".")[-1]


def refuse(**given: Any) -> None:
    """Refuse arguments of torch's DataLoader that have no meaning here; mention the one that is accepted but does nothing."""
    for name, reason in REFUSED.items():
        if given.get(name) is not None:
            raise OptionError(f"{name} is not supported: {reason}")
    if given.get("worker_init_fn") is not None:
        warnings.warn("worker_init_fn is never called: the workers are C threads, which share no Python state", stacklevel=4)


def seed_of(seed: Optional[int], generator: Any) -> int:
    """`seed`; else that of a torch.Generator; else 0."""
    if seed is None:
        seed = 0 if generator is None else int(generator.initial_seed())
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise OptionError(f"seed is {seed!r}: an integer is expected")
    return seed % 2**64


def device_of(device: Any) -> Tuple[str, int]:
    """("cuda", 1) for "cuda:1" and torch.device("cuda", 1). "cuda" is torch's current GPU if torch is in use, else GPU 0."""
    kind, _, number = str(device).partition(":")
    if kind not in ("auto", "cpu", "cuda", "cuda_host") or (number and not number.isdigit()):
        raise OptionError(f'device is {str(device)!r}: "cpu", "cuda", "cuda:1" or "auto" is expected')
    if number or kind not in ("cuda", "cuda_host"):
        return kind, int(number or 0)
    torch: Any = sys.modules.get("torch")
    return kind, torch.cuda.current_device() if torch is not None and torch.cuda.is_available() else 0


def pinning(pin_memory: Union[bool, str], device: str) -> Union[bool, str]:
    """As torch, which only warns if there is no GPU to pin memory for."""
    if pin_memory is True and device == "cpu":
        warnings.warn(
            'pin_memory=True does nothing for batches on the CPU: with device="cuda" they are copied to the GPU ahead, from '
            "page-locked memory",
            stacklevel=4,
        )
        return "auto"
    return pin_memory


def last_of(drop_last: bool, last: Optional[str]) -> str:
    if drop_last and last not in (None, "drop"):
        raise OptionError(f"drop_last=True contradicts last={last!r}")
    return "drop" if drop_last else last or "even"


def number_of(name: str, value: Any, least: int, most: int, automatic: bool = False) -> Any:
    """A number, also of NumPy's types, in its range; or "auto"."""
    if automatic and isinstance(value, str) and value == "auto":
        return value
    expected = f"{least}..{most}" + (', or "auto",' if automatic else "")
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        wrong_type(name, value, f"a number in {expected}")
    if not least <= number <= most:
        raise OptionError(f"{name} is {number}: {expected} is expected")
    return number


def timeout_ms_of(timeout: float) -> int:
    """Milliseconds for seconds; 0 s are no limit, as in torch."""
    if isinstance(timeout, (bool, str)) or not hasattr(timeout, "__float__"):
        wrong_type("timeout", timeout, "a number of seconds")
    if not 0 <= timeout < 2**31 / 1000:
        raise OptionError(f"timeout is {timeout}: seconds >= 0 are expected; 0 is no limit")
    return max(1, round(timeout * 1000)) if timeout > 0 else -1


def prefetch_of(prefetch_factor: Union[int, str, None]) -> Union[int, str]:
    """Batches ahead in all. The ring has at least two slots."""
    if prefetch_factor is None or prefetch_factor == "auto":
        return "auto"
    return max(2, int(number_of("prefetch_factor", prefetch_factor, 1, 64)))


def order_of(
    weights: Optional[Sequence[float]],
    order: Union[Callable[[int], Sequence[int]], str, None],
    length: Optional[int],
    shuffle: bool,
    **window: Optional[int],
) -> Optional[Dict[str, Any]]:
    """An order beyond `shuffle`. window: members of the C order that are about blocks."""
    if weights is not None and order is not None:
        raise OptionError("weights and order are both given: choose one")
    given = {name: value for name, value in window.items() if value is not None}
    if order == "window" or (weights is None and order is None):
        if length is not None:
            raise OptionError('length is for weights and order="uniform", which are not given')
        return {"kind": "window" if order == "window" else "default", **given} if given or order else None
    if given:
        raise OptionError(f'{next(iter(given))} is for order="window", or shuffle=True of a data set with blocks')
    if isinstance(order, str):
        return _uniform(order, length, shuffle)
    if order is not None:
        if shuffle or length is not None:
            raise OptionError("order says which samples an epoch has: leave out shuffle and length")
        if not callable(order):
            raise OptionError("order is a function: order(epoch) returns the sample ids of the epoch. dataset.select(ids) is "
                              "the same ids in each")
        own = EpochOrder(order)
        return {"kind": "own", "length": own.length, "ids": own, "name": "order", "fingerprint": own.fingerprint}
    if shuffle:
        raise OptionError("weights draw samples in a random order already: leave out shuffle")
    members: Dict[str, Any] = {"kind": "weighted", "weights": packed("d", "weights", weights)}
    if length is not None:
        members["length"] = length
    return members


def _uniform(order: str, length: Optional[int], shuffle: bool) -> Dict[str, Any]:
    if order != "uniform":
        raise OptionError(f'order is {order!r}: "uniform", "window", or a function, is expected')
    if shuffle:
        raise OptionError('order="uniform" draws samples with replacement: leave out shuffle')
    return {"kind": "uniform"} if length is None else {"kind": "uniform", "length": length}


def mixing_of(
    mixup: float, cutmix: float, probability: float, share: float
) -> Optional[Dict[str, float]]:
    if not mixup and not cutmix:
        return None
    return {"mixup_alpha": mixup, "cutmix_alpha": cutmix, "probability": probability, "cutmix_share": share}


def transform_members(transform: Any, dtype: Any, scale: Optional[float]) -> Dict[str, Any]:
    """dtype, transform, mean and std. Normalizing makes float32 unless another type is asked for."""
    members: Dict[str, Any] = {}
    if transform is not None:
        if not isinstance(transform, Transform):
            raise OptionError(
                f"transform is {transform!r}: a stoker.Transform is expected, which runs in C. For Python code use "
                "batch_transform, which gets the finished batch, or a data set of your own with __getitem__"
            )
        members["transform"] = transform.steps()
        normalize = transform.mean_and_std()
        if normalize is not None:
            members["mean"], members["std"] = normalize
            if scale is None and max(normalize[0]) > 2:
                warnings.warn(
                    f"normalize has a mean of {max(normalize[0]):g}, but values are 0..1 before it: divide mean and deviation by "
                    "255, or set scale=1",
                    stacklevel=4,
                )
            dtype = "float32" if dtype is None else dtype
    if dtype is not None:
        members["dtype"] = dtype_name(dtype)
    return members


def fields_of(fields: Optional[Mapping[str, FieldOptions]]) -> Dict[str, Dict[str, Any]]:
    from ._batches import SINGULARS

    for name, options in (fields or {}).items():
        if not isinstance(options, FieldOptions):
            raise OptionError(f"fields[{name!r}] is {options!r}: stoker.FieldOptions(...) is expected")
    return {SINGULARS.get(name, name): options.members() for name, options in (fields or {}).items()}


def log(level: str, message: str) -> None:
    """Default of on_log: the logger "stoker"."""
    _log.log(logging.WARNING if level == "warning" else logging.INFO, "%s", message)
