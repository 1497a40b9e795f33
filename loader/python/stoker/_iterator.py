"""One epoch of a DataLoader: what iter() returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Optional

from . import _core
from ._errors import LoaderError

if TYPE_CHECKING:
    from ._loader import DataLoader


class EpochIterator:
    """The batches of one epoch, or of its rest after load_state_dict().

    Only the newest iterator of a DataLoader delivers: a second iter() ends the first one. Use it from one thread at a time.
    An interrupted or timed-out next() may be called again; nothing is lost.
    """

    def __init__(self, loader: "DataLoader", turn: int, empty: bool) -> None:
        self._loader = loader
        self._turn = turn
        self._done = empty
        self._index: Optional[int] = None  # of the next batch; None: unknown until the first one

    def __iter__(self) -> "EpochIterator":
        return self

    def __len__(self) -> int:
        """Batches of the epoch."""
        return len(self._loader)

    def __next__(self) -> Any:
        loader = self._loader
        if self._done:
            raise StopIteration
        if self._turn != loader._turn:
            raise LoaderError(
                "this iterator was ended by a newer one, or by load_state_dict(): one DataLoader runs one epoch at a time; make "
                "a second DataLoader to iterate twice at once",
                code="STOKER_EINVAL",
            )
        index = self._index
        if index is None or loader._slow or index == loader._pad_index:
            return self._next_with_place(loader)
        output = loader._output
        stream = output.stream
        parts = loader._core.next_capsules(
            loader._timeout_ms, stream() if stream is not None else None, output.versioned
        )
        if isinstance(parts, int):
            self._end(parts)
        take = output.take
        capsules, ids = parts
        if loader._ragged:
            values = loader._ragged_values(capsules)
        else:
            values = [take(capsule) for capsule in capsules]  # type: ignore[misc]
        return self._deliver(loader, values, ids, index, 0)

    def _next_with_place(self, loader: "DataLoader") -> Any:
        """As above through a batch object, which knows its place in the epoch and gives tensors."""
        batch = loader._core.next(loader._timeout_ms)
        if isinstance(batch, int):
            self._end(batch)
        output = loader._output
        # The arrays hold the memory themselves; the batch is released even if one cannot be made. Objects that are not arrays
        # yet need the batch, which is released with the last of them.
        try:
            if output.take is not None:
                stream = output.stream() if output.stream is not None else None
                values = loader._ragged_values(batch.capsules(stream, output.versioned))
            else:
                values = self._tensors(loader, batch)
            ids = batch.ids
            if self._index is None or loader._pad_index >= 0:
                loader._epoch, index, padded = batch.epoch, batch.index, batch.padded
            else:
                index, padded = self._index, 0
        finally:
            if not output.keeps_batch:
                batch.release()
        return self._deliver(loader, values, ids, index, padded)

    @staticmethod
    def _tensors(loader: "DataLoader", batch: _core.Batch) -> Any:
        make: Any = loader._output.from_tensor
        values = []
        for part, (pads, varies) in enumerate(loader._forms):
            made = make(batch.tensor(part))
            if varies:
                made = loader._ragged_value(made, make(batch.tensor(_core.PART_OFFSETS + part)), pads)
            values.append(made)
        return values

    def _deliver(self, loader: "DataLoader", values: Any, ids: Any, index: int, padded: int) -> Any:
        self._index = loader._delivered = index + 1
        batch = loader._batch(*values)
        batch._extras = (loader._epoch, index, padded, ids, loader._take_ids)
        change = loader._batch_transform
        return batch if change is None else change(batch)

    def _end(self, reason: int) -> NoReturn:
        if reason == _core.INTERRUPTED:
            raise LoaderError("the loader was interrupted; nothing is lost", code="STOKER_EINVAL")
        self._done = True
        self._loader._epoch_is_over()
        raise StopIteration
