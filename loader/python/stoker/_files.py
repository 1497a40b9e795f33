"""Data sets of files that the program names, one list per field, with arrays beside them."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from . import _core
from ._arrays import Ragged, is_torch
from ._batches import SINGULARS
from ._datasets import Dataset, array_field
from ._errors import OptionError, refusing

_IMAGES = (".png", ".jpg", ".jpeg", ".webp")


def from_files(
    *columns: Any,
    classes: Optional[Sequence[str]] = None,
    shapes: Optional[Mapping[str, Sequence[int]]] = None,
    kinds: Optional[Mapping[str, str]] = None,
    fingerprint: int = 0,
    **named: Any,
) -> Dataset:
    """A data set of files that are named one by one, and of arrays beside them: one path, and one row of each array, per sample.

        from_files(paths)                                            field "image" (or "row", "data")
        from_files(paths, labels)                                    and "label"
        from_files(images=paths, masks=mask_paths, labels=y)         fields by name

    columns      one or two: paths, labels. A column whose items are str or os.PathLike is a list of files; any other one is an
                 array, as for from_arrays(): a list of numbers, a NumPy array, a torch tensor, a Ragged
    classes      names of the label's classes
    shapes       by field: (height, width) or (height, width, channels) of the rows of images and masks; 0: as the files have it.
                 Images of other sizes need a Transform that makes one size of them. Default: from the headers of up to 1000 files
    kinds        by array: see from_arrays()
    fingerprint  a number that differs in every version of the arrays: a saved state is refused if it does. Names and sizes of
                 files are known anyway
    named        fields by name; "images", "rows" and "labels" are stored as "image", "row" and "label". Lists of files come
                 first among the fields

    All files of a list are of one kind: images (.png, .jpg, .jpeg, .webp; masks of class numbers if the field's name begins with
    "mask" or "seg"), arrays (.npy, of one shape but for the first axis, which may vary), or bytes (anything else). Relative paths
    begin at the working directory of this call. Every file is looked at now; each read opens its file and closes it.

    Raises MissingFile and other errors of looking at a file, with its `path`; FormatError if it is no regular file; OptionError if
    columns differ in length, a list has files of several kinds, or no column is a list of files.
    """
    fields = _by_name(columns, named)
    files = {name: paths for name, paths in ((name, _paths_of(name, value)) for name, value in fields.items()) if paths is not None}
    if not files:
        raise OptionError("from_files: no column is a list of paths; from_arrays() takes arrays only")
    asked = {SINGULARS.get(name, name): kind for name, kind in (kinds or {}).items()}
    sizes = {SINGULARS.get(name, name): shape for name, shape in (shapes or {}).items()}
    _refuse_stray("shapes", sizes, files)
    _refuse_stray("kinds", asked, {name: None for name in fields if name not in files})
    arrays = [array_field(name, value, asked.get(name), False, classes) for name, value in fields.items() if name not in files]
    counts = {name: len(paths) for name, paths in files.items()}
    counts.update((field[0], count) for field, count in arrays)
    if len(set(counts.values())) > 1:
        lengths = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise OptionError(f"the columns differ in their number of samples: {lengths}")
    lists = [(name, paths, *_shape_of(name, sizes.get(name, ()))) for name, paths in files.items()]
    with refusing:
        return Dataset(_core.Dataset.files(lists, [field for field, _ in arrays], counts[lists[0][0]], fingerprint))


def _by_name(columns: Tuple[Any, ...], named: Dict[str, Any]) -> Dict[str, Any]:
    """The columns by the names of their fields."""
    if len(columns) > 2 or (columns and named):
        raise OptionError("from_files takes (paths, labels), or columns by name: from_files(images=paths, masks=mask_paths, labels=y)")
    if not columns:
        return {SINGULARS.get(name, name): value for name, value in named.items()}
    paths = _paths_of("the first column", columns[0])
    if paths is None:
        raise OptionError("from_files: the first column is no list of paths; from_arrays() takes arrays only")
    suffix = os.path.splitext(paths[0])[1].lower()
    fields: Dict[str, Any] = {"image" if suffix in _IMAGES else "row" if suffix == ".npy" else "data": paths}
    if len(columns) == 2:
        if _paths_of("the second column", columns[1]) is not None:
            raise OptionError("from_files: the second column has no numbers, which labels are. To have two lists of paths name them: "
                              "from_files(images=paths, masks=mask_paths)")
        fields["label"] = columns[1]
    return fields


def _paths_of(name: str, value: Any) -> Optional[List[str]]:
    """The paths of a column; None if it is an array."""
    if isinstance(value, (str, bytes, os.PathLike)):
        raise OptionError(f"{name} is one path, {value!r}: a list of them, one per sample, is expected")
    if isinstance(value, Ragged) or is_torch(value):
        return None
    dtype = getattr(value, "dtype", None)
    if dtype is not None and getattr(dtype, "kind", "") not in ("O", "U", "S"):
        return None
    items = value.tolist() if hasattr(value, "tolist") else list(value)
    if not items:
        raise OptionError(f"{name} is empty: at least one sample is expected")
    if not isinstance(items[0], (str, bytes, os.PathLike)):
        return None
    try:
        return [os.fsdecode(item) for item in items]
    except TypeError as error:
        raise OptionError(f"{name} has an item that is no path: {error}") from None


def _shape_of(name: str, shape: Sequence[int]) -> Tuple[int, int, int]:
    """height, width, channels."""
    if len(shape) not in (0, 2, 3):
        raise OptionError(f"shapes[{name!r}] is {shape!r}: (height, width) or (height, width, channels) is expected")
    height, width, channels = (*shape, 0, 0, 0)[:3]
    return height, width, channels


def _refuse_stray(what: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    stray = ", ".join(sorted(set(given) - set(known)))
    if stray:
        raise OptionError(f"{what} names {stray}: there is no such {'list of files' if what == 'shapes' else 'array'}")
