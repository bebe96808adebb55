"""What can be said of a tensor in a few numbers: range, moments, histogram. Knows no modules."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import votive

from ..tensor import Tensor
from .display import Displayable

BINS = 32


@dataclass(frozen=True)
class Statistics(Displayable):
    """Numbers about a tensor; those of values are over the finite ones."""

    shape: tuple[int, ...]
    dtype: str
    count: int
    nan: int
    inf: int
    zeros: int
    mean: float
    std: float
    min: float
    max: float
    norm: float
    histogram: tuple[int, ...] = field(repr=False, default=())

    def __str__(self) -> str:
        text = (
            f"{self.dtype} {self.shape}  mean {self.mean:.4g}  std {self.std:.4g}  "
            f"min {self.min:.4g}  max {self.max:.4g}"
        )
        bad = [f"{n} {name}" for n, name in ((self.nan, "nan"), (self.inf, "inf")) if n]
        return "  ".join([text, *bad])


def statistics(tensor: Tensor, bins: int = BINS) -> Statistics:
    """Count, range, moments and histogram of a tensor.

    >>> found = votive.glass.statistics(votive.tensor([1.0, 3.0, float("nan")]))
    >>> found.mean, found.nan, found.max
    (2.0, 1, 3.0)
    """
    x = tensor.detach()
    shape, dtype = tuple(x.shape), x.dtype.name
    if x.is_complex():
        x = x.abs()
    # Half precision would overflow in sums of squares, integers in means.
    x = x.reshape(-1).to(votive.float64 if x.dtype == votive.float64 else votive.float32)
    nan = int(x.isnan().sum())
    inf = int(x.isinf().sum())
    finite = x[x.isfinite()] if nan or inf else x
    n = finite.numel()
    if n == 0:
        blank = math.nan
        return Statistics(shape, dtype, x.numel(), nan, inf, 0, blank, blank, blank, blank, blank)
    low, high = float(finite.min()), float(finite.max())
    wide = finite.double() if n > 1 << 20 else finite
    counts = finite.float().histc(bins, low, high).tolist() if bins else []
    return Statistics(
        shape,
        dtype,
        x.numel(),
        nan,
        inf,
        int((finite == 0).sum()),
        float(wide.mean()),
        float(wide.std(correction=0)),
        low,
        high,
        float(wide.norm()),
        tuple(int(c) for c in counts),
    )
