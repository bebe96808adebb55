"""Eigenvalues of symmetric matrices by cuSOLVER. Without the library: the CPU's."""

from __future__ import annotations

from typing import Any

from ...common.slot import Slot
from ..libraries.cusolver import LETTER, LOWER, UPPER, Batch, P, copied, ints, library, takes, transposed
from ..programs.copy import copy_view
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View
from .linalg_small import plans
from .linalg_steps import SMALL, conjugated, ready, require_converged, require_rotated


def _rotated(few: Any) -> Run:
    """Small matrices."""

    def run(outs: list[View], a: View) -> None:
        values, found = outs
        info = ints(a.spec, *a.spec.shape[:-2])
        few(values.ptr, found.ptr, info.ptr, a)
        require_rotated("linalg.eigh", info)

    return run


@cuda("_eigh", accepts=takes)
def eigh(a: Slot, uplo: str, vectors: bool) -> Run:
    few = plans.symmetric(a, uplo == "U", vectors)
    if few is not None:
        return _rotated(few)
    if not ready(a):
        return None
    n = a.shape[-1]
    letter = LETTER[a.dtype]
    stem = "he" if a.dtype.is_complex else "sy"
    side = UPPER if uplo == "L" else LOWER  # the triangle's name in columns
    turn = conjugated(a.spec.like(a.shape))

    def run(outs: list[View], a: View) -> None:
        values, found = outs
        b = Batch(copied(a))
        info, item = ints(a.spec, b.count), values.spec.dtype.itemsize
        if b.count > 1 and n <= SMALL:
            name, params = f"{letter}{stem}evjBatched", library.setting("Syevj")
            how = (int(vectors), side, n, b.at(0), n, P(values.ptr))
            work, size = library.work(name, a.spec, *how, last=(params, b.count))
            library.solve(name, *how, P(work.ptr), size, P(info.ptr), params, b.count)
        else:
            name = f"{letter}{stem}evd"
            work, size = library.work(name, a.spec, int(vectors), side, n, b.at(0), n, P(values.ptr))
            for i in range(b.count):
                to = P(values.ptr + i * n * item)
                library.solve(name, int(vectors), side, n, b.at(i), n, to, P(work.ptr), size, P(info.ptr + 4 * i))
        require_converged("linalg.eigh", info)
        if vectors:
            turn(b.view)
            copy_view(found, transposed(b.view))

    return run
