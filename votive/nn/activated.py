"""A linear layer and the activation behind it as one kernel, where nobody looks between the two.

Knows layers by how their product is made; decides nothing about values, which are the same bit by
bit either way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.mode import mode
from ..dispatch.state import state
from ..ops.registry import F as OPERATORS
from . import functional as F
from .global_hooks import GLOBAL
from .layers.linear import Linear


def gelu_tanh(x: Any) -> Any:
    """GELU by its approximation with tanh.

    >>> from votive.nn.activated import gelu_tanh
    >>> gelu_tanh(votive.tensor([-1.0, 2.0]))
    tensor([-0.1588,  1.9546])
    """
    return F.gelu(x, approximate="tanh")


_NAMES: dict[Any, str] = {
    F.relu: "relu", F.gelu: "gelu", F.silu: "silu", gelu_tanh: "gelu_tanh",
}  # fmt: skip
# Classes whose call is a product, and its (weight, bias) with weight as `linear` takes it.
PRODUCTS: dict[type, Callable[[Any], tuple[Any, Any]]] = {Linear: lambda m: (m.weight, m.bias)}


def _is_alone(layer: Any, x: Any) -> bool:
    """Whether the layer's result is seen by the activation only."""
    own = layer.__dict__
    if (
        layer.__class__ not in PRODUCTS
        or own["_forward_hooks"]
        or own["_forward_pre_hooks"]
        or own["_backward_hooks"]
        or own["_backward_pre_hooks"]
        or "forward" in own
        or GLOBAL
        or state.observers
        or mode.autocast
        or mode.special
    ):
        return False
    if getattr(x, "_spec", None) is None or x._spec.device.type != "cpu":
        return False
    if not mode.grad:
        return True
    return not (
        x.requires_grad
        or any(p is not None and p.requires_grad for p in own["_parameters"].values())
    )


def activated(layer: Any, activation: Callable[[Any], Any], x: Any) -> Any:
    """`activation(layer(x))`.

    >>> from votive.nn.activated import activated
    >>> layer = votive.nn.Linear(3, 2)
    >>> activated(layer, votive.nn.functional.relu, votive.ones(1, 3)).shape
    votive.Size([1, 2])
    """
    name = _NAMES.get(activation)
    if name is not None and _is_alone(layer, x):
        try:
            return OPERATORS._linear_activated(x, *PRODUCTS[layer.__class__](layer), name)
        except Exception:  # the layer's own call says where it failed
            pass
    return activation(layer(x))
