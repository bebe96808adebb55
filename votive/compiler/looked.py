"""Values inside of a compiled run that others hold together with autograd's graph.

In eager mode such a value stands between the calls before and after it. Here one backward graph computes everything at
once, with the gradients of these values among its results: each value has a node that gets its gradient, so hooks,
`retain_grad` and `grad` see it. A node that gets something else than what the graph has computed, because somebody else
uses the value too or a hook has changed the gradient, runs the program once more and sends the difference on.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ..autograd import engine
from ..autograd.accumulate import fit
from ..autograd.graph import BaseNode, sequence
from ..autograd.views import edge_of
from ..core.errors import AutogradError
from ..core.mode import mode
from ..dispatch import make
from .graph import Graph, Node, Value
from .rerun import run_node

if TYPE_CHECKING:
    from .entry import Entry


class Plain:
    """The calls of a program's forward pass as they were before rewrites that autograd does not know."""

    def __init__(self, graph: Graph, places: tuple[int, ...]) -> None:
        self.nodes = [dataclasses.replace(n, plan=None) for n in graph.nodes if not n.backward]
        self.inputs, self.constants = list(graph.inputs), dict(graph.constants)
        self.values = [graph.outputs[i] for i in places]


class LookedRun:
    """One run of a compiled program, of which values are looked at."""

    def __init__(self, entry: Entry, tensors: tuple[Any, ...], found: tuple[Any, ...], draws: dict[int, Any]) -> None:
        self.entry, self.tensors, self.draws = entry, tensors, draws
        self.versions = [t._storage.version for t in tensors]
        self.totals: list[Any] = []  # the gradients that the graph has computed
        self.walk: Any = None  # in which backward pass it has
        self.again: Any = None
        self.values: list[Any] = []
        edges = tuple([edge_of(t) if t._rg else None for t in tensors])
        own: list[Any] = []
        for k, i in enumerate(entry.looked):
            raw = found[i]
            node = LookedNode(self, k, raw._spec, (*edges, *own))
            h = make(raw._storage, raw._data, raw._spec, raw._offset)
            h._rg, h._edge = True, node
            self.values.append(h)
            own.append(node)

    def computed(self, totals: list[Any]) -> list[Any]:
        """Note the gradients of the values in this backward pass; as they will arrive at the nodes."""
        specs = [h._spec for h in self.values]
        self.totals = [None if g is None else fit(g, s) for g, s in zip(totals, specs, strict=True)]
        self.walk = mode.walk
        return self.totals

    def difference(self, k: int, g: Any) -> Any:
        """What a value's gradient has beside what the graph has computed."""
        known = self.totals[k] if self.walk is mode.walk and self.totals else None
        if g is None or known is None:
            return g
        self.totals[k] = None  # it has arrived
        return None if g is known else g - known

    def send(self, k: int, g: Any) -> list[Any]:
        """The gradients of value `k` by the inputs and the values before it."""
        if mode.grad:
            raise RuntimeError(
                "compile: gradients of gradients (create_graph=True) are not computed through a compiled function."
            )
        if self.again is None:
            self.again = _Again(self)
        leaves, made, cuts = self.again.leaves, self.again.made, self.again.cuts
        wanted = [t for t in leaves if t._rg] + cuts[:k]
        grads = iter(engine.grad([made[k]], wanted, [g], retain_graph=True, allow_unused=True))
        return [next(grads) if t._rg else None for t in (*leaves, *cuts[:k])]


class _Again:
    """The program run once more with autograd, cut at the values that are looked at."""

    def __init__(self, run: LookedRun) -> None:
        plain = run.entry.plain
        assert plain is not None
        for t, version in zip(run.tensors, run.versions, strict=True):
            if t._storage.version != version:
                raise AutogradError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: "
                    f"{tuple(t.shape)} is at version {t._storage.version}, expected version {version}."
                )
        self.leaves = [t.detach().requires_grad_(t._rg) for t in run.tensors]
        self.made: list[Any] = [None] * len(plain.values)
        self.cuts: list[Any] = [None] * len(plain.values)
        values: dict[Value, Any] = {**dict(zip(plain.inputs, self.leaves, strict=True)), **plain.constants}
        saved = mode.grad, mode.autocast, mode.module_path
        mode.grad, mode.autocast = True, {}
        mode.unobserved += 1
        try:
            for node in plain.nodes:
                mode.module_path = node.path
                run_node(node, values, run.draws)
                self._cut(node, plain.values, values)
        finally:
            mode.unobserved -= 1
            mode.grad, mode.autocast, mode.module_path = saved

    def _cut(self, node: Node, wanted: list[Value], values: dict[Value, Any]) -> None:
        for k, v in enumerate(wanted):
            if any(v is o for o in node.outs):
                self.made[k] = values[v]
                self.cuts[k] = values[v] = values[v].detach().requires_grad_()


class LookedNode(BaseNode):
    """Where the gradient of a value that is looked at arrives."""

    def __init__(self, run: LookedRun, k: int, spec: Any, edges: tuple[Any, ...]) -> None:
        self.run: LookedRun | None = run
        self.k, self.edges, self.grad_specs = k, edges, (spec,)
        self.seq = next(sequence)

    def name(self) -> str:
        return "CompiledBackward"

    def apply(self, grads: list[Any]) -> tuple[Any, ...]:
        if self.run is None:
            raise AutogradError(
                "trying to backward through the graph a second time, but its saved values have already been freed; "
                "pass retain_graph=True the first time."
            )
        rest = self.run.difference(self.k, grads[0])
        return (None,) * len(self.edges) if rest is None else tuple(self.run.send(self.k, rest))

    def release(self) -> None:
        self.run = None
