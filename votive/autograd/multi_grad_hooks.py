"""Hooks that wait for the gradients of several tensors of one backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..core.mode import mode
from .graph import BaseNode, Edge
from .views import edge_of

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["register_multi_grad_hook"]


class _Handles:
    """Removes several hooks at once."""

    def __init__(self, handles: list[Any]) -> None:
        self._handles = handles

    def remove(self) -> None:
        for h in self._handles:
            h.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all") -> Any:
    """Call `fn(grads)` once the gradients of all tensors that take part in a backward pass are known, None for others;
    with mode "any", `fn(grad)` with the first of them.

    >>> a, b = votive.ones(1, requires_grad=True), votive.ones(1, requires_grad=True)
    >>> handle = votive.autograd.graph.register_multi_grad_hook((a, b), lambda grads: print(grads))
    >>> (a * b * 3).backward()
    (tensor([3.]), tensor([3.]))
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    return _Handles(_wait_for_all(tensors, fn) if mode == "all" else _wait_for_any(tensors, fn))


def _wait_for_any(tensors: Sequence[Tensor], fn: Callable[[Any], Any]) -> list[Any]:
    done: list[Any] = [None]  # the pass in which it was called

    def hook(grad: Tensor) -> None:
        if done[0] is not mode.walk:
            done[0] = mode.walk
            fn(grad)

    return [t.register_hook(hook) for t in tensors]


def _wait_for_all(tensors: Sequence[Tensor], fn: Callable[[Any], Any]) -> list[Any]:
    state: dict[str, Any] = {"walk": None}

    def at(i: int) -> Callable[[Any], None]:
        def hook(grad: Tensor) -> None:
            if state["walk"] is not mode.walk:
                state.update(walk=mode.walk, grads=[None] * len(tensors), left=_taking_part(tensors))
            state["grads"][i] = grad
            state["left"] -= 1
            if state["left"] == 0:
                fn(tuple(state["grads"]))

        return hook

    return [t.register_hook(at(i)) for i, t in enumerate(tensors)]


def _taking_part(tensors: Sequence[Tensor]) -> int:
    """How many of the tensors get a gradient in the pass that runs."""
    task = mode.walk
    stack = [edge for edge, _ in task.roots]
    nodes: set[int] = set()
    leaves: set[int] = set()
    while stack:
        e = stack.pop()
        if isinstance(e, (BaseNode, Edge)):
            if id(e.node) in nodes or (task.wanted is not None and id(e.node) not in task.wanted):
                continue
            nodes.add(id(e.node))
            if task.wanted is None or id(e.node) in task.through:
                stack.extend(edge for edge in e.node.edges if edge is not None)
        else:
            leaves.add(id(e))
    count = 0
    for t in tensors:
        e = edge_of(t)
        if isinstance(e, (BaseNode, Edge)):
            count += id(e.node) in nodes
        else:
            count += id(e) in leaves and (task.wanted is None or (id(e), 0) in task.captures)
    return count
