"""The graph of a traced function: operators in the order they ran, the values between them. Knows no Python program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..core.layout import Spec
from ..ops.operator import Op


@dataclass(eq=False, slots=True)
class Value:
    """A tensor of the graph: a window on memory. What is written in place stays the same value."""

    number: int
    spec: Spec
    node: Node | None = None  # who makes it; None for what comes from outside
    index: int = 0  # which of the node's results
    base: Value | None = None  # of a view: the value whose memory it shows
    kind: str = "result"  # "input", "held" (weights and whatever else Python reached), "constant", "tangent"
    label: str = ""  # how a reader of `explain` knows it
    leaf: bool = False  # of what comes from outside: whether it requires a gradient

    @property
    def root(self) -> Value:
        """The value that owns the memory."""
        return self if self.base is None else self.base.root

    def __repr__(self) -> str:
        return f"v{self.number}"


@dataclass(eq=False, slots=True)
class Node:
    """A call of an operator with arguments in schema order; values stand in place of tensors."""

    op: Op
    args: tuple[Any, ...]
    outs: tuple[Value, ...] = ()
    form: str = "call"  # or "write": over its first argument; "out": into `into`; "over": over the operand `into`
    into: Value | None = None
    single: bool = True  # whether the operator gives one tensor, not a tuple
    path: str = ""  # of the module that called it
    paths: tuple[str, ...] = ()  # of a call that stands for several: those of all
    line: str = ""  # where the user's program called it
    plan: Any = None  # how it ran while it was traced
    draw: Draw | None = None  # where its random numbers come from
    backward: bool = False
    grad: bool = True  # whether autograd was on
    cut: tuple[Value, ...] = ()  # values with gradients that it got without: detached ones

    def reads(self) -> Iterator[Value]:
        """The values among its arguments."""
        for a in self.args:
            if a.__class__ is Value:
                yield a
            elif a.__class__ is tuple or a.__class__ is list:
                yield from (x for x in a if x.__class__ is Value)

    @property
    def writes(self) -> tuple[Value, ...]:
        """The values whose memory it changes."""
        if self.into is not None:
            return (self.into,)
        found: list[Value] = []
        for name in self.op.mutates:
            v = self.args[self.op.schema.names.index(name)]
            found += [x for x in (v if v.__class__ in (tuple, list) else (v,)) if x.__class__ is Value]
        return tuple(found)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The modules whose calls it stands for."""
        return self.paths or ((str(self.path),) if self.path else ())

    @property
    def is_view(self) -> bool:
        return self.op.kind == "view"

    def __repr__(self) -> str:
        return f"<{self.op.name} {self.outs}>"


def addresses_of(nodes: Iterable[Node]) -> tuple[str, ...]:
    """The modules that calls stand for, each once."""
    return tuple(dict.fromkeys(a for n in nodes for a in n.addresses))


@dataclass(eq=False, slots=True)
class Draw:
    """Counters taken from a generator, for one node or several."""

    generator: Any
    count: int
    taken: tuple[int, int]  # what it was while tracing: key and counter


@dataclass(eq=False)
class Graph:
    """Nodes in order. `inputs` come with each call, `outputs` go back."""

    nodes: list[Node] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    constants: dict[Value, Any] = field(default_factory=dict)  # tensors that Python made of numbers
    kept: set[Value] = field(
        default_factory=set
    )  # outputs whose gradients are asked for: calls before and after stay apart
    renamed: dict[Value, Value] = field(default_factory=dict)  # values that passes found to be others
    moved: dict[Value, Value] = field(default_factory=dict)  # the same, of all passes over a part, see `segments.py`
    later: set[Value] = field(default_factory=set)  # what parts behind this one read
    regions: int = 0  # how many were made
    count: int = 0
    sizes: Any = None  # those that may change, see `sizes.py`

    def value(self, spec: Spec, **known: Any) -> Value:
        """A new value."""
        self.count += 1
        return Value(self.count - 1, spec, **known)

    def resolve(self, v: Value) -> Value:
        """The value that one has become."""
        while v in self.renamed:
            v = self.renamed[v]
        return v

    def users(self) -> dict[Value, list[Node]]:
        """Who reads or writes each value."""
        found: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for v in {*node.reads(), *node.writes}:
                found.setdefault(v, []).append(node)
        return found

    def written(self) -> set[Value]:
        """The owners of memory that some node changes."""
        return {v.root for node in self.nodes for v in node.writes}

    def text(self) -> str:
        """One line per node, for readers."""
        lines = [f"{v!r:6} = {v.kind} {v.label or ''} {v.spec}".rstrip() for v in [*self.inputs, *self.constants]]
        for node in self.nodes:
            args = ", ".join(
                f"{a.name}={_shown(v)}" if not a.is_tensor else _shown(v)
                for a, v in zip(node.op.schema.args, node.args, strict=True)
                if a.is_tensor or v != a.default
            )
            outs = ", ".join(map(repr, node.outs)) or "-"
            name = node.op.name + ("_" if node.form == "write" else "")
            into = f" -> {node.into!r}" if node.form in ("out", "over") else ""
            shape = f"  {node.outs[0].spec.shape}" if node.outs else ""
            lines.append(f"{outs:6} = {name}({args}){into}{shape}" + (f"  # {node.path}" if node.path else ""))
        lines.append("return " + ", ".join(map(repr, self.outputs)))
        return "\n".join(lines)


def _shown(v: object) -> str:
    if isinstance(v, (tuple, list)):
        return "[" + ", ".join(map(_shown, v)) + "]"
    return repr(v)
