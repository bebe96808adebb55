"""Systems and inverses by LU factors."""

from __future__ import annotations

import math

from ...common.slot import Slot
from ..libraries.cusolver import PLAIN, TRANSPOSED, ints, takes, transposed
from ..programs.copy import copy_view
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View
from .linalg_lu import factored, in_columns, substituted
from .linalg_small import plans
from .linalg_steps import identity, ready, stretched
from .linalg_triangular import offsets


@cuda("_inv", accepts=takes)
def inv(a: Slot) -> Run:
    """Row-major memory of the inverse is its transpose: that is what is solved for."""
    few = plans.inverse(a)
    if few is not None or not ready(a):
        return few
    *batch, n, _ = a.shape

    def run(outs: list[View], a: View) -> None:
        out, info = outs
        lu, pivots = in_columns(a), ints(a.spec, math.prod(batch), n)
        factored(lu, pivots, info)
        identity(out)
        substituted(lu, pivots, out, TRANSPOSED)

    return run


@cuda("_solve", accepts=takes)
def solve(a: Slot, b: Slot) -> Run:
    few = plans.solve(a, b)
    if few is not None or not ready(a):
        return few
    *batch, n, _ = a.shape

    def run(outs: list[View], a: View, b: View) -> None:
        out, info = outs
        lu, pivots = in_columns(a), ints(a.spec, math.prod(batch), n)
        factored(lu, pivots, info)
        if not out.spec.numel:  # whether there would be a solution is still told
            return
        x = in_columns(stretched(b, out.spec))
        which = offsets(lu.spec, tuple(out.spec.shape[:-2])) // (n * n * lu.spec.dtype.itemsize)
        substituted(lu, pivots, x, PLAIN, which)
        copy_view(out, transposed(x))

    return run
