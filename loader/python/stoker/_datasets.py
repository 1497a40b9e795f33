"""Data sets: opened by name, made of arrays, and views of others."""

from __future__ import annotations

import operator
import os
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Protocol, Sequence, Tuple, Union

from . import _core
from ._arrays import Ragged, highest, is_torch, memory_of, packed, shape_of_rows
from ._batches import SINGULARS, identifiers
from ._errors import OptionError, refusing, wrong_type
from ._samples import Field, field_of, sample_type, value_of

_CLASSES_MAX = 65536  # of labels whose number of classes is counted


class Dataset:
    """Samples with named fields, read and decoded by C threads. Immutable: any number of DataLoaders, views and threads may
    share one. Files and memory are freed with the last object that uses them.

    len(dataset)     number of samples
    dataset[i]       sample i, read in this thread: a named tuple, to look at data. -1 is the last one; a slice is a view
    dataset.fields   what a sample consists of, as stored

    Made by open(), from_arrays(), from_files(), tokens(), documents(), pack(), mix() and concat(). Files must not change while it is open: DatasetChanged otherwise.
    """

    def __init__(self, core: _core.Dataset) -> None:
        self._core = core
        self._infos = core.fields
        self._sample = sample_type([info["name"] for info in self._infos])

    def __len__(self) -> int:
        return self._core.count

    def __getitem__(self, index: Union[int, slice]) -> Any:
        """Sample `index` as a named tuple, or a view of a slice. Fields are as stored: images are height, width, channels."""
        count = len(self)
        if isinstance(index, slice):
            return self.select(range(*index.indices(count)))
        try:
            at = operator.index(index)
        except TypeError:
            wrong_type("the index", index, "a number or a slice")
        at = at + count if at < 0 else at
        if not 0 <= at < count:
            raise IndexError(f"sample {index} of {count}")
        return self._sample(*map(value_of, self._infos, self._core.read(at)))

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    @property
    def fields(self) -> Dict[str, Field]:
        """Every field by its name in the data set, as stored. Field 0, the first, is the one that dtype, layout, normalize
        and mixup are about; a Transform is about images and masks."""
        return {info["name"]: field_of(info) for info in self._infos}

    @property
    def element_spec(self) -> Dict[str, Field]:
        """The same, by the names that the fields have in a batch."""
        return dict(zip(identifiers(self.fields), self.fields.values()))

    @property
    def classes(self) -> Optional[List[str]]:
        """Names of the label's classes, by number; of a class without a name the number. None: there are no classes."""
        count = self._core.info["class_count"]
        if not count:
            return None
        return [self._core.class_name(index) or str(index) for index in range(count)]

    @property
    def format(self) -> str:
        """The format: "mnist", "folder", "arrays", ..."""
        return self._core.name

    @property
    def description(self) -> Optional[str]:
        """What opening found out, in one line; None: nothing."""
        return self._core.description

    @property
    def fingerprint(self) -> int:
        """A number by which a saved state knows the data set; the same for a moved or copied one."""
        return self._core.fingerprint

    def select(self, ids: Sequence[int]) -> "Dataset":
        """The samples with these ids, in this order. An id may occur several times. A NumPy array of bool selects the samples
        at which it is True.

        Raises OptionError if an id is negative or too large."""
        if getattr(ids, "dtype", None) == bool and len(ids) != len(self):
            raise OptionError(f"select: the mask has {len(ids)} values for {len(self)} samples")
        chosen = packed("Q", "select", ids)
        if len(chosen) == 0:
            raise OptionError("select: no sample is selected")
        with refusing:
            return Dataset(self._core.select(chosen))

    def split(self, train: float = 0.9, seed: int = 0, stratified: bool = False) -> Tuple["Dataset", "Dataset"]:
        """(train, test): two views that have no sample in common and hold all together.

        train       share of the first one, above 0 and below 1
        seed        another one chooses other samples
        stratified  each class has its share on both sides; needs class labels
        """
        if not isinstance(train, (int, float)):
            wrong_type("split: train", train, "a share above 0 and below 1")
        if not 0.0 < train < 1.0:
            raise OptionError(f"split: train is {train}: a share above 0 and below 1 is expected")
        with refusing:
            sides = [self._core.split(1.0 - train, seed, side, stratified) for side in ("train", "test")]
        return Dataset(sides[0]), Dataset(sides[1])

    def balanced(self) -> "Dataset":
        """The same samples; a DataLoader that shuffles draws them with replacement such that all classes come equally often.
        Needs class labels. Weights of your own: DataLoader(weights=...)."""
        with refusing:
            return Dataset(self._core.balance())

    def __add__(self, other: "Dataset") -> "Dataset":
        if not isinstance(other, Dataset):
            return NotImplemented
        return concat(self, other)

    def __reduce__(self) -> Any:
        raise TypeError("a stoker.Dataset cannot be pickled: it owns open files and memory. Open it in the other process")

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}: {field.dtype}{list(field.shape)}" for name, field in self.fields.items())
        return f"<stoker.Dataset {self.format}: {len(self)} samples of {fields}>"


class Storage(Protocol):
    """Where the names in a spec are, if they are no local files: any object with these methods. Several threads call them at once. An
    OSError is reported by its errno; ESTALE says that an object has another version than when it was opened, which ends the run."""

    def look(self, name: str) -> Optional[Tuple[Optional[int], int]]:
        """Size and version of a file, (None, 0) for a folder, None if nothing has that name. The version is a number below 2^64 that
        differs in every version of the object, such as a hash of its ETag; 0 = not known."""

    def list(self, prefix: str) -> Iterable[Tuple[str, Optional[int], int]]:
        """Name, size and version of each file whose name begins with `prefix` and has no "/" behind it; (name, None, 0) of each folder.
        Names begin behind the last "/" of the prefix."""

    def read(self, name: str, version: int, offset: int, bytes: int) -> Any:
        """Up to `bytes` bytes at `offset`, as bytes or what memoryview() takes; none at the end of the object."""


def open(
    spec: Union[str, "os.PathLike[str]"],
    split: Optional[str] = None,
    max_bytes: Optional[int] = None,
    storage: Optional[Storage] = None,
    cache_dir: Optional[Union[str, "os.PathLike[str]"]] = None,
    cache_dir_bytes: Optional[int] = None,
) -> Dataset:
    """Open the data set that `spec` names: "mnist:DIR", "folder:DIR", "tar:DIR/{000..099}.tar", "shards:DIR", "npy:X.npy,Y.npy",
    "csv:FILE?label=COLUMN", ... or a path, whose format is recognized. docs/formats/README.md of the project documents each.

    split            "train", "test", ...; None: the format's first
    max_bytes        largest unpacked file that is kept in memory; None: 16 GiB
    storage          what the names in `spec` are in; None: they are paths of local files
    cache_dir        a local folder that keeps what is read of a storage, for later epochs, runs and processes; None: nothing is kept
    cache_dir_bytes  most bytes in it, >= 1; None: what is there, and nine tenths of the free space

    Raises FileNotFoundError and other subclasses of StokerError; `path` and `stage` say where it failed.
    """
    folder = None if cache_dir is None else os.fspath(cache_dir)
    with refusing:
        return Dataset(_core.Dataset.open(os.fspath(spec), split, max_bytes, storage, folder, cache_dir_bytes))


def dataset_of(value: Any) -> Dataset:
    """A data set, or the one that a name means."""
    if isinstance(value, Dataset):
        return value
    if isinstance(value, (str, os.PathLike)):
        return open(value)
    wrong_type("a data set", value, "a stoker.Dataset, or a name as for stoker.open(),")


def concat(*datasets: Union[Dataset, str, "os.PathLike[str]"]) -> Dataset:
    """The samples of all, one data set after the other: data sets, or names as for open(). All must have the same fields. `a + b` is
    concat(a, b)."""
    if not datasets:
        raise OptionError("concat: at least one data set is expected")
    return Dataset(_core.Dataset.concat([dataset_of(dataset)._core for dataset in datasets]))


def from_arrays(
    *arrays: Any,
    classes: Optional[Sequence[str]] = None,
    kinds: Optional[Mapping[str, str]] = None,
    fingerprint: int = 0,
    **named: Any,
) -> Dataset:
    """A data set of arrays in memory, without a copy of those that are dense. Axis 0 of each counts the samples.

        from_arrays(x, y)                             fields "image" (or "row") and "label"
        from_arrays(images=x, masks=m, labels=y)      fields by name
        from_arrays(tokens=Ragged(values, offsets))   rows of different lengths

    arrays       one or two: samples, labels. NumPy arrays, torch tensors, or what numpy.asarray() takes
    classes      names of the label's classes
    kinds        by field: "array", "image", "mask" (classes per pixel), "bytes". Default: the first field, and those whose
                 name begins with "image", are images if they are uint8 of [height, width] or [height, width, 1..4]; those
                 whose name begins with "mask" are masks if they are integers of these shapes
    fingerprint  a number that differs in every version of the data: a saved state is refused if it does
    named        fields by name; "images", "rows" and "labels" are stored as "image", "row" and "label"

    A label of integers becomes int64. The arrays must not change while the data set is used; it keeps them alive.
    Raises OptionError for arrays of different length, or of elements that are no numbers.
    """
    if len(arrays) > 2 or (arrays and named):
        raise OptionError("from_arrays takes (samples, labels), or arrays by name: from_arrays(images=x, masks=m, labels=y)")
    fields = {SINGULARS.get(name, name): value for name, value in named.items()}
    if arrays:
        fields = dict(zip(("", "label"), arrays))
    if not fields:
        raise OptionError("from_arrays: at least one array is expected")
    stray = set(kinds or {}) - {SINGULARS.get(name, name) for name in fields} - set(named)
    if stray:
        raise OptionError(f"kinds names {', '.join(sorted(stray))}: there is no such array")
    asked = {SINGULARS.get(name, name): kind for name, kind in (kinds or {}).items()}
    made = [array_field(name, value, asked.get(name), first, classes) for first, (name, value) in _numbered(fields)]
    counts = {field[0]: count for field, count in made}
    if len(set(counts.values())) > 1:
        lengths = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise OptionError(f"the arrays differ in their number of samples: {lengths}")
    with refusing:
        return Dataset(_core.Dataset.arrays([field for field, _ in made], made[0][1], fingerprint))


def _numbered(fields: Dict[str, Any]) -> Iterator[Tuple[bool, Tuple[str, Any]]]:
    return ((index == 0, item) for index, item in enumerate(fields.items()))


def array_field(
    name: str, value: Any, kind: Optional[str], first: bool, classes: Optional[Sequence[str]]
) -> Tuple[Any, int]:
    """A field as the extension takes it, and its number of samples."""
    if isinstance(value, Ragged) or (is_torch(value) and value.is_nested):
        return _ragged_array(name, value, kind)
    memory = memory_of(name or "the first array", value)
    if not memory.shape:
        raise OptionError(f"{name or 'the first array'} is a single number: axis 0 counts the samples")
    shape = shape_of_rows(memory.shape)
    kind = kind or _kind(name, memory.dtype, shape, first)
    if kind in ("image", "mask") and len(shape) == 2:
        shape += (1,)
    name = name or ("image" if kind == "image" else "row")
    class_count = _class_count(memory, shape, classes) if name == "label" else 0
    names = list(classes) if name == "label" and classes is not None else None
    field = (name, kind, memory.dtype, shape, memory.address, memory.owner, 0, class_count, names)
    return field, memory.shape[0]


def _ragged_array(name: str, value: Any, kind: Optional[str]) -> Tuple[Any, int]:
    if is_torch(value):
        value = Ragged(value.values(), value.offsets())
    name = name or "row"
    values, offsets = memory_of(name, value.values), memory_of(f"{name}: offsets", value.offsets)
    if offsets.dtype != "int64":
        offsets = memory_of(f"{name}: offsets", _as_int64(name, value.offsets))
    if len(offsets.shape) != 1 or offsets.shape[0] < 2 or not values.shape:
        raise OptionError(f"{name}: offsets need one axis, with one number more than there are samples")
    shape = (0,) + shape_of_rows(values.shape)
    keep = (values.owner, offsets.owner)
    return (name, kind or "array", values.dtype, shape, values.address, keep, offsets.address, 0, None), offsets.shape[0] - 1


def _as_int64(name: str, offsets: Any) -> Any:
    from array import array

    try:
        return array("q", offsets.tolist() if hasattr(offsets, "tolist") else offsets)
    except (TypeError, ValueError):
        raise OptionError(f"{name}: offsets must be integers") from None


def _kind(name: str, dtype: str, shape: Tuple[int, ...], first: bool) -> str:
    """By the rules of the format `npy:`."""
    pixels = len(shape) == 2 or (len(shape) == 3 and 1 <= shape[2] <= 4)
    if pixels and dtype == "uint8" and (first or name.startswith("image")):
        return "image"
    if pixels and name.startswith("mask") and dtype in ("uint8", "int8", "int16", "uint16", "int32", "int64"):
        return "mask"
    return "array"


def _class_count(memory: Any, shape: Tuple[int, ...], classes: Optional[Sequence[str]]) -> int:
    if classes is not None:
        return len(classes)
    if shape or "int" not in memory.dtype:
        return 0
    most = highest(memory.owner)
    return most + 1 if 0 <= most < _CLASSES_MAX else 0
