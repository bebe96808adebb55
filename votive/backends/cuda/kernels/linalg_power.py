"""The exponential of matrices: a rational function of the scaled matrix, squared again."""

from __future__ import annotations

import numpy as np

from ....core import dtype as dt
from ....formula import var, where
from ....formula.expr import apply
from ...common.matrix_exp import DEGREE, LIMIT, WEIGHTS
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
    """p(A) / p(-A), p the numerator of the approximant; even and odd powers are summed apart."""
    power = empty(a.spec.like(a.spec.shape))
    identity(power)
    square = product(a, a)
    scaled = _X * _S
    even, odd = (each(scaled, x=power, s=float(w)) for w in WEIGHTS[:2])
    for j in range(2, DEGREE + 1, 2):
        power = product(power, square)
        even = each(_A + scaled, a=even, x=power, s=float(WEIGHTS[j]))
        odd = each(_A + scaled, a=odd, x=power, s=float(WEIGHTS[j + 1]))
    odd = product(a, odd)
    return _solved(each(_A - _B, a=even, b=odd), each(_A + _B, a=even, b=odd))


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
        for done in range(int(halvings.max())):
            go = moved((halvings > done)[..., None, None].astype(float), a.spec, dt.float64)
            twice = product(result, result)
            result = each(where(_S.ne(0.0), _X, _A), x=twice, s=go, a=result)
        copy_view(outs[0], result)

    return run
