"""`torch.optim`: what stands below it is what counts."""

from __future__ import annotations

__all__: list[str] = []
