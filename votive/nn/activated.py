"""A linear layer and the activation behind it as one kernel, where nobody looks between the two,
and two layers with an activation between them as one step of training.

Knows layers by how their product is made; decides nothing about values. On the CPU these are the
same bit by bit either way; a GPU may skip the rounding in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..backends.base import has_own
from ..core.mode import mode
from ..ops.registry import F as OPERATORS
from . import functional as F
from .layers.linear import Linear
from .plain import plain


def gelu_tanh(x: Any) -> Any:
    """GELU by its approximation with tanh.

    >>> from votive.nn.activated import gelu_tanh
    >>> gelu_tanh(votive.tensor([-1.0, 2.0]))
    tensor([-0.1588,  1.9546])
    """
    return F.gelu(x, approximate="tanh")


_NAMES: dict[Any, str] = {F.relu: "relu", F.gelu: "gelu", F.silu: "silu", gelu_tanh: "gelu_tanh"}
# Classes whose call is a product, and its (weight, bias) with weight as `linear` takes it.
PRODUCTS: dict[type, Callable[[Any], tuple[Any, Any]]] = {Linear: lambda m: (m.weight, m.bias)}


def _unseen(layer: Any) -> bool:
    """Whether the layer is a plain product whose result nobody waits for."""
    cls = layer.__class__
    return cls in PRODUCTS and plain(layer, cls)


def _joins(x: Any, op: str) -> bool:
    """Whether the device of x has the joined operator."""
    return getattr(x, "_spec", None) is not None and has_own(op, x._spec.device.type)


def _wants(*operands: Any) -> list[bool]:
    """Which of the weights and biases ask for gradients."""
    return [t.requires_grad for t in operands if t is not None]


def activated(layer: Any, activation: Callable[[Any], Any], x: Any) -> Any:
    """`activation(layer(x))`.

    >>> from votive.nn.activated import activated
    >>> layer = votive.nn.Linear(3, 2)
    >>> activated(layer, votive.nn.functional.relu, votive.ones(1, 3)).shape
    votive.Size([1, 2])
    """
    name = _NAMES.get(activation)
    if name is not None and _unseen(layer) and _joins(x, "_linear_activated") and not (mode.grad and x.requires_grad):
        pair = PRODUCTS[layer.__class__](layer)
        if not (mode.grad and any(_wants(*pair))):
            try:
                return OPERATORS._linear_activated(x, *pair, name)
            except Exception:  # the layer's own call says where it failed
                pass
    return activation(layer(x))


def feed_forward(first: Any, activation: Callable[[Any], Any], second: Any, x: Any) -> Any:
    """`second(activation(first(x)))`, recorded as one operator where the device has it.

    >>> from votive.nn.activated import feed_forward
    >>> up, down = votive.nn.Linear(3, 8), votive.nn.Linear(8, 3)
    >>> feed_forward(up, votive.nn.functional.gelu, down, votive.ones(1, 3)).shape
    votive.Size([1, 3])
    """
    name = _NAMES.get(activation)
    if name is not None and mode.grad and _unseen(first) and _unseen(second) and _joins(x, "_feed_forward"):
        pairs = *PRODUCTS[first.__class__](first), *PRODUCTS[second.__class__](second)
        # What it keeps for backward serves all of them: with some frozen, parts keep less.
        if all(_wants(*pairs)):
            try:
                return OPERATORS._feed_forward(x, *pairs, name)[0]
            except Exception:  # the layers' own calls say where they failed
                pass
    return second(activated(first, activation, x))
