"""Leaves whose gradients are finished as soon as their last part has come, while the pass goes on.

A pass finishes leaves at its end, which needs no knowledge of the graph. Who sends gradients elsewhere meanwhile, as
data parallel training does, asks for some earlier; only then are the uses of these leaves counted before a pass begins.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..core.mode import mode
from .graph import BaseNode, Edge

if TYPE_CHECKING:
    from ..tensor import Tensor

# By id: the leaves that are asked for, and by how many.
_asked: dict[int, tuple[weakref.ref[Tensor], list[FinishEarly]]] = {}


class FinishEarly:
    """Lets backward finish a leaf, hooks and all, when the last part of its gradient has come, until `remove()`.

    >>> from votive.autograd.early import FinishEarly
    >>> a, b = votive.ones(1, requires_grad=True), votive.ones(1, requires_grad=True)
    >>> early = FinishEarly(b)
    >>> y = a.exp()
    >>> handles = [x.register_hook(lambda g, name=name: print(name)) for x, name in ((a, "a"), (y, "y"), (b, "b"))]
    >>> (y.exp() * b).sum().backward()
    b
    y
    a
    """

    def __init__(self, leaf: Tensor) -> None:
        self._key = key = id(leaf)
        known = _asked.get(key)
        if known is None:

            def gone(ref: weakref.ref[Tensor]) -> None:
                if key in _asked and _asked[key][0] is ref:
                    del _asked[key]

            known = _asked[key] = (weakref.ref(leaf, gone), [])
        known[1].append(self)

    def remove(self) -> None:
        """Ask no longer."""
        known = _asked.get(self._key)
        if known is not None and self in known[1]:
            known[1].remove(self)
            if not known[1]:
                del _asked[self._key]


def asked() -> bool:
    """Whether anybody asks for anything."""
    return bool(_asked)


def uses_of(roots: Iterable[tuple[Any, Any]]) -> dict[int, int]:
    """How many gradients will be sent to each leaf that is asked for, by its id."""
    found: dict[int, int] = {}
    seen: set[int] = set()
    stack = [edge for edge, _ in roots]
    while stack:
        e = stack.pop()
        if e is None:
            continue
        if e.__class__ is Edge or isinstance(e, BaseNode):
            node = e.node
            if id(node) not in seen:
                seen.add(id(node))
                stack.extend(node.edges)
        elif id(e) in _asked:
            found[id(e)] = found.get(id(e), 0) + 1
    return found


def when_backward_ends(call: Callable[[], None]) -> None:
    """Call something when the backward pass that runs has ended well; at once if none runs.

    >>> from votive.autograd.early import when_backward_ends
    >>> x = votive.ones(1, requires_grad=True)
    >>> handle = x.register_hook(lambda g: when_backward_ends(lambda: print("the end")))
    >>> (x * 2).backward()
    the end
    """
    if mode.walk is None:
        call()
    else:
        outermost().at_end.append(call)


def outermost() -> Any:
    """The backward pass that runs, around any that runs within it; None if there is none."""
    task = mode.walk
    while task is not None and task.outer is not None:
        task = task.outer
    return task
