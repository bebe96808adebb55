"""The backward pass as events: gradients that go into nodes and come out. Knows no model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from ..autograd.graph import BaseNode
from ..dispatch.state import state
from .address import Address
from .probe import Frame


class BackwardObserver:
    """Turns the steps of a backward pass into frames of kind "grad".

    Nodes bear the addresses that the forward run gave them; the gradient of a module's output is at
    the module's own address, that of an operator's result at the operator's.
    """

    def __init__(self, on_event: Callable[[Frame, str], None], active: Callable[[], bool]) -> None:
        self.on_event, self.active = on_event, active
        self.frames: dict[int, Frame] = {}
        self._outer: Any = None

    def __enter__(self) -> Self:
        self._outer, state.watcher = state.watcher, self
        return self

    def __exit__(self, *exc: object) -> None:
        state.watcher = self._outer

    def before(self, node: BaseNode, grads: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if not self.active():
            return None
        frame = Frame(address_of(node), "grad", _Subject(node), None)
        frame.args = grads
        self.frames[id(node)] = frame
        self.on_event(frame, "enter")
        return frame.args if frame.args is not grads else None

    def after(self, node: BaseNode, results: tuple[Any, ...], grads: tuple[Any, ...]) -> tuple[Any, ...] | None:
        frame = self.frames.pop(id(node), None)
        if frame is None or not self.active():
            return None
        frame.args, frame.output = grads, results
        self.on_event(frame, "leave")
        return tuple(frame.output) if frame.output is not results else None


class _Subject:
    """A node, with a name as operators have it."""

    def __init__(self, node: BaseNode) -> None:
        self.node, self.name = node, node.name()


def address_of(node: BaseNode) -> Address:
    """Where the forward call was whose gradient this node computes."""
    tags = node.metadata_ or {}
    if "op" in tags:
        return tags["op"]
    name = node.name().removesuffix("Backward0").lower()
    return Address(str(node.module_path), 0, name)
