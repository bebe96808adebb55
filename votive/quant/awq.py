"""AWQ: columns that are fed large inputs are scaled up before rounding, and their inputs down. Knows modules.

Lin et al., "AWQ: Activation-aware Weight Quantization" (2023): scales are s = mean|x|^alpha, with the alpha that leaves
the least error of the product. Inputs are scaled where they are made: by the norm before the layers, if it is known to
feed nothing else, or else by the layer itself, which becomes a `ScaledLinear`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..autograd import no_grad
from ..core.blocks import block_dtype
from ..nn import LayerNorm, Linear, Module, RMSNorm
from ..nn import functional as F
from ..ops.registry import F as OPERATORS
from ..surface.interchange import _own
from ..tensor import Tensor
from .calibration import Inputs
from .encoding import rounded
from .grid import Array, decoded, records_of
from .places import Place

# Norms of decoder layers and the only layers that read what they give.
FED = (
    ("input_layernorm", ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")),
    ("post_attention_layernorm", ("mlp.gate_proj", "mlp.up_proj")),
    ("ln_1", ("attn.c_attn",)),
    ("ln_2", ("mlp.c_fc",)),
)
_EXPONENTS = tuple(i / 10 for i in range(11))


class ScaledLinear(Linear):
    """A linear layer that multiplies its input by `input_scale`, one number per column, before the product.

    >>> from votive.quant import ScaledLinear
    >>> ScaledLinear(4, 2).input_scale
    tensor([1., 1., 1., 1.])
    """

    input_scale: Tensor

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(in_features, out_features, bias, device, dtype)
        self.register_buffer("input_scale", OPERATORS.ones((in_features,), device=device, dtype=dtype))

    @classmethod
    def of(cls, layer: Linear, scale: Tensor) -> ScaledLinear:
        """The layer's weight and bias, with inputs scaled."""
        made = cls(layer.in_features, layer.out_features, layer.bias is not None, device="meta")
        made.weight, made.bias = layer.weight, layer.bias
        made.input_scale = scale
        made.train(layer.training)
        return made

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x * self.input_scale.to(x.dtype), self.weight, self.bias)


@dataclass
class Group:
    """Layers that read the same input, and the norm that makes it, if it makes it for them alone."""

    places: list[Place]
    norm: Module | None = None


def grouped(model: Module, wanted: Sequence[Place]) -> list[Group]:
    """Which weights must be scaled alike."""
    by_name = {p.owners[0][0]: p for p in wanted if len(p.owners) == 1}
    found: list[Group] = []
    taken: set[int] = set()
    for path, module in model.named_modules():
        for norm_name, layers in FED:
            norm = module._modules.get(norm_name)
            names = [f"{path}.{layer}" if path else layer for layer in layers]
            exact = type(norm) in (RMSNorm, LayerNorm) and getattr(norm, "weight", None) is not None
            if exact and norm is not None and all(n in by_name for n in names):
                members = [by_name[n] for n in names]
                found.append(Group(members, norm))
                taken |= {id(p) for p in members}
    return found + [Group([p]) for p in wanted if id(p) not in taken]


def search(arrays: Sequence[Array], formats: Sequence[block_dtype], inputs: Inputs) -> Array | None:
    """The scales that leave the least error of the products with the inputs; None where no scaling is best."""
    if not inputs.count or inputs.products is None:
        return None
    size = np.maximum(inputs.absolute / inputs.count, 1e-8)
    best, least = None, np.inf
    for exponent in _EXPONENTS:
        scale = np.power(size, exponent)
        scale = np.clip(scale / np.sqrt(scale.max() * scale.min()), 1e-4, 1e4).astype(np.float32)
        error = 0.0
        for array, format in zip(arrays, formats):
            raw = rounded(array * scale, format, weighting(inputs, scale))
            change = decoded(records_of(raw, format), format).reshape(array.shape) / scale - array
            error += float(np.sum((change @ inputs.products) * change))
        if error < least:
            best, least = (scale if exponent else None), error
    return best


def weighting(inputs: Inputs, scale: Array | None = None) -> Array | None:
    """How much each column's error counts, when its input is divided by a scale."""
    if not inputs.squares.any():
        return None
    squares = inputs.squares if scale is None else inputs.squares / np.square(scale, dtype=np.float64)
    return squares.astype(np.float32)


def scale_inputs(model: Module, group: Group, scale: Array) -> None:
    """Divide what the layers of a group are fed; their weights are multiplied by whoever encodes them."""
    smaller = _own(np.ascontiguousarray(1 / scale, np.float32), "cpu")
    if group.norm is not None:
        with no_grad():
            for part in (group.norm.weight, getattr(group.norm, "bias", None)):
                if part is not None:
                    part.mul_(smaller.to(part.device).to(part.dtype))
        return
    (place,) = group.places
    ((name, layer),) = place.owners
    assert isinstance(layer, Linear)
    made = ScaledLinear.of(layer, smaller.to(place.weight.device))
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, made)
    place.owners = [(name, made)]


def can_scale(group: Group) -> bool:
    """Whether the inputs of a group can be scaled: by a norm, or by a plain linear layer that is no model itself."""
    if group.norm is not None:
        return True
    (place,) = group.places
    if len(place.owners) != 1:
        return False
    name, layer = place.owners[0]
    return bool(name) and type(layer) is Linear
