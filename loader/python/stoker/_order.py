"""An order of the user's own: a function that returns the sample ids of an epoch."""

from __future__ import annotations

import threading
import zlib
from typing import Any, Callable, Dict, Sequence

from ._arrays import packed
from ._errors import OptionError

# Workers may be several short epochs ahead of the consumer, or one long one.
_EPOCHS_KEPT = 2
_IDS_KEPT = 1 << 20


class EpochOrder:
    """Asks order(epoch) once per epoch, and answers for the workers, which ask for positions.

    Any thread may call it; the lock guards `_epochs`, the ids of the last epochs."""

    def __init__(self, order: Callable[[int], Sequence[int]]) -> None:
        self._order = order
        self._lock = threading.Lock()
        self._epochs: Dict[int, memoryview] = {}
        first = self._ids(0)
        self.length = len(first)
        # Part of a saved state: another function is refused, unless its first epoch is the same.
        self.fingerprint = zlib.crc32(first) or 1
        if self.length == 0:
            raise OptionError("order(0) returned no ids")

    def check(self, samples: int) -> None:
        """Refuse ids of the first epoch that the data set lacks; those of later ones end the run."""
        most = max(self._ids(0))
        if most >= samples:
            raise OptionError(f"order(0) has the id {most}, but the data set has {samples} samples")

    def _ids(self, epoch: int) -> memoryview:
        with self._lock:
            if epoch not in self._epochs:
                self._epochs[epoch] = memoryview(packed("Q", f"order({epoch})", self._order(epoch))).cast("B").cast("Q")
            ids = self._epochs[epoch]
            while len(self._epochs) > _EPOCHS_KEPT and len(self._epochs) * len(ids) > _IDS_KEPT:
                del self._epochs[min(self._epochs)]
            return ids

    def __call__(self, epoch: int, positions: range) -> Any:
        """The ids at these positions of the epoch."""
        ids = self._ids(epoch)
        if len(ids) != self.length:
            raise OptionError(f"order({epoch}) returned {len(ids)} ids, order(0) {self.length}: all epochs have one length")
        return ids[positions.start : positions.stop : positions.step].tobytes()
