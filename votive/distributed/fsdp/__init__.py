"""Parameters, gradients and optimizer states spread over ranks: `fully_shard`, ZeRO's third stage."""

from __future__ import annotations

from .fully_shard import FSDPModule, UnshardHandle, fully_shard, register_fsdp_forward_method
from .policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from .sharding import ShardedParameter

__all__ = [
    "CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "ShardedParameter", "UnshardHandle",
    "fully_shard", "register_fsdp_forward_method",
]  # fmt: skip
