"""stoker._core: libstoker for Python, without a dependency on NumPy, PyTorch or JAX.

Arrays come in as addresses with an object that keeps their memory, as memoryviews or as bytes, and go out as DLPack
capsules. This module checks every value and leaves conveniences to the Python layer.

Errors   A failure of the library raises what ``stoker._errors.make(...)`` returns, called with keywords: ``code`` (int, -1 =
         STOKER_EINVAL), ``name`` ("STOKER_EINVAL"), ``message`` (str), ``stage`` ("options", "open", "locate", "read", "decode",
         "transfer", "wait", "hook"), ``path`` (str or None), ``offset`` (int or None: bytes from the start of the file),
         ``sample`` (int or None: its id) and ``os_errno`` (int, 0 = none). If the user's own code failed, its exception is
         the ``__cause__``; if that is no ``Exception`` (KeyboardInterrupt), it is raised itself. Arguments of a wrong
         type are TypeError, values and unknown option names ValueError, wrong use (closed, another thread) RuntimeError.
Threads  Everything may be called from any thread. A Loader is used by one thread at a time: a call during another
         one's call is a RuntimeError. Batches, tensors and capsules may be released and freed in any thread at any time.
Exit     When the interpreter exits, all loaders are closed before any module is torn down.
Fork     A loader stays with the parent. In the child its calls raise STOKER_EFORKED.
"""

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypedDict, Union, final

EPOCH_END: int  # 1: the epoch is over; the following call of next() starts another
FINISHED: int  # 2: options["epochs"] epochs are over
INTERRUPTED: int  # 3: interrupt() was called; nothing is lost

PART_OFFSETS: int  # 128: + the index of a field that varies: its offsets, int64, [count + 1]
PART_IDS: int  # 256: the sample ids, uint64, [count]
PART_LABELS: int  # 257: the labels, the field "label"

DTYPES: Tuple[str, ...]  # "uint8", "int8", ..., "bool": the names of element types

def version() -> str:
    """The version of the linked library, "1.0.0"."""

def features() -> Dict[str, bool]:
    """What the linked library was built with, by name: "png", "jpeg", ..."""

def ranks() -> Dict[str, Any]:
    """The place of this process among those that a launcher started: rank, world_size, local_rank, local_world_size (0 =
    unknown) and launcher ("none", "torchrun", "Open MPI", "PMI" or "Slurm")."""

def seek(state: bytes, epoch: int, position: int) -> bytes:
    """The state of the same run after ``position`` samples of ``epoch``, counted over all ranks: as many bytes as ``state``."""

def stats_between(before: bytes, after: bytes) -> Dict[str, Any]:
    """What happened between two results of Loader.snapshot(): as Loader.stats(), with counts and times as differences, and
    the verdict of that period."""

def trace_json(runs: Sequence[Tuple[str, bytes, int]]) -> str:
    """Text in Chrome's trace event format, which ui.perfetto.dev opens. Each run is (name, events, dropped), with events
    and dropped as Loader.take_trace() gives them. At most 1000 runs."""

class FieldInfo(TypedDict):
    """One field of every sample, as stored."""

    name: str
    kind: str  # "array", "image", "mask" or "bytes"
    dtype: str
    shape: Tuple[int, ...]  # of one sample; images are height, width, channels; [0] is the longest if it varies
    varies: bool  # the first axis differs in length from sample to sample
    class_count: int  # 0 = no classes, or unknown
    has_part: bool  # it is read and decoded; else it is in memory, or made
    pixels_max: int  # 0 = all images have `shape`
    sizes_differ: bool

# name, one path per sample, height, width, channels (of images and masks; 0 = as the images are)
FileList = Tuple[str, Sequence[str], int, int, int]
# name, kind ("array", "image", "mask", "bytes"), dtype, shape of one sample, address of the first sample, the object that
# keeps the memory alive
Array = Tuple[str, str, str, Sequence[int], int, Any]
# The same, then: address of count + 1 offsets (int64, 0 = none), class_count (0 = none), names of the classes (or None)
ArrayWithClasses = Tuple[str, str, str, Sequence[int], int, Any, int, int, Optional[Sequence[str]]]

@final
class Dataset:
    """A data set: immutable, shared by any number of loaders, views and threads. Its memory and files are freed with the
    last object that uses it."""

    @staticmethod
    def open(
        spec: str, split: Optional[str] = None, max_bytes: Optional[int] = None, storage: Any = None,
        cache_dir: Optional[str] = None, cache_dir_bytes: Optional[int] = None,
    ) -> "Dataset":  # fmt: skip
        """Open the data set that ``spec`` names ("mnist:DIR", "folder:DIR", a path, ...). ``split``: None = the format's first.
        ``max_bytes``: largest unpacked file that is kept in memory; None = 16 GiB. ``storage``: an object with look(), list()
        and read(), called in any thread of the library with the GIL; None = local files. ``cache_dir``: a folder that keeps
        what is read of it."""
    @staticmethod
    def arrays(fields: Sequence[Union[Array, ArrayWithClasses]], count: int, fingerprint: int = 0) -> "Dataset":
        """``count`` samples in memory, without a copy: dense arrays in host byte order. Each field's memory must stay as long
        as its ``keepalive`` object lives, which the data set holds, and must not change. Of a field with offsets, sample i
        is entries offsets[i] .. offsets[i + 1] of the first axis; shape[0] is ignored."""
    @staticmethod
    def python(
        fields: Sequence[Tuple[str, str, str, Sequence[int], bool, int]],
        count: int,
        make: Callable[[int, int], Sequence[Any]],
        fingerprint: int = 0,
    ) -> "Dataset":
        """A data set whose samples Python code makes. Each field is (name, kind, dtype, shape, varies, class_count).

        ``make(id, seed)`` returns one object per field: bytes, or anything C-contiguous that memoryview() takes (a NumPy
        array), with exactly the bytes of one sample; of a field that varies any number of whole entries up to shape[0]. It
        is copied. ``seed`` is a random number below 2^64 that depends only on the loader's seed, the epoch and the id.
        Called in the loader's workers, by several at once, each holding the GIL where there is one. What it raises makes the
        sample bad."""
    @staticmethod
    def files(
        lists: Sequence[FileList], arrays: Sequence[Union[Array, ArrayWithClasses]], count: int, fingerprint: int = 0
    ) -> "Dataset":
        """``count`` samples of 1 to 32 lists of files, and arrays beside them as for ``arrays()``. Paths are copied."""
    @staticmethod
    def mix(
        datasets: Sequence["Dataset"],
        weights: Any,
        epoch_samples: Optional[int] = None,
        changes: Optional[Sequence[Tuple[int, Any]]] = None,
    ) -> "Dataset":
        """Several data sets, each with its share of the order; ``changes`` are (position, weights). Weights are one float64
        per data set, as bytes or what memoryview() takes. ``epoch_samples``: None = the samples of all together."""
    def mix_source(self, id: int) -> Tuple[int, int]:
        """The index of the data set of a mix that a sample comes from, and its id there."""
    def mix_counts(self, position: int) -> Tuple[int, ...]:
        """Samples of each data set of a mix among the first ``position`` from the start of the run."""
    def pack(
        self,
        length: int,
        block: Optional[int] = None,
        long: Optional[str] = None,
        fields: Optional[Sequence[str]] = None,
        dtype: Optional[str] = None,
        padding: Optional[int] = None,
        ignored: Optional[int] = None,
        field: Optional[str] = None,
    ) -> "Dataset":
        """Rows of ``length`` elements, packed from whole samples. ``long``: "refuse", "split" or "crop"; ``fields``: "tokens",
        "inputs", "targets", "positions", "documents", "cu_seqlens", "max_seqlen". None = the default of stoker_packing."""
    def select(self, ids: Union[bytes, Any]) -> "Dataset":
        """The samples with these ids, in this order: C-contiguous uint64 values, as bytes or what memoryview() takes. Copied."""
    def split(self, test: float, seed: int = 0, side: str = "train", stratified: bool = False) -> "Dataset":
        """The "train" or the "test" side of a random split; ``test`` is the share of the test side, above 0 and below 1."""
    @staticmethod
    def concat(datasets: Sequence["Dataset"]) -> "Dataset":
        """The samples of all, one data set after the other. All have the same fields."""
    def balance(self) -> "Dataset":
        """The same samples; a loader that shuffles draws all classes equally often."""

    def count(self) -> int:
        """Samples."""
    @property
    def fields(self) -> Tuple[FieldInfo, ...]: ...
    @property
    def name(self) -> str:
        """The format: "mnist", "folder", ..."""
    @property
    def fingerprint(self) -> int:
        """Identifies the data set in a loader's state."""
    @property
    def description(self) -> Optional[str]:
        """What opening found out, in a line."""
    @property
    def info(self) -> Dict[str, Any]:
        """count, field_count, part_count, is_image, label_dtype ("int64", "float32" or None), class_count, file_count,
        encoded_bytes_max, has_paths, dense, in_memory, fingerprint (of the format), row_bytes, description."""
    def class_name(self, index: int, field: Optional[str] = None) -> Optional[str]:
        """The name of a class of ``field`` (None: the label); None if it has none."""
    def read(self, id: int) -> Tuple[bytearray, ...]:
        """One sample, read and decoded in this thread without the GIL: each field's bytes as stored, in the order of
        ``fields``; of one that varies as many as it has."""

class Options(TypedDict, total=False):
    """Members of stoker_loader_options by name; stoker/loader.h explains each. None = the default. "auto" stands for the
    value that lets the library choose."""

    batch_size: int
    shuffle: bool
    last: str  # "short", "drop", "pad"
    epochs: int  # None = endless
    seed: int
    num_workers: Union[int, str]
    dtype: str
    prefetch_batches: Union[int, str]
    read_depth: Union[int, str]
    cache: str  # "auto", "none", "encoded", "decoded", "device"
    memory_bytes: Union[int, str]
    block_memory_bytes: Union[int, str]
    share_cache: Union[bool, str]  # "auto", True / "on", False / "off"
    # "grow" (default; "auto" is the same) or "wait": Python frees batches in any thread, which "busy" forbids. If no memory is
    # left for a batch that is kept, "grow" waits 10 seconds for one to be freed, then raises STOKER_BUSY.
    on_lent: str
    device: str  # "auto", "cpu", "cuda", "cuda_host"; default "cpu"
    device_index: int
    pin_memory: Union[bool, str]
    non_blocking: bool
    convert_on_device: Union[bool, str]
    layout: str  # "NHWC", "NCHW"
    scale: Union[float, str]
    mean: Sequence[float]  # one for all channels or one per channel; as many as std
    std: Sequence[float]
    transform: Dict[str, Any]  # members of stoker_transform: sizes are (height, width), fill a sequence of up to 4
    fields: Dict[str, Dict[str, Any]]  # by field: dtype, form ("packed", "padded", "padded_multiple", "padded_max", "joined"), multiple, pad_value, fill_value
    # kind ("weighted", "own", "uniform", "window"), length, weights (float64 values, as bytes or what memoryview() takes), ids, name, fingerprint,
    # window_blocks, lanes, block_samples. ids is called in the workers with (epoch, positions), the latter a range of ints, and returns as many
    # uint64 values: bytes, what memoryview() takes, or a sequence of ints. It must be a pure function.
    order: Dict[str, Any]
    rank: Union[int, str]
    world_size: int
    resume: bytes  # of Loader.state(), of any size
    on_bad_sample: str  # "fail", "skip", "substitute"
    max_bad_samples: int  # None = no limit
    trace_events: int
    on_log: Callable[[str, str], Any]  # ("info" or "warning", message), in the thread that makes the loader or calls next()
    # (rows, sample, seed) -> None, or the lengths: rows are writable memoryviews of bytes, one per field, valid during the
    # call; sample is a SampleInfo; a field that varies gets its new length from the result, a sequence with one item per
    # field (None = unchanged).
    row_hook: Callable[[Tuple[memoryview, ...], Dict[str, Any], int], Any]
    # (fields, batch, seed): fields are (memoryview, row_bytes, lengths), one per field: writable memoryviews of bytes;
    # lengths is one of uint64, or None. batch is {"epoch", "position", "rows", "ids" (memoryview of uint64)}.
    batch_hook: Callable[[Tuple[Tuple[memoryview, int, Optional[memoryview]], ...], Dict[str, Any], int], Any]
    mixing: Dict[str, float]  # mixup_alpha, cutmix_alpha, probability, cutmix_share
    deal: str  # "positions", "batches"
    local_rank: int
    local_world_size: int
    decode: str  # "cpu", "device", "auto"
    batch_values_max: int  # 0 = no limit
    batch_window: int

@final
class Loader:
    """Batches in order, prepared ahead by worker threads. ``with`` closes it."""

    def __init__(self, dataset: Dataset, options: Optional[Options] = None, previous: "Loader" = ...) -> None:
        """Check the options, allocate all memory, start the workers. An unknown option is a ValueError that names it.

        previous: a loader of the same data set, which this one takes the place of: it is closed once the options have been read,
        and what it has cached is kept if this one caches the same. If this one cannot be made, it is closed as well."""
    def next(self, timeout_ms: int = -1) -> Union["Batch", int]:
        """The next batch, or EPOCH_END, FINISHED or INTERRUPTED. Waits without the GIL; -1 = no limit, else raises
        STOKER_TIMEOUT after so many milliseconds. While it waits, signal handlers run at least every 50 ms, so Ctrl-C
        raises KeyboardInterrupt, and nothing is lost."""
    def run(
        self,
        batches: "Batches",
        timeout_ms: int,
        kind: type,
        take: Optional[Callable[[Any], Any]],
        make: Optional[Callable[[Tuple[Any, ...]], Sequence[Any]]],
        stream: Optional[Callable[[], Optional[int]]],
        change: Optional[Callable[[Any], Any]],
        versioned: bool,
        exchange: Any = None,
    ) -> None:
        """Let ``batches`` make the batches from here on, until halt() or another run(). ``kind`` is a class of tuples; its
        instances get an attribute ``_extras``: bytes, of uint64 values epoch, index, padded and the ids. Values are
        ``take(capsule)`` of each field, or what ``make`` returns for the capsules of all, or without both a Tensor each.
        ``stream`` is asked for the stream that uses the next batch; ``change`` gets the finished batch. At a stop
        ``batches._end(reason)`` is called. ``exchange``: the ``__dlpack_c_exchange_api__`` of an array's type, which is used
        instead of ``take`` if there is one, without ``make``."""
    def halt(self) -> None:
        """Let the Batches that run() set call its method _next() from here on."""
    def interrupt(self) -> None:
        """Let the call of next() that waits, or the following one, return INTERRUPTED. Any thread; signal handlers."""
    def state(self) -> bytes:
        """64 bytes: the position after the last batch that next() returned. More after change_mix(), since the changes are in it."""
    def mix_counts(self) -> Tuple[int, ...]:
        """How many samples of each data set of a mix all ranks together have had since the start of the run."""
    def change_mix(self, position: int, weights: Any) -> None:
        """Use other weights from a position of the mix on, counted from the start of the run: one float64 per data set, as
        bytes or what memoryview() takes. An error says which position is the earliest possible one."""
    def stats(self) -> Dict[str, Any]:
        """stoker_stats by name: numbers, texts, and limit and cache as words. Any thread."""
    def snapshot(self) -> bytes:
        """The same in a form for stats_between()."""
    def bad_sample(self, index: int) -> Optional[Dict[str, Any]]:
        """Report ``index`` of a sample that was skipped or substituted: the keywords of an error; None past the last one."""
    def take_trace(self, capacity: int = 65536) -> Tuple[bytes, int, int]:
        """Up to ``capacity`` events since the last call, 40 bytes each, how many were recorded since create, and how many
        were dropped. As many as ``capacity`` means that there may be more. Needs options["trace_events"] > 0."""
    def fileno(self) -> int:
        """A descriptor that is readable while next() would not wait: see stoker_loader_fd()."""
    def field(self, name: str) -> int:
        """The index of a field of the batches, those of mixing included; -1 if there is none."""
    @property
    def fields(self) -> Tuple[str, ...]:
        """Names of the batches' fields: the data set's, then those of mixing."""
    @property
    def batches_per_epoch(self) -> int: ...
    @property
    def delivered(self) -> int:
        """Index behind the last batch of the epoch that was returned; 0: none of it yet."""
    @property
    def dataset(self) -> Dataset: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None:
        """Stop the workers and free the loader's memory; tensors stay. If another thread is in a call, that one ends first with
        a RuntimeError. Does nothing if it is closed."""
    def __enter__(self) -> "Loader": ...
    def __exit__(self, *exc: Any) -> None: ...

class Batches:
    """What iterates, for a subclass that has _next(), which is called while it does not run, and _end(reason). One thread."""

    def __iter__(self) -> "Batches": ...
    def __next__(self) -> Any: ...

@final
class Batch:
    """One batch in memory of the loader. It is given back by release(), or when it is collected. Tensors and capsules keep
    their memory themselves; after Loader.close() they stay valid, and the batch does not."""

    @property
    def count(self) -> int:
        """Rows; may be fewer than batch_size."""
    @property
    def padded(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def index(self) -> int:
        """In the epoch."""
    @property
    def device(self) -> str:
        """"cpu", "cuda" or "cuda_host"."""
    @property
    def device_index(self) -> int: ...
    @property
    def field_count(self) -> int: ...
    @property
    def fields(self) -> Tuple[Tuple[str, str, Tuple[int, ...], bool], ...]:
        """(name, dtype, shape, has offsets) of every field of this batch."""
    @property
    def ids(self) -> bytes:
        """A copy of the sample ids: uint64 values in host byte order."""
    @property
    def released(self) -> bool: ...
    @property
    def loader(self) -> Loader: ...
    def tensor(self, part: int) -> "Tensor":
        """Field ``part``, or PART_OFFSETS + the index of a field, PART_IDS or PART_LABELS. Several for one part share memory."""
    def capsule(self, part: int, stream: Optional[int] = None, versioned: bool = True) -> Any:
        """A DLPack capsule of a part, to be taken by one consumer; if none takes it, it gives the memory back itself.
        ``versioned``: "dltensor_versioned" of DLPack 1, else "dltensor". ``stream``: as in __dlpack__, on a GPU."""
    def capsules(self, stream: Optional[int] = None, versioned: bool = True) -> Tuple[Any, ...]:
        """A capsule for every field, in order; a field that varies is (values, offsets)."""
    def wait_on(self, stream: Optional[int] = None) -> None:
        """Let a CUDA stream wait until the batch is copied to the GPU. Nothing on the CPU."""
    def release(self, stream: Optional[int] = None) -> None:
        """Give the batch back; its memory is reused once all tensors of it are gone, too. ``stream``: after the work that is on that CUDA
        stream now. Does nothing if it is released."""

@final
class Tensor:
    """A part of a batch, with the DLPack protocol: torch.from_dlpack(), numpy.from_dlpack(), jax.dlpack.from_dlpack()."""

    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> Tuple[int, ...]: ...
    @property
    def address(self) -> int:
        """Of the first element; on a GPU in its memory."""
    def __dlpack__(
        self,
        *,
        stream: Optional[int] = None,
        max_version: Optional[Tuple[int, int]] = None,
        dl_device: Optional[Tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> Any:
        """A capsule: of DLPack 1 if max_version is at least (1, 0). BufferError: it is impossible without a copy to another
        device, with a copy on a GPU, or with another stream than the first one's."""
    def __dlpack_device__(self) -> Tuple[int, int]: ...
