"""`torch.distributed._tensor`: the names of `torch.distributed.tensor` at their older place."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("torch.distributed.tensor"), name)
    raise AttributeError(name)
