"""A captured graph as a graph of `torch.fx`: placeholders, operators, arithmetic on sizes. Knows no programs."""

from __future__ import annotations

import operator
from typing import Any

from ...autograd.modes import no_grad
from ...compiler.graph import Node as Step
from ...compiler.graph import Value
from ...compiler.symbols import is_symbolic, text_of
from ...compiler.trace import draw_arguments
from ...core import rng
from ...fx import Graph, Node
from ...ops.operator import Op
from ...tensor import Tensor
from ..overlays._dynamo.exc import UserError
from .capture import Captured, SizeText
from .expressions import Unknown, walk


def sym_size(x: Tensor, dim: int) -> int:
    """A size of a tensor."""
    return int(x.shape[dim])


def write_over(op: Op, target: Tensor, *args: Any, **options: Any) -> Tensor:
    """Compute, and write the result over a tensor."""
    target.copy_(op(*args, **options))
    return target


def in_place(op: Op, *args: Any, **options: Any) -> Tensor:
    """The form of an operator that writes over its first argument."""
    found: Tensor = op.inplace_form(*args, **options)
    return found


def without_grad(op: Any, *args: Any, **options: Any) -> Any:
    """A call that autograd does not see."""
    with no_grad():
        return op(*args, **options)


def detach(x: Tensor) -> Tensor:
    """The values without their gradients."""
    return x.detach()


def reserve(device: str, count: int) -> tuple[int, int]:
    """Take random numbers from a generator: the key and the counter of the first."""
    return rng.default_generator(device).reserve(count)


HELPERS = {f.__name__: f for f in (sym_size, write_over, in_place, without_grad, detach, reserve)}


class Lowering:
    """Writes one graph."""

    def __init__(self, captured: Captured) -> None:
        self.captured = captured
        self.graph = Graph()
        self.env: dict[Value, Node] = {}
        self.sizes: dict[str, Node] = {}
        self._draws: dict[int, Node] = {}

    def placeholder(self, name: str, value: Value | None) -> Node:
        """One input of the graph."""
        node = self.graph.placeholder(name)
        if value is not None:
            self.env[value] = node
            node.meta["val"] = value.spec.shape
        return node

    def constants(self) -> dict[Value, Tensor]:
        """Tensors that are the same in each call, which become inputs, too."""
        return dict(self.captured.graph.constants)

    def steps(self) -> None:
        """All calls."""
        for k, (leaf, d) in enumerate(self.captured.symbols):
            value = self.captured.inputs.get(leaf)
            if value is not None:
                self.sizes[f"s{k}"] = self.graph.call_function(sym_size, (self.env[value], d))
        for step in self.captured.graph.nodes:
            self._step(step)

    def output(self, results: tuple[Any, ...]) -> None:
        """What the graph gives; sizes that neither a call nor a result needs are left out."""
        self.graph.output(results)
        for node in list(self.sizes.values()):
            if not node.users:
                self.graph.erase_node(node)

    def _step(self, step: Step) -> None:
        op = step.op
        values = [self.argument(a) for a in step.args]
        for v in step.cut:  # the program detached it before
            cut = self.graph.call_function(detach, (self.env[v],))
            values = [self._swapped(a, self.env[v], cut) for a in values]
        if step.draw is not None:
            if step.draw.generator is not rng.default_generator(step.draw.generator.device):
                raise UserError(f"export: {op.name} draws from a generator of the program's own.")
            drawn = self._drawn(step.draw)
            for part, i in enumerate(draw_arguments(op)):
                values[i] = self.graph.call_function(operator.getitem, (drawn, part))
        args, kwargs = op.as_given(tuple(values))
        target: Any = op
        if step.form == "write":
            target, args = in_place, (op, *args)
        elif step.form in ("out", "over"):
            assert step.into is not None
            target, args = write_over, (op, self.env[step.into], *args)
        if not step.grad and op.differentiable:
            target, args = without_grad, (target, *args)
        node = self.graph.call_function(target, tuple(args), kwargs)
        node.meta["nn_module_path"] = str(step.path)
        if step.single:
            for v in step.outs:
                self.env.setdefault(v, node)
                node.meta["val"] = v.spec.shape
            return
        for i, v in enumerate(step.outs):
            self.env.setdefault(v, self.graph.call_function(operator.getitem, (node, i)))

    def _drawn(self, draw: Any) -> Node:
        if id(draw) not in self._draws:
            count = self.argument(draw.count)
            made = self.graph.call_function(reserve, (str(draw.generator.device), count))
            self._draws[id(draw)] = made
        return self._draws[id(draw)]

    def _swapped(self, a: Any, old: Node, new: Node) -> Any:
        if isinstance(a, (list, tuple)):
            return type(a)([self._swapped(x, old, new) for x in a])
        return new if a is old else a

    def argument(self, a: Any) -> Any:
        """A value of the captured graph as the new one has it."""
        if isinstance(a, Value):
            return self.env[a]
        if isinstance(a, SizeText):
            return self.size(a.text)
        if isinstance(a, (list, tuple)):
            return [self.argument(x) for x in a]
        if isinstance(a, slice):
            return slice(*[self.argument(x) for x in (a.start, a.stop, a.step)])
        if is_symbolic(a):
            return self.size(text_of(a))
        return a

    def size(self, text: str) -> Any:
        """Arithmetic on sizes as nodes."""

        def call(fn: Any, values: tuple[Any, ...]) -> Any:
            if any(isinstance(v, Node) for v in values):
                return self.graph.call_function(fn, values)
            return fn(*values)

        try:
            return walk(text, self.sizes, call)
        except Unknown as e:
            raise UserError(f"export: {e}") from None
