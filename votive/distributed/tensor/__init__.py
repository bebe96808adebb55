"""`votive.distributed.tensor`: tensors that lie on a mesh of ranks, and operators that compute on their parts."""

from __future__ import annotations

from typing import Any as _Any

from .api import distribute_module, distribute_tensor, empty, full, ones, rand, randn, zeros
from .dtensor import DTensor
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty", "full",
    "ones", "rand", "randn", "zeros",
]  # fmt: skip


def __getattr__(name: str) -> _Any:
    from importlib import import_module

    if name in ("parallel", "experimental", "placement_types"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
