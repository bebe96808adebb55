"""Keys and values of texts that are written together, a row each, whatever their lengths.

Rows end in the same column, so that the next token of all of them is one column more; what stands before a shorter row
is zeros that a mask hides. A row joins by being copied in and leaves by the last row taking its place, both between
steps. Attention's kernels read one piece of memory for a batch, so rows do not lie in the blocks that are kept for
sharing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import votive
from votive import nn

from ..nn.layers.kv_storage import CacheDtype, Pair
from ..tensor import Tensor
from .blocks import Packed

SPARE = 64  # columns more than a text may need, so that rows are not moved at every step


def laid_rows(rows: int) -> int:
    """For how many rows memory is taken where there are so many.

    >>> from votive.serve.rows_cache import laid_rows
    >>> [laid_rows(n) for n in (0, 1, 3, 4, 5)]
    [0, 1, 4, 4, 8]
    """
    return 1 << (rows - 1).bit_length() if rows else 0


class RowsCache(nn.KVCache):
    """The cache of a batch whose rows come and go.

    >>> from votive.serve.rows_cache import RowsCache
    >>> rows, alone = RowsCache(), votive.nn.DynamicCache()
    >>> key = votive.ones(1, 2, 3, 4)
    >>> _ = alone.update(key, key)
    >>> rows.join(alone, 3, 10)
    >>> rows.lengths, rows.get_seq_length()
    ([3], 3)
    """

    def __init__(self, dtype: CacheDtype = None) -> None:
        super().__init__(overwrite=True, dtype=dtype)
        self.lengths: list[int] = []
        self.limits: list[int] = []  # how long each row may become
        self.end = 0  # the column behind the newest positions

    @property
    def width(self) -> int:
        """Columns that any row uses."""
        return max(self.lengths, default=0)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """How many positions the longest row has."""
        return self.width

    # --- a step -----------------------------------------------------------------------------------

    def _append(self, kept: Pair, new: Pair, layer_idx: int) -> tuple[Pair, Pair]:
        count, start = len(self.lengths), self.end - self.width
        for part, n in zip(kept, new, strict=True):
            part[:count, :, self.end : self.end + 1] = n
        key, value = (part[:count, :, start : self.end + 1] for part in kept)
        return (key, value), kept

    def ready(self) -> None:
        """See that there is a column for the next token of every row."""
        if self.end + 1 > self._columns():
            self._lay_out(len(self.lengths), self.width)

    def stepped(self) -> None:
        """Know that every row has a token more. Until then a step that failed has left nothing behind."""
        self.end += 1
        self.lengths = [n + 1 for n in self.lengths]

    def mask(self, device: votive.device | None) -> Tensor | None:
        """Which columns the rows have, the one to come included; None if they have all."""
        width = self.width
        if min(self.lengths) == width:
            return None
        short = votive.tensor([[width - n] for n in self.lengths], device=device)
        return (votive.arange(width + 1, device=device) >= short).long()

    def positions(self, device: votive.device | None) -> Tensor:
        """Where in its text the next token of each row stands, (rows, 1)."""
        return votive.tensor([[n] for n in self.lengths], device=device)

    # --- rows that come and go --------------------------------------------------------------------

    def join(self, alone: nn.KVCache, length: int, limit: int) -> None:
        """Add a row with the positions of a cache of one text, which may come to have `limit` of them."""
        row = len(self.lengths)
        self.limits.append(limit)
        if not self._fits(row + 1, length):
            self._lay_out(row + 1, max(length, self.width), like=alone)
        for layer, pair in enumerate(alone._kept):
            kept = self._layer(layer)
            if pair is None or kept is None:
                continue
            for part, k in zip(kept, pair, strict=True):
                part[row] = 0  # what a text before has left must not be seen, nor multiplied by nothing
                part[row, :, self.end - length : self.end] = k[0, :, :length]
        for layer, states in alone._states.items():
            have = self._states.get(layer)
            both = states if have is None else tuple(votive.cat([a, b]) for a, b in zip(have, states, strict=True))
            self._states[layer] = tuple(both)
        self.lengths.append(length)

    def leave(self, row: int) -> None:
        """Take a row out; the last one has its place from now on."""
        last = len(self.lengths) - 1
        if row != last:
            for kept in self._pairs():
                for part in kept:
                    part[row] = part[last]
        if self._states:
            rest = [*range(last)]
            if row != last:
                rest[row] = last
            index = votive.tensor(rest, dtype=votive.int64)
            self._states = {
                i: tuple(s.index_select(0, index.to(s.device)) for s in kept) for i, kept in self._states.items()
            }
        for each in (self.lengths, self.limits):
            each[row] = each[last]
            each.pop()
        if not self.lengths:
            self.reset()

    def packed(self, row: int, start: int, stop: int) -> Packed:
        """Copies of some positions of a row."""
        first = self.end - self.lengths[row]
        return tuple(
            None
            if pair is None
            else (
                pair[0][row : row + 1, :, first + start : first + stop].clone(),
                pair[1][row : row + 1, :, first + start : first + stop].clone(),
            )
            for pair in self._kept
        )

    def reset(self) -> None:
        """Forget everything, memory included."""
        super().reset()
        self.lengths, self.limits, self.end = [], [], 0

    # --- memory -----------------------------------------------------------------------------------

    def _pairs(self) -> Iterator[Pair]:
        return (pair for pair in self._kept if pair is not None)

    def _layer(self, layer: int) -> Pair | None:
        return self._kept[layer] if layer < len(self._kept) else None

    def allocated(self) -> int:
        """For how many positions there is memory, used or not."""
        return max((int(pair[0].shape[0] * pair[0].shape[2]) for pair in self._pairs()), default=0)

    def shrink(self) -> None:
        """Give back what texts that have left needed."""
        if self.lengths and self.allocated() > laid_rows(len(self.lengths)) * (max(self.limits) + SPARE):
            self._lay_out(len(self.lengths), self.width)

    def _columns(self) -> int:
        return next((int(pair[0].shape[2]) for pair in self._pairs()), self.end + 1)

    def _fits(self, rows: int, length: int) -> bool:
        if not self._kept or length > self.end:
            return False
        return all(pair[0].shape[0] >= rows for pair in self._pairs())

    def _lay_out(self, rows: int, width: int, like: nn.KVCache | None = None) -> None:
        """Memory for at least so many rows and columns, the rows that are there in it."""
        count, old, start = len(self.lengths), self.end, self.end - self.width
        room = min(1 << (width + SPARE - 1).bit_length(), max(*self.limits, width) + SPARE)
        tall = laid_rows(rows)
        sources = self._kept if like is None else like._kept
        self._reach(len(sources) - 1)
        for layer, pair in enumerate(sources):
            if pair is None:
                continue
            kept = self._kept[layer]
            made = []
            for which, part in enumerate(pair):
                new = votive.zeros((tall, part.shape[1], room, part.shape[3]), dtype=part.dtype, device=part.device)
                if kept is not None and count:
                    new[:count, :, width - (old - start) : width] = kept[which][:count, :, start:old]
                made.append(new)
            self._kept[layer] = (made[0], made[1])
        self.end = width


def restored(cache: nn.KVCache, blocks: Sequence[Packed]) -> None:
    """Put blocks, one after the other, into an empty cache of one text.

    >>> from votive.serve.rows_cache import restored
    >>> cache, key = votive.nn.DynamicCache(), votive.ones(1, 1, 2, 4)
    >>> restored(cache, [((key, key),), ((key, key),)])
    >>> cache.get_seq_length()
    4
    """
    for layer in range(len(blocks[0]) if blocks else 0):
        pairs = [block[layer] for block in blocks]
        whole = [p for p in pairs if p is not None]
        if whole:
            # As they were kept: what was rounded once is not rounded again.
            cache._add((votive.cat([p[0] for p in whole], 2), votive.cat([p[1] for p in whole], 2)), layer)


def packed_of(cache: nn.KVCache, start: int, stop: int) -> Packed:
    """Copies of some positions of a cache of one text."""
    return tuple(
        None if pair is None else (pair[0][:, :, start:stop].clone(), pair[1][:, :, start:stop].clone())
        for pair in cache._kept
    )


def copied(cache: nn.KVCache) -> nn.DynamicCache:
    """Another cache that holds the same; neither sees what the other adds.

    >>> from votive.serve.rows_cache import copied
    >>> cache, key = votive.nn.DynamicCache(), votive.ones(1, 1, 2, 4)
    >>> _ = cache.update(key, key)
    >>> copied(cache).get_seq_length()
    2
    """
    made = nn.DynamicCache(overwrite=True, dtype=cache.dtype)
    made.stretch = cache.stretch
    for layer, pair in enumerate(cache._kept):
        if pair is not None:
            made._add((pair[0].clone(), pair[1].clone()), layer)
    for layer, states in cache._states.items():
        counted = layer < len(cache._kept) and cache._kept[layer] is not None
        made.keep(layer, [s.clone() for s in states], 0 if counted else cache.get_seq_length(layer))
    return made
