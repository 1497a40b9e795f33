"""Exceptions: one class per kind of failure, each with the place at which it happened.

    StokerError
    ├── OptionError          ValueError         an argument is out of its range, or does not fit the data set
    │   └── OptionTypeError     TypeError          an argument has the wrong type
    ├── StateError           ValueError         a state is damaged, or belongs to another data set, order or version
    ├── FormatError          ValueError         a file breaks the rules of its format
    │   └── CorruptSample                       a sample cannot be decoded, or made by a data set in Python
    ├── TooManyBadSamples                       more than max_bad_samples were bad
    ├── DatasetChanged                          a file changed while the data set was open
    ├── MissingFile          FileNotFoundError
    ├── AccessDenied         PermissionError
    ├── IsADirectory         IsADirectoryError
    ├── StorageError         OSError            the storage could not deliver the bytes
    ├── BatchTimeout         TimeoutError       no batch became ready in time; nothing is lost
    ├── OutOfMemory          MemoryError        also: memory that could not be page-locked
    ├── NotSupported         NotImplementedError
    ├── DeviceError          RuntimeError       the GPU is missing or failed
    ├── ForkedLoader         RuntimeError       used in a child process
    └── LoaderError          RuntimeError       all others

Catch the built-in class or the one here, whichever reads better.
"""

from __future__ import annotations

import re
from typing import Any, Dict, NoReturn, Optional, Tuple, Type


class StokerError(Exception):
    """Base of all errors of this package.

    code     name of the library's error code, for example "STOKER_ENOENT"
    stage    stage of the pipeline: "options", "open", "locate", "read", "decode", "transfer", "wait" or "hook"
    path     the file, or None
    offset   bytes from the start of the file, or None if unknown
    sample   sample id, or None
    errno    errno of the failed system call, or None
    """

    code: str
    stage: str
    path: Optional[str]
    offset: Optional[int]
    sample: Optional[int]
    errno: Optional[int]

    def __init__(
        self,
        message: str = "",
        *,
        code: str = "STOKER_EINVAL",
        stage: str = "options",
        path: Optional[str] = None,
        offset: Optional[int] = None,
        sample: Optional[int] = None,
        errno: Optional[int] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.stage = stage
        self.path = path
        self.offset = offset
        self.sample = sample
        self.errno = errno
        if isinstance(self, OSError):
            setattr(self, "filename", path)  # as other code expects of an OSError

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> Tuple[Any, ...]:
        place = {name: getattr(self, name) for name in ("code", "stage", "path", "offset", "sample", "errno")}
        return _rebuild, (type(self), self.message, place)


class OptionError(StokerError, ValueError):
    """An argument is out of its range, or does not fit the data set."""


class OptionTypeError(OptionError, TypeError):
    """An argument has the wrong type."""


class StateError(StokerError, ValueError):
    """A state is damaged, or belongs to another data set, order or version."""


class FormatError(StokerError, ValueError):
    """A file breaks the rules of its format."""


class CorruptSample(FormatError):
    """A sample cannot be decoded, does not match its checksum, or a data set in Python failed to make it (then its exception
    is the __cause__). `path`, `offset` and `sample` say which."""


class TooManyBadSamples(StokerError):
    """More than max_bad_samples could not be read or decoded."""


class DatasetChanged(StokerError):
    """A file of the data set changed while it was open."""


class MissingFile(StokerError, FileNotFoundError):
    """No such file or directory."""


class AccessDenied(StokerError, PermissionError):
    """A file may not be read."""


class IsADirectory(StokerError, IsADirectoryError):
    """A directory where a file is needed."""


class StorageError(StokerError, OSError):
    """The storage could not deliver the bytes, or too many files are open."""


class BatchTimeout(StokerError, TimeoutError):
    """No batch became ready in `timeout` seconds. Nothing is lost: call next() again."""


class OutOfMemory(StokerError, MemoryError):
    """Memory could not be allocated or page-locked."""


class NotSupported(StokerError, NotImplementedError):
    """Impossible here, with these options or this data set."""


class DeviceError(StokerError, RuntimeError):
    """The GPU is missing or failed."""


class ForkedLoader(StokerError, RuntimeError):
    """A loader was used in a child process; it belongs to the parent."""


class LoaderError(StokerError, RuntimeError):
    """Any other failure."""


_KINDS: Dict[str, Type[StokerError]] = {
    "STOKER_EINVAL": OptionError,
    "STOKER_ENOMEM": OutOfMemory,
    "STOKER_ENOENT": MissingFile,
    "STOKER_EACCES": AccessDenied,
    "STOKER_EISDIR": IsADirectory,
    "STOKER_EIO": StorageError,
    "STOKER_EMAGIC": FormatError,
    "STOKER_ETRUNCATED": FormatError,
    "STOKER_EOVERSIZE": FormatError,
    "STOKER_EFORMAT": FormatError,
    "STOKER_ECORRUPT": FormatError,
    "STOKER_EMISMATCH": OptionError,
    "STOKER_EEMPTY": OptionError,
    "STOKER_ELIMIT": OptionError,
    "STOKER_EBATCH": OptionError,
    "STOKER_ETYPE": OptionError,
    "STOKER_EPIN": OutOfMemory,
    "STOKER_ETHREAD": LoaderError,
    "STOKER_TIMEOUT": BatchTimeout,
    "STOKER_EFORKED": ForkedLoader,
    "STOKER_BUSY": LoaderError,
    "STOKER_EBADSAMPLES": TooManyBadSamples,
    "STOKER_ESTATE": StateError,
    "STOKER_ESPEC": OptionError,
    "STOKER_EDEVICE": DeviceError,
    "STOKER_EREADER": NotSupported,
    "STOKER_ENOTSUP": NotSupported,
    "STOKER_ENOFILE": StorageError,
    "STOKER_ECHANGED": DatasetChanged,
}

# Of a sample these are faults of the sample, not of an argument; unless a data set finds out while it is opened that it cannot
# be opened so.
_OF_A_SAMPLE = {"STOKER_EINVAL", "STOKER_ELIMIT", "STOKER_EMISMATCH", "STOKER_ETYPE"}


# What the C library calls an option, where the argument here has another name. A name is a whole word of a message.
_ARGUMENTS = {
    "prefetch_batches": "prefetch_factor",
    "resize_shorter": "resize",
    "pad of": "padding of", "pad is": "padding is",
    "mean and std": "normalize: mean and std",
    "decode_scale FAST": "fast_decode=True",
    "area_min": "area", "area_max": "area", "ratio_min": "ratio", "ratio_max": "ratio",
    "rotate_min": "rotation", "rotate_max": "rotation", "sigma_min": "sigma", "sigma_max": "sigma",
    "brightness": "jitter: brightness", "contrast": "jitter: contrast", "saturation": "jitter: saturation", "hue": "jitter: hue",
    "mixup_alpha": "mixup", "cutmix_alpha": "cutmix", "probability": "mix_probability",
    "mean": "normalize: mean", "std": "normalize: std",
    "weight_count": "weights: their number",
    "mean_count": "normalize: the number of values",
    "resume:": "state:",
}  # fmt: skip
_STRUCT = re.compile(r"\b(?:options|transform|blend|order)\.(?=[a-z])")
_AUTOMATIC = re.compile(r"STOKER_[A-Z_]*AUTO\b")
_NAME = re.compile("|".join(rf"(?<![\w.]){re.escape(name)}(?![\w.(=])" for name in sorted(_ARGUMENTS, key=len, reverse=True)))
_CALL = re.compile(r"\bids, epoch (\d+), position")


def in_python(message: str) -> str:
    """A message about options with the names that the arguments have here."""
    message = _STRUCT.sub("", message.replace("transform.pad ", "padding "))
    message = _AUTOMATIC.sub('"auto"', message)
    message = _CALL.sub(r"order(\1), position", message)
    return _NAME.sub(lambda found: _ARGUMENTS[found.group()], message)


class Refusing:
    """Raises what a call of stoker._core refuses, a TypeError or ValueError, as a StokerError: `with refusing: ...`"""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if isinstance(error, (TypeError, ValueError)) and not isinstance(error, StokerError):
            refused = OptionTypeError if isinstance(error, TypeError) else OptionError
            raise refused(in_python(str(error))) from None


refusing = Refusing()


def wrong_type(name: str, value: Any, expected: str) -> NoReturn:
    raise OptionTypeError(f"{name} is {value!r}: {expected} is expected")


def make(
    *,
    name: str,
    message: str,
    code: int = -1,
    stage: str = "options",
    path: Optional[str] = None,
    offset: Optional[int] = None,
    sample: Optional[int] = None,
    os_errno: int = 0,
) -> StokerError:
    """The exception for an error of the library. Called by stoker._core, which raises it."""
    kind = _KINDS.get(name, LoaderError)
    if stage == "options":
        message = in_python(message)
    if kind is DeviceError and "(35)" in message:  # cudaErrorInsufficientDriver
        message += ": there is no NVIDIA driver here, or an old one"
    if sample is not None and (kind is FormatError or (name in _OF_A_SAMPLE and stage not in ("options", "open"))):
        kind = CorruptSample
    elif stage in ("hook", "wait") and kind is OptionError:
        kind = LoaderError
    return kind(
        message, code=name, stage=stage, path=path or None, offset=offset, sample=sample, errno=os_errno or None
    )


def _rebuild(kind: Type[StokerError], message: str, place: Dict[str, Any]) -> StokerError:
    return kind(message, **place)
