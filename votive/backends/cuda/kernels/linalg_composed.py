"""Pseudo-inverses, least squares, exponentials and cofactors, composed of decompositions and
products that stay on the GPU. Without the libraries: the CPU's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core import dtype as dt
from ....formula import const, var, where
from ....formula.expr import Expr, apply, conj
from ...cpu.reference.linalg_power import DEGREE, LIMIT
from ...base import Request
from ..cpu_fallback import structured
from ..libraries.cusolver import copied, fetched, ints, takes
from ..programs.copy import copy_view
from ..rows import cuda
from ..runtime.views import View, empty
from . import linalg_factor, linalg_orthogonal, reduction
from .linalg_factor import ready
from .linalg_steps import across, called, cast, each, moved, product, reduced, turned, with_last
from .linalg_triangular import identity, solve_in, stretched

_A, _B, _S, _T, _L, _X = (var(n) for n in "abstlx")


def _adjoint(v: View) -> View:
    """The adjoint: conjugates, if there are any, in memory of their own."""
    return turned(each(conj(_X), x=v) if v.spec.dtype.is_complex else v)


def _decomposed(a: View) -> tuple[View, View, View]:
    """U, the singular values and V^H, reduced."""
    *batch, m, n = a.spec.shape
    k = min(m, n)
    real = a.spec.dtype.to_real()
    u, vh = empty(a.spec.like((*batch, m, k))), empty(a.spec.like((*batch, k, n)))
    s = empty(a.spec.like((*batch, k), dtype=real))
    called(linalg_orthogonal.svd, [u, s, vh], a, static=(False, True))
    return u, s, vh


def _inverses(s: Expr, limit: Expr) -> Expr:
    """1 / s where |s| exceeds a limit, else 0."""
    keep = apply("abs", s) > limit
    return where(keep, const(1.0) / where(keep, s, const(1.0)), const(0.0))


@cuda("_pinv", accepts=lambda a, *_: takes(a))
def pinv(a: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    real = a.dtype.to_real()
    known = (dt.float32, dt.float64)
    if not ready(a) or atol.dtype not in known or rtol.dtype not in known:
        return None

    def run(outs: list[View], a: View, atol: View, rtol: View) -> None:
        limits = {"a": with_last(atol), "b": with_last(rtol)}
        limit = apply("maximum", _A, _B * apply("maximum", apply("abs", _T), apply("abs", _L)))
        if hermitian:
            s, u = (empty(a.spec.like(a.spec.shape[:-1], dtype=real)), empty(a.spec.like(a.spec.shape)))
            called(linalg_orthogonal.eigh, [s, u], a, static=("L", True))
            right, left = u, _adjoint(u)
        else:
            u, s, vh = _decomposed(a)
            right, left = _adjoint(vh), _adjoint(u)
        ends = {"t": with_last(s, 0), "l": with_last(s, -1)}
        inverse = each(_inverses(_S, limit), s=s, **ends, **limits)
        scaled = each(_X * _S, x=right, s=across(inverse))
        copy_view(outs[0], product(scaled, left))

    return run


def _by_triangle(a: View, b: View) -> tuple[View, View]:
    """Full rank taken for granted: QR of A, or of its adjoint if it is wide; where that fails."""
    *batch, m, n = a.spec.shape
    tall, k = m >= n, min(m, n)
    given = a if tall else _adjoint(a)
    q = empty(a.spec.like((*batch, max(m, n), k)))
    r = empty(a.spec.like((*batch, k, k)))
    called(linalg_orthogonal.qr, [q, r], given, static=("reduced",))
    if tall:
        x = product(_adjoint(q), b)
        solve_in(x, r, True, False)
    else:
        both = np.broadcast_shapes(tuple(batch), b.spec.shape[:-2])
        inner = copied(stretched(b, b.spec.like((*both, *b.spec.shape[-2:]))))
        solve_in(inner, r, True, False, adjoint=True)
        x = product(q, inner)
    diagonal = View(r.ptr, r.spec.like((*batch, k), strides=(*r.spec.strides[:-2], k + 1)), r.storage)
    sizes = each(apply("abs", _X), a.spec.dtype.to_real(), x=diagonal)
    return x, sizes


@cuda("_lstsq", accepts=takes)
def lstsq(a: Any, b: Any, rcond: float, driver: str) -> Any:
    if not ready(a, b):
        return None
    *batch, m, n = a.shape
    k, eps = min(m, n), float(dt.finfo(a.dtype).eps)
    batch = tuple(batch)
    zeros = np.zeros(batch)

    def report(outs: list[View], x: View, rank: Any, values: Any, info: Any) -> None:
        copy_view(outs[0], x)
        like = x.spec
        copy_view(outs[1], moved(np.asarray(rank, np.int64), like, dt.int64))
        copy_view(outs[2], values)
        copy_view(outs[3], moved(np.asarray(info, np.int32), like, dt.int32))

    def by_triangle(outs: list[View], a: View, b: View) -> None:
        x, sizes = _by_triangle(a, b)
        found = fetched(sizes)
        largest = found.max(axis=-1, keepdims=True)
        poor = (found <= eps * largest).any(axis=-1)
        # LAPACK's gels answers 0 for a matrix of zeros, instead of finding fault with it.
        zero = largest[..., 0] == 0
        if zero.any():
            keep = moved(np.where(zero, 0.0, 1.0)[..., None, None], a.spec, a.spec.dtype.to_real())
            x = each(where(_S.ne(0.0), _X, const(0.0)), x=x, s=keep)
        none = moved(np.zeros((*batch, k)), a.spec, a.spec.dtype.to_real())
        report(outs, x, np.full(batch, k), none, poor & ~zero)

    def run(outs: list[View], a: View, b: View) -> None:
        if driver == "gels":
            by_triangle(outs, a, b)
            return
        cut = eps if rcond < 0 else rcond
        u, s, vh = _decomposed(a)
        found = fetched(s)
        rank = (found > cut * found.max(axis=-1, keepdims=True)).sum(axis=-1)
        if driver == "gelsy" and (rank < k).any():
            # Columns that come last in a pivoted QR are dropped: decisions for the CPU.
            specs, wanted = (a.spec, b.spec), tuple(o.spec for o in outs)
            asked = Request("_lstsq", (None, None, rcond, driver), (0, 1), specs, specs, wanted, False, None)
            away = structured(asked, [], a.spec.device)
            for to, (_, made, _spec) in zip(outs, away(a, b), strict=True):
                copy_view(to, made)
            return
        inverse = each(_inverses(_S, _T * _L), s=s, t=with_last(s, 0), l=cut)
        inner = each(_X * _S, x=product(_adjoint(u), b), s=with_last(inverse))
        report(outs, product(_adjoint(vh), inner), rank, s, zeros)

    return run


def _solved(a: View, b: View) -> View:
    x, info = empty(b.spec.like(b.spec.shape)), ints(a.spec, *a.spec.shape[:-2])
    called(linalg_factor.solve, [x, info], a, b, static=())
    return x


def _rational(a: View) -> View:
    """p(A) / p(-A), p the numerator of the approximant; even and odd powers are summed apart."""
    weights = [
        math.factorial(2 * DEGREE - j) // (math.factorial(DEGREE - j) * math.factorial(j)) for j in range(DEGREE + 1)
    ]
    power = empty(a.spec.like(a.spec.shape))
    identity(power)
    square = product(a, a)
    scaled = _X * _S
    even, odd = (each(scaled, x=power, s=float(w)) for w in weights[:2])
    for j in range(2, DEGREE + 1, 2):
        power = product(power, square)
        even = each(_A + scaled, a=even, x=power, s=float(weights[j]))
        odd = each(_A + scaled, a=odd, x=power, s=float(weights[j + 1]))
    odd = product(a, odd)
    return _solved(each(_A - _B, a=even, b=odd), each(_A + _B, a=even, b=odd))


def _largest_column(a: View) -> np.ndarray[Any, Any]:
    """The 1-norms of matrices, on the host."""
    real = a.spec.dtype.to_real()
    sizes = each(apply("abs", _X), real, x=turned(a))
    return fetched(reduced(reduction.sum_, sizes, False, real)).max(axis=-1)  # type: ignore[no-any-return]


@cuda("_matrix_exp", accepts=lambda a: takes(a) or a.dtype in dt.HALF)
def matrix_exp(a: Any) -> Any:
    if not ready(a):
        return None
    # Squaring doubles relative errors again and again, so narrow types are widened meanwhile.
    wide = dt.complex128 if a.dtype.is_complex else dt.float64

    def run(outs: list[View], a: View) -> None:
        given = cast(a, wide)
        if a.spec.shape[-1] == 1:
            copy_view(outs[0], each(apply("exp", _X), x=given))
            return
        norm = _largest_column(given)
        with np.errstate(all="ignore"):
            ratio = np.where(np.isfinite(norm) & (norm > LIMIT), norm / LIMIT, 1)
        halvings = np.ceil(np.log2(ratio)).astype(np.int64)
        factor = moved((0.5**halvings)[..., None, None], a.spec, dt.float64)
        result = _rational(each(_X * _S, x=given, s=factor))
        for done in range(int(halvings.max())):
            go = moved((halvings > done)[..., None, None].astype(float), a.spec, dt.float64)
            twice = product(result, result)
            result = each(where(_S.ne(0.0), _X, _A), x=twice, s=go, a=result)
        copy_view(outs[0], result)

    return run


@cuda("_cofactor", accepts=takes)
def cofactor(a: Any) -> Any:
    if not ready(a):
        return None
    n, eps = a.shape[-1], float(dt.finfo(a.dtype).eps)

    def determinant(v: View) -> View:
        made = empty(v.spec.like(v.spec.shape[:-2]))
        called(linalg_factor.det, [made], v, static=())
        return with_last(with_last(made))

    def by_singular_values(a: View) -> View:
        """`det U det V^H  U* diag(products of other singular values) V^T`, right for any rank."""
        u, s, vh = _decomposed(a)
        away = moved(np.eye(n), a.spec, s.spec.dtype)
        others = each(where(_X.ne(0.0), const(1.0), _S), s=across(s), x=away)
        rest = across(reduced(_products, others, False, s.spec.dtype))
        phase = each(_A * _B, a=determinant(u), b=determinant(vh))
        scaled = each((conj(_X) if u.spec.dtype.is_complex else _X) * _S * _A, x=u, s=rest, a=phase)
        return product(scaled, turned(_adjoint(vh)))

    def run(outs: list[View], a: View) -> None:
        inverse, info = empty(a.spec.like(a.spec.shape)), ints(a.spec, *a.spec.shape[:-2])
        called(linalg_factor.inv, [inverse, info], a, static=())
        result = each(_X * _A, x=turned(inverse), a=determinant(a))
        # With less than half of the digits right the two do not fit together any more.
        norms = _largest_column(a), _largest_column(inverse)
        with np.errstate(all="ignore"):
            poor = ~(norms[0] * norms[1] < eps**-0.5) & np.isfinite(norms[0])
        if poor.any():
            where_ = moved(poor[..., None, None].astype(float), a.spec, a.spec.dtype.to_real())
            exact = by_singular_values(a)
            result = each(where(_S.ne(0.0), _X, _A), x=exact, s=where_, a=result)
        copy_view(outs[0], result)

    return run


def _products(slot: Any, dims: Any, keepdim: bool, dtype: Any) -> Any:
    return reduction.prod(slot, dims[0], keepdim, dtype)
