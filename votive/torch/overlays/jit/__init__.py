"""`torch.jit`: the annotation for attributes that never change, which Python's own stands for."""

from __future__ import annotations

from typing import Final

__all__ = ["Final"]
