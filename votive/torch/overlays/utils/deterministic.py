"""`torch.utils.deterministic`."""

from __future__ import annotations

__all__ = ["fill_uninitialized_memory"]

# Memory that was not written holds what was there before; deterministic programs do not read it.
fill_uninitialized_memory = True
