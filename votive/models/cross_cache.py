"""What a decoder behind an encoder keeps: keys and values of its own text and of the encoder's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from votive import nn

from ..nn.layers.kv_storage import CacheDtype
from ..tensor import Tensor

Pair = tuple[Tensor, Tensor]  # keys and values, (batch, heads, positions, features)


class EncoderDecoderCache:
    """A cache of the decoder's positions, and the encoder's keys and values, computed once.

    >>> cache = votive.models.EncoderDecoderCache()
    >>> made = lambda: (votive.ones(1, 2, 3, 4), votive.ones(1, 2, 3, 4))
    >>> cache.cross(0, made)[0] is cache.cross(0, made)[0], cache.get_seq_length()
    (True, 0)
    """

    def __init__(self, self_attention_cache: Any = None) -> None:
        if self_attention_cache is None:
            self_attention_cache = nn.DynamicCache()
        self.self_attention_cache = self_attention_cache
        self._cross: dict[int, Pair] = {}
        self._lent = False  # whether another cache holds the same

    def another(self, rows: Tensor | None = None) -> EncoderDecoderCache:
        """An empty cache for another text about the same; `rows` chooses some of the samples.

        Several texts about one sample, such as beams, may share its keys.

        >>> cache = votive.models.EncoderDecoderCache()
        >>> kept = cache.cross(0, lambda: (votive.ones(1, 2, 3, 4), votive.ones(1, 2, 3, 4)))
        >>> cache.another().cross(0, lambda: None) is kept
        True
        """
        made = EncoderDecoderCache(nn.DynamicCache(overwrite=True, dtype=self.dtype))
        made._lent = True
        if rows is None:
            made._cross = self._cross  # what is looked up later serves both
        else:
            made._cross = {i: (k.index_select(0, rows), v.index_select(0, rows)) for i, (k, v) in self._cross.items()}
        return made

    @classmethod
    def of(cls, cache: Cache | None) -> EncoderDecoderCache:
        """Such a cache, around one that only keeps the decoder's positions if need be."""
        return cache if isinstance(cache, cls) else cls(cache)

    def update(self, key: Tensor, value: Tensor, layer_idx: int = 0) -> Pair:
        """Add new positions of the decoder."""
        return self.self_attention_cache.update(key, value, layer_idx)

    def cross(self, layer_idx: int, make: Callable[[], Pair]) -> Pair:
        """Keys and values of the encoder's positions for a layer; `make` is asked once."""
        if layer_idx not in self._cross:
            self._cross[layer_idx] = self.self_attention_cache.stored(make())
        return self._cross[layer_idx]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """How many positions the decoder has seen."""
        return self.self_attention_cache.get_seq_length(layer_idx)

    def get_max_length(self) -> int | None:
        """How many positions of the decoder can be kept; None without a limit."""
        return self.self_attention_cache.get_max_length()

    @property
    def dtype(self) -> CacheDtype:
        """In what the keys and values of both are kept; None for the model's own numbers."""
        kept: CacheDtype = self.self_attention_cache.dtype
        return kept

    def nbytes(self) -> int:
        """Bytes of the decoder's keys and values and of the encoder's.

        >>> cache = votive.models.EncoderDecoderCache(votive.nn.DynamicCache(dtype="q8_0"))
        >>> _ = cache.cross(0, lambda: (votive.ones(1, 1, 10, 32), votive.ones(1, 1, 10, 32)))
        >>> cache.nbytes()
        680
        """
        cross = sum(int(x.nbytes) for pair in self._cross.values() for x in pair)
        return int(self.self_attention_cache.nbytes()) + cross

    def crop(self, max_length: int) -> None:
        """Forget the decoder's positions from `max_length` on."""
        self.self_attention_cache.crop(max_length)

    def reset(self) -> None:
        """Forget everything."""
        self.self_attention_cache.reset()
        self._cross.clear()

    def reorder(self, index: Tensor) -> None:
        """Let the samples be those at `index`, as beams need.

        Where beams share the encoder's keys, each must stay with its own.
        """
        self.self_attention_cache.reorder(index)
        if not self._lent:
            for i, (key, value) in self._cross.items():
                self._cross[i] = key.index_select(0, index), value.index_select(0, index)
            return
        for key, _ in self._cross.values():
            shared = len(index) // key.shape[0]
            own = [r // shared for r in range(len(index))]
            if [r // shared for r in index.tolist()] != own:
                raise ValueError(
                    f"EncoderDecoderCache.reorder: {shared} samples share each of the encoder's, "
                    f"and {index.tolist()} moves some to those of another."
                )
            return

    def __repr__(self) -> str:
        return f"EncoderDecoderCache({self.self_attention_cache!r}, cross={len(self._cross)})"


Cache = nn.KVCache | EncoderDecoderCache
