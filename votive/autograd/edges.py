"""Edges of the graph in users' hands: where a gradient arrives, without the tensor it belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..dispatch import make
from .graph import AccumulateGrad, BaseNode, Edge, accumulator

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["GradientEdge", "get_gradient_edge", "increment_version"]


class GradientEdge(NamedTuple):
    """A place in the graph where a gradient arrives: what `autograd.grad` takes instead of a tensor."""

    node: BaseNode
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where the gradient of a tensor arrives; the tensor itself may then be dropped.

    >>> x = votive.ones(1, requires_grad=True)
    >>> edge = votive.autograd.graph.get_gradient_edge(x * 2)
    >>> votive.autograd.grad(edge, x)
    (tensor([2.]),)
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node = tensor.grad_fn
    return GradientEdge(accumulator(tensor), 0) if node is None else GradientEdge(node, tensor.output_nr)


def stand_in(edge: GradientEdge) -> Any:
    """A tensor without values at an edge of the graph."""
    node, nr = edge.node, edge.output_nr
    if isinstance(node, AccumulateGrad):
        return node.variable
    spec = node.grad_specs[nr]
    assert spec is not None
    t = make(None, None, spec)
    t._rg, t._edge = True, node if nr == 0 else Edge(node, nr)
    return t


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Let autograd believe that tensors were written: for writes by other libraries, which it cannot see.

    >>> x = votive.zeros(1)
    >>> votive.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    given: Any = (tensor,) if hasattr(tensor, "_spec") else tensor
    for t in given:
        t._storage.version += 1
