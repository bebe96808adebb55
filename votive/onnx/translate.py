"""From a captured program to an ONNX graph: each operator by its row of the table. Knows how, not which operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ..compiler.graph import Node, Value
from ..core import dtype as dt
from ..core.layout import Layout
from ..formula.expr import variables
from .builder import Builder
from .capture import Program
from .errors import OnnxExporterError
from .formulas import FormulaWriter
from .sizes import Int, Sym

Rule = Callable[..., Any]
TABLE: dict[str, Rule] = {}


def translates(*names: str) -> Callable[[Rule], Rule]:
    """Register how operators are written: rule(call, *arguments) gives the names of their results."""

    def register(rule: Rule) -> Rule:
        for name in names:
            TABLE[name] = rule
        return rule

    return register


class Call:
    """One call of an operator, as rules see it."""

    def __init__(self, writer: Writer, node: Node) -> None:
        self.writer, self.node, self.b = writer, node, writer.b

    def name(self, value: Value) -> str:
        return self.writer.name(value)

    def shape(self, value: Value) -> tuple[Int, ...]:
        return self.writer.program.shape(value)

    def dtype(self, value: Value) -> dt.dtype:
        return value.spec.dtype

    @property
    def out(self) -> Value:
        return self.node.outs[0]

    @property
    def out_shape(self) -> tuple[Int, ...]:
        if self.node.outs:
            return self.shape(self.node.outs[0])
        assert self.node.into is not None
        return self.shape(self.node.into)

    def maybe(self, value: Value | None) -> str | None:
        return None if value is None else self.name(value)

    def fixed(self, sizes: Sequence[Int], what: str) -> list[int]:
        """Sizes that must not change from call to call."""
        if any(isinstance(s, Sym) for s in sizes):
            raise self.refuse(f"{what} of dynamic sizes is not supported")
        return [s for s in sizes if not isinstance(s, Sym)]

    def op(self, kind: str, *inputs: str | None, **attributes: Any) -> str:
        return self.b.op(kind, *inputs, **attributes)

    def refuse(self, why: str) -> OnnxExporterError:
        where = f" in {self.node.path}" if self.node.path else ""
        return OnnxExporterError(f"export: {self.node.op.name.lstrip('_')}{where}: {why}.")


class Writer:
    """Goes through a program and writes every call; memory that is written in place gets new names."""

    def __init__(self, program: Program, b: Builder) -> None:
        for name in ("shapes", "index", "reductions", "products", "windows", "norms", "attention"):
            import_module(f"{__package__}.rules_{name}")  # fill the table

        self.program, self.b = program, b
        self.names: dict[Value, tuple[str, int]] = {}  # value -> (name, how often its memory was written by then)
        self.writes: dict[Value, int] = {}

    def declare(self, value: Value, name: str) -> None:
        """From now on a value is known by this name."""
        self.names[value] = (name, self.writes.get(value.root, 0))
        self.b.note(name, self.program.shape(value))

    def name(self, value: Value) -> str:
        """What a value is called, read again where the memory that it shows was written since."""
        if value in self.program.graph.constants and value not in self.names:
            t = self.program.graph.constants[value]
            self.declare(value, self.b.array(self.b.name("const"), _numpy(t), t.dtype))
        name, when = self.names[value]
        if when == self.writes.get(value.root, 0) or value.node is None or not value.node.is_view:
            return name
        index = self.program.graph.nodes.index(value.node)
        self._emit(value.node, index)
        return self.names[value][0]

    def run(self) -> None:
        for index, node in enumerate(self.program.graph.nodes):
            self.b.module = node.path or ""
            self._emit(node, index)

    def _emit(self, node: Node, index: int) -> None:
        args = self.program.static(index)
        names = self._results(node, args)
        if node.into is not None:
            self._written(node.into, self._fitting(names[0], node))
            return
        if node.op.mutates:
            for value, name in zip(node.writes, names, strict=True):
                self._written(value, name)
            return
        for value, name in zip(node.outs, names, strict=False):
            self.declare(value, name)

    def _results(self, node: Node, args: tuple[Any, ...]) -> Sequence[str]:
        call = Call(self, node)
        rule = TABLE.get(node.op.name)
        if rule is not None:
            made = rule(call, *args)
            return [made] if isinstance(made, str) else made
        if node.op.kind == "pointwise":
            return [self.pointwise(node, args)]
        if node.op.kind == "view":
            return [self.gathered(node)]
        raise call.refuse("it has no ONNX counterpart here yet")

    def _fitting(self, name: str, node: Node) -> str:
        """What is written in place takes the shape and the type of what it is written over."""
        assert node.into is not None
        have = node.plan.out
        if have is not None and have.dtype is not node.into.spec.dtype:
            name = self.b.cast(name, node.into.spec.dtype)
        if have is None or have.shape != node.into.spec.shape:
            name = self.b.op("Expand", name, self.b.sizes(self.program.shape(node.into)))
        return name

    def _written(self, value: Value, name: str) -> None:
        root = value.root
        if value is not root and value.spec.layout is not root.spec.layout:
            name = self._into(root, value, name)
        self.writes[root] = self.writes.get(root, 0) + 1
        self.declare(root, name)
        if value is not root and value.spec.layout is root.spec.layout:
            self.declare(value, name)

    def _into(self, root: Value, view: Value, name: str) -> str:
        """The whole of a memory after a window on it was written."""
        if any(isinstance(s, Sym) for s in (*self.program.shape(root), *self.program.shape(view))):
            raise OnnxExporterError(
                "export: writing in place into a part of a tensor of dynamic size is not supported."
            )
        places = self._places(root, view)
        flat = self.b.op("Reshape", self.name(root), self.b.constant([-1]))
        values = self.b.op("Reshape", name, self.b.constant([-1]))
        new = self.b.op("ScatterElements", flat, self.b.constant(places.reshape(-1)), values, axis=0)
        return self.b.op("Reshape", new, self.b.sizes(self.program.shape(root)))

    def _places(self, root: Value, view: Value) -> np.ndarray[Any, Any]:
        """Which elements of a dense memory, counted in the order of its own dimensions, a window shows."""
        chain: list[Node] = []
        at: Value | None = view
        while at is not None and at is not root and at.node is not None:
            chain.append(at.node)
            at = next(at.node.reads())
        base = np.arange(root.spec.numel, dtype=np.int64).reshape(root.spec.shape)
        for node in reversed(chain):
            base = _shown(base, node)
        return base

    # --- kinds of operators ----------------------------------------------------------------------

    def pointwise(self, node: Node, args: tuple[Any, ...]) -> str:
        plan = node.plan
        compute = next((c for _, c, _ in plan.roles if c is not dt.bool_), dt.bool_)
        if compute.is_complex:
            raise OnnxExporterError(f"export: {node.op.name}: ONNX has no operators for complex numbers.")
        names: dict[str, tuple[str, bool]] = {}
        runtime = [(a, v) for a, v in zip(node.op.schema.args, args, strict=True) if a.is_runtime]
        for (a, v), (have, want, rounded) in zip(runtime, plan.roles, strict=True):
            if not isinstance(v, Value):
                names[a.name] = (self.b.number(v, want), want is dt.bool_)
                continue
            x = self.name(v)
            if rounded is not None and rounded is not have:
                x = self.b.cast(x, rounded)
                have = rounded
            names[a.name] = (x if have is want else self.b.cast(x, want), want is dt.bool_)
        made, truth = FormulaWriter(self.b, compute, names).write(plan.formula.body)
        have = dt.bool_ if truth or compute is dt.bool_ else compute
        if have is not plan.out.dtype:
            made = self.b.cast(made, plan.out.dtype)
        used = variables(plan.formula.body)
        if any(isinstance(v, Value) and a.name not in used for a, v in runtime):
            # A formula that lost an operand, as x ** 0, still has its shape.
            shape = self.program.shape(node.outs[0] if node.outs else node.into)  # type: ignore[arg-type]
            made = self.b.op("Expand", made, self.b.sizes(shape))
        elif plan.formula.body.op == "var":
            made = self.b.op("Identity", made)
        return made

    def gathered(self, node: Node) -> str:
        """Any view of a tensor of fixed size, element by element."""
        source = next(node.reads())
        if node.outs[0].spec.dtype is not source.spec.dtype:
            raise OnnxExporterError(f"export: {node.op.name.lstrip('_')}: ONNX cannot read memory as another type.")
        if any(isinstance(s, Sym) for s in self.program.shape(source)):
            raise OnnxExporterError(f"export: {node.op.name.lstrip('_')} of a tensor of dynamic size is not supported.")
        base = np.arange(source.spec.numel, dtype=np.int64).reshape(source.spec.shape)
        flat = self.b.op("Reshape", self.name(source), self.b.constant([-1]))
        return self.b.op("Gather", flat, self.b.constant(_shown(base, node)), axis=0)


def _shown(base: np.ndarray[Any, Any], node: Node) -> np.ndarray[Any, Any]:
    """What a view shows of an array that is numbered in its own order."""
    from ..surface.interchange import from_numpy

    source = next(node.reads())
    args = [from_numpy(base) if a is source else a for a in node.args]
    if node.op.name in ("_view", "_as_strided") and source.spec.layout is not Layout(source.spec.shape):
        raise OnnxExporterError(
            f"export: {node.op.name.lstrip('_')} of a tensor that is not contiguous is not supported."
        )
    return np.array(node.op(*args).numpy())


def _numpy(t: Any) -> np.ndarray[Any, Any]:
    return np.asarray(t.detach().cpu().contiguous().numpy())
