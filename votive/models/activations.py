"""Activation functions by the names that configurations have for them."""

from __future__ import annotations

from collections.abc import Callable

import votive
from votive.nn import functional as F
from votive.nn.fused_linear import gelu_tanh

from ..tensor import Tensor

Activation = Callable[[Tensor], Tensor]

_ACTIVATIONS: dict[str, Activation] = {
    "silu": F.silu,
    "swish": F.silu,
    "relu": F.relu,
    "tanh": votive.tanh,
    "mish": F.mish,
    "gelu": F.gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "gelu_fast": gelu_tanh,
    "quick_gelu": lambda x: x * votive.sigmoid(1.702 * x),
    "relu2": lambda x: votive.relu(x).square(),
    "sigmoid": votive.sigmoid,
    "linear": lambda x: x,
}


def activation(name: str) -> Activation:
    """The function that a configuration calls `name`.

    >>> from votive.models.activations import activation
    >>> activation("relu")(votive.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """
    if name not in _ACTIVATIONS:
        known = ", ".join(sorted(_ACTIVATIONS))
        raise ValueError(f"unknown activation {name!r}; known: {known}.")
    return _ACTIVATIONS[name]
