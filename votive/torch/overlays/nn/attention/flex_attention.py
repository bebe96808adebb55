"""`torch.nn.attention.flex_attention`: the private constant that libraries import beside its functions."""

from __future__ import annotations

__all__ = ["_DEFAULT_SPARSE_BLOCK_SIZE"]

_DEFAULT_SPARSE_BLOCK_SIZE = 128
