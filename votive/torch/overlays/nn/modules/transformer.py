"""`torch.nn.modules.transformer`: private names that libraries reach for."""

from __future__ import annotations

from .....nn.layers.transformer_layers import _activation as _get_activation_fn

__all__ = ["_get_activation_fn"]
