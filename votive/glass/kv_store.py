"""Keys and values of texts that share beginnings, each held once. Chooses no tokens.

A text is fed in parts: its prompt in blocks of fixed size, what follows token by token. A *prefix*
is such a part after the parts before it, with the edits that are made while it is fed; it is found
by exactly these, so values that were computed under other edits are never taken for it.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import Any

import votive
from votive.nn import KVCache

from ..nn.layers.kv_storage import Pair
from ..tensor import Tensor
from .edit_plan import TimedEdit
from .values import nbytes


class Prefix:
    """A part of a text behind all parts before it."""

    __slots__ = ("__weakref__", "edits", "logits", "packed", "parent", "serial", "start", "stop", "tokens", "used")

    def __init__(
        self, serial: int, parent: Prefix | None, tokens: tuple[int, ...], edits: tuple[TimedEdit, ...]
    ) -> None:
        self.serial, self.parent, self.tokens, self.edits = serial, parent, tokens, edits
        self.start: int = 0 if parent is None else parent.stop
        self.stop: int = self.start + len(tokens)
        self.packed: tuple[Any, ...] | None = None  # keys and values of its own positions
        self.logits: Any = None  # (vocabulary,) of the token after it
        self.used = 0

    def chain(self) -> list[Prefix]:
        """All parts up to this one, the first first."""
        out: list[Prefix] = []
        at: Prefix | None = self
        while at is not None:
            out.append(at)
            at = at.parent
        return out[::-1]


class SessionCache(KVCache):
    """A cache over the text where a session stands.

    How much memory it takes depends on the number of positions alone, so that kernels find the
    same layout however the cache came to be.
    """

    def _start(self, new: Pair) -> Pair:
        return new[0][:, :, :0], new[1][:, :, :0]

    def _append(self, kept: Pair, new: Pair, layer_idx: int) -> tuple[Pair, Pair]:
        start, stop = self._seen[layer_idx], self._seen[layer_idx] + new[0].shape[2]
        key, value = (_with_room(k, n, start, stop) for k, n in zip(kept, new, strict=True))
        key[:, :, start:stop], value[:, :, start:stop] = new
        return (key[:, :, :stop], value[:, :, :stop]), (key, value)

    def _crop_layer(self, layer_idx: int, length: int) -> None:
        kept = self._kept[layer_idx]
        if kept is not None:
            key, value = (_with_room(k, k, length, length) for k in kept)
            self._kept[layer_idx] = key, value
        self._seen[layer_idx] = length

    def packed(self, start: int, stop: int) -> tuple[Any, ...]:
        """Copies of the keys and values of some positions, all layers', and of the states behind the last of them."""
        return tuple(
            (
                None if pair is None else tuple(k[:, :, start:stop].clone() for k in pair),
                None if i not in self._states else tuple(s.clone() for s in self._states[i]),
            )
            for i, pair in enumerate(self._kept)
        )

    def restore(self, packed: Sequence[Any], positions: int) -> None:
        """Add so many positions, which `packed` gave."""
        for layer, (pair, states) in enumerate(packed):
            if pair is not None:
                self._add(pair, layer)  # as they were kept: what was rounded once is not rounded again
            if states is not None:
                self.keep(layer, states, positions if pair is None else 0)

    def nbytes(self) -> int:
        """Bytes of the memory it holds."""
        return nbytes([k for pair in self._kept if pair for k in pair]) + self._state_bytes()


def _with_room(k: Tensor, like: Tensor, have: int, need: int) -> Tensor:
    """Memory for `need` positions that begins with the first `have` of `k`."""
    room = max(64, 1 << (need - 1).bit_length()) if need else 0
    if k.shape[2] == room:
        return k
    shape = (*like.shape[:2], room, like.shape[3])
    # Zeros, since memory behind the end must not hold what a kernel could trip over.
    out = votive.zeros(shape, dtype=like.dtype, device=like.device)
    out[:, :, :have] = k[:, :, :have]
    return out


class PrefixStore:
    """All prefixes of a session; those used least recently lose their values first.

    `limit` bounds the bytes of keys and values; what was dropped is computed again when it is
    needed. Logits are kept of the last few prefixes only: they are large.
    """

    def __init__(self, limit: int | None, logits: int = 16) -> None:
        self.limit = limit
        self.bytes = self.evicted = 0
        self._known: weakref.WeakValueDictionary[Any, Prefix] = weakref.WeakValueDictionary()
        self._clock = itertools.count(1)
        self._serials = itertools.count(1)
        self._with_logits: list[Prefix] = []
        self._most_logits = logits

    def prefix(self, parent: Prefix | None, tokens: tuple[int, ...], edits: tuple[TimedEdit, ...]) -> Prefix:
        """The prefix with these tokens and edits behind another one; always the same object."""
        at = 0 if parent is None else parent.serial
        key = (at, tokens, tuple(one.key for one in edits))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Prefix(next(self._serials), parent, tokens, edits)
        return found

    def keep(self, prefix: Prefix, packed: tuple[Any, ...]) -> None:
        """Hold a prefix's keys and values."""
        if prefix.packed is None:
            prefix.packed = packed
            self.bytes += nbytes(packed)
        self.touch(prefix)
        self._evict()

    def keep_logits(self, prefix: Prefix, logits: Tensor) -> None:
        """Hold a prefix's logits for a while."""
        prefix.logits = logits
        self._with_logits = [p for p in self._with_logits if p is not prefix] + [prefix]
        for old in self._with_logits[: -self._most_logits]:
            old.logits = None
        self._with_logits = self._with_logits[-self._most_logits :]

    def touch(self, prefix: Prefix) -> None:
        prefix.used = next(self._clock)

    def _evict(self) -> None:
        if self.limit is None or self.bytes <= self.limit:
            return
        blocks = sorted(self.blocks(), key=lambda p: p.used)
        self.bytes = sum(nbytes(p.packed or ()) for p in blocks)
        # Some more than needed, so that not every step has to look for victims.
        goal = self.limit * 9 // 10
        for prefix in blocks:
            if self.bytes <= goal:
                break
            self.bytes -= nbytes(prefix.packed or ())
            prefix.packed = None
            self.evicted += 1

    def blocks(self) -> list[Prefix]:
        """The prefixes whose keys and values are held."""
        return [p for p in self._known.values() if p.packed is not None]

    def logit_bytes(self) -> int:
        return sum(p.logits.numel() * 4 for p in self._with_logits if p.logits is not None)
