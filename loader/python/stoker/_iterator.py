"""One epoch of a DataLoader: what iter() returns."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NoReturn

from . import _core
from ._errors import LoaderError

if TYPE_CHECKING:
    from ._loader import DataLoader


class EpochIterator(_core.Batches):
    """The batches of one epoch, or of its rest after load_state_dict().

    Only the newest iterator of a DataLoader delivers: a second iter() ends the first one. Use it from one thread at a time.
    An interrupted or timed-out next() may be called again; nothing is lost.
    """

    def __init__(self, loader: "DataLoader", turn: int, empty: bool) -> None:
        self._loader = loader
        self._turn = turn
        self._done = empty

    def __len__(self) -> int:
        """Batches of the epoch."""
        return len(self._loader)

    def _next(self) -> Any:
        """What next() does while C does not run: the first batch, a reason why there is none, and outputs that need Python."""
        loader = self._loader
        if self._done:
            raise StopIteration
        if self._turn != loader._turn:
            raise LoaderError(
                "this iterator was ended by a newer one, or by load_state_dict(): one DataLoader runs one epoch at a time; make "
                "a second DataLoader to iterate twice at once",
                code="STOKER_EINVAL",
            )
        batch = loader._core.next(loader._timeout_ms)
        if isinstance(batch, int):
            self._end(batch)
        loader._epoch = batch.epoch
        output = loader._output
        # The arrays hold the memory themselves; the batch is released even if one cannot be made. Objects that are not arrays
        # yet need the batch, which is released with the last of them.
        try:
            if output.take is not None:
                stream = output.stream() if output.stream is not None else None
                values = loader._ragged_values(batch.capsules(stream, output.versioned))
            else:
                values = self._tensors(loader, batch)
            extras = struct.pack("=3Q", batch.epoch, batch.index, batch.padded) + batch.ids
        finally:
            if not output.keeps_batch:
                batch.release()
        made = loader._batch(*values)
        made._extras = extras
        if loader._runs:
            make = loader._ragged_values if loader._ragged else None
            change = loader._batch_transform
            take = (output.take, make, output.stream, change, output.versioned, output.exchange)
            loader._core.run(self, loader._timeout_ms, loader._batch, *take)
        return made if loader._batch_transform is None else loader._batch_transform(made)

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

    def _end(self, reason: int) -> NoReturn:
        if reason == _core.INTERRUPTED:
            raise LoaderError("the loader was interrupted; nothing is lost", code="STOKER_EINVAL")
        self._done = True
        self._loader._epoch_is_over()
        raise StopIteration
