"""Pseudo-inverses, least squares, exponentials and cofactors, composed of decompositions and
products that stay on the GPU. Without the libraries: the CPU's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core import dtype as dt
from ....formula import const, var, where
from ....formula.expr import Expr, apply
from ...base import Request
from ...common.slot import Slot
from ..cpu_fallback import structured
from ..libraries.cusolver import fetched, moved, takes
from ..programs.copy import copy_view
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View, empty
from . import linalg_eig, linalg_qr, linalg_triangular
from .linalg_steps import across, adjoint_of, called, composable, each, product, stretched, with_last
from .linalg_svd import decomposed

_A, _B, _S, _T, _L, _X = (var(n) for n in "abstlx")


def _inverses(s: Expr, limit: Expr) -> Expr:
    """1 / s where |s| exceeds a limit, else 0."""
    keep = apply("abs", s) > limit
    return where(keep, const(1.0) / where(keep, s, const(1.0)), const(0.0))


@cuda("_pinv", accepts=lambda a, *_: takes(a))
def pinv(a: Slot, atol: Slot, rtol: Slot, hermitian: bool) -> Run:
    real = a.dtype.to_real()
    known = (dt.float32, dt.float64)
    if not composable(a.dtype, a) or atol.dtype not in known or rtol.dtype not in known:
        return None

    def run(outs: list[View], a: View, atol: View, rtol: View) -> None:
        limits: dict[str, Any] = {"a": with_last(atol), "b": with_last(rtol)}
        limit = apply("maximum", _A, _B * apply("maximum", apply("abs", _T), apply("abs", _L)))
        if hermitian:
            s, u = (empty(a.spec.like(a.spec.shape[:-1], dtype=real)), empty(a.spec.like(a.spec.shape)))
            called(linalg_eig.eigh, [s, u], a, static=("L", True))
            right, left = u, adjoint_of(u)
        else:
            u, s, vh = decomposed(a)
            right, left = adjoint_of(vh), adjoint_of(u)
        inverse = each(_inverses(_S, limit), s=s, t=with_last(s, 0), l=with_last(s, -1), **limits)
        scaled = each(_X * _S, x=right, s=across(inverse))
        copy_view(outs[0], product(scaled, left))

    return run


def _substituted(r: View, b: View, upper: bool) -> View:
    both = np.broadcast_shapes(r.spec.shape[:-2], b.spec.shape[:-2])
    x = empty(b.spec.like((*both, *b.spec.shape[-2:])))
    called(linalg_triangular.solve_triangular, [x], r, b, static=(upper, False))
    return x


def _by_triangle(a: View, b: View) -> tuple[View, View]:
    """Full rank taken for granted: QR of A, or of its adjoint if it is wide; where that fails."""
    *batch, m, n = a.spec.shape
    tall, k = m >= n, min(m, n)
    given = a if tall else adjoint_of(a)
    q = empty(a.spec.like((*batch, max(m, n), k)))
    r = empty(a.spec.like((*batch, k, k)))
    called(linalg_qr.qr, [q, r], given, static=("reduced",))
    if tall:
        x = _substituted(r, product(adjoint_of(q), b), True)
    else:
        both = np.broadcast_shapes(tuple(batch), b.spec.shape[:-2])
        sides = stretched(b, b.spec.like((*both, *b.spec.shape[-2:])))
        x = product(q, _substituted(adjoint_of(r), sides, False))
    diagonal = View(r.ptr, r.spec.like((*batch, k), strides=(*r.spec.strides[:-2], k + 1)), r.storage)
    sizes = each(apply("abs", _X), a.spec.dtype.to_real(), x=diagonal)
    return x, sizes


@cuda("_lstsq", accepts=takes)
def lstsq(a: Slot, b: Slot, rcond: float, driver: str) -> Run:
    if not composable(a.dtype, a, b):
        return None
    batch, (m, n) = a.shape[:-2], a.shape[-2:]
    k, eps = min(m, n), float(dt.finfo(a.dtype).eps)
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
        u, s, vh = decomposed(a)
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
        inner = each(_X * _S, x=product(adjoint_of(u), b), s=with_last(inverse))
        report(outs, product(adjoint_of(vh), inner), rank, s, zeros)

    return run
