"""In which types sharded parameters compute and travel, and where they are kept."""

from __future__ import annotations

from dataclasses import dataclass

from ...core import dtype as dt


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Types of a sharded module: of its parameters while it computes, of gradients on their way, of its results.

    >>> votive.distributed.fsdp.MixedPrecisionPolicy(param_dtype=votive.bfloat16).reduce_dtype is None
    True
    """

    param_dtype: dt.dtype | None = None
    reduce_dtype: dt.dtype | None = None
    output_dtype: dt.dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Where shards are kept: with what computes.

    >>> votive.distributed.fsdp.OffloadPolicy()
    OffloadPolicy()
    """


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Shards, their gradients and the optimizer's states are kept in main memory.

    >>> votive.distributed.fsdp.CPUOffloadPolicy()
    CPUOffloadPolicy(pin_memory=True)
    """

    pin_memory: bool = True
