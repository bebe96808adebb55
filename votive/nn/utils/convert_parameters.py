"""Parameters as one long vector, and back. Works on tensors; knows no module."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...ops.registry import F
from ...tensor import Tensor
from ..module import typename


def _on_one_device(parameters: Iterable[Any]) -> list[Any]:
    listed = list(parameters)
    if len({p.device for p in listed}) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return listed


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """All parameters behind each other in one vector.

    >>> votive.nn.utils.parameters_to_vector([votive.ones(2, 2), votive.zeros(1)])
    tensor([1., 1., 1., 1., 0.])
    """
    return F.cat([p.reshape(-1) for p in _on_one_device(parameters)])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Any]) -> None:
    """Let parameters look at slices of a vector, in order.

    >>> p = votive.nn.Parameter(votive.zeros(2))
    >>> votive.nn.utils.vector_to_parameters(votive.tensor([1.0, 2.0]), [p])
    >>> p.data
    tensor([1., 2.])
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected votive.Tensor, but got: {typename(vec)}")
    start = 0
    for param in _on_one_device(parameters):
        stop = start + param.numel()
        param.data = vec[start:stop].view_as(param).data
        start = stop
