"""Polynomials by their coefficients, highest power first."""

from __future__ import annotations

from typing import Any

import numpy

from ..ops.registry import F
from . import linalg
from .array import ndarray, wrap
from .convert import Tensor, cast, detached, place_of, to_tensor
from .element_types import FLOAT64, promoted
from .interpolation import convolve
from .joining import concatenate
from .ranges import vander
from .ufunc_table import UFUNCS


def polyval(p: Any, x: Any) -> Any:
    """The values of a polynomial, by Horner's rule.

    >>> votive.np.polyval([3, 0, 1], 5)
    array(76)
    """
    place = place_of(x, p)
    coefficients, at = wrap(to_tensor(p, device=place)), wrap(to_tensor(x, device=place))
    total: Any = wrap(F.zeros_like(at.tensor))
    for c in coefficients:
        total = total * at + c
    return total


def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    """The polynomial of least squares.

    >>> votive.np.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1).round(6)
    array([2., 1.])
    """
    order = int(deg) + 1
    if deg < 0:
        raise ValueError("expected deg >= 0")
    a, b = cast(to_tensor(x), FLOAT64), to_tensor(y)
    b = cast(b, "complex128" if b.dtype.is_complex else FLOAT64)
    if a.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if not a.numel():
        raise TypeError("expected non-empty vector for x")
    if b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        raise TypeError("expected x and y to have same length")
    left = vander(a, order).tensor
    if w is not None:
        weight = to_tensor(w, FLOAT64, a.device)
        left = left * weight.unsqueeze(1)
        b = b * (weight.unsqueeze(1) if b.ndim == 2 else weight)
    scale = F.sqrt((left * left).sum(0))
    cut = len(a) * numpy.finfo(float).eps if rcond is None else rcond
    found, residuals, rank, s = linalg.lstsq(wrap(left / scale), wrap(b), cut)
    c = found.tensor / (scale if b.ndim == 1 else scale.unsqueeze(1))
    if full:
        return wrap(c), residuals, rank, s, cut
    if not cov:
        return wrap(c)
    inverse = linalg.inv(wrap(left.t() @ left)).tensor
    if cov == "unscaled":
        return wrap(c), wrap(inverse)
    if len(a) <= order:
        raise ValueError("the number of data points must exceed order to scale the covariance matrix")
    factor = residuals.tensor / (len(a) - order)
    return wrap(c), wrap(inverse * factor if b.ndim == 1 else inverse.unsqueeze(-1) * factor)


def _line(a: Any) -> Tensor:
    t = to_tensor(a)
    return t.reshape(-1)


def _sum(a1: Any, a2: Any, name: str) -> ndarray:
    a, b = _line(a1), _line(a2)
    n = max(int(a.shape[0]), int(b.shape[0]))
    longer = [concatenate([F.zeros(n - int(t.shape[0]), dtype=t.dtype, device=t.device), t]) for t in (a, b)]
    return UFUNCS[name](*longer)


def polyadd(a1: Any, a2: Any) -> ndarray:
    """The sum of two polynomials.

    >>> votive.np.polyadd([1, 2], [5])
    array([1, 7])
    """
    return _sum(a1, a2, "add")


def polysub(a1: Any, a2: Any) -> ndarray:
    """The difference of two polynomials."""
    return _sum(a1, a2, "subtract")


def polymul(a1: Any, a2: Any) -> ndarray:
    """The product of two polynomials."""
    return convolve(a1, a2)


def polydiv(u: Any, v: Any) -> tuple[ndarray, ndarray]:
    """Quotient and remainder of two polynomials."""
    a, b = _line(u), _line(v)
    meet = promoted(a, b, 1.0)
    meet = meet if meet.kind in "fc" else FLOAT64
    rest, divisor = cast(a, meet), cast(b, meet)
    n = int(divisor.shape[0])
    quotient = []
    for k in range(max(int(rest.shape[0]) - n + 1, 1)):
        if int(rest.shape[0]) - k < n:
            quotient.append(F.zeros_like(rest[0]))
            break
        q = rest[k] / divisor[0]
        quotient.append(q)
        rest = F.cat([rest[:k], rest[k : k + n] - q * divisor, rest[k + n :]])
    values = detached(rest)
    close = [i for i, r in enumerate(values) if not numpy.allclose(r, 0, rtol=1e-14)]
    first = close[0] if close else len(values) - 1
    return wrap(F.stack(quotient)), wrap(rest[first:])


def polyder(p: Any, m: int = 1) -> ndarray:
    """The derivative of a polynomial."""
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    x = wrap(_line(p))
    for _ in range(int(m)):
        n = x.size - 1
        x = UFUNCS["multiply"](wrap(x.tensor[:-1]), numpy.arange(n, 0, -1))
    return x


def polyint(p: Any, m: int = 1, k: Any = None) -> ndarray:
    """The integral of a polynomial."""
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants = [0.0] * m if k is None else ([k] * m if not hasattr(k, "__len__") else list(k))
    if len(constants) == 1 and m > 1:
        constants *= m
    if len(constants) < m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    x = wrap(_line(p))
    for i in range(int(m)):
        divided = UFUNCS["divide"](x, numpy.arange(x.size, 0, -1))
        x = concatenate([divided, to_tensor(constants[i], device=x.device).reshape(1)])
    return x


def poly(seq_of_zeros: Any) -> Any:
    """The polynomial with given roots, or the characteristic one of a matrix."""
    t = to_tensor(seq_of_zeros)
    if t.ndim == 2 and t.shape[0] == t.shape[1] and t.shape[0]:
        t = linalg.eigvals(t).tensor
    elif t.ndim > 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    t = t.reshape(-1)
    if not t.numel():
        return 1.0
    t = t if t.dtype.is_inexact else cast(t, FLOAT64)
    out = wrap(F.ones_like(t[:1]))
    for root in t:
        out = convolve(out, wrap(F.stack([F.ones_like(root), -root])))
    if out.dtype.kind == "c":
        values = detached(t)
        if numpy.all(numpy.sort(values) == numpy.sort(values.conjugate())):
            out = wrap(F.real(out.tensor).clone())
    return out


def roots(p: Any) -> ndarray:
    """The roots of a polynomial: eigenvalues of its companion matrix."""
    t = to_tensor(p)
    if t.ndim != 1 and t.ndim != 0:
        raise ValueError("Input must be a rank-1 array.")
    t = t.reshape(-1)
    used = numpy.nonzero(detached(t))[0]
    if not len(used):
        return wrap(F.zeros((0,), dtype=to_tensor(0.0).dtype, device=t.device))
    trailing = int(t.shape[0]) - int(used[-1]) - 1
    t = t[int(used[0]) : int(used[-1]) + 1]
    t = t if t.dtype.is_inexact else cast(t, FLOAT64)
    n = int(t.shape[0])
    if n < 2:
        return wrap(F.zeros((trailing,), dtype=t.dtype, device=t.device))
    below = F.eye(n - 1, n - 1, dtype=t.dtype, device=t.device)[:-1]
    companion = F.cat([(-t[1:] / t[0]).unsqueeze(0), below])
    found = linalg.eigvals(wrap(companion))
    return concatenate([found, F.zeros((trailing,), dtype=found.tensor.dtype, device=t.device)])
