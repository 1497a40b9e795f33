"""DataLoader: batches of a data set, prepared ahead by C threads."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Literal, Mapping, Optional, Sequence, Tuple, Union

from . import _core, _options, _ranks
from ._batches import batch_type, identifiers
from ._datasets import Dataset, open
from ._errors import ForkedLoader, LoaderError, OptionError, StateError, StokerError, make, refusing, wrong_type
from ._iterator import EpochIterator
from ._options import FieldOptions
from ._outputs import Padded, output_of
from ._python_dataset import from_python
from ._samples import Field, field_of
from ._stats import Stats
from ._arrays import Ragged, packed
from ._transform import Transform

_STATE_VERSION = 1
Auto = Literal["auto"]


class DataLoader:
    """Batches of a data set, prepared ahead by threads in C. Argument names are those of torch.utils.data.DataLoader.

        train = stoker.DataLoader("folder:photos/train", batch_size=256, shuffle=True, output="torch",
                                  transform=stoker.Transform(random_resized_crop=224, flip=True))
        for epoch in range(90):
            for images, labels in train:
                ...

    Each iter() is one epoch. Leaving a loop early ends its epoch: the next iter() begins the next one, as with torch (the
    workers are then restarted; what was cached stays). A batch that is kept keeps its memory; the loader takes other memory
    instead. Use a loader from one thread at a time; with fork() it stays with the parent. It cannot be pickled.

    Arguments, beside those that torch's has:

    dataset          a name as for stoker.open(), a stoker.Dataset, or any object with __getitem__ and __len__, whose samples
                     are made by Python code in threads that share the GIL (see stoker.from_python)
    batch_size       1..65536 samples per batch and rank; default 1. A shorter epoch is one short batch, with last="pad" a full
                     one; with drop_last it is an OptionError
    shuffle          a new order in each epoch, a function of `seed` and the epoch
    num_workers      threads, 0..256; 0: all work is done in next(). "auto" (default) tunes the number while running
    pin_memory       page-lock the memory of batches for a GPU. "auto" (default): if `device` is one
    drop_last        leave out an incomplete last batch. `last` says more: "even" (default): all ranks get as many samples, fewer than a
                     full batch; the first samples of the epoch fill it up, fewer than there are ranks, as with torch's
                     DistributedSampler. "short": each sample once, so a rank may get fewer, even 0. "drop". "pad": a full batch.
                     batch.padded counts the rows that were added, which are the last ones: leave them out of a sum over ranks
    timeout          seconds that next() waits at most, then BatchTimeout; 0 (default): no limit
    prefetch_factor  batches ahead in all, not per worker: 2..64, or "auto" (default)
    seed             of the order and of all random transforms; default 0, or that of `generator`. torch.manual_seed() does not
                     change it: pass a seed for another order
    transform        a stoker.Transform: crop, flip, colors, normalize, in C or on the GPU
    batch_transform  a function of your own: batch -> anything, called in the consumer's thread for each finished batch
    dtype            element type of field 0: "float32", "float16", "bfloat16", a wider integer type, or one of torch or NumPy.
                     Default: as stored, or float32 with Transform(normalize=...)
    layout           axis order of images: "NHWC" (default) or "NCHW"
    scale            factor for field 0 as a float type; default 1/255 for uint8 data, else 1
    output           "torch" (default), "numpy", "jax", or "dlpack": objects with __dlpack__, which every framework takes
    ragged           rows of different lengths: "nested" (default for torch): nested tensors of layout jagged; "offsets" (all
                     others): Ragged(values, offsets). Padded fields are Padded(values, lengths), but Ragged for "dlpack"
    fields           what to do with single fields: {"tokens": stoker.FieldOptions(dtype="int64", pad="max")}
    device           "cpu" (default), "cuda", "cuda:1", or "auto": a GPU if there is one. On a GPU batches are copied ahead, and
                     torch's current stream waits for the copy
    rank, world_size this process's share of every epoch. "auto" (default): torch.distributed if it is initialized, else
                     RANK and WORLD_SIZE of torchrun, or the variables of Open MPI, MPICH or srun
    weights          one number per sample: samples are drawn with replacement, by weight; `length` of them an epoch
    order            a function: order(epoch) returns the sample ids of an epoch; all epochs have one length. Or "uniform": samples
                     are drawn with replacement, all alike; `length` of them an epoch, default as many as there are. Or "window":
                     shuffled within windows of blocks, as shuffle=True does for data sets that declare blocks; window_blocks (4)
                     of them in each of `lanes` (64). block_samples: samples per block of data sets that declare none
    batch_values_max most values of a batch, for example tokens, of rows of different lengths: as padded, if that field is. Batches then
                     have as many rows as fit, up to batch_size; of padded rows, those of similar length come together. len() is
                     unknown. batch_window: positions that are planned together, 1..2^20; default 8192. stats() has the share of
                     padding: 1 - length_values / length_room
    on_bad_sample    "fail" (default), "skip": the batch is smaller, "substitute": another sample takes the place
    max_bad_samples  more end the run with TooManyBadSamples; None (default): no limit
    cache            "auto" (default), "none", "encoded", "decoded", "device"; share_cache: one cache for all processes of a job
                     on this node
    memory_bytes     limit on the memory of batches, cache and kept batches together; "auto" (default)
    mixup, cutmix    alpha of the Beta distribution, 0.01..100; 0 (default): off. mix_probability: that a batch is mixed; if
                     both are set, cutmix_share: the share of cutmix. Batches get the fields labels_b, partner and lambda_
    decode           where JPEG files are decoded: "cpu" (default), "device", "auto"
    split, ranks' deal, trace_events, on_log: see stoker.open(), <stoker/loader.h>, trace(), and the logger "stoker"
    options          any other member of stoker_loader_options by name, for example {"read_depth": 64}

    Of torch's arguments persistent_workers, multiprocessing_context, worker_init_fn, generator, pin_memory_device and in_order
    are accepted (threads always persist, batches always come in order); sampler, batch_sampler and collate_fn are refused with
    what to use instead.

    Raises OptionError (a ValueError) that names the argument, and what stoker.open() raises. An argument of a wrong type is an
    OptionTypeError, which is also a TypeError.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        num_workers: Union[int, Auto] = "auto",
        pin_memory: Union[bool, Auto] = "auto",
        drop_last: bool = False,
        timeout: float = 0,
        prefetch_factor: Union[int, Auto, None] = "auto",
        seed: Optional[int] = None,
        split: Optional[str] = None,
        transform: Optional[Transform] = None,
        batch_transform: Optional[Callable[[Any], Any]] = None,
        dtype: Any = None,
        layout: Literal["NHWC", "NCHW"] = "NHWC",
        scale: Optional[float] = None,
        output: Literal["torch", "numpy", "jax", "dlpack"] = "torch",
        ragged: Optional[Literal["nested", "offsets"]] = None,
        fields: Optional[Mapping[str, FieldOptions]] = None,
        device: Any = "cpu",
        rank: Union[int, Auto] = "auto",
        world_size: Union[int, Auto] = "auto",
        last: Optional[Literal["even", "short", "drop", "pad"]] = None,
        weights: Optional[Sequence[float]] = None,
        order: Union[Callable[[int], Sequence[int]], Literal["uniform", "window"], None] = None,
        length: Optional[int] = None,
        window_blocks: Optional[int] = None,
        lanes: Optional[int] = None,
        block_samples: Optional[int] = None,
        batch_values_max: Optional[int] = None,
        batch_window: Optional[int] = None,
        on_bad_sample: Literal["fail", "skip", "substitute"] = "fail",
        max_bad_samples: Optional[int] = None,
        cache: Literal["auto", "none", "encoded", "decoded", "device"] = "auto",
        memory_bytes: Union[int, Auto] = "auto",
        share_cache: Union[bool, Auto] = "auto",
        mixup: float = 0.0,
        cutmix: float = 0.0,
        mix_probability: float = 1.0,
        cutmix_share: float = 0.5,
        decode: Literal["cpu", "device", "auto"] = "cpu",
        deal: Literal["positions", "batches"] = "positions",
        trace_events: int = 0,
        on_log: Optional[Callable[[str, str], Any]] = None,
        options: Optional[Mapping[str, Any]] = None,
        generator: Any = None,
        persistent_workers: bool = True,
        multiprocessing_context: Any = None,
        worker_init_fn: Optional[Callable[[int], Any]] = None,
        pin_memory_device: str = "",
        in_order: bool = True,
        sampler: None = None,
        batch_sampler: None = None,
        collate_fn: None = None,
    ) -> None:
        _options.refuse(sampler=sampler, batch_sampler=batch_sampler, collate_fn=collate_fn, worker_init_fn=worker_init_fn)
        if batch_transform is not None and not callable(batch_transform):
            wrong_type("batch_transform", batch_transform, "a function of a finished batch")
        kind, index = _options.device_of(device)
        place, size = _ranks.resolve(rank, world_size)
        batch_size = _options.number_of("batch_size", batch_size, 1, 65536)
        chosen: Dict[str, Any] = {
            "batch_size": batch_size,
            "shuffle": bool(shuffle),
            "num_workers": _options.number_of("num_workers", num_workers, 0, 256, automatic=True),
            "last": _options.last_of(drop_last, last),
            "prefetch_batches": _options.prefetch_of(prefetch_factor),
            "seed": _options.seed_of(seed, generator),
            "pin_memory": _options.pinning(pin_memory, kind),
            "device": kind,
            "device_index": index,
            "rank": place,
            "world_size": size,
            "layout": layout,
            "scale": "auto" if scale is None else scale,
            "fields": _options.fields_of(fields),
            "order": _options.order_of(weights, order, length, shuffle, window_blocks=window_blocks, lanes=lanes, block_samples=block_samples),
            "batch_values_max": batch_values_max,
            "batch_window": batch_window,
            "blend": _options.mixing_of(mixup, cutmix, mix_probability, cutmix_share),
            "on_bad_sample": on_bad_sample,
            "max_bad_samples": max_bad_samples,
            "cache": cache,
            "memory_bytes": memory_bytes,
            "share_cache": share_cache,
            "decode": decode,
            "deal": deal,
            "trace_events": trace_events,
            "on_log": on_log or _options.log,
        }
        chosen.update(_options.transform_members(transform, dtype, scale))
        chosen.update(options or {})
        self._options = {name: value for name, value in chosen.items() if value is not None and value != {}}
        self._batch_transform = batch_transform
        self._timeout_ms = _options.timeout_ms_of(timeout)

        self.dataset: Dataset = _dataset_of(dataset, split)
        if "ids" in self._options.get("order", {}):
            self._options["order"]["ids"].check(len(self.dataset))
        # The names and values of torch's DataLoader, which other libraries look at.
        self.batch_size = batch_size
        self.num_workers = num_workers
        self.drop_last = self._options["last"] == "drop"
        self.pin_memory = self._options["pin_memory"]
        self.prefetch_factor = prefetch_factor
        self.timeout = timeout
        self.sampler = None
        self.batch_sampler = None
        self.collate_fn = None

        self._trace: List[bytes] = []
        self._trace_dropped = 0
        self._pid = os.getpid()
        self._epoch = 0  # that runs, or that the next iter() begins
        self._delivered_before = 0  # by a loader that _restart() made again
        self._wanted: Optional[int] = None  # of set_epoch()
        self._at_start = True  # of an epoch; False: within the one that load_state_dict() continues
        self._ended = False  # by load_state_dict(): the epoch had ended, but its iterator had not noticed yet
        self._turn = 0
        with refusing:
            self._core = _core.Loader(self.dataset._core, self._options)  # type: ignore[arg-type]
        try:
            self._plan_output(output, ragged)
        except BaseException:
            self._core.close()
            raise

    def _plan_output(self, output: str, ragged: Optional[str]) -> None:
        """What next() needs to know of the batches' fields."""
        kind, _, index = self._core.stats()["device"].partition(":")
        if self._options["device"] == "cuda_host":
            kind = "cuda_host"
        self._output = output_of(output, kind, int(index or 0), ragged)
        self._batch = batch_type(self._core.fields, self._output.take_ids)
        self._length = self._core.batches_per_epoch
        if output == "numpy" and any(field.dtype == "bfloat16" for field in self.element_spec.values()):
            raise OptionError('NumPy has no bfloat16: use dtype="float32", or output="torch" or "jax"')
        infos = {info["name"]: info for info in self.dataset._core.fields}
        asked = self._options.get("fields", {})
        # Per field: is it padded, does it vary in length?
        self._forms: List[Tuple[bool, bool]] = [
            ("form" in asked.get(name, {}), name in infos and infos[name]["varies"]) for name in self._core.fields
        ]
        self._ragged = any(varies for _, varies in self._forms)
        # Batches that the extension makes without Python code: all but arrays that are made of objects.
        self._runs = self._output.take is not None or (self._output.keeps_batch and not self._ragged)

    def _ragged_values(self, capsules: Tuple[Any, ...]) -> List[Any]:
        """Arrays of the fields' capsules, of which those of ragged fields are (values, offsets)."""
        take: Any = self._output.take
        values = []
        for part, (pads, varies) in zip(capsules, self._forms):
            values.append(self._ragged_value(take(part[0]), take(part[1]), pads) if varies else take(part))
        return values

    def _ragged_value(self, values: Any, offsets: Any, pads: bool) -> Any:
        if pads and self._output.name != "dlpack":
            return Padded(values, offsets[1:] - offsets[:-1])
        nested = self._output.nested
        return Ragged(values, offsets) if nested is None else nested(values, offsets)

    # ---- epochs ----

    def __len__(self) -> int:
        """Batches per epoch and rank; after load_state_dict() of the entire epoch. TypeError with batch_values_max: epochs differ."""
        if self._length == 0:
            raise TypeError("the number of batches is unknown: with batch_values_max it differs from epoch to epoch")
        return self._length

    def __iter__(self) -> EpochIterator:
        """Begin the next epoch, or continue one after load_state_dict(). Ends the iterator before."""
        self._check_usable()
        empty, self._ended = self._ended, False
        if self._delivered > 0:
            self._leave_epoch()
        wanted, self._wanted = self._wanted, None
        if wanted is not None and wanted != self._epoch:
            self._restart(_core.seek(self._core.state(), wanted, 0))
            self._epoch, empty, self._at_start = wanted, False, True
        if empty:
            self._epoch += 1
        self._collect_trace()
        self._turn += 1
        self._core.halt()
        return EpochIterator(self, self._turn, empty)

    @property
    def _delivered(self) -> int:
        """Index behind the epoch's last delivered batch; 0: nothing of it yet."""
        return self._core.delivered or self._delivered_before

    def _leave_epoch(self) -> None:
        """The iterator before stopped within the epoch, or behind its last batch without looking for another."""
        if self._delivered == self._length:
            if self._core.next(self._timeout_ms) != _core.EPOCH_END:
                raise LoaderError("the epoch has more batches than expected", code="STOKER_EINVAL")
        else:
            self._restart(_core.seek(self._core.state(), self._epoch + 1, 0))
        self._epoch_is_over()

    def _epoch_is_over(self) -> None:
        self._epoch += 1
        self._delivered_before = 0
        self._at_start = True

    def set_epoch(self, epoch: int) -> None:
        """Let the next iter() be this epoch. Not needed: epochs count by themselves. If it is the epoch that would come
        anyway, or that load_state_dict() continues, nothing changes."""
        if isinstance(epoch, bool) or not isinstance(epoch, int) or not 0 <= epoch < 2**63:
            raise OptionError(f"epoch is {epoch!r}: a number >= 0 is expected")
        self._wanted = epoch

    def _restart(self, resume: bytes) -> None:
        """Another loader of the same options, at another place, with what the one before has cached. On failure that is back."""
        self._collect_trace()
        old, before, delivered = self._core, self._core.state(), self._delivered
        try:
            self._core = self._loader_at(resume, old)
        except Exception:
            if old.closed:
                self._core = self._loader_at(before)
                self._delivered_before = delivered
            raise

    def _loader_at(self, resume: bytes, *previous: _core.Loader) -> _core.Loader:
        return _core.Loader(self.dataset._core, dict(self._options, resume=resume), *previous)  # type: ignore[arg-type]

    # ---- state ----

    def state_dict(self) -> Dict[str, Any]:
        """Where the loader is: after the last batch that its iterator returned. A few numbers and 64 bytes as text, for
        torch.save(), JSON or any checkpoint; the same on every rank. After change_mix() more bytes, which hold the changes."""
        self._check_usable()
        state, epoch, ended = self._core.state(), self._epoch, self._ended
        if self._delivered == 0:
            if self._wanted is not None and self._wanted != epoch:
                epoch, ended = self._wanted, False
            if not ended and (epoch != self._epoch or self._at_start):
                state = _core.seek(state, epoch, 0)
        elif self._delivered == self._length:
            ended = True
            state = _core.seek(state, epoch + 1, 0)
        return {"version": _STATE_VERSION, "state": state.hex(), "epoch": epoch, "ended": ended}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue where state_dict() was taken: the next iter() delivers the rest of that epoch. Batch size, world size and
        num_workers may differ: every sample of the epoch still comes once.

        Taken behind an epoch's last batch, but before the iterator ended, the rest is empty, as with torchdata's
        StatefulDataLoader: the next iter() delivers nothing, and the one after it the next epoch. An empty dict changes nothing.

        Raises StateError if it belongs to another data set, order or version; then the loader stays where it was."""
        self._check_usable()
        if not state_dict:
            return
        state, epoch, ended = _parsed(state_dict)
        try:
            self._restart(state)
        except StokerError:
            raise
        except ValueError as error:
            raise StateError(str(error), code="STOKER_ESTATE") from None
        self._epoch, self._ended, self._at_start = epoch, ended, False
        self._wanted = None
        self._delivered_before = 0
        self._turn += 1

    # ---- mixes ----

    def mix_counts(self) -> Tuple[int, ...]:
        """How many samples of each data set of a stoker.mix() all ranks together have had since the start of the run; their sum is
        the position of the mix. OptionError if the data set is no mix."""
        self._check_usable()
        return self._core.mix_counts()

    def change_mix(self, position: int, weights: Sequence[float]) -> None:
        """Use other weights, one per data set, from a position of the mix on: a number of samples since the start of the run, over
        all epochs and ranks. All ranks must make the same change. It must lie behind the batches under way: an OptionError says
        which position is the earliest. The change is part of state_dict()."""
        self._check_usable()
        with refusing:
            self._core.change_mix(position, packed("d", "change_mix: weights", weights))

    # ---- what it is and does ----

    @property
    def element_spec(self) -> Dict[str, Field]:
        """Every field as it is delivered: name in a batch -> Field, with the batch's axes; None: an axis that differs."""
        infos = {info["name"]: info for info in self.dataset._core.fields}
        names = self._core.fields
        return {
            attribute: self._delivered_field(name, field_of(infos[name]) if name in infos else _MIXED.get(name))
            for attribute, name in zip(identifiers(names), names)
        }

    def _delivered_field(self, name: str, field: Optional[Field]) -> Field:
        if field is None:  # "label_b" is like "label"
            field = self._label()
        shape = tuple(field.shape)
        dtype = self._options.get("fields", {}).get(name, {}).get("dtype", field.dtype)
        if name == self._core.fields[0]:
            dtype = self._options.get("dtype", field.dtype)
        if field.kind in ("image", "mask"):
            shape = self._image_size(shape) + shape[2:]
        if field.kind == "image" and self._options["layout"] == "NCHW":
            shape = shape[2:] + shape[:2]
        return Field(dtype, (None,) + shape, field.kind, field.classes)

    def _label(self) -> Field:
        return field_of({info["name"]: info for info in self.dataset._core.fields}["label"])

    def _image_size(self, shape: Tuple[Optional[int], ...]) -> Tuple[Optional[int], ...]:
        steps = self._options.get("transform", {})
        for name in ("center_crop", "random_crop", "random_resized_crop", "resize"):
            if name in steps:
                return tuple(steps[name])
        return shape[:2]

    def stats(self) -> Stats:
        """Counters since the loader was made or restarted, and the verdict: what limits the rate. Any thread."""
        self._check_usable()
        core = self._core
        return Stats(core.stats(), core.snapshot())

    def bad_samples(self) -> List[StokerError]:
        """The samples that were skipped or substituted, in the order of detection; the first 1024. Any thread."""
        found: List[StokerError] = []
        while True:
            report = self._core.bad_sample(len(found))
            if report is None:
                return found
            found.append(make(**report))

    def trace(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Write what every thread did so far as JSON, which ui.perfetto.dev opens. Needs DataLoader(trace_events=65536): that
        many events per thread are kept between two calls of iter() or trace()."""
        if not self._options["trace_events"]:
            raise OptionError("trace() needs events: make the DataLoader with trace_events=65536")
        self._collect_trace()
        text = _core.trace_json([("stoker", b"".join(self._trace), self._trace_dropped)])
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)

    def _collect_trace(self) -> None:
        if not self._options["trace_events"] or self._core.closed:
            return
        capacity = 65536
        while True:
            events, _, self._trace_dropped = self._core.take_trace(capacity)
            self._trace.append(events)
            if len(events) < 40 * capacity:
                return

    def close(self) -> None:
        """Stop the threads and free their memory. Batches that are kept stay valid. A closed loader can be closed again."""
        self._core.close()

    def __enter__(self) -> "DataLoader":
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:
            raise ForkedLoader(
                "this DataLoader belongs to the parent process: make one after fork(), in the process that uses it",
                code="STOKER_EFORKED",
            )
        if self._core.closed:
            raise LoaderError("the DataLoader is closed", code="STOKER_EINVAL")

    def __reduce__(self) -> Any:
        raise TypeError(
            "a stoker.DataLoader cannot be pickled or copied: it owns threads. Make one in the other process; state_dict() "
            "says where this one is"
        )

    def __repr__(self) -> str:
        length = self._length or "?"
        return f"<stoker.DataLoader {self.dataset.format}: {length} batches of {self.batch_size}, output {self._output.name}>"


# Fields that mixup and cutmix add, beside the partner's label.
_MIXED = {"partner": Field("int64", ()), "lambda": Field("float32", ())}


def _dataset_of(dataset: Any, split: Optional[str]) -> Dataset:
    if isinstance(dataset, (str, os.PathLike)):
        return open(dataset, split)
    if split is not None:
        raise OptionError("split is for a data set that is given by name; this one is open already: use dataset.split()")
    if isinstance(dataset, Dataset):
        return dataset
    return from_python(dataset)


def _parsed(state_dict: Mapping[str, Any]) -> Tuple[bytes, int, bool]:
    """The parts of a state; StateError if it is none."""
    try:
        version, epoch, ended = state_dict["version"], state_dict["epoch"], state_dict["ended"]
        state = bytes.fromhex(state_dict["state"])
        sound = isinstance(epoch, int) and epoch >= 0 and isinstance(ended, bool)
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(f"this is no state of a stoker.DataLoader: {error!r}", code="STOKER_ESTATE") from None
    if version != _STATE_VERSION or not sound:
        raise StateError(f"the state has version {version!r}; version {_STATE_VERSION} is expected", code="STOKER_ESTATE")
    return state, epoch, ended
