"""Norms of layers and groups, under the path where torch keeps them."""

from ..layers.normalization import CrossMapLRN2d as CrossMapLRN2d
from ..layers.normalization import GroupNorm as GroupNorm
from ..layers.normalization import LayerNorm as LayerNorm
from ..layers.normalization import LocalResponseNorm as LocalResponseNorm
from ..layers.normalization import RMSNorm as RMSNorm
