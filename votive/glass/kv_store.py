"""Keys and values of texts that share beginnings, each held once. Chooses no tokens.

A text is fed in parts: its prompt in blocks of fixed size, what follows token by token. A *prefix*
is such a part after the parts before it, with the edits that are made while it is fed; it is found
by exactly these, so values that were computed under other edits are never taken for it.
"""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import votive
from votive.nn import KVCache

from .patch import Patch
from .plan import Live
from .probe import Probe
from .targets import no_match


class Prefix:
    """A part of a text behind all parts before it."""

    __slots__ = ("__weakref__", "live", "logits", "packed", "parent", "serial", "start", "stop",
                 "tokens", "used")  # fmt: skip

    def __init__(
        self, serial: int, parent: Prefix | None, tokens: tuple[int, ...], live: tuple[Live, ...]
    ) -> None:
        self.serial, self.parent, self.tokens, self.live = serial, parent, tokens, live
        self.start = 0 if parent is None else parent.stop
        self.stop = self.start + len(tokens)
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


class PathCache(KVCache):
    """A cache over the text where a session stands.

    How much memory it takes depends on the number of positions alone, so that kernels find the
    same layout however the cache came to be.
    """

    def _start(self, new: Any) -> Any:
        return new[0][:, :, :0], new[1][:, :, :0]

    def _join(self, kept: Any, new: Any, layer_idx: int) -> tuple[Any, Any]:
        start, count = self._seen[layer_idx], new[0].shape[2]
        kept = tuple(_with_room(k, n, start, start + count) for k, n in zip(kept, new, strict=True))
        for k, n in zip(kept, new, strict=True):
            k[:, :, start : start + count] = n
        return tuple(k[:, :, : start + count] for k in kept), kept

    def _crop_layer(self, layer_idx: int, length: int) -> None:
        kept: Any = self._kept[layer_idx]
        self._kept[layer_idx] = tuple(_with_room(k, k, length, length) for k in kept)  # type: ignore[assignment]
        self._seen[layer_idx] = length

    def packed(self, start: int, stop: int) -> tuple[Any, ...]:
        """Copies of the keys and values of some positions, all layers'."""
        return tuple(k[:, :, start:stop].clone() for pair in self._kept if pair for k in pair)

    def restore(self, packed: Sequence[Any]) -> None:
        """Add positions that `packed` gave."""
        for layer, pair in enumerate(zip(packed[::2], packed[1::2], strict=True)):
            self.update(*pair, layer)

    def nbytes(self) -> int:
        """Bytes of the memory it holds."""
        return sum(k.numel() * k.element_size() for pair in self._kept if pair for k in pair)


def _with_room(k: Any, like: Any, have: int, need: int) -> Any:
    """Memory for `need` positions that begins with the first `have` of `k`."""
    room = max(64, 1 << (need - 1).bit_length()) if need else 0
    if k.shape[2] == room:
        return k
    shape = (*like.shape[:2], room, like.shape[3])
    # Zeros, since memory behind the end must not hold what a kernel could trip over.
    out = votive.zeros(shape, dtype=like.dtype, device=like.device)
    out[:, :, :have] = k[:, :, :have]
    return out


class Store:
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

    def prefix(
        self, parent: Prefix | None, tokens: tuple[int, ...], live: tuple[Live, ...]
    ) -> Prefix:
        """The prefix with these tokens and edits behind another one; always the same object."""
        at = 0 if parent is None else parent.serial
        key = (at, tokens, tuple(one.key for one in live))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Prefix(next(self._serials), parent, tokens, live)
        return found

    def keep(self, prefix: Prefix, packed: tuple[Any, ...]) -> None:
        """Hold a prefix's keys and values."""
        if prefix.packed is None:
            prefix.packed = packed
            self.bytes += _size(packed)
        self.touch(prefix)
        self._evict()

    def keep_logits(self, prefix: Prefix, logits: Any) -> None:
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
        self.bytes = sum(_size(p.packed or ()) for p in blocks)
        # Some more than needed, so that not every step has to look for victims.
        goal = self.limit * 9 // 10
        for prefix in blocks:
            if self.bytes <= goal:
                break
            self.bytes -= _size(prefix.packed or ())
            prefix.packed = None
            self.evicted += 1

    def blocks(self) -> list[Prefix]:
        """The prefixes whose keys and values are held."""
        return [p for p in self._known.values() if p.packed is not None]

    def logit_bytes(self) -> int:
        return sum(p.logits.numel() * 4 for p in self._with_logits if p.logits is not None)


def _size(packed: Sequence[Any]) -> int:
    return sum(t.numel() * t.element_size() for t in packed)


class Feeder:
    """Runs a model over prefixes, each part once, and remembers where its cache stands."""

    def __init__(self, model: Any, *, block: int, limit: int | None) -> None:
        self.model, self.block = model, block
        self.store = Store(limit)
        self.cache = PathCache()
        self.runs = 0
        self._loaded: list[Prefix] = []  # what the cache holds
        self._fired: set[Any] = set()  # edits that have met a call
        self._parameters = _versions(model)

    def prefix(self, tokens: Sequence[int], prompt: int, plan: Sequence[Live]) -> Prefix:
        """The prefix of a whole text whose first `prompt` tokens are its prompt."""
        at: Prefix | None = None
        cuts = [*range(0, prompt, self.block), *range(prompt, len(tokens) + 1)]
        for start, stop in itertools.pairwise(cuts):
            part = tuple(tokens[start:stop])
            at = self.store.prefix(at, part, tuple(e for e in plan if e.during(start, stop)))
        assert at is not None
        return at

    def logits(self, prefix: Prefix) -> Any:
        """The logits (vocabulary,) of the token after a prefix, in float32."""
        self._check()
        if prefix.logits is None:
            assert prefix.parent is None or prefix.parent.stop == prefix.start
            self._stand_before(prefix)
            self._run(prefix)
        return prefix.logits

    @contextlib.contextmanager
    def standing_before(self, prefix: Prefix) -> Iterator[None]:
        """Inside, `again` may run the prefix; what it adds to the cache is forgotten."""
        self._check()
        self._stand_before(prefix)
        try:
            yield
        finally:
            self._crop(len(prefix.chain()) - 1)

    def again(self, prefix: Prefix) -> Any:
        """Run the prefix that the cache stands before, and give the model's output."""
        ids = votive.tensor([prefix.tokens], device=getattr(self.model, "device", None))
        self.runs += 1
        with votive.no_grad(), self._edited(prefix.live):
            return self.model(ids, past_key_values=self.cache, use_cache=True, logits_to_keep=1)

    @contextlib.contextmanager
    def _edited(self, live: Sequence[Live]) -> Iterator[None]:
        """Inside, edits are made; one that has never met a call is an error."""
        if not live:
            yield
            return
        patch = Patch(self.model, [one.edit for one in live], measure=False)
        Probe.__enter__(patch)
        try:
            yield
        finally:
            Probe.__exit__(patch)
        for one, fired in zip(live, patch.receipt.edits, strict=True):
            # Some calls are made for a prompt only, so having fired once is enough.
            if fired:
                self._fired.add(one.key)
            elif one.key not in self._fired and one.edit.positions is None:
                raise no_match(one.edit.pattern, [n for n, _ in self.model.named_modules()])

    def forget(self) -> None:
        """Drop all values; prefixes stay, and are computed again when they are needed."""
        for prefix in self.store.blocks():
            prefix.packed = prefix.logits = None
        for prefix in self.store._with_logits:
            prefix.logits = None
        self.store.bytes = 0
        self.cache, self._loaded = PathCache(), []
        self._parameters = _versions(self.model)

    def _stand_before(self, prefix: Prefix) -> None:
        """Let the cache hold all that comes before a prefix."""
        wanted = prefix.chain()[:-1]
        same = 0
        for have, want in zip(self._loaded, wanted, strict=False):
            if have is not want:
                break
            same += 1
        self._crop(same)
        for part in wanted[same:]:
            if part.packed is None:
                self._run(part)
                continue
            self.cache.restore(part.packed)
            self._loaded.append(part)
            self.store.touch(part)

    def _crop(self, count: int) -> None:
        """Let the cache hold the first parts only."""
        if count < len(self._loaded) or self._length() > self._end():
            del self._loaded[count:]
            self.cache.crop(self._end())

    def _end(self) -> int:
        return self._loaded[-1].stop if self._loaded else 0

    def _length(self) -> int:
        return max((self.cache.get_seq_length(i) for i in range(len(self.cache))), default=0)

    def _run(self, prefix: Prefix) -> None:
        try:
            out = self.again(prefix)
        except BaseException:
            # Some layers have seen it and some have not.
            self.cache, self._loaded = PathCache(), []
            raise
        self._loaded.append(prefix)
        if self.cache.get_seq_length() != prefix.stop:
            raise TypeError(
                f"Session: {type(self.model).__name__} has put {self.cache.get_seq_length()} "
                f"positions into its cache where {prefix.stop} were fed; it must take "
                "past_key_values and add to it."
            )
        self.store.keep(prefix, self.cache.packed(prefix.start, prefix.stop))
        # A copy: the memory of a view would hold those of all positions.
        self.store.keep_logits(prefix, out.logits[0, -1].detach().float().clone())

    def _check(self) -> None:
        if self._parameters != _versions(self.model):
            raise RuntimeError(
                "Session: the model's parameters have changed, so what was computed no longer "
                "holds; call session.forget() to compute it again, or make another session."
            )

    def memory(self) -> dict[str, int]:
        """Bytes of keys and values by prefix, of kept logits, and of the cache in use."""
        blocks = self.store.blocks()
        self.store.bytes = sum(_size(p.packed or ()) for p in blocks)
        live = self.cache.nbytes()
        logits = self.store.logit_bytes()
        return {
            "kv": self.store.bytes, "logits": logits, "live": live,
            "total": self.store.bytes + logits + live, "blocks": len(blocks),
            "evicted": self.store.evicted, "runs": self.runs,
        }  # fmt: skip


def _versions(model: Any) -> tuple[tuple[int, int], ...]:
    return tuple((id(p), p._version) for p in model.parameters())
