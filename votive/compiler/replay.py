"""Compiled graphs on a GPU as CUDA graphs: recorded when a version has run a few times, then replayed without Python.

What a CUDA graph reads and writes lies at fixed addresses. Weights stay where they are; their addresses are looked at
before each replay. Arguments are copied to memory of the graph, unless they, too, come at the same address each time.
"""

from __future__ import annotations

import sys
from typing import Any

from ..core.mode import mode
from ..ops.registry import OPS
from .entry import REPLAYS, Entry
from .places import Live

_AFTER = 2  # runs before recording: plans are made, kernels compiled and algorithms chosen
_CHANGES = 3  # recordings before giving up: addresses that never stay


class Token:
    """One run whose kept values lie in the graph's memory; while it lives, nobody else may replay."""

    __slots__ = ("__weakref__", "used")

    def __init__(self) -> None:
        self.used = False


class Replay:
    """The CUDA graphs of a compiled version."""

    def __init__(self, entry: Entry, options: Any) -> None:
        import weakref

        self.entry: Any = weakref.proxy(entry)
        self.off = options.mode == "max-autotune-no-cudagraphs" or not self._fits(entry)
        written = entry.graph.written()
        self.written = {v for v in entry.graph.inputs if v.root in written}
        self.recorded = 0
        self.runs = 0
        self.front: Any = None
        self.back: Any = None
        self.token: Any = None
        self.seen: list[int] = []
        self.copying = False  # whether gradients are copied for whoever gets them

    @staticmethod
    def _fits(entry: Entry) -> bool:
        from ..core import rng

        draws = {id(n.draw): n.draw for n in entry.graph.nodes if n.draw is not None}.values()
        for d in draws:
            if d.generator is not rng.default_generator(d.generator.device):
                return False
        if any(a.__class__ is Live for n in entry.graph.nodes for a in n.args):
            return False  # a number that is read before each run would stay what it was
        return all(n.form != "out" for n in entry.graph.nodes) and not entry.graph.constants

    def forward(self, tensors: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any] | None:
        """What the forward graph gives, by a replay; None: run it as usual."""
        from .. import cuda

        if self.off or cuda.is_current_stream_capturing():
            return None
        addresses = [t._data.ptr for t in tensors]
        self.runs += 1
        if self.front is None or not self._same(addresses):
            if self.runs <= _AFTER or self.recorded >= _CHANGES or self._busy():
                self.seen = addresses
                self.off = self.recorded >= _CHANGES
                return None
            self._record(tensors, addresses)
        elif self._busy():
            return None
        for i, mine in self.copies:
            OPS["copy"].write((mine, tensors[i]))
        self.front.replay()
        outs = tuple([o.clone() for o in self.results])
        if self.back is None:
            return outs, None
        token = Token()
        self.token = _weak(token)
        return outs, token

    def _busy(self) -> bool:
        """Whether a run before waits for its gradients."""
        token = None if self.token is None else self.token()
        return token is not None and not token.used

    def _same(self, addresses: list[int]) -> bool:
        return all(addresses[i] == at for i, at in self.pinned)

    def backward(self, token: Token, given: list[Any]) -> list[Any]:
        """The gradients of a run, by a replay, which writes over what the run has kept."""
        if token.used:
            raise RuntimeError(
                "compile: backward a second time through a program that runs as a CUDA graph, whose kept values are "
                "gone; compile it with mode='max-autotune-no-cudagraphs'."
            )
        token.used = True
        # What others still hold of the gradients of a run before is put back after the replay, which writes over it.
        shown = [g for g, n in zip(self.grads, self.references, strict=True) if sys.getrefcount(g._storage) != n]
        self.copying = self.copying or bool(shown)
        before = [g.clone() for g in shown]
        for mine, g in zip(self.tangents, given, strict=True):
            OPS["copy"].write((mine, g))
        self.back.replay()
        found = [g.clone() if self.copying else g.detach() for g in self.grads]
        for g, old in zip(shown, before, strict=True):
            OPS["copy"].write((g, old))
        return found

    # --- recording -------------------------------------------------------------------------------

    def _record(self, tensors: tuple[Any, ...], addresses: list[int]) -> None:
        from .. import cuda

        entry = self.entry
        self.recorded += 1
        places = [entry.guards.wanted[v][0] for v in entry.graph.inputs]
        self.pinned: list[tuple[int, int]] = []
        self.copies: list[tuple[int, Any]] = []
        inputs = list(tensors)
        for i, (v, place) in enumerate(zip(entry.graph.inputs, places, strict=True)):
            stays = len(self.seen) == len(addresses) and self.seen[i] == addresses[i]
            if place.kind != "argument" or v in self.written or stays:
                self.pinned.append((i, addresses[i]))
                inputs[i] = tensors[i].detach()
            else:
                inputs[i] = tensors[i].detach().clone()
                self.copies.append((i, inputs[i]))
        self.alive = inputs
        grad, mode.grad = mode.grad, False
        try:
            with cuda.device(tensors[0].device):
                cuda.empty_cache()  # the graph has memory of its own
                self._capture(inputs, cuda)
        finally:
            mode.grad = grad

    def _capture(self, inputs: list[Any], cuda: Any) -> None:
        entry = self.entry
        pool, side = cuda.graph_pool_handle(), cuda.Stream()
        side.wait_stream(cuda.current_stream())
        self.front = cuda.CUDAGraph()
        with cuda.graph(self.front, pool=pool, stream=side):
            found = list(entry.forward.run(*inputs))
        n, end = len(entry.inside), len(entry.inside) + len(entry.saved)
        draws = found[end:]
        self.results = found[:n]
        self.back = None
        if entry.backward is None:
            return
        self.tangents = [_empty(s) for s in entry.tangent_specs]
        self.back = cuda.CUDAGraph()
        self.back._repeats = self.front
        kept = found[n:end]
        del found
        with cuda.graph(self.back, pool=pool, stream=side):
            self.grads = list(entry.backward.run(kept, *self.tangents, *draws))
        self.references = [sys.getrefcount(g._storage) for g in self.grads]


def _empty(spec: Any) -> Any:
    return OPS["_full"].apply((spec.shape, spec.layout.strides, 0, spec.dtype, spec.device))


def _weak(token: Token) -> Any:
    import weakref

    return weakref.ref(token)


REPLAYS["cuda"] = Replay
