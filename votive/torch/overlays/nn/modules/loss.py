"""`torch.nn.modules.loss`: private names that libraries reach for."""

from __future__ import annotations

from .....nn.layers.loss import Loss as _Loss
from .....nn.layers.loss import WeightedLoss as _WeightedLoss

__all__ = ["_Loss", "_WeightedLoss"]
