"""Keys and values of earlier positions, kept per layer for generation. Knows no attention.

Keys and values are (batch, heads, positions, features). `update` takes those of new positions and
gives all that the new queries may look at, the newest last. In which form they lie is `kv_storage.py`'s to say: what
moves, grows and forgets here are tensors of positions, of numbers or of bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import votive

from ...tensor import Tensor
from .kept_states import StateKeeper, States
from .kv_room import Room, alike
from .kv_storage import CacheDtype, KVStorage, Pair, format_of_bits, storage_of

Mark = tuple[list[Pair | None], list[int], dict[int, States]]


class KVCache(StateKeeper):
    """What all caches do; subclasses say what they keep.

    With `overwrite`, `crop` and `reorder` work in the memory that is there, so what `update` gave
    before may change, as it does in a static cache. With a `dtype` such as "q8_0", or a pair of one for keys and
    one for values, new positions are rounded once, when they are added, and kept in few bits. Layers that sum up all
    positions in a state `keep` it here, too.

    >>> cache = votive.nn.DynamicCache()
    >>> isinstance(cache, votive.nn.KVCache), len(cache)
    (True, 0)
    """

    # Of the rotary embedding that rotated the keys, where angles depend on a text's length.
    stretch: int | None = None
    _storage: KVStorage | None = None

    def __init__(self, *, overwrite: bool = False, dtype: CacheDtype = None) -> None:
        super().__init__()
        self.overwrite = overwrite
        self._storage = storage_of(dtype)
        self._kept: list[Pair | None] = []
        self._rooms: dict[int, Room] = {}

    def _grown(self, kept: Pair, new: Pair, layer_idx: int, keep: int | None) -> tuple[Pair, Pair]:
        """All positions, and the last `keep` of them (None: all).

        Without a graph they grow in place. With one they are made anew: a kernel may have saved
        what was given before for its gradient.
        """
        long = keep is not None and new[0].shape[2] > keep
        if long or votive.is_grad_enabled() or not alike(kept, new):
            both = votive.cat([kept[0], new[0]], 2), votive.cat([kept[1], new[1]], 2)
            start = 0 if keep is None else max(both[0].shape[2] - keep, 0)
            # A copy, so that a long text is not held in memory by the view of its end.
            return both, both if not start else (both[0][:, :, start:].clone(), both[1][:, :, start:].clone())
        have, count = kept[0].shape[2], new[0].shape[2]
        room = self._rooms.get(layer_idx)
        if room is None or not room.fits(kept, count):
            self._rooms[layer_idx] = room = Room(kept, count)
        for part, n in zip(room.parts, new, strict=True):
            part[:, :, room.end : room.end + count] = n
        room.end += count
        both = room.window(have + count)
        room.kept = both if keep is None or have + count <= keep else room.window(keep)
        return both, room.kept

    def _append(self, kept: Pair, new: Pair, layer_idx: int) -> tuple[Pair, Pair]:
        """What to give back and what to keep, from what was kept and what is new."""
        raise NotImplementedError

    def _start(self, new: Pair) -> Pair:
        """What a layer keeps before its first position."""
        return new[0][:, :, :0], new[1][:, :, :0]

    def update(self, key: Tensor, value: Tensor, layer_idx: int = 0) -> Pair:
        """Add new positions of a layer; gives the keys and values to attend to."""
        if key.dim() != 4 or key.shape[:3] != value.shape[:3]:
            raise ValueError(
                "update: key and value must be (batch, heads, positions, features), "
                f"got {tuple(key.shape)} and {tuple(value.shape)}."
            )
        storage = self._storage
        if storage is None:
            return self._add((key, value), layer_idx)
        return storage.read(self._add(storage.write((key, value)), layer_idx), (key, value))

    def _add(self, new: Pair, layer_idx: int) -> Pair:
        """Add new positions in the form in which they are kept."""
        self._reach(layer_idx)
        kept = self._kept[layer_idx] or self._start(new)
        given, self._kept[layer_idx] = self._append(kept, new, layer_idx)
        self._seen[layer_idx] += new[0].shape[2]
        return given

    def _reach(self, layer_idx: int) -> None:
        while len(self._kept) <= layer_idx:
            self._kept.append(None)
            self._seen.append(0)

    def stored(self, pair: Pair) -> Pair:
        """Keys and values as this cache would keep them, without adding them."""
        return pair if self._storage is None else self._storage.read(self._storage.write(pair), pair)

    @property
    def dtype(self) -> CacheDtype:
        """In what keys and values are kept: a format, or a pair of two; None for the model's own numbers.

        >>> votive.nn.DynamicCache(dtype="q8_0").dtype
        'q8_0'
        """
        return None if self._storage is None else self._storage.dtype

    def nbytes(self) -> int:
        """Bytes of the keys, values and states that are kept; free memory behind them is not counted.

        >>> cache, key = votive.nn.DynamicCache(dtype="q8_0"), votive.ones(1, 1, 10, 32)
        >>> _ = cache.update(key, key)
        >>> cache.nbytes()
        680
        """
        return sum(int(k.nbytes) for pair in self._kept if pair is not None for k in pair) + self._state_bytes()

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """How many positions a layer has seen."""
        return self._seen[layer_idx] if layer_idx < len(self._seen) else 0

    def get_max_length(self) -> int | None:
        """How many positions can be kept; None without a limit."""
        return None

    def crop(self, max_length: int) -> None:
        """Forget all positions from `max_length` on; a negative number counts from the end."""
        shorter = []
        for i, seen in enumerate(self._seen):
            length = max(seen + max_length if max_length < 0 else max_length, 0)
            if length < seen:
                self._check_state(i, length)
                self._check_crop(i, length)
                shorter.append((i, length))
        for i, length in shorter:
            if i in self._states:
                del self._states[i]
            if self._kept[i] is None:
                self._seen[i] = length
            else:
                self._crop_layer(i, length)

    def _check_crop(self, layer_idx: int, length: int) -> None:
        """Raise if a layer has forgotten what it would need; nothing is cropped then."""

    def _crop_layer(self, layer_idx: int, length: int) -> None:
        kept = self._kept[layer_idx]
        assert kept is not None, "a layer that has seen positions keeps them"
        room = self._free_room(layer_idx, kept)
        if room is not None:
            self._kept[layer_idx] = room.crop(length)
        else:
            self._kept[layer_idx] = kept[0][:, :, :length], kept[1][:, :, :length]
        self._seen[layer_idx] = length

    def mark(self) -> Mark:
        """Where the cache stands, for `rewind`; costs no copy.

        >>> cache, key = votive.nn.DynamicCache(), votive.ones(1, 1, 2, 4)
        >>> _ = cache.update(key, key)
        >>> here = cache.mark()
        >>> _ = cache.update(key, key)
        >>> cache.rewind(here)
        >>> cache.get_seq_length()
        2
        """
        return list(self._kept), list(self._seen), dict(self._states)

    def rewind(self, mark: Mark) -> None:
        """Go back to a `mark`: what was added since then is forgotten."""
        kept, seen, states = mark
        self._kept, self._seen, self._states = list(kept), list(seen), dict(states)

    def reset(self) -> None:
        """Forget everything."""
        self._kept.clear()
        self._seen.clear()
        self._states.clear()
        self._rooms.clear()

    def reorder(self, index: Tensor) -> None:
        """Let the samples be those at `index`, as beams need; the batch may grow or shrink."""
        for i, kept in enumerate(self._kept):
            if kept is not None:
                self._kept[i] = self._reordered(i, kept, index)
        self._reorder_states(index)

    def _free_room(self, layer_idx: int, kept: Pair) -> Room | None:
        """The memory of what is kept, if it may be written over."""
        room = self._rooms.get(layer_idx)
        if room is None or not self.overwrite or votive.is_grad_enabled():
            return None
        return room if room.fits(kept, 0) else None

    def _reordered(self, layer_idx: int, kept: Pair, index: Tensor) -> Pair:
        room = self._free_room(layer_idx, kept)
        if room is not None and index.shape[0] == kept[0].shape[0]:
            return room.reorder(index)
        return kept[0].index_select(0, index), kept[1].index_select(0, index)

    def __len__(self) -> int:
        """How many layers have been seen."""
        return len(self._kept)

    def __bool__(self) -> bool:
        # An empty cache is still a cache: `if cache:` must not drop it.
        return True

    def __repr__(self) -> str:
        limit = self.get_max_length()
        text = "" if limit is None else f", max_length={limit}"
        text += "" if self._storage is None else f", dtype={self._storage.dtype}"
        return f"{type(self).__name__}(layers={len(self)}, positions={self.get_seq_length()}{text})"


class DynamicCache(KVCache):
    """Keeps all positions, growing with each; gradients flow through it.

    >>> cache = votive.nn.DynamicCache()
    >>> key = votive.ones(1, 2, 3, 4)
    >>> _ = cache.update(key, key)
    >>> cache.update(key, key)[0].shape, cache.get_seq_length()
    (votive.Size([1, 2, 6, 4]), 6)
    """

    def _append(self, kept: Pair, new: Pair, layer_idx: int) -> tuple[Pair, Pair]:
        if kept[0].shape[2] == 0:
            return new, new
        return self._grown(kept, new, layer_idx, None)


class QuantizedCache(DynamicCache):
    """A `DynamicCache` of few bits, by transformers' names: 4, 5 or 8 of them in blocks of 32 neighbours.

    Every new position is rounded once, when it is added, so `residual_length`, how many of the last are kept in full,
    is 0; `backend` is "votive", whose formats these are: `q4_0`, `q5_0` and `q8_0`.

    >>> votive.nn.QuantizedCache(nbits=8)
    QuantizedCache(layers=0, positions=0, dtype=q8_0)
    """

    def __init__(
        self, backend: str = "votive", nbits: int = 4, residual_length: int = 0, *, overwrite: bool = False
    ) -> None:
        super().__init__(overwrite=overwrite, dtype=format_of_bits(backend, nbits, residual_length))


class StaticCache(KVCache):
    """Keeps up to `max_length` positions in memory that is taken once; no gradients.

    >>> cache = votive.nn.StaticCache(max_length=8)
    >>> key = votive.ones(1, 2, 3, 4)
    >>> cache.update(key, key)[0].shape
    votive.Size([1, 2, 3, 4])
    >>> cache
    StaticCache(layers=1, positions=3, max_length=8)
    """

    def __init__(self, max_length: int, *, dtype: CacheDtype = None) -> None:
        super().__init__(overwrite=True, dtype=dtype)
        if max_length < 1:
            raise ValueError(f"StaticCache: max_length must be positive, got {max_length}.")
        self.max_length = max_length
        self._place: Tensor | None = None

    def get_max_length(self) -> int | None:
        return self.max_length

    @contextmanager
    def at(self, position: Tensor) -> Iterator[None]:
        """Put new positions where a tensor of indices says, and give all of the memory.

        So the same work serves every position and can be recorded as a graph; who sees what is the
        mask's to say, and the count of what was seen stays.

        >>> cache, key = votive.nn.StaticCache(4), votive.ones(1, 1, 1, 2)
        >>> with cache.at(votive.tensor([2])):
        ...     cache.update(key, key)[0][0, 0, :, 0]
        tensor([0., 0., 1., 0.])
        """
        self._place = position
        try:
            yield
        finally:
            self._place = None

    def _add(self, new: Pair, layer_idx: int) -> Pair:
        if self._place is None:
            return super()._add(new, layer_idx)
        if layer_idx >= len(self._kept) or self._kept[layer_idx] is None:
            self._seen += [0] * (layer_idx + 1 - len(self._seen))
            self._kept += [None] * (layer_idx + 1 - len(self._kept))
            self._kept[layer_idx] = self._start(new)
        kept = self._kept[layer_idx]
        assert kept is not None
        for k, n in zip(kept, new, strict=True):
            k.index_copy_(2, self._place, n)
        return kept

    def _start(self, new: Pair) -> Pair:
        def blank(x: Tensor) -> Any:
            shape = (*x.shape[:2], self.max_length, x.shape[3])
            return votive.zeros(shape, dtype=x.dtype, device=x.device)

        return blank(new[0]), blank(new[1])

    def _append(self, kept: Pair, new: Pair, layer_idx: int) -> tuple[Pair, Pair]:
        start, count = self._seen[layer_idx], new[0].shape[2]
        if start + count > self.max_length:
            raise IndexError(
                f"StaticCache: {start} + {count} positions do not fit into "
                f"max_length={self.max_length}; make it larger, or use DynamicCache."
            )
        if votive.is_grad_enabled() and any(x.requires_grad for x in new):
            raise RuntimeError("StaticCache does not keep gradients; run under votive.no_grad(), or use DynamicCache.")
        for k, n in zip(kept, new, strict=True):
            k[:, :, start : start + count] = n
        filled: Any = tuple(k[:, :, : start + count] for k in kept)
        return filled, kept

    def _crop_layer(self, layer_idx: int, length: int) -> None:
        self._seen[layer_idx] = length

    def _reordered(self, layer_idx: int, kept: Pair, index: Tensor) -> Pair:
        if index.shape[0] != kept[0].shape[0]:
            return kept[0].index_select(0, index), kept[1].index_select(0, index)
        for k in kept:
            used = k[:, :, : self._seen[layer_idx]]
            used.copy_(used.index_select(0, index))
        return kept

    def reset(self) -> None:
        """Forget everything; the memory stays."""
        self._seen = [0] * len(self._seen)
        self._states.clear()


class SlidingWindowCache(KVCache):
    """Keeps what the next position sees when each sees the last `window`, itself included.

    Layers that differ have a window each: a list, with None for one that sees all positions.

    >>> cache = votive.nn.SlidingWindowCache(window=4)
    >>> key = votive.ones(1, 2, 6, 4)
    >>> cache.update(key, key)[0].shape
    votive.Size([1, 2, 6, 4])
    >>> cache.update(key[:, :, :1], key[:, :, :1])[0].shape
    votive.Size([1, 2, 4, 4])
    """

    def __init__(
        self, window: int | Sequence[int | None], *, overwrite: bool = False, dtype: CacheDtype = None
    ) -> None:
        super().__init__(overwrite=overwrite, dtype=dtype)
        each = [window] if isinstance(window, int) else list(window)
        if not each or any(w is not None and w < 1 for w in each):
            raise ValueError(f"SlidingWindowCache: window must be positive, got {window}.")
        self.window = window if isinstance(window, int) else each

    def window_of(self, layer_idx: int) -> int | None:
        """How many last positions a layer sees; None for all."""
        if isinstance(self.window, int):
            return self.window
        if layer_idx >= len(self.window):
            raise IndexError(
                f"SlidingWindowCache has windows for {len(self.window)} layers, but layer "
                f"{layer_idx} was asked for; give a window, or None, for every layer."
            )
        return self.window[layer_idx]

    def get_max_length(self) -> int | None:
        if isinstance(self.window, int):
            return self.window
        return None if None in self.window else max(w for w in self.window if w is not None)

    def _append(self, kept: Pair, new: Pair, layer_idx: int) -> tuple[Pair, Pair]:
        window = self.window_of(layer_idx)
        return self._grown(kept, new, layer_idx, None if window is None else window - 1)

    def _check_crop(self, layer_idx: int, length: int) -> None:
        kept = self._kept[layer_idx]
        if kept is not None and kept[0].shape[2] < self._seen[layer_idx]:
            raise ValueError(
                f"SlidingWindowCache: cannot crop to {length}, as positions before the last "
                f"{kept[0].shape[2]} of {self._seen[layer_idx]} are gone; reset and run again."
            )
