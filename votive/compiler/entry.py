"""One compiled version of a program: guards, functions of its forward and backward graphs, how results are built."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..autograd.function import Function
from ..core.layout import Spec
from ..core.mode import mode
from ..ops.registry import OPS
from .backward import Joint, needed_by, saved_values
from .emit import Emitted, draws_of, emit
from .gradients import spend
from .graph import Graph, Node, Value
from .guards import Guards
from .looked import LookedRun, Plain
from .memory import overwritten
from .passes import improve
from .sizes import Found
from .symbols import is_symbolic

_numbers = itertools.count()


@dataclass(frozen=True)
class Recipe:
    """How a result is taken from inputs and outputs of a graph: views are made outside, where autograd sees them."""

    given: bool  # an input of the graph, else one of its outputs
    index: int
    views: tuple[Node, ...] = ()
    detached: bool = False

    def make(self, inputs: tuple[Any, ...], outputs: tuple[Any, ...], sizes: Any = None) -> Any:
        t = (inputs if self.given else outputs)[self.index]
        for node in self.views:
            args = node.args[1:]
            if sizes is not None and is_symbolic(args):
                args = sizes.function(args)(*inputs[len(inputs) - len(sizes.names) :])
            t = node.op.apply((t, *args))
        return t.detach() if self.detached else t


class Entry:
    """A graph that is run while its guards hold."""

    def __init__(
        self,
        graph: Graph,
        guards: Guards,
        joint: Joint | None,
        recipes: list[Recipe],
        build: Callable[[tuple[Any, ...]], Any],
        options: Any,
        report: list[str],
        looked: tuple[int, ...] = (),
        spent: tuple[int, ...] = (),
    ) -> None:
        self.spent = spent  # outputs whose gradients were computed inside
        self.looked = looked  # outputs that others hold together with autograd's graph
        self.plain = Plain(graph, looked) if looked else None
        self.graph, self.guards, self.joint, self.build = graph, guards, joint, build
        self.runs = 0
        self.cleared: list[int] = []  # inputs whose gradients are set before they are read
        self.number = next(_numbers)
        self.effects: list[str] = []  # what a run leaves behind beside its result
        self.captures: list[str] = []  # addresses of calls that others look at
        self.report = report
        self.sizes = sizes = graph.sizes
        if sizes is not None:
            sizes.symbols.asking = "prove"
        improve(graph, joint, report)
        if sizes is not None:
            sizes.close()
        inputs = graph.inputs
        written = graph.written()
        self.check = guards.compile(inputs, any(v.root in written for v in inputs))
        plain = [Recipe(False, i) for i in range(len(graph.outputs))]
        self.recipes = None if recipes == plain else recipes
        self.inside = graph.outputs
        self.saved: list[Value] = []
        self.draws: list[Any] = []
        if joint is None:
            self.forward = emit(graph.nodes, inputs, self.inside, graph)
            self.backward: Emitted | None = None
        else:
            self._with_gradients(graph.nodes, joint)
        # What runs once more for gradients must know its draws, and a replay does not tell them.
        device = "" if sizes is not None or (looked and draws_of(graph.nodes)) else _device(graph)
        self.replay = REPLAYS[device](self, options) if device in REPLAYS else None

    def _with_gradients(self, nodes: list[Node], joint: Joint) -> None:
        graph = self.graph
        self.saved = saved_values(nodes, joint)
        front = [n for n in nodes if not n.backward]
        back = [n for n in nodes if n.backward]
        again = {id(d) for d in draws_of(back)}
        self.draws = [d for d in draws_of(front) if id(d) in again or self.looked]
        self.forward = emit(front, graph.inputs, [*self.inside, *self.saved], graph, give=self.draws)
        gone = overwritten(back)
        self.fragile = [i for i, v in enumerate(self.saved) if v.root in gone]
        self.wanted = joint.inputs
        grads = [g for g in joint.grads if g is not None]
        self.backward = emit(back, joint.tangents, grads, graph, given=self.draws, taken=self.saved)
        self.tangent_specs = [t.spec for t in joint.tangents]
        self.differentiable = joint.outputs
        self.needs = needed_by(back, joint, self.saved)

    def run(self, tensors: tuple[Any, ...]) -> Any:
        """The program's result for inputs that the guards have let through."""
        self.runs += 1
        for i in self.cleared:
            tensors[i]._grad = None
        if self.backward is None:
            grad, mode.grad = mode.grad, False
            try:
                found = self.compute(tensors)[0]
            finally:
                mode.grad = grad
            for i in self.spent:
                spend(found[i])
        else:
            found = self._recorded(tensors)
        if self.recipes is not None:
            found = tuple([r.make(tensors, found, self.sizes) for r in self.recipes])
        if self.sizes is not None:
            found = Found(found)
            found.of, found.sizes = self.sizes, tensors[len(self.graph.inputs) :]
        return self.build(found)

    def _recorded(self, tensors: tuple[Any, ...]) -> tuple[Any, ...]:
        """What the forward graph gives, known to autograd."""
        if not self.looked:
            outs = _Run.apply(self, None, *tensors)
            return outs if isinstance(outs, tuple) else (outs,)
        grad, mode.grad = mode.grad, False
        try:
            found, token = self.compute(tensors)
        finally:
            mode.grad = grad
        end = len(self.inside) + len(self.saved)
        draws = {id(d): taken for d, taken in zip(self.draws, found[end:], strict=True)} if token is None else {}
        run = LookedRun(self, tensors, found, draws)
        values = run.values
        outs = list(_Run.apply(self, (run, found, token), *tensors, *values))
        for i, h in zip(self.looked, values, strict=True):
            outs[i] = h
        return tuple(outs)

    def compute(self, tensors: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """(what the forward graph gives, a token of a replay whose memory it lies in, or None)."""
        if self.replay is not None:
            found = self.replay.forward(tensors)
            if found is not None:
                return found
        return self.forward.run(*tensors), None


# Devices that can run a whole graph at once: how one is made.
REPLAYS: dict[str, Callable[[Entry, Any], Any]] = {}


def _device(graph: Graph) -> str:
    """The type of the one device of a graph; empty where there are several."""
    found = {v.spec.device for n in graph.nodes for v in (*n.reads(), *n.outs)}
    return found.pop().type if len(found) == 1 else ""


def chain(v: Value) -> tuple[Value, tuple[Node, ...]]:
    """The value whose memory another shows, and the views between."""
    nodes: list[Node] = []
    while v.node is not None and v.node.is_view:
        nodes.insert(0, v.node)
        v = next(v.node.reads())
    return v, tuple(nodes)


class _Run(Function):
    """A compiled graph in the graph of autograd."""

    @staticmethod
    def forward(ctx: Any, entry: Entry, ready: Any, *given: Any) -> Any:
        tensors = given[: len(entry.graph.inputs)]
        if ready is None:
            ctx.run = None
            found, ctx.token = entry.compute(given)
        else:
            ctx.run, found, ctx.token = ready
        n = len(entry.inside)
        outs = found[:n]
        ctx.entry = entry
        ctx.kept, ctx.done = None, set()
        ctx.count = len(given)
        ctx.sizes = () if entry.sizes is None else given[len(entry.graph.inputs) :]
        if ctx.token is None:
            end = n + len(entry.saved)
            ctx.draws = found[end:]
            ctx.save_for_backward(*found[n:end])
        else:  # the rest lies in the memory of the graph; of these it must be known whether they were changed
            places = {v: i for i, v in enumerate(entry.graph.inputs)}
            ctx.save_for_backward(*[tensors[places[v]] for v in entry.saved if v in places])
        ctx.mark_non_differentiable(*[o for i, o in enumerate(outs) if i not in entry.differentiable])
        ctx.set_materialize_grads(False)
        return outs

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        entry: Entry = ctx.entry
        if mode.grad:
            raise RuntimeError(
                "compile: gradients of gradients (create_graph=True) are not computed through a compiled function; "
                "call the function itself, or compile one that computes the gradient."
            )
        specs = entry.tangent_specs
        if entry.sizes is not None:
            specs = [entry.sizes.spec(s, ctx.sizes) for s in specs]
        given = [_fitted(grads[i], s) for i, s in zip(entry.differentiable, specs, strict=True)]
        assert entry.backward is not None
        assert entry.joint is not None
        missing = {k for k, i in enumerate(entry.differentiable) if grads[i] is None}
        if ctx.token is not None:
            assert entry.replay is not None
            ctx.saved_tensors  # noqa: B018 - says if they were changed
            found = iter(entry.replay.backward(ctx.token, given))
        else:
            kept, last = _unpacked(ctx, missing)
            for i in () if last else entry.fragile:  # a pass after this one reads them, too
                kept[i] = kept[i].clone()
            found = iter(entry.backward.run(kept, *given, *ctx.draws, *ctx.sizes))
        out: list[Any] = [None] * (2 + ctx.count)
        made = [None if g is None else next(found) for g in entry.joint.grads]
        made = [None if s and s <= missing else g for g, s in zip(made, entry.joint.sources, strict=True)]
        for i, g in zip(entry.wanted, made, strict=False):
            out[2 + i] = g
        if ctx.run is not None:
            out[2 + len(entry.graph.inputs) :] = ctx.run.computed(made[len(entry.wanted) :])
        return tuple(out)


def _unpacked(ctx: Any, missing: set[int]) -> tuple[list[Any], bool]:
    """(what a run has kept, whether this pass is the last to read it).

    A pass that comes from some of the results only uses up what these need, and asks for nothing else: the gradients
    of several results may be computed one after the other, as eagerly.
    """
    entry = ctx.entry
    came = [k for k in range(len(entry.differentiable)) if k not in missing]
    needed = frozenset().union(*[entry.needs[k] for k in came])
    saved = ctx.kept if ctx._saved is None else ctx._saved
    if saved is None or any(k in ctx.done for k in came if entry.needs[k]):
        ctx._saved = None
        ctx.saved_tensors  # noqa: B018 - says why not
    kept = [ctx._unpack(s) if i in needed or s.hooks else s.tensor for i, s in enumerate(saved)]
    if mode.freeing:
        ctx.done.update(came)
    last = mode.freeing and all(k in ctx.done for k, n in enumerate(entry.needs) if n)
    ctx.kept = None if last else saved
    if last:
        ctx._saved = None  # nobody else may hold what the graph lets go of on its way
    return kept, last


def _fitted(g: Any, spec: Spec) -> Any:
    """A gradient as the graph expects it."""
    if g is None:
        return OPS["_full"].apply((spec.shape, spec.layout.strides, 0, spec.dtype, spec.device))
    if g._spec is spec:
        return g
    return OPS["_copy_as"].apply((g, spec.dtype, spec.strides))
