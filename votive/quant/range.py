"""From bounds to scales and zero points, as torch's observers choose them. Knows tensors, no modules."""

from __future__ import annotations

from ..core import dtype as dt
from ..ops.registry import F
from ..tensor import Tensor

EPS = 1.1920928955078125e-07  # of float32


def channel_bounds(x: Tensor, axis: int | None) -> tuple[Tensor, Tensor]:
    """The least and the greatest number, of all or for each place along a dimension."""
    if axis is None:
        low, high = F.aminmax(x)
        return low, high
    rows = x.transpose(0, axis).reshape(x.shape[axis], -1)
    return F.amin(rows, 1), F.amax(rows, 1)


def affine_steps(
    low: Tensor,
    high: Tensor,
    quant_min: int,
    quant_max: int,
    symmetric: bool,
    *,
    eps: float | Tensor = EPS,
    middle: int = 0,
) -> tuple[Tensor, Tensor]:
    """Scales and zeros for numbers between bounds, which are widened to hold 0; `middle` is the zero of symmetric ones.

    >>> from votive.quant.range import affine_steps
    >>> affine_steps(votive.tensor(-1.0), votive.tensor(3.0), 0, 255, False)
    (tensor(0.0157), tensor(64, dtype=votive.int32))
    """
    under, over = F.clamp(low, max=0), F.clamp(high, min=0)
    least = eps if isinstance(eps, Tensor) else F.tensor(eps, dtype=under.dtype, device=under.device)
    if symmetric:
        scale = F.maximum(F.maximum(-under, over) / (float(quant_max - quant_min) / 2), least)
        return scale, F.full_like(scale, middle, dtype=dt.int64)
    scale = F.maximum((over - under) / float(quant_max - quant_min), least)
    zero = quant_min - F.round(under / scale).to(dt.int32)
    return scale, F.clamp(zero, quant_min, quant_max)


def float_steps(low: Tensor, high: Tensor, quant_min: int, quant_max: int, eps: Tensor) -> tuple[Tensor, Tensor]:
    """Scales, and zeros that are numbers themselves: the least number is the code 0."""
    scale = (high - low) / float(quant_max - quant_min)
    scale = F.where(scale > eps, scale, F.ones_like(scale))
    return scale, -1 * low / scale
