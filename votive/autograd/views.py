"""In place through views: how a base learns of a write, and its other views after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.mode import mode
from ..ops.registry import OPS, F, Op
from .graph import BaseNode, sequence

if TYPE_CHECKING:
    from ..tensor import Tensor


def edge_of(t: Tensor) -> Any:
    """Where a gradient for `t` goes: a node output, the leaf itself, or nowhere."""
    if not t._rg:
        return None
    if t._base is not None:
        refresh_view(t)
    return t._edge or t


class CopySlices(BaseNode):
    """Backward of an in-place write through a view, seen from the base."""

    def __init__(self, base: Tensor, chain: tuple[Any, ...], inner: BaseNode, base_edge: Any) -> None:
        self.chain, self.inner = chain, inner
        # The first edge of `inner` led to the view's old value; here it leads to the old base.
        self.edges = (base_edge, *inner.edges[1:])
        self.base_spec = base._spec
        self.grad_specs = (base._spec,)
        self.seq = next(sequence)

    def name(self) -> str:
        return "CopySlices"

    def apply(self, grads: list[Any]) -> tuple[Any, ...]:
        (g,) = grads
        if g._level:
            base = g._blank(self.base_spec.shape)
        else:
            strides = self.base_spec.dense_like().strides
            base = F.empty_strided(self.base_spec.shape, strides, dtype=g.dtype, device=g.device)
        base = F.copy_(base, g)
        part = replay(self.chain, base)
        inner = self.inner.apply([part.clone()])
        first = inner[0]
        if first is None:
            part.zero_()
        else:
            part.copy_(F._reduce_to(first, part.shape))
        return (base if self.edges[0] is not None else None, *inner[1:])

    def release(self) -> None:
        self.inner.release()


def replay(chain: tuple[Any, ...], x: Tensor) -> Tensor:
    """Apply the same view operators to another tensor of the base's shape.

    A step is a plan, or the name of an operator with its arguments.
    """
    for step in chain:
        if step.__class__ is tuple:
            x = Op.apply(OPS[step[0]], (x, *step[1:]))
        else:
            x = Op.apply(step.op, (x, *step.static[1:]))
    return x


def rebase(x: Tensor, node: BaseNode) -> None:
    """Let `x` (and its base, if it is a view) come from `node` from now on."""
    base = x._base
    if base is None:
        _keep_retaining(x, node)
        x._rg, x._edge = True, node
        _mark_views(x)
        return
    slices = CopySlices(base, x._chain, node, edge_of(base))
    base._rg, base._edge = True, slices
    _mark_views(base)


def _keep_retaining(x: Tensor, node: BaseNode) -> None:
    """`retain_grad` asks for the gradient of the newest value, so it moves to the new node."""
    edge = x._edge
    retained = edge.node.retained if edge is not None else None
    if retained and edge.nr in retained and retained[edge.nr]() is x:
        node.retained = {**(node.retained or {}), 0: retained.pop(edge.nr)}


def _mark_views(base: Tensor) -> None:
    """Views of a base that now requires grad require it too; their edges are renewed when used."""
    base._rebased += 1
    for view in base._live_views():
        view._rg = True


def refresh_view(x: Tensor) -> None:
    """After its base was written in place, a view's history is the view operators on the base."""
    base = x._base
    if x._seen == base._rebased or not base._rg:
        return
    grad, mode.grad = mode.grad, True
    try:
        again = replay(x._chain, base)
    finally:
        mode.grad = grad
    x._rg, x._edge = again._rg, again._edge
    x._seen = base._rebased
