"""Feeding texts to a model so that what they share is computed once. Chooses no tokens.

A text is fed in parts: its prompt in blocks of fixed size, what follows token by token. Where two
texts share parts, under the same edits, the keys and values of one serve the other.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import votive

from ..nn import Module
from ..nn.global_hooks import GLOBAL
from ..nn.layers.kv_storage import CacheDtype
from ..tensor import Tensor
from .edit_plan import TimedEdit
from .kv_store import Prefix, PrefixStore, SessionCache
from .patch import Patch
from .probe_hub import HUB, around_module
from .targets import no_match
from .values import nbytes

_CHANGING = ("around", "forward", "forward_pre")


class PrefixRunner:
    """Runs a model over prefixes, each part once, and remembers where its cache stands."""

    def __init__(self, model: Module, *, block: int | None, limit: int | None, cache_dtype: CacheDtype = None) -> None:
        self.model, self.block, self.cache_dtype = model, block, cache_dtype
        self.store = PrefixStore(limit)
        self.cache = SessionCache(dtype=cache_dtype)
        self.runs = 0
        self._loaded: list[Prefix] = []  # what the cache holds
        self._fired: set[Any] = set()  # edits that have met a call
        self._modules = list(model.modules())
        self._known = self._conditions()

    def another(self, *, limit: int | None) -> PrefixRunner:
        """One that computes the same and holds nothing yet."""
        return PrefixRunner(self.model, block=self.block, limit=limit, cache_dtype=self.cache_dtype)

    def prefix(self, tokens: Sequence[int], prompt: int, plan: Sequence[TimedEdit]) -> Prefix:
        """The prefix of a whole text whose first `prompt` tokens are its prompt."""
        at: Prefix | None = None
        cuts = [*range(0, prompt, self.block or prompt), *range(prompt, len(tokens) + 1)]
        for start, stop in itertools.pairwise(cuts):
            part = tuple(tokens[start:stop])
            at = self.store.prefix(at, part, tuple(e for e in plan if e.during(start, stop)))
        assert at is not None
        return at

    def logits(self, prefix: Prefix) -> Tensor:
        """The logits (vocabulary,) of the token after a prefix, in float32."""
        self._check()
        if prefix.logits is None:
            assert prefix.parent is None or prefix.parent.stop == prefix.start
            self._position_before(prefix)
            self._run(prefix)
        return prefix.logits

    @contextlib.contextmanager
    def positioned_before(self, prefix: Prefix) -> Iterator[None]:
        """Inside, `rerun` may run the prefix; what it adds to the cache is forgotten."""
        self._check()
        self._position_before(prefix)
        try:
            yield
        finally:
            self._crop(len(prefix.chain()) - 1)

    def rerun(self, prefix: Prefix) -> Any:
        """Run the prefix that the cache stands before, and give the model's output."""
        ids = votive.tensor([prefix.tokens], device=getattr(self.model, "device", None))
        self.runs += 1
        with votive.no_grad(), self._edited(prefix.edits):
            return self.model(ids, past_key_values=self.cache, use_cache=True, logits_to_keep=1)

    @contextlib.contextmanager
    def _edited(self, edits: Sequence[TimedEdit]) -> Iterator[None]:
        """Inside, edits are made; one that has never met a call is an error."""
        if not edits:
            yield
            return
        # Operators are watched for edits of them: then following these costs no more.
        new = any(one.edit.pattern.wants_ops and one.key not in self._fired for one in edits)
        patch = Patch(self.model, [one.edit for one in edits], measure=False, follow=new)
        patch.__enter__()
        try:
            yield
        finally:
            patch.close()
        patch.check_read()
        # Inside of what is skipped nothing is called, and edits there do nothing.
        around = any(one.edit.do in ("skip", "swap") for one in edits)
        for one, fired in zip(edits, patch.receipt.edits, strict=True):
            # Some calls are made for a prompt only, so having fired once is enough.
            if fired:
                self._fired.add(one.key)
            elif one.key not in self._fired and one.edit.positions is None and not around:
                raise no_match(one.edit.pattern, [n for n, _ in self.model.named_modules()])

    def forget(self) -> None:
        """Drop all values; prefixes stay, and are computed again when they are needed."""
        for prefix in self.store.blocks():
            prefix.packed = prefix.logits = None
        for prefix in self.store._with_logits:
            prefix.logits = None
        self.store.bytes = 0
        self.cache, self._loaded = SessionCache(dtype=self.cache_dtype), []
        self._modules = list(self.model.modules())
        self._known = self._conditions()

    def _position_before(self, prefix: Prefix) -> None:
        """Let the cache hold all that comes before a prefix."""
        if self._loaded and self._loaded[-1] is prefix.parent:
            return
        wanted = prefix.chain()[:-1]
        same = 0
        for have, want in zip(self._loaded, wanted, strict=False):
            if have is not want:
                break
            same += 1
        self._crop(same)
        for part in wanted[len(self._loaded) :]:
            if part.packed is None:
                self._run(part)
                continue
            self.cache.restore(part.packed, part.stop - part.start)
            self._loaded.append(part)
            self.store.touch(part)

    def _crop(self, count: int) -> None:
        """Let the cache hold the first parts only; nothing, where layers keep states, which cannot go back."""
        if count < len(self._loaded) or self._length() > self._end():
            del self._loaded[0 if self.cache.keeps_states() else count :]
            self.cache.crop(self._end())

    def _end(self) -> int:
        return self._loaded[-1].stop if self._loaded else 0

    def _length(self) -> int:
        return max((self.cache.get_seq_length(i) for i in range(len(self.cache))), default=0)

    def _run(self, prefix: Prefix) -> None:
        try:
            out = self.rerun(prefix)
            if self.cache.get_seq_length() != prefix.stop:
                raise TypeError(
                    f"Session: {type(self.model).__name__} has put {self.cache.get_seq_length()} "
                    f"positions into its cache where {prefix.stop} were fed; it must take "
                    "past_key_values and add to it."
                )
        except BaseException:
            # Some layers have seen it and some have not.
            self.cache, self._loaded = SessionCache(dtype=self.cache_dtype), []
            raise
        self._loaded.append(prefix)
        self.store.keep(prefix, self.cache.packed(prefix.start, prefix.stop))
        # A copy: the memory of a view would hold those of all positions.
        self.store.keep_logits(prefix, out.logits[0, -1].detach().float().clone())

    def _check(self) -> None:
        """Raise if the model would not compute what it has computed before."""
        for what, now in self._conditions().items():
            if now != self._known[what]:
                raise RuntimeError(
                    f"Session: the model's {what} have changed, so what was computed no longer "
                    "holds; call session.forget() to compute it again, or make another session. "
                    "To change values within a session, use session.set_edits."
                )
        if self.model.training:
            raise RuntimeError("Session: the model is in training mode; call model.eval().")

    def _conditions(self) -> dict[str, Any]:
        """What results depend on besides tokens and edits."""
        device = getattr(getattr(self.model, "device", None), "type", "cpu")
        autocast = votive.is_autocast_enabled(device) and str(votive.get_autocast_dtype(device))
        modules = self._modules
        return {"parameters": _weights(modules), "hooks": _hooks(modules), "autocast types": autocast}

    def memory(self) -> dict[str, int]:
        """Bytes of keys and values by prefix, of kept logits, and of the cache in use."""
        blocks = self.store.blocks()
        self.store.bytes = sum(nbytes(p.packed or ()) for p in blocks)
        edits = self.cache.nbytes()
        logits = self.store.logit_bytes()
        return {
            "kv": self.store.bytes,
            "logits": logits,
            "edits": edits,
            "total": self.store.bytes + logits + edits,
            "blocks": len(blocks),
            "evicted": self.store.evicted,
            "runs": self.runs,
        }


def _weights(modules: Sequence[Any]) -> list[tuple[int, int, int]]:
    """Tells whether any parameter was changed or exchanged."""
    found = [p for m in modules for p in m._parameters.values() if p is not None]
    return [(id(p), p._writes, id(p._data)) for p in found]


def _hooks(modules: Sequence[Any]) -> list[int]:
    """What is attached that may change what a model computes; probes that only look may not."""
    found = [(k, g.hook) for k, g in GLOBAL.items() if g.kind in _CHANGING]
    for module in modules:
        for hooks in (module._forward_hooks, module._forward_pre_hooks):
            found += hooks.items()
    hooks = [key for key, hook in found if getattr(hook, "fn", hook) is not around_module]
    mine = {id(m) for m in modules}
    patches = [p for p in HUB.probes if isinstance(p, Patch) and not p.inactive]
    return hooks + [id(p) for p in patches if any(id(m) in mine for m in p.model.modules())]
