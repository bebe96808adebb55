"""The exponential of matrices: a rational function of the scaled matrix, squared again."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core import dtype as dt
from ....formula import const, var, where
from ....formula.expr import Expr, apply
from ...common.matrix_exp import LIMIT, WEIGHTS
from ...common.slot import Slot
from ..libraries.cusolver import ints, moved, takes
from ..programs.copy import copy_view
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View, empty
from . import linalg_solve
from .linalg_steps import called, cast, composable, each, identity, largest_column, product

_A, _B, _S, _X = (var(n) for n in "absx")


def _solved(a: View, b: View) -> View:
    x, info = empty(b.spec.like(b.spec.shape)), ints(a.spec, *a.spec.shape[:-2])
    called(linalg_solve.solve, [x, info], a, b, static=())
    return x


def _rational(a: View) -> View:
    """p(A) / p(-A), p the numerator of the approximant; even and odd powers are summed apart.

    Higham (2005), eq. 2.9: high powers are products of a sixth power, so there are six products in all.
    """
    one = empty(a.spec.like(a.spec.shape[-2:]))
    identity(one)
    second = product(a, a)
    fourth = product(second, second)
    powers: dict[str, Any] = {"a": second, "b": fourth, "x": product(second, fourth)}
    even = each(_low(0), s=product(powers["x"], each(_high(8), **powers)), i=one, **powers)
    odd = each(_low(1), s=product(powers["x"], each(_high(9), **powers)), i=one, **powers)
    odd = product(a, odd)
    return _solved(each(_A - _B, a=even, b=odd), each(_A + _B, a=even, b=odd))


def _high(first: int) -> Expr:
    """The second, fourth and sixth power with every other weight from the first on."""
    low, middle, high = (const(float(w)) for w in WEIGHTS[first : first + 5 : 2])
    return _A * low + _B * middle + _X * high


def _low(first: int) -> Expr:
    """Those below the eighth power, and what is there already."""
    return _S + _high(first + 2) + var("i") * const(float(WEIGHTS[first]))


@cuda("_matrix_exp", accepts=lambda a: takes(a) or a.dtype in dt.HALF)
def matrix_exp(a: Slot) -> Run:
    # Squaring doubles relative errors again and again, so narrow types are widened meanwhile.
    wide = dt.complex128 if a.dtype.is_complex else dt.float64
    if not composable(wide, a):
        return None

    def run(outs: list[View], a: View) -> None:
        given = cast(a, wide)
        if a.spec.shape[-1] == 1:
            copy_view(outs[0], each(apply("exp", _X), x=given))
            return
        norm = largest_column(given)
        with np.errstate(all="ignore"):
            ratio = np.where(np.isfinite(norm) & (norm > LIMIT), norm / LIMIT, 1)
        halvings = np.ceil(np.log2(ratio)).astype(np.int64)
        factor = moved((0.5**halvings)[..., None, None], a.spec, dt.float64)
        result = _rational(each(_X * _S, x=given, s=factor))
        least, most = int(halvings.min()), int(halvings.max())
        for _ in range(least):
            result = product(result, result)
        if most > least:
            times = moved(halvings[..., None, None].astype(float), a.spec, dt.float64)
        for done in range(least, most):
            twice = product(result, result)
            result = each(where(_S > _B, _X, _A), x=twice, s=times, b=float(done), a=result)
        copy_view(outs[0], result)

    return run
