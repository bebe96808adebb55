"""Caches of a GPU's model in main memory: keys and values lie there, and a layer's are brought back when it runs.

They make room for longer texts and cost the time of the way there and back. Knows no model.
"""

from __future__ import annotations

from ...tensor import Tensor
from .kv_cache import DynamicCache, KVCache, StaticCache
from .kv_storage import Pair

_HOME = "cpu"


class _Offloaded(KVCache):
    """What both do. On the CPU they are the caches that they derive from."""

    def update(self, key: Tensor, value: Tensor, layer_idx: int = 0) -> Pair:
        """Add new positions of a layer; gives the keys and values to attend to, where the new ones are."""
        place = key.device
        if place.type == _HOME:
            return super().update(key, value, layer_idx)
        keys, values = super().update(key.to(_HOME), value.to(_HOME), layer_idx)
        return keys.to(place), values.to(place)

    def _reordered(self, layer_idx: int, kept: Pair, index: Tensor) -> Pair:
        return super()._reordered(layer_idx, kept, index.to(kept[0].device))


class OffloadedCache(_Offloaded, DynamicCache):
    """A `DynamicCache` whose keys and values lie in main memory, wherever the model is.

    >>> cache, key = votive.nn.OffloadedCache(), votive.ones(1, 2, 3, 4)
    >>> cache.update(key, key)[0].shape, cache.get_seq_length()
    (votive.Size([1, 2, 3, 4]), 3)
    """


class OffloadedStaticCache(_Offloaded, StaticCache):
    """A `StaticCache` whose memory is main memory, wherever the model is.

    >>> cache, key = votive.nn.OffloadedStaticCache(max_length=8), votive.ones(1, 2, 3, 4)
    >>> cache.update(key, key)[0].shape
    votive.Size([1, 2, 3, 4])
    """
