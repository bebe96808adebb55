"""Singular values by cuSOLVER. Without the library: the CPU's."""

from __future__ import annotations

from typing import Any

from ...common.slot import Slot
from ..libraries.cusolver import LETTER, Batch, P, copied, ints, library, takes, transposed
from ..programs.copy import copy_view
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View, empty
from .linalg_small import plans
from .linalg_steps import SMALL, called, conjugated, ready, require_converged, require_rotated


def singular(a: View, s: View, u: View, v: View, full: bool, vectors: bool) -> View:
    """Singular values of matrices in columns (`a` holds their transposes and is overwritten);
    transposes of U and V are written row-major. Gives the failures.
    """
    m = Batch(a)
    cols, rows, letter = m.rows, m.cols, LETTER[a.spec.dtype]
    k, info, params = min(rows, cols), ints(a.spec, m.count), library.setting("Gesvdj")
    left, right = Batch(u), Batch(v)
    item = s.spec.dtype.itemsize
    if m.count > 1 and rows <= SMALL and cols <= SMALL and (full or rows == cols):
        name = f"{letter}gesvdjBatched"
        given = (int(vectors), rows, cols, m.at(0), rows, P(s.ptr), left.at(0), rows, right.at(0))
        work, size = library.work(name, a.spec, *given, cols, last=(params, m.count))
        library.solve(name, *given, cols, P(work.ptr), size, P(info.ptr), params, m.count)
        return info
    name, econ = f"{letter}gesvdj", int(not full)

    def how(i: int) -> tuple[Any, ...]:
        return (
            int(vectors),
            econ,
            rows,
            cols,
            m.at(i),
            rows,
            P(s.ptr + i * k * item),
            left.at(i),
            rows,
            right.at(i),
            cols,
        )

    work, size = library.work(name, a.spec, *how(0), last=(params,))
    for i in range(m.count):
        library.solve(name, *how(i), P(work.ptr), size, P(info.ptr + 4 * i), params)
    return info


@cuda("_svd", accepts=takes)
def svd(a: Slot, full: bool, vectors: bool) -> Run:
    """Row-major memory holds A': its left vectors are conjugates of our right ones."""
    *batch, m, n = a.shape
    k = min(m, n)
    few = plans.singular(a, full, vectors)
    if few is not None:
        return _rotated(few)
    if not ready(a):
        return None
    mine = a.spec.like((*batch, m if full else k, m))  # U', row-major
    turn = conjugated(mine)

    def run(outs: list[View], a: View) -> None:
        u, s, vh = outs
        if not vectors:
            # The library wants room for vectors even if it leaves it alone.
            vh, u_transposed = empty(a.spec.like((*batch, k, n))), empty(a.spec.like((*batch, k, m)))
            info = singular(copied(a), s, vh, u_transposed, False, False)
        else:
            u_transposed = empty(mine)
            info = singular(copied(a), s, vh, u_transposed, full, True)
        require_converged("linalg.svd", info, s)
        if vectors:
            turn(u_transposed)
            copy_view(u, transposed(u_transposed))

    return run


def _rotated(few: Any) -> Run:
    """Small matrices."""

    def run(outs: list[View], a: View) -> None:
        u, s, vh = outs
        info = ints(a.spec, *a.spec.shape[:-2])
        few(u.ptr, s.ptr, vh.ptr, info.ptr, a)
        require_rotated("linalg.svd", info)

    return run


def decomposed(a: View) -> tuple[View, View, View]:
    """U, the singular values and V^H, reduced."""
    *batch, m, n = a.spec.shape
    k = min(m, n)
    real = a.spec.dtype.to_real()
    u, vh = empty(a.spec.like((*batch, m, k))), empty(a.spec.like((*batch, k, n)))
    s = empty(a.spec.like((*batch, k), dtype=real))
    called(svd, [u, s, vh], a, static=(False, True))
    return u, s, vh
