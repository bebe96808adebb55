"""Fourier transform kernels: NumPy's, which keep single precision."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ...base import kernel
from ..arrays import Array, Ints

_Norm = Literal["backward", "ortho", "forward"]
# NumPy names the scaling by the pair of transforms, we by the power of 1/n on this one.
_FORWARD: dict[float, _Norm] = {0.0: "backward", 0.5: "ortho", 1.0: "forward"}
_INVERSE: dict[float, _Norm] = {0.0: "forward", 0.5: "ortho", 1.0: "backward"}


@kernel("_fft_c2c")
def c2c(x: Array, dim: Ints, power: float, forward: bool) -> Array:
    if not dim or not x.size:
        return x.astype(np.result_type(x.dtype, np.complex64))
    if forward:
        return np.fft.fftn(x, axes=dim, norm=_FORWARD[power])
    return np.fft.ifftn(x, axes=dim, norm=_INVERSE[power])


@kernel("_fft_r2c")
def r2c(x: Array, dim: Ints, power: float, forward: bool) -> Array:
    if not x.size:
        shape = list(x.shape)
        shape[dim[-1]] = shape[dim[-1]] // 2 + 1
        return np.zeros(shape, np.result_type(x.dtype, np.complex64))
    half = np.fft.rfftn(x, axes=dim, norm=_FORWARD[power])
    return half if forward else half.conj()


@kernel("_fft_c2r")
def c2r(x: Array, dim: Ints, power: float, size: int, forward: bool) -> Array:
    shape = [*(x.shape[d] for d in dim[:-1]), size]
    if not x.size:
        full = list(x.shape)
        full[dim[-1]] = size
        return np.zeros(full, x.real.dtype)
    return np.fft.irfftn(x.conj() if forward else x, s=shape, axes=dim, norm=_INVERSE[power])


@kernel("_fft_pairs")
def pairs(x: Array, dim: int, size: int, factor: float) -> Array:
    y = np.array(x)
    inner = [slice(None)] * x.ndim
    inner[dim] = slice(1, (size + 1) // 2)
    y[tuple(inner)] *= y.dtype.type(factor)
    return y
