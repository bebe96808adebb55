"""Statistics of tensors that need not fit into memory: part by part, in float64.

Knows weight sources and arrays; prints nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..io import WeightSource
    from ..tensor import Tensor


Array = np.ndarray[Any, Any]
# Elements that are read at a time.
PART = 1 << 20
# Elements that are looked at while they are in the cache.
_BLOCK = 1 << 16


def _dot(a: Array, b: Array) -> float:
    # Not BLAS, whose threads wait for each other longer than such a block takes.
    return float(np.einsum("i,i->", a, b))


def values(tensor: Tensor) -> Array:
    """A tensor's numbers as flat float64; complex ones by their magnitude."""
    import votive

    if tensor.dtype.is_complex:
        tensor = tensor.abs()
    return tensor.to(votive.float64).numpy().reshape(-1)


def parts(source: WeightSource, name: str) -> Iterator[Array]:
    """A tensor of a source as flat float64 parts."""
    from ..io.streamed import parts as read

    for part in read(source, name, PART):
        yield values(part)


@dataclass
class Statistics:
    """What is known of a stream of numbers; nan and inf are counted and left out of the rest.

    >>> from votive.cli.tensor_stats import Statistics
    >>> s = Statistics()
    >>> s.add(np.array([1.0, 3.0]))
    >>> s.add(np.array([2.0, 0.0, 4.0, np.nan]))
    >>> s.mean, s.max, s.nan, s.zero
    (2.0, 4.0, 1, 1)
    """

    count: int = 0
    nan: int = 0
    inf: int = 0
    zero: int = 0
    min: float = math.inf
    max: float = -math.inf
    mean: float = 0.0
    l1: float = 0.0
    _finite: int = field(default=0, repr=False)
    _m2: float = field(default=0.0, repr=False)
    _squares: float = field(default=0.0, repr=False)
    _scratch: Array = field(default_factory=lambda: np.empty(_BLOCK), repr=False)

    def add(self, x: Array) -> None:
        """Take a part into account."""
        # Sums of the largest float64 numbers are infinite, and reported so.
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, x.size, _BLOCK):
                self._add(x[start : start + _BLOCK])

    def _add(self, x: Array) -> None:
        self.count += x.size
        total = float(x.sum())
        if not math.isfinite(total):
            nan = int(np.isnan(x).sum())
            self.nan += nan
            finite = x[np.isfinite(x)]
            self.inf += x.size - nan - finite.size
            x, total = finite, float(finite.sum())
        n = x.size
        if not n:
            return
        self.zero += n - int(np.count_nonzero(x != 0))
        self.min, self.max = min(self.min, float(x.min())), max(self.max, float(x.max()))
        scratch = self._scratch[:n]
        self.l1 += float(np.abs(x, out=scratch).sum())
        self._squares += _dot(x, x)
        # Means and squared deviations of two parts combine exactly (Chan et al. 1979).
        mean = total / n
        d = np.subtract(x, mean, out=scratch)
        shift, self._finite = mean - self.mean, self._finite + n
        self._m2 += _dot(d, d) + shift * shift * n * (self._finite - n) / self._finite
        self.mean += shift * n / self._finite

    @property
    def std(self) -> float:
        """The standard deviation, with Bessel's correction as in torch."""
        return math.sqrt(self._m2 / (self._finite - 1)) if self._finite > 1 else math.nan

    @property
    def l2(self) -> float:
        """The Euclidean norm."""
        return math.sqrt(self._squares)

    def to_dict(self) -> dict[str, Any]:
        """All numbers by name; None where there is nothing to tell."""
        some = self._finite > 0
        return {
            "min": self.min if some else None,
            "max": self.max if some else None,
            "mean": self.mean if some else None,
            "std": self.std if self._finite > 1 else None,
            "l1": self.l1,
            "l2": self.l2,
            "zero_fraction": self.zero / self.count if self.count else None,
            "nan": self.nan,
            "inf": self.inf,
        }


def statistics(source: WeightSource, name: str) -> Statistics:
    """Statistics of one tensor of a source."""
    out = Statistics()
    for x in parts(source, name):
        out.add(x)
    return out


def histogram(source: WeightSource, name: str, low: float, high: float, bins: int) -> list[int]:
    """How many numbers lie in each of `bins` equal parts of low..high."""
    counts = np.zeros(bins, np.int64)
    scale = bins / (high - low) if high > low else 0.0
    for x in parts(source, name):
        x = x[np.isfinite(x)]
        at = np.minimum(((x - low) * scale).astype(np.int64), bins - 1)
        counts += np.bincount(at, minlength=bins)
    return counts.tolist()


@dataclass
class Difference:
    """How two tensors of one shape differ; `close` tells whether all is within the tolerance.

    >>> from votive.cli.tensor_stats import Difference
    >>> d = Difference(atol=0.1)
    >>> d.add(np.array([1.0, 2.0]), np.array([1.0, 2.5]))
    >>> d.max_abs, d.max_rel, d.close
    (0.5, 0.2, False)
    """

    atol: float = 0.0
    rtol: float = 0.0
    max_abs: float = 0.0
    max_rel: float = 0.0
    different: int = 0
    count: int = 0
    close: bool = True
    _dot: float = field(default=0.0, repr=False)
    _aa: float = field(default=0.0, repr=False)
    _bb: float = field(default=0.0, repr=False)

    def add(self, a: Array, b: Array) -> None:
        """Take two parts at the same place into account."""
        for start in range(0, a.size, _BLOCK):
            self._add(a[start : start + _BLOCK], b[start : start + _BLOCK])

    def _add(self, a: Array, b: Array) -> None:
        self.count += a.size
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            d = np.abs(a - b)
            # Equal infinities and nan on both sides are no difference.
            d[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
            self.different += int(np.count_nonzero(d))
            largest = float(d.max())
            if largest == 0.0:
                aa = _dot(a, a)
                self._dot, self._aa, self._bb = self._dot + aa, self._aa + aa, self._bb + aa
                return
            scale = np.maximum(np.abs(a), np.abs(b))
            relative = float(np.nan_to_num(d / scale, nan=0.0 if largest == largest else math.nan).max())
            within = d <= self.atol + self.rtol * np.abs(b)
            self._dot += _dot(a, b)
            self._aa += _dot(a, a)
            self._bb += _dot(b, b)
        self.close = self.close and bool((within | (d == 0.0)).all())
        # max() would lose a nan that comes second.
        self.max_abs = largest if not largest <= self.max_abs else self.max_abs
        self.max_rel = relative if not relative <= self.max_rel else self.max_rel

    @property
    def cosine(self) -> float | None:
        """The cosine of the angle between both; None where one is zero."""
        norms = math.sqrt(self._aa) * math.sqrt(self._bb) if self._aa and self._bb else 0.0
        return None if norms == 0.0 else self._dot / norms


def difference(
    a: WeightSource, b: WeightSource, name: str, other: str | None = None, *, atol: float = 0.0, rtol: float = 0.0
) -> Difference:
    """The difference of a tensor of one source and one of another, of the same shape."""
    from ..io.streamed import parts as read

    out = Difference(atol, rtol)
    for x, y in zip(read(a, name, PART), read(b, other or name, PART), strict=True):
        out.add(*_comparable(x, y))
    return out


def _comparable(x: Tensor, y: Tensor) -> tuple[Array, Array]:
    """Two tensors as flat float64 arrays that are equal only where the tensors are."""
    import votive

    if x.dtype.is_complex or y.dtype.is_complex:
        x, y = (votive.view_as_real(t.to(votive.complex128)) for t in (x, y))
    a, b = values(x), values(y)
    whole = not (x.dtype.is_floating_point or y.dtype.is_floating_point)
    if whole and 8 in (x.dtype.itemsize, y.dtype.itemsize):
        # Beyond 2^53 neighbours become one float64; they differ by one at least.
        apart = (x.numpy() != y.numpy()).reshape(-1) & (a == b)
        b = np.where(apart, np.nextafter(a, np.inf), b)
    return a, b
