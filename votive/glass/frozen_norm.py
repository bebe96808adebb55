"""Norms with their scale held fast, which makes them linear. Knows a norm by what it does only.

RMSNorm, LayerNorm and their kin give `scale(x) * weight * (x - mean) + bias`, with or without the
mean. Weight, bias and whether there is a mean are asked of the norm with vectors that tell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import votive

from ..nn import Module
from ..tensor import Tensor

# Large enough that the norm's eps is nothing beside its square, in any float type.
_LARGE = 1e3


@dataclass(frozen=True)
class FrozenNorm:
    """A norm as it acted on given vectors: `part(x)` is linear in x, and `bias` comes on top."""

    scale: Any  # (..., 1)
    weight: Any  # (features,)
    bias: Any  # (features,)
    centred: bool

    def part(self, x: Tensor) -> Tensor:
        """What a part (..., features) of the vectors becomes, without the bias."""
        if self.centred:
            x = x - x.mean(-1, keepdim=True)
        return x * self.scale * self.weight

    def back(self, g: Tensor) -> Tensor:
        """The gradient by the vectors, from the gradient by what they become.

        >>> from votive.glass.frozen_norm import freeze
        >>> x = votive.tensor([[3.0, 1.0, 2.0]], requires_grad=True)
        >>> frozen = freeze(votive.nn.LayerNorm(3), x.detach())
        >>> g = votive.tensor([[1.0, 0.0, 2.0]])
        >>> frozen.part(x).backward(g)
        >>> votive.allclose(frozen.back(g).float(), x.grad)
        True
        """
        g = g * self.scale * self.weight
        return g - g.mean(-1, keepdim=True) if self.centred else g

    def at(self, positions: Tensor | slice) -> FrozenNorm:
        """The same for some of the vectors."""
        return replace(self, scale=self.scale[positions])


def freeze(norm: Module, x: Tensor) -> FrozenNorm:
    """How a norm acts on vectors (..., features), with the scale they give it.

    >>> from votive.glass.frozen_norm import freeze
    >>> norm, x = votive.nn.RMSNorm(2), votive.tensor([[3.0, 1.0]])
    >>> frozen = freeze(norm, x)
    >>> votive.allclose((frozen.part(x) + frozen.bias).float(), norm(x))
    True
    """
    width, dtype, device = x.shape[-1], x.dtype, x.device
    wide = votive.float64
    with votive.no_grad():
        bias = norm(votive.zeros(width, dtype=dtype, device=device)).to(wide)
        flat = votive.full((width,), _LARGE, dtype=dtype, device=device)
        # A constant vector has nothing left when its mean is taken away.
        weight = norm(flat).to(wide) - bias
        centred = bool((weight.abs() <= 1e-6 * (bias.abs() + 1)).all()) and width > 1
        if centred:
            signs = _balanced(width).to(dtype=dtype, device=device)
            weight = (norm(signs * _LARGE).to(wide) - bias) * signs.to(wide)
            size = signs.to(wide).square().mean().sqrt()
            weight = weight * size / signs.to(wide).square()
        given, y = x.to(wide), norm(x).to(wide) - bias
        shape = (given - given.mean(-1, keepdim=True) if centred else given) * weight
        norms = shape.square().sum(-1, keepdim=True)
        scale = (shape * y).sum(-1, keepdim=True) / norms.clamp(min=1e-300)
        rest = float((y - shape * scale).norm())
        if rest > 1e3 * votive.finfo(x.dtype).eps * max(float(y.norm()), 1e-300):
            raise ValueError(
                f"{type(norm).__name__} is not a scaled vector times weights plus a bias, so "
                "its scale cannot be frozen."
            )
    return FrozenNorm(scale, weight, bias, centred)


def _balanced(width: int) -> Tensor:
    """Numbers of which none is zero, and whose sum is."""
    signs = [1.0 if i % 2 == 0 else -1.0 for i in range(width)]
    if width % 2:
        signs[-3:] = [1.0, 1.0, -2.0]
    return votive.tensor(signs)
