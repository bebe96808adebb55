"""Fourier transforms of many short rows, natively; single and odd ones are NumPy's."""

from __future__ import annotations

from ....core import dtype as dt
from ...common.slot import Slot
from ..arrays import Args, Ints
from .rows import OUT, native

# A row needs room for itself in the nearest caches, once for every lane of a vector.
_LONGEST = 4096
# Rows are transformed side by side; a few alone leave most of a vector empty.
_FEWEST = 6


def _smooth(n: int) -> bool:
    """Whether n has no prime factor but 2, 3 and 5."""
    for p in (2, 3, 5):
        while n % p == 0:
            n //= p
    return n == 1


def _serves(x: Slot, dim: Ints, size: int, real: bool) -> bool:
    """Whether rows along `dim`, transformed to or from `size` numbers, are such as these."""
    if dim != (x.ndim - 1,) or not x.numel or not 4 <= size <= _LONGEST:
        return False
    if (real and size % 2) or not _smooth(size):
        return False
    return x.numel // x.shape[-1] >= _FEWEST


@native("_fft_r2c", "fft_r2c", accepts=lambda x: x.dtype in (dt.float32, dt.float64), optional=True)
def r2c(x: Slot, dim: Ints, power: float) -> Args:
    size = x.shape[-1] if x.ndim else 0
    return (x, OUT, float(size) ** -power) if _serves(x, dim, size, True) else None


@native("_fft_c2r", "fft_c2r", accepts=lambda x: x.dtype in (dt.complex64, dt.complex128), optional=True)
def c2r(x: Slot, dim: Ints, power: float, size: int) -> Args:
    # NumPy cuts or fills what has another length.
    if x.ndim and x.shape[-1] == size // 2 + 1 and _serves(x, dim, size, True):
        return x, OUT, float(size) ** -power
    return None


@native("_fft_c2c", "fft_c2c", accepts=lambda x: x.dtype in (dt.complex64, dt.complex128), optional=True)
def c2c(x: Slot, dim: Ints, power: float, forward: bool) -> Args:
    size = x.shape[-1] if x.ndim else 0
    if not _serves(x, dim, size, False):
        return None
    return x, OUT, float(size) ** -power, int(forward)
