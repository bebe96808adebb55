"""How much of texts is kept in memory, and blocks of keys and values that texts with a common beginning share.

Memory is counted in blocks of positions. Texts hold as many as they may come to need before they begin, so that none
has to be thrown out half way; what is left keeps blocks of texts that were read, those used least recently going first.
A block is found by its tokens, by what was changed while they were read, and by the block before it.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from ..tensor import Tensor

Packed = tuple[tuple[Tensor, Tensor] | None, ...]  # by layer: keys and values of a block's positions


class TooLong(ValueError):
    """A text that would not fit into memory even if it were alone."""


@dataclass
class Stored:
    """A block that is kept."""

    key: bytes
    packed: Packed

    def nbytes(self) -> int:
        """Bytes of its keys and values."""
        return sum(int(t.nbytes) for pair in self.packed if pair is not None for t in pair)


@dataclass
class BlockStatistics:
    """What the blocks of a model are used for, and how often they served."""

    total: int = 0
    held: int = 0
    kept: int = 0
    evicted: int = 0
    hits: int = 0  # positions that did not have to be read again
    read: int = 0  # positions that had to


class BlockStore:
    """Blocks of `size` positions, `total` in all.

    >>> from votive.serve.blocks import BlockStore
    >>> store = BlockStore(total=4, size=16)
    >>> store.hold(40), store.statistics().held, store.hold(65)
    (True, 3, False)
    """

    def __init__(self, total: int, size: int) -> None:
        if total < 1 or size < 1:
            raise ValueError(f"BlockStore: there must be blocks and positions in them, got {total} of {size}.")
        self.total, self.size = total, size
        self._held = self._evicted = self._hits = self._read = 0
        self._kept: OrderedDict[bytes, Stored] = OrderedDict()  # the one used least recently is first

    def needed(self, positions: int) -> int:
        """How many blocks hold so many positions."""
        return -(-positions // self.size)

    def check(self, positions: int) -> None:
        """Raise `TooLong` for what never fits."""
        if self.needed(positions) > self.total:
            raise TooLong(
                f"the request may need memory for {positions:,} tokens, and this server has it for "
                f"{self.total * self.size:,}; ask for fewer max_tokens, fewer texts, or shorten the prompt."
            )

    def hold(self, positions: int) -> bool:
        """Let texts hold so many positions in all; False, and nothing changes, where there are not so many."""
        wanted = self.needed(positions)
        if wanted > self.total:
            return False
        self._held = wanted
        self._make_room(0)
        return True

    def keys(self, ids: Sequence[int], root: bytes, changes: Sequence[tuple[int, bytes]] = ()) -> list[bytes]:
        """The keys of all whole blocks of a text.

        `root` says what holds from the beginning (an adapter, the form of the cache); `changes` are pairs of the first
        position at which something is changed, and what.
        """
        found, key = [], hashlib.blake2b(root, digest_size=16).digest()
        for stop in range(self.size, len(ids) + 1, self.size):
            made = hashlib.blake2b(key, digest_size=16)
            made.update(b" ".join(str(i).encode() for i in ids[stop - self.size : stop]))
            for since, what in changes:
                if since < stop:
                    made.update(b"|" + what)
            found.append(key := made.digest())
        return found

    def found(self, keys: Sequence[bytes]) -> list[Stored]:
        """The blocks that are kept of a text, from its beginning on."""
        blocks = []
        for key in keys:
            block = self._kept.get(key)
            if block is None:
                break
            self._kept.move_to_end(key)
            blocks.append(block)
        return blocks

    def count(self, hits: int, read: int) -> None:
        """Note how many positions of a text were there, and how many were not."""
        self._hits += hits
        self._read += read

    def has(self, key: bytes) -> bool:
        """Whether a block is kept; does not count as using it."""
        return key in self._kept

    def keep(self, key: bytes, packed: Packed) -> None:
        """Keep a block, if there is room beside what texts hold."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return
        if self._held < self.total and self._make_room(1):
            self._kept[key] = Stored(key, packed)

    def _make_room(self, wanted: int) -> bool:
        while self._kept and self._held + len(self._kept) + wanted > self.total:
            self._kept.popitem(last=False)
            self._evicted += 1
        return self._held + len(self._kept) + wanted <= self.total

    def forget(self) -> None:
        """Drop all that is kept; leases stay."""
        self._kept.clear()

    def nbytes(self) -> int:
        """Bytes of what is kept for texts to come."""
        return sum(block.nbytes() for block in list(self._kept.values()))

    def statistics(self) -> BlockStatistics:
        """Numbers for whoever watches the server."""
        return BlockStatistics(self.total, self._held, len(self._kept), self._evicted, self._hits, self._read)
