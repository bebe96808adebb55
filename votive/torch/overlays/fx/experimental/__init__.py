"""`torch.fx.experimental`: what stands below it is what counts."""

from __future__ import annotations

__all__: list[str] = []
