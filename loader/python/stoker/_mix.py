"""Mixes: several data sets in one order, each with its share of the samples."""

from __future__ import annotations

from typing import Any, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _core
from ._arrays import packed
from ._datasets import Dataset, dataset_of
from ._errors import OptionError, refusing


class Source(NamedTuple):
    """Where a sample of a mix comes from: the index of its data set, and its id there."""

    source: int
    id: int


class Mix(Dataset):
    """A mix of data sets: see mix(). Of the views of a Dataset it has none: mix views instead.

    sources   the data sets, in order
    """

    def __init__(self, core: _core.Dataset, sources: Tuple[Dataset, ...]) -> None:
        super().__init__(core)
        self.sources = sources

    def source_of(self, id: int) -> Source:
        """Where sample `id` comes from: one of batch.ids. IndexError if there is no such sample."""
        if not 0 <= int(id) < len(self):
            raise IndexError(f"sample {id} of {len(self)}")
        return Source(*self._core.mix_source(int(id)))

    def counts(self, position: int) -> Tuple[int, ...]:
        """How many samples each data set has among the first `position` of the mix, counted over all epochs and ranks from the
        start of the run; also of positions ahead, up to 2^62. Without changes that a DataLoader made while it ran."""
        return self._core.mix_counts(position)


def mix(
    sources: Union[Iterable[Tuple[float, Any]], Mapping[Dataset, float]],
    *,
    epoch_samples: Optional[int] = None,
    changes: Union[Mapping[int, Sequence[float]], Iterable[Tuple[int, Sequence[float]]], None] = None,
) -> Mix:
    """Several data sets in one order, each with its share: after every number of samples each has had its share within one sample.

        mix([(0.7, web), (0.3, books)])
        mix([(0.7, "shards:web"), (0.3, "shards:books")], epoch_samples=1_000_000, changes=[(500_000, [0.4, 0.6])])

    sources        (weight, data set) pairs, 1..4096; or {data set: weight}. A data set may be a name as for open(). Only the ratios
                   of weights count; each is 0 or at least 2^-20 of their sum. All need the same fields
    epoch_samples  samples in an epoch of the mix, 1..2^62; default: the samples of all data sets together
    changes        a curriculum: (position, weights) pairs, in ascending order, or {position: weights}. From that position on the
                   weights, one per data set, are others. Positions count samples of the mix from the start of the run, over all
                   epochs and ranks: epoch x epoch_samples + position in the epoch

    Every data set has epochs of its own: when all its samples have come it begins again, in another order if the DataLoader
    shuffles, while the others continue. The order is a function of (seed, epoch, position, changes), with the seed of the
    DataLoader: ranks divide it, and a state resumes on any number of ranks. The next epoch of the mix continues where the last one ended.

    Ids are those of concat(): batch.ids with Mix.source_of() say where a row comes from. DataLoader.mix_counts() says how often
    each data set came, and DataLoader.change_mix() changes weights while the loader runs.

    Raises OptionError (a weight, a position; fields that differ: the message names them), NotSupported (a mix of mixes, or of
    balanced data sets).
    """
    if isinstance(sources, Mapping):
        pairs: List[Tuple[Any, Any]] = [(weight, dataset) for dataset, weight in sources.items()]
    else:
        pairs = [_pair("sources: a (weight, data set)", item) for item in sources]
    if not pairs:
        raise OptionError("mix: at least one data set is expected")
    sets = tuple(dataset_of(dataset) for _, dataset in pairs)
    weights = packed("d", "mix: weights", [weight for weight, _ in pairs])
    with refusing:
        core = _core.Dataset.mix([each._core for each in sets], weights, epoch_samples, _changes(changes, len(sets)))
    return Mix(core, sets)


def weights_of(name: str, weights: Sequence[float], count: int) -> Any:
    """One number per data set, as memory."""
    made = packed("d", name, weights)
    if len(made) != count:
        raise OptionError(f"{name}: {len(made)} weights for {count} data sets")
    return made


def _changes(changes: Any, count: int) -> Optional[List[Tuple[int, Any]]]:
    if changes is None:
        return None
    items = changes.items() if isinstance(changes, Mapping) else changes
    pairs = [_pair("changes: a (position, weights)", item) for item in items]
    return [(position, weights_of(f"mix: changes at {position}", weights, count)) for position, weights in pairs]


def _pair(what: str, item: Any) -> Tuple[Any, Any]:
    try:
        first, second = item
    except (TypeError, ValueError):
        raise OptionError(f"mix: {what} pair is expected, not {item!r}") from None
    return first, second
