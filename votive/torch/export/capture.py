"""A program written down as a graph of operators, for the sizes it has or for any. Knows no exported programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from ...autograd.modes import no_grad
from ...compiler import dynamic
from ...compiler.confirm import difference, other_values
from ...compiler.graph import Graph, Value
from ...compiler.results import recipes_of
from ...compiler.structure import Template, Unknown, flatten
from ...compiler.symbols import is_symbolic, text_of
from ...compiler.trace import Tracer, Untraceable
from ...compiler.unsized import Abandoned
from ...nn import Parameter
from ...tensor import Tensor
from ..overlays._dynamo.exc import UserError
from . import trees as pytree


@dataclass
class Captured:
    """A graph, the tensors behind its inputs, and what is returned: values, texts of sizes, constants."""

    graph: Graph
    inputs: dict[int, Value]  # leaf of the arguments -> value
    held: dict[Value, Tensor]
    results: list[Any]
    out_spec: Any
    symbols: list[tuple[int, int]] = field(default_factory=list)  # s0, s1, ...: leaf and dimension
    conditions: list[str] = field(default_factory=list)
    smallest: int = 2  # sizes from here on are served


@dataclass(frozen=True)
class SizeText:
    """A number that follows from sizes, as text."""

    text: str


class _Plain(Tracer):
    """Writes down every call of a run; what it does not know is held by the program."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[Value, Tensor] = {}

    def unknown(self, tensor: Any) -> Value:
        found = self.name(tensor, "held", "")
        self.held[found] = tensor
        return found

    def read(self, tensor: Any) -> None:
        self.give_up(
            "Could not guard on data-dependent expression: Python looks at the numbers of a tensor (item(), tolist(), "
            "if tensor: ...), which the graph cannot depend on. Write it with torch.where or torch.cond"
        )


def _results(result: Any, value_of: Callable[[Any], Value]) -> tuple[list[Any], Any]:
    leaves, spec = pytree.tree_flatten(result)
    found: list[Any] = []
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            found.append(value_of(leaf))
        elif is_symbolic(leaf):
            found.append(SizeText(text_of(leaf)))
        elif leaf is None or isinstance(leaf, (bool, int, float, complex, str)):
            found.append(leaf)
        else:
            raise UserError(f"export: it returns a {type(leaf).__name__}; return tensors, numbers, text or None.")
    return found, spec


def for_these_sizes(mod: Any, args: tuple[Any, ...], kwargs: dict[str, Any], flat: list[Any]) -> Captured:
    """Run a program once and write its calls down; what it writes into is put back."""
    before = _kept(mod, flat)
    try:
        return _ran(mod, args, kwargs, flat)
    finally:
        with no_grad():
            for tensor, writes, values in before:
                if tensor._writes != writes:
                    tensor.detach().copy_(values)


def _kept(mod: Any, flat: list[Any]) -> list[tuple[Tensor, int, Tensor]]:
    """Copies of what a program may write into: buffers, plain tensors of modules, inputs."""
    own = [t for m in mod.modules() for t in vars(m).values() if isinstance(t, Tensor)]
    found = {id(t): t for t in (*mod.buffers(), *own, *flat) if isinstance(t, Tensor)}
    return [(t, t._writes, t.detach().clone()) for t in found.values()]


def _ran(mod: Any, args: tuple[Any, ...], kwargs: dict[str, Any], flat: list[Any]) -> Captured:
    tracer = _Plain()
    inputs = {i: tracer.name(leaf, "input", f"{i}") for i, leaf in enumerate(flat) if isinstance(leaf, Tensor)}
    with tracer:
        result = mod(*args, **kwargs)
    if tracer.broken:
        raise UserError(f"export: {tracer.broken}.")
    written = tracer.graph.written()
    if any(v.root in written and isinstance(t, Parameter) for v, t in tracer.held.items()):
        raise UserError("export: the program writes into a parameter.")
    try:
        results, spec = _results(result, tracer.value_of)
    except Untraceable as e:
        raise UserError(f"export: {e}.") from None
    return Captured(tracer.graph, inputs, dict(tracer.held), results, spec)


def for_any_sizes(
    mod: Any, args: tuple[Any, ...], kwargs: dict[str, Any], flat: list[Any], wanted: dict[int, set[int]]
) -> Captured:
    """Trace a program whose sizes at `wanted` are symbols, and once more at others, to see that no size was lost."""
    for part in ("nn.compiled", "optim.compiled"):  # say how modules and optimizers are gone through
        import_module(f"votive.{part}")
    if len(flatten(args, kwargs)[1]) != len(flat):
        raise UserError("export: dynamic sizes need inputs that are tensors, tuples, lists, dicts and numbers.")
    names = [f"input{i}" for i in range(len(flat))]
    kept: list[Captured] = []

    def finish(watch: Any, result: Any, options: Any, make: Any) -> None:
        tracer, whole = watch.tracer, Template(result, watch.is_outer)
        tracer.check_draws()
        graph = tracer.graph
        values, spec = _results(result, tracer.value_of)
        recipes, _ = recipes_of(tracer, whole.tensors)
        graph.outputs = [v for v in values if isinstance(v, Value)]
        held: dict[Value, Tensor] = {}
        inputs: dict[int, Value] = {}
        for v in graph.inputs:
            place, twin = watch.guards.tensors[v]
            real = watch.unsized.real(twin)
            if place.kind == "argument":
                inputs[place.where] = v
            else:
                held[v] = twin if real is None else real
        kept.append(Captured(graph, inputs, held, values, spec))
        make(graph, watch.guards, None, recipes, whole.released(), None, [])

    def trace(values: dict[str, int] | None = None) -> Any:
        leaves = tuple(flat)
        return dynamic.traced(mod, args, kwargs, leaves, None, dict(wanted), finish, names, values)

    try:
        found = trace()
        captured = kept[0]
        others = other_values(found.symbols)
        lost = difference(found, trace(others), others)
        if lost:
            raise UserError(f"export: a size was lost on its way: {lost}; make fewer dimensions dynamic.")
        captured.graph, captured.conditions = found.graph, list(found.symbols.conditions)
        captured.symbols = [(i, d) for i in sorted(wanted) for d in sorted(wanted[i])]
        if found.symbols.fixed:
            raise UserError(
                "Constraints violated! You marked sizes as dynamic but your code specialized them to constants: "
                + "; ".join(found.symbols.fixed)
            )
        for small in (1, 0):  # other programs in general, so that they are tried
            sizes = {s.name: small for s in found.symbols.symbols}
            try:
                if difference(found, trace(sizes), sizes):
                    break
            except (Abandoned, Untraceable, Unknown, Exception):
                break
            captured.smallest = small
    except (Abandoned, Untraceable, Unknown) as e:
        raise UserError(f"export: {e}; make fewer dimensions dynamic, or write it with operators.") from None
    return captured
