"""`torch.distributed._composable.fsdp`: the names of `torch.distributed.fsdp` at their older place."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "fully_shard"]  # noqa: F822


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("torch.distributed.fsdp"), name)
    raise AttributeError(name)
