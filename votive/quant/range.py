"""From bounds to scales and zero points, as torch's observers choose them. Knows tensors, no modules."""

from __future__ import annotations

import numpy as np

from ..core import dtype as dt
from ..ops.registry import F
from ..tensor import Tensor

EPS = 1.1920928955078125e-07  # of float32
SMALLEST = np.float32(6.1e-5)  # the least step of fused functions: below it products leave the normal numbers


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


def nudged_steps(low: Tensor, high: Tensor, quant_min: int, quant_max: int, symmetric: bool) -> tuple[Tensor, Tensor]:
    """Scales and zeros as torch's fused functions choose them, which differ from its observers': steps are bounded
    below, the zero is rounded from the end that it errs least at, and symmetric codes reach one further down.

    >>> from votive.quant.range import nudged_steps
    >>> nudged_steps(votive.tensor([-1.0]), votive.tensor([3.0]), 0, 255, False)
    (tensor([0.0157]), tensor([64], dtype=votive.int32))
    """
    f32 = np.float32
    least = low.detach().cpu().numpy().reshape(-1).astype(f32)
    most = high.detach().cpu().numpy().reshape(-1).astype(f32)
    centred = (least < 0) & (most > 0) & symmetric
    span = quant_max - quant_min
    under, over = -(span // 2 + 1), span // 2
    step = np.maximum(np.abs(least / f32(under)), np.abs(most / f32(over)))
    least, most = np.where(centred, step * f32(under), least), np.where(centred, step * f32(over), most)
    least, most = np.minimum(least, f32(0)), np.maximum(most, f32(0))
    scale = (most.astype(np.float64) - least) / span
    with np.errstate(divide="ignore", over="ignore"):
        useless = (scale.astype(f32) == 0) | np.isinf(f32(1) / scale.astype(f32))
    scale = np.where(useless, 0.1, scale)
    small = scale < SMALLEST
    raised = SMALLEST / scale.astype(f32)
    wide = SMALLEST * f32(span)
    at_zero, below_zero = small & (least == 0), small & (least != 0) & (most == 0)
    both = small & ~at_zero & ~below_zero
    most = np.where(at_zero, wide, np.where(both, most * raised, most))
    least = np.where(below_zero, -wide, np.where(both, least * raised, least))
    scale = np.where(small, np.float64(SMALLEST), scale)
    from_least, from_most = quant_min - least / scale, quant_max - most / scale
    error_least = abs(quant_min) - np.abs(least / scale)
    error_most = abs(quant_max) - np.abs(most / scale)
    zero = np.where(error_least < error_most, from_least, from_most)
    zero = np.where(centred, (quant_min + quant_max) / 2, zero)
    codes = np.rint(np.clip(zero, quant_min, quant_max)).astype(np.int32)
    made = F.tensor(scale.astype(f32)), F.tensor(codes)
    return made[0].to(low.device), made[1].to(low.device)
