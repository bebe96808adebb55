"""The observer that counts numbers in bins, and leaves out the ends where that makes the error smaller."""

from __future__ import annotations

import warnings
from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import affine
from ...core import dtype as dt
from ...core.affine import qscheme as Scheme
from ...ops.registry import F
from ...quant.range import EPS
from ...tensor import Tensor
from .observer import PER_TENSOR, UniformQuantizationObserverBase

Array = NDArray[np.float32]
f32 = np.float32
STEP = 1e-5  # the part of all numbers that each step of the search leaves out
FINER = 16  # parts of a bin when a histogram is spread over a wider range


class HistogramObserver(UniformQuantizationObserverBase):
    """Counts numbers in bins; scale and zero are those of the range with the least squared error.

    >>> _ = votive.manual_seed(0)
    >>> seen = votive.ao.quantization.HistogramObserver(bins=256)
    >>> _ = seen(votive.randn(1000))
    >>> int(seen.histogram.sum())
    1000
    """

    histogram: Tensor
    min_val: Tensor
    max_val: Tensor

    def __init__(
        self,
        bins: int = 2048,
        dtype: dt.dtype = affine.quint8,
        qscheme: Scheme = affine.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float = EPS,
        is_dynamic: bool = False,
    ) -> None:
        if qscheme not in PER_TENSOR:
            raise NotImplementedError(f"HistogramObserver has one scale; {qscheme!r} has some per channel.")
        if is_dynamic:
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic)
        self.bins = bins
        self.register_buffer("histogram", F.zeros(bins, **self.factory))
        self.register_buffer("min_val", F.tensor(float("inf"), **self.factory))
        self.register_buffer("max_val", F.tensor(float("-inf"), **self.factory))
        self.dst_nbins = 1 << 8 * dtype.itemsize

    def forward(self, x_orig: Tensor) -> Tensor:
        x = x_orig.detach()
        if x.numel() and not bool(x.isfinite().all()):
            warnings.warn("torch.inf detected in input tensor, ignoring input", stacklevel=2)
            x = x[x.isfinite()]
        if x.numel() == 0:
            return x_orig
        low, high = F.aminmax(x)
        if self._new():
            self._keep(low, high, F.histc(x, self.bins, float(low), float(high)))
            return x_orig
        before, after = (self.min_val, self.max_val), (self.min_val.minimum(low), self.max_val.maximum(high))
        found = F.histc(x, self.bins, float(after[0]), float(after[1])).to(self.histogram.device)
        self._keep(*after, self._spread(before, after) + found)
        return x_orig

    def _new(self) -> bool:
        return float(self.min_val) == float("inf") or float(self.max_val) == float("-inf")

    def _keep(self, low: Tensor, high: Tensor, histogram: Tensor) -> None:
        self.min_val.copy_(low)
        self.max_val.copy_(high)
        self.histogram.copy_(histogram)

    def _spread(self, before: tuple[Tensor, Tensor], after: tuple[Tensor, Tensor]) -> Tensor:
        """What was counted so far, in the bins of a wider range."""
        ends = [float(v) for v in before]
        wide = [float(v) for v in after]
        if ends == wide:
            return self.histogram
        if ends[0] == ends[1]:
            at = F.histc(before[0].reshape(1), self.bins, *wide)
            return at * self.histogram.sum()
        parts = self.bins * FINER
        counts = self.histogram.repeat_interleave(FINER) / FINER
        half = 0.5 * ((before[1] - before[0]) / parts)
        middles = F.linspace(*ends, parts + 1)[:-1] + half
        edges = F.linspace(*wide, self.bins + 1)
        where = (F.bucketize(middles, edges, right=True) - 1).clamp(0, self.bins - 1)
        out: Tensor = F.bincount(where, weights=counts, minlength=self.bins)
        return out.to(self.histogram.dtype)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        if self._new():
            return self._qparams(self.min_val, self.max_val)
        first, last = self._range()
        width = (self.max_val - self.min_val) / self.bins
        return self._qparams(self.min_val + width * first, self.min_val + width * (last + 1))

    def _range(self) -> tuple[int, int]:
        """The first and last bin that count: ends are left out, from the side where more bins hold few numbers, until
        the error grows.
        """
        counts = np.ascontiguousarray(self.histogram.cpu().numpy(), f32)
        total = float(counts.sum(dtype=np.float64))
        sums = np.cumsum(counts, dtype=np.float64).astype(f32).tolist()
        width = (float(self.max_val) - float(self.min_val)) / self.bins
        low, high, first, last, least = 0.0, 1.0, 0, self.bins - 1, float("inf")
        while low < high:
            next_low, next_high = low + STEP, high - STEP
            left = min(max(bisect_left(sums, float(f32(next_low * total))), first), last)
            right = max(min(bisect_right(sums, float(f32(next_high * total))) - 1, last), first)
            if left - first > last - right:
                start, end, low = left, last, next_low
            else:
                start, end, high = first, right, next_high
            if (start, end) == (first, last):
                continue
            error = squared_error(counts, width, start, end, self.dst_nbins)
            if error > least:
                break
            least, first, last = error, start, end
        return first, last

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


def squared_error(counts: Array, width: float, first: int, last: int, codes: int) -> float:
    """The squared error of rounding numbers that are spread evenly in their bins to codes over some of the bins.

    The integral of x^2 between the ends of each piece, for the code in which a bin begins, those inside it, and the one
    in which it ends.
    """
    step = width * (last - first + 1) / codes
    if step == 0.0:
        return 0.0
    begin = (np.arange(len(counts), dtype=f32) - f32(first)) * f32(width)
    end = begin + f32(width)
    code_of_begin = np.clip(np.floor_divide(begin, f32(step)), 0, codes - 1)
    code_of_end = np.clip(np.floor_divide(end, f32(step)), 0, codes - 1)
    density = counts / f32(width)

    def piece(a: Any, b: Any) -> Array:
        out: Array = density * ((b * b * b - a * a * a) / f32(3))
        return out

    half = f32(step / 2)
    error = piece(begin - (code_of_begin + f32(0.5)) * f32(step), half)
    error = error + (code_of_end - code_of_begin - f32(1)) * piece(-half, half)
    error = error + piece(-half, end - (code_of_end * f32(step) + half))
    return float(error.sum(dtype=f32))
