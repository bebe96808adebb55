"""`torch.cuda.memory`."""

from __future__ import annotations

from . import list_gpu_processes

__all__ = ["list_gpu_processes"]
