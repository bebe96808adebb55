"""The structure that a run executed, with shapes, times and bytes. Knows no model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..nn import Module
from . import values
from .address import Address
from .display import Displayable
from .probe import Frame, Probe


@dataclass
class Node(Displayable):
    """One call that was made, and the calls inside it."""

    address: Address
    name: str
    kind: str
    output: str = ""
    seconds: float = 0.0
    bytes: int = 0
    children: list[Node] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        """This call and all inside it, in the order they were made."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def own_seconds(self) -> float:
        """Time that no inner call took."""
        return max(0.0, self.seconds - sum(c.seconds for c in self.children))

    def to_dict(self) -> dict[str, Any]:
        return {
            "address": str(self.address),
            "name": self.name,
            "kind": self.kind,
            "output": self.output,
            "seconds": self.seconds,
            "bytes": self.bytes,
            "children": [c.to_dict() for c in self.children],
        }

    def __str__(self) -> str:
        return "\n".join(_lines(self, "", ""))


def _lines(node: Node, lead: str, rest: str) -> Iterator[str]:
    last = str(node.address).rsplit("." if node.kind == "module" else "/", 1)[-1]
    title = f"{last or '(model)'}: {node.name}" if node.kind == "module" else last
    size = f"{node.bytes:,} B"
    yield f"{lead}{title}  [{node.output}]  {node.seconds * 1e3:.3f} ms  {size}"
    for i, child in enumerate(node.children):
        end = i == len(node.children) - 1
        yield from _lines(child, rest + ("└─ " if end else "├─ "), rest + ("   " if end else "│  "))


class Recorder(Probe):
    """Builds the tree of each run."""

    def __init__(self, model: Module, *, ops: bool = False) -> None:
        super().__init__(model, ops=ops)
        self.trees: list[Node] = []
        self._open: list[Node] = []

    def entered(self, frame: Frame) -> None:
        node = Node(frame.address, frame.name.lstrip("_"), frame.kind)
        (self._open[-1].children if self._open else self.trees).append(node)
        self._open.append(node)

    def left(self, frame: Frame) -> None:
        node = self._open.pop()
        node.seconds = 0.0 if frame.seconds != frame.seconds else frame.seconds
        node.output, node.bytes = values.describe(frame.output), values.nbytes(frame.output)

    def failed(self, frame: Frame, error: Exception) -> None:
        # An operator that refused its arguments was never entered.
        if self._open and self._open[-1].address == frame.address:
            self._open.pop().output = f"{type(error).__name__}: {error}"


def tree(model: Module, *args: object, ops: bool = False, **kwargs: object) -> Node:
    """Run a model and give the tree of its calls; print it to read it.

    >>> net = votive.nn.Sequential(votive.nn.Linear(2, 3), votive.nn.ReLU())
    >>> [str(node.address) for node in votive.glass.tree(net, votive.ones(1, 2), ops=True).walk()]
    ['', '0', '0/linear#0', '1', '1/relu#0']
    """
    with Recorder(model, ops=ops) as recorder:
        model(*args, **kwargs)
    return recorder.trees[-1]
