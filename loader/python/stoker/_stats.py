"""What a loader did, where the time went, and what limits it."""

from __future__ import annotations

from typing import Any, Dict

from . import _core


class Stats:
    """A snapshot of a loader's counters since it was made; `stats - earlier` is what happened between two.

    verdict      the limit in words, and what would help: "decode-bound (92 %): 3 more workers would help"
    limit        "consumer", "read", "decode", "convert", "handover", or "unknown" after too little data
    batches, samples, bytes, bad_samples            delivered, and rows that were skipped, substituted or failed
    elapsed_ns, first_batch_ns                      since the loader was made; until its first batch
    read_ns, decode_ns, convert_ns, slot_wait_ns    of all workers together
    stall_ns, stalls                                the consumer's waits
    workers, workers_max, cpus, slots, slots_ready  now
    cache, cache_bytes, cache_held_bytes, cache_hits, cache_reason
    memory_bytes, memory_bytes_max                  of cache and batches: in use, and the limit
    blocks, blocks_again, block_bytes, block_memory_bytes  of files that consist of blocks
    length_values, length_room                      of batches by length: values without, and with padding
    device, device_reason, reader, reader_reason, pinned, pin_reason, route, ...

    All members of stoker_stats in <stoker/stats.h> are attributes; as_dict() has them by name.
    """

    verdict: str
    limit: str
    batches: int
    samples: int
    bytes: int
    bad_samples: int
    elapsed_ns: int
    first_batch_ns: int
    read_ns: int
    decode_ns: int
    convert_ns: int
    slot_wait_ns: int
    stall_ns: int
    stalls: int
    cache_hits: int
    workers: int
    workers_max: int
    cpus: int
    slots: int
    slots_ready: int
    length_values: int
    length_room: int
    cache: str
    cache_held_bytes: int
    device: str
    reader: str
    pinned: bool

    def __init__(self, values: Dict[str, Any], snapshot: Any) -> None:
        self._snapshot = snapshot
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"stoker_stats has no member {name!r}")

    def __sub__(self, earlier: "Stats") -> "Stats":
        """Counts and times as differences; the verdict judges only that period. Both must be of one loader."""
        return Stats(_core.stats_between(earlier._snapshot, self._snapshot), None)

    def as_dict(self) -> Dict[str, Any]:
        """All counters by name, for a log."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def __repr__(self) -> str:
        return f"<stoker.Stats {self.samples} samples in {self.batches} batches: {self.verdict}>"
