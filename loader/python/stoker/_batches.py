"""Batches: named tuples of the data set's fields.

    images, labels = batch          unpacks, like the tuples of torch.utils.data.DataLoader
    batch.images, batch.ids         reads better

A field's name becomes an identifier: "image", "row" and "label" in the plural, "lambda" with an underscore behind it,
"seg.png" with underscores for what may not be in a name.
"""

from __future__ import annotations

import functools
import keyword
import re
from collections import namedtuple
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Type

PLURALS: Dict[str, str] = {"image": "images", "row": "rows", "label": "labels", "label_b": "labels_b"}
SINGULARS: Dict[str, str] = {plural: name for name, plural in PLURALS.items()}

# What a batch has beside its fields, and what every tuple has.
_TAKEN = {"ids", "epoch", "batch_index", "padded", "count", "index"}


def identifier(name: str) -> str:
    """The name of a field as an attribute, before names that several fields would share are numbered."""
    made = PLURALS.get(name) or re.sub(r"\W", "_", name, flags=re.ASCII)
    made = made.lstrip("_") or "field"  # a named tuple has no names that start with an underscore
    if made[0].isdigit():
        made = "field_" + made
    if keyword.iskeyword(made) or made in _TAKEN:
        made += "_"
    return made


def identifiers(names: Iterable[str]) -> Tuple[str, ...]:
    """One attribute per field; of fields that would share one the later ones get a number."""
    made: List[str] = []
    for name in names:
        first = unique = identifier(name)
        number = 2
        while unique in made:
            unique, number = f"{first}_{number}", number + 1
        made.append(unique)
    return tuple(made)


_NUMBERS_BYTES = 3 * 8  # epoch, batch_index, padded


def ids_as_view(ids: memoryview) -> memoryview:
    return ids.cast("Q")


class BatchExtras:
    """What a batch knows beside its fields. All are None in a copy that other code made field by field, such as one
    that was moved to another device.

    epoch        0, 1, ...
    batch_index  index in the epoch
    padded       rows at the end that last="even" or "pad" added, which the epoch holds at another position, too
    """

    # Set once per batch, which has no time to lose: the numbers and the ids, as uint64. None in a copy.
    _extras: Optional[bytes] = None
    _ids: Any = None  # once they were asked for
    _take_ids: Callable[[memoryview], Any] = staticmethod(ids_as_view)

    def _number(self, place: int) -> Optional[int]:
        return None if self._extras is None else memoryview(self._extras).cast("Q")[place]

    @property
    def epoch(self) -> Optional[int]:
        return self._number(0)

    @property
    def batch_index(self) -> Optional[int]:
        return self._number(1)

    @property
    def padded(self) -> Optional[int]:
        return self._number(2)

    @property
    def ids(self) -> Any:
        """Sample ids, one per row, in host memory: an int64 tensor of torch; of NumPy and JAX a NumPy array of uint64; else a
        memoryview."""
        if self._ids is None and self._extras is not None:
            self._ids = self._take_ids(memoryview(self._extras)[_NUMBERS_BYTES:])
        return self._ids

    def __reduce__(self) -> Tuple[Any, ...]:
        batch: Any = self
        return _rebuild, (batch._fields, tuple(batch), self._take_ids)


@functools.lru_cache(maxsize=None)
def _type_of(names: Tuple[str, ...], take_ids: Callable[[memoryview], Any]) -> Type[Any]:
    fields = namedtuple("Batch", names)  # type: ignore[misc]
    doc = f"Batch({', '.join(names)}): see stoker._batches for what it has beside these."
    members = {"__doc__": doc, "__module__": __name__, "_take_ids": staticmethod(take_ids)}
    return type("Batch", (BatchExtras, fields), members)


def batch_type(names: Iterable[str], take_ids: Callable[[memoryview], Any] = ids_as_view) -> Type[Any]:
    """The class of the batches of a loader whose data set has these fields. Instances take values in this order.

    take_ids: sample ids, uint64 values as bytes -> array in host memory; a function of a module, for pickle."""
    return _type_of(identifiers(names), take_ids)


def _rebuild(names: Tuple[str, ...], values: Tuple[Any, ...], take_ids: Callable[[memoryview], Any]) -> Any:
    """A batch that was pickled: its fields only."""
    return _type_of(names, take_ids)(*values)
