"""A program as graphs of operators, run with several sizes of its dynamic dimensions. Knows no ONNX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..autograd import no_grad
from ..compiler.graph import Graph, Node, Value
from ..compiler.trace import Tracer, Untraceable
from ..nn import Module
from ..ops.registry import F
from ..tensor import Tensor
from .errors import OnnxExporterError
from .sizes import Sym, merged

# Sizes that are added to a dynamic dimension in each run; those of several dimensions never move alike.
STEPS = ((0, 0, 0, 0), (3, 5, 4, 7), (4, 1, 6, 2), (8, 3, 1, 5), (7, 9, 11, 3))


class Capture(Tracer):
    """Writes down every call; weights are known by name, and what Python made is a constant."""

    def __init__(self, held: dict[int, str]) -> None:
        super().__init__()
        self.held = held

    def value_of(self, tensor: Any) -> Value:
        found = super().value_of(tensor)
        if found.spec is not tensor._spec:
            raise Untraceable(
                "a tensor changes its shape in place (t_(), squeeze_(), resize_() ...); use the other form"
            )
        return found

    def unknown(self, tensor: Any) -> Value:
        name = self.held.get(id(tensor))
        return self.name(tensor, "held", name) if name else self.constant(tensor)

    def read(self, tensor: Any) -> None:
        self.give_up(
            "Python looks at the numbers of a tensor (item(), tolist(), if tensor: ...); what follows would be the "
            "same for all inputs. Write it with operators such as where()"
        )


@dataclass
class Program:
    """A captured program: the graph of the first run, and what differs in the others."""

    graph: Graph
    runs: list[Graph]
    inputs: list[Value]
    outputs: list[Value]
    held: dict[Value, Tensor] = field(default_factory=dict)
    structure: Any = None

    def static(self, node: int) -> tuple[Any, ...]:
        """The arguments of a node as its rule writes them, with a Sym for each number that depends on sizes."""
        per_run = [_canonical(g.nodes[node]) for g in self.runs]
        try:
            return tuple(_merge(values) for values in zip(*per_run, strict=True))
        except ValueError as e:
            raise OnnxExporterError(f"{self.graph.nodes[node].op.name}: {e}.") from None

    def shape(self, value: Value) -> tuple[Any, ...]:
        """The sizes of a value."""
        return self._shapes[value]

    def __post_init__(self) -> None:
        self._shapes: dict[Value, tuple[Any, ...]] = {}
        others: list[dict[int, Value]] = []
        for graph in self.runs:
            table = {v.number: v for v in (*graph.inputs, *graph.constants)}
            table.update({v.number: v for n in graph.nodes for v in n.outs})
            others.append(table)
        for number, value in others[0].items():
            shapes = [table[number].spec.shape for table in others]
            self._shapes[value] = tuple(merged(sizes) for sizes in zip(*shapes, strict=True))


def _canonical(node: Node) -> tuple[Any, ...]:
    """Arguments in schema order: values for tensors, what the plan was made for elsewhere."""
    found = []
    for a, given, planned in zip(node.op.schema.args, node.args, node.plan.static, strict=True):
        found.append(given if a.is_runtime else planned)
    return tuple(found)


def _merge(values: Sequence[Any]) -> Any:
    first = values[0]
    if isinstance(first, (tuple, list)):
        if any(len(v) != len(first) for v in values):
            raise ValueError("its arguments have other numbers of elements for other sizes")
        return tuple(_merge(parts) for parts in zip(*values, strict=True))
    if isinstance(first, slice):
        parts = [_merge([getattr(v, n) for v in values]) for n in ("start", "stop", "step")]
        return slice(*parts)
    if isinstance(first, Value):
        return first
    if isinstance(first, (bool, int, float)):
        return merged(values)
    return first


def resized(t: Tensor, dims: dict[int, int]) -> Tensor:
    """The tensor with other sizes, its values repeated."""
    for dim, size in dims.items():
        have = t.shape[dim]
        if size != have:
            index = F.arange(size, device=t.device) % max(have, 1)
            t = F.index_select(t, dim, index)
    return t.detach().clone()


def capture(
    call: Callable[[Sequence[Tensor]], Sequence[Tensor]],
    tensors: Sequence[Tensor],
    names: Sequence[str],
    dynamic: Sequence[dict[int, str]],
    model: Any,
) -> Program:
    """Run a program with each choice of sizes and put the graphs side by side."""
    symbols = list(dict.fromkeys(s for dims in dynamic for s in dims.values()))
    held: dict[int, str] = {}
    if isinstance(model, Module):
        for name, t in (*model.named_parameters(remove_duplicate=True), *model.named_buffers(remove_duplicate=True)):
            held.setdefault(id(t), name)
    runs = []
    for run in range(len(STEPS) if symbols else 1):
        given = []
        for t, dims in zip(tensors, dynamic, strict=True):
            sizes = {d: t.shape[d] + STEPS[run][symbols.index(s) % 4] for d, s in dims.items()}
            given.append(resized(t, sizes))
        runs.append(_run(call, given, names, held, f" with sizes {_named(given, dynamic)}" if symbols else ""))
    first = runs[0]
    for graph, _, _ in runs[1:]:
        _same(first[0], graph)
    graph, outputs, tracer = first
    program = Program(graph, [g for g, _, _ in runs], graph.inputs[: len(tensors)], outputs)
    by_name = {n: t for t, _ in tracer.alive for n in [held.get(id(t))] if n}
    program.held = {v: by_name[v.label] for v in graph.inputs[len(tensors) :]}
    return program


def _named(given: Sequence[Tensor], dynamic: Sequence[dict[int, str]]) -> dict[str, int]:
    return {s: t.shape[d] for t, dims in zip(given, dynamic, strict=True) for d, s in dims.items()}


def _run(call: Any, given: Sequence[Tensor], names: Any, held: dict[int, str], when: str) -> tuple[Graph, Any, Capture]:
    tracer = Capture(held)
    for t, name in zip(given, names, strict=True):
        tracer.name(t, "input", name)
    try:
        with no_grad(), tracer:
            results = call(given)
    except Exception as e:
        raise OnnxExporterError(f"export: the model fails{when}: {type(e).__name__}: {e}") from e
    if tracer.broken:
        raise OnnxExporterError(f"export: {tracer.broken}.")
    try:
        return tracer.graph, [tracer.value_of(t) for t in results], tracer
    except Untraceable as e:
        raise OnnxExporterError(f"export: {e}.") from None


def _same(a: Graph, b: Graph) -> None:
    if [n.op.name for n in a.nodes] != [n.op.name for n in b.nodes]:
        at = next((i for i, (x, y) in enumerate(zip(a.nodes, b.nodes, strict=False)) if x.op.name != y.op.name), -1)
        where = (
            f": {a.nodes[at].op.name} became {b.nodes[at].op.name} in {a.nodes[at].path or 'the model'}"
            if at >= 0
            else ""
        )
        raise OnnxExporterError(
            f"export: the program takes another way for other sizes{where}; make fewer dimensions dynamic."
        )


__all__ = ["Capture", "Program", "Sym", "capture"]
