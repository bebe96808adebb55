"""Linear layers fused with activations: a layer and the activation behind it as one kernel, and two
layers with an activation between them as one step of training; only where no hook sees the inside.

Knows layers by how their product is made; decides nothing about values. On the CPU these are the
same bit by bit either way; a GPU may skip the rounding in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..backends.base import has_own
from ..core.mode import mode
from ..ops.registry import F as OPERATORS
from ..tensor import Tensor
from . import functional as F
from .fast_path import can_bypass
from .layers.linear import Linear
from .module import Module


def gelu_tanh(x: Tensor) -> Tensor:
    """GELU by its approximation with tanh.

    >>> from votive.nn.fused_linear import gelu_tanh
    >>> gelu_tanh(votive.tensor([-1.0, 2.0]))
    tensor([-0.1588,  1.9546])
    """
    return F.gelu(x, approximate="tanh")


Activation = Callable[[Tensor], Tensor]
_NAMES: dict[Activation, str] = {F.relu: "relu", F.gelu: "gelu", F.silu: "silu", gelu_tanh: "gelu_tanh"}
# A weight as `linear` takes it, and the bias.
Operands = tuple[Tensor, Tensor | None]
# Classes whose call is a product, and its operands.
PRODUCTS: dict[type, Callable[[Any], Operands]] = {Linear: lambda m: (m.weight, m.bias)}


def _fusible(layer: Module) -> bool:
    """Whether the layer is a plain product and its call may be left out."""
    cls = layer.__class__
    return cls in PRODUCTS and can_bypass(layer, cls)


def _has_fused(x: Tensor, op: str) -> bool:
    """Whether the device of x has the fused operator."""
    return getattr(x, "_spec", None) is not None and has_own(op, x._spec.device.type)


def _need_grad(*operands: Tensor | None) -> list[bool]:
    """Which of the weights and biases require gradients."""
    return [t.requires_grad for t in operands if t is not None]


def linear_activation(layer: Module, activation: Activation, x: Tensor) -> Tensor:
    """`activation(layer(x))`.

    >>> from votive.nn.fused_linear import linear_activation
    >>> layer = votive.nn.Linear(3, 2)
    >>> linear_activation(layer, votive.nn.functional.relu, votive.ones(1, 3)).shape
    votive.Size([1, 2])
    """
    name = _NAMES.get(activation)
    if (
        name is not None
        and _fusible(layer)
        and _has_fused(x, "_linear_activated")
        and not (mode.grad and x.requires_grad)
    ):
        pair = PRODUCTS[layer.__class__](layer)
        if not (mode.grad and any(_need_grad(*pair))):
            try:
                return OPERATORS._linear_activated(x, *pair, name)
            except Exception:  # the layer's own call says where it failed
                pass
    return activation(layer(x))


def feed_forward(first: Module, activation: Activation, second: Module, x: Tensor) -> Tensor:
    """`second(activation(first(x)))`, recorded as one operator where the device has it.

    >>> from votive.nn.fused_linear import feed_forward
    >>> up, down = votive.nn.Linear(3, 8), votive.nn.Linear(8, 3)
    >>> feed_forward(up, votive.nn.functional.gelu, down, votive.ones(1, 3)).shape
    votive.Size([1, 3])
    """
    name = _NAMES.get(activation)
    if name is not None and mode.grad and _fusible(first) and _fusible(second) and _has_fused(x, "_feed_forward"):
        pairs = PRODUCTS[first.__class__](first) + PRODUCTS[second.__class__](second)
        # What it keeps for backward serves all of them: with some frozen, parts keep less.
        if all(_need_grad(*pairs)):
            try:
                return OPERATORS._feed_forward(x, *pairs, name)[0]
            except Exception:  # the layers' own calls say where they failed
                pass
    return second(linear_activation(first, activation, x))
