"""`torch.random`."""

from __future__ import annotations

from . import thread_safe_generator

__all__ = ["thread_safe_generator"]
