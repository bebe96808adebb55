"""Communication hooks of DistributedDataParallel: how the gradients of a bucket become those of all ranks."""

from __future__ import annotations

from . import default_hooks, powerSGD_hook

__all__ = ["default_hooks", "powerSGD_hook"]
