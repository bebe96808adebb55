"""What `torch.distributed` has beside `votive.distributed`: questions that have one answer here, and old spellings."""

from __future__ import annotations

import os
from enum import Enum
from typing import Any

from ....distributed import ReduceOp, all_gather_into_tensor, get_backend, is_initialized, reduce_scatter_tensor
from ....nn.parallel.buckets import GradBucket

__all__ = [
    "DebugLevel",
    "GradBucket",
    "GroupName",
    "all_gather_single",
    "get_backend_config",
    "get_debug_level",
    "is_available",
    "is_ucc_available",
    "is_xccl_available",
    "reduce_op",
    "reduce_scatter_single",
    "set_debug_level",
    "set_debug_level_from_env",
]

GroupName = str
reduce_op = ReduceOp
all_gather_single = all_gather_into_tensor
reduce_scatter_single = reduce_scatter_tensor


class DebugLevel(Enum):
    """How much torch tells of its communication. votive checks every call at each level."""

    OFF = 0
    INFO = 1
    DETAIL = 2


# What torchrun and `votive launch`, Open MPI's and MPICH's mpiexec tell the processes that they start.
_STARTED = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_level = DebugLevel.OFF


def is_available() -> bool:
    """Whether this process is one of several, or a group was set up. A process that is alone hears no: libraries would
    look for pieces of tensors spread over processes otherwise, which are not here.
    """
    return is_initialized() or any(name in os.environ for name in _STARTED)


def get_debug_level() -> DebugLevel:
    """The level that was set."""
    return _level


def set_debug_level(level: DebugLevel) -> None:
    """Set the level."""
    global _level
    if not isinstance(level, DebugLevel):
        raise TypeError(f"set_debug_level takes a DebugLevel, got {type(level).__name__}.")
    _level = level


def set_debug_level_from_env() -> None:
    """Set the level that TORCH_DISTRIBUTED_DEBUG names."""
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError(
            f"TORCH_DISTRIBUTED_DEBUG is {name!r}; it takes {', '.join(DebugLevel.__members__)}, or nothing."
        )
    set_debug_level(DebugLevel[name])


def is_ucc_available() -> bool:
    """Whether UCC is there: no, MPI is what bytes move by."""
    return False


def is_xccl_available() -> bool:
    """Whether XCCL is there: no, MPI is what bytes move by."""
    return False


def get_backend_config(group: Any = None) -> str:
    """The backend of a group for each kind of device."""
    backend = get_backend(group)
    return f"cpu:{backend},cuda:{backend}"
