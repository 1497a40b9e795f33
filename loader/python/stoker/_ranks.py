"""The place of this process among the ranks of a run.

"auto" looks at torch.distributed if the program has imported and initialized it, else at the variables of the launcher:
RANK and WORLD_SIZE of torchrun, those of Open MPI, MPICH and Slurm's srun. Without any of them there is one process.
"""

from __future__ import annotations

import sys
from typing import Any, Optional, Tuple, Union

from . import _core
from ._errors import OptionError

Number = Union[int, str]  # a number or "auto"


def _from_torch() -> Optional[Tuple[int, int]]:
    """(rank, world size) of torch.distributed; None if the program does not use it. Never imports torch."""
    torch: Any = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return int(distributed.get_rank()), int(distributed.get_world_size())


def _checked(name: str, value: Number, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise OptionError(f'{name} is {value!r}: a number or "auto" is expected')
    if value < least:
        raise OptionError(f"{name} is {value}: at least {least} is expected")
    return value


def resolve(rank: Number, world_size: Number) -> Tuple[int, int]:
    """(rank, world size) for what the caller gave: both numbers, or both "auto"."""
    if rank == "auto" and world_size == "auto":
        found = _from_torch()
        if found is not None:
            return found
        place = _core.ranks()
        return int(place["rank"]), int(place["world_size"])
    if rank == "auto" or world_size == "auto":
        given, missing = ("world_size", "rank") if rank == "auto" else ("rank", "world_size")
        raise OptionError(f"{given} is given without {missing}: give both, or neither")
    size = _checked("world_size", world_size, 1)
    index = _checked("rank", rank, 0)
    if index >= size:
        raise OptionError(f"rank {index} is out of range: world_size is {size}")
    return index, size
