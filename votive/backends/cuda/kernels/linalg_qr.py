"""QR, singular values and eigenvalues by cuSOLVER. Without the library: the CPU's."""

from __future__ import annotations

import math

from ....core import dtype as dt
from ...common.slot import Slot
from ..libraries.cusolver import (
    ADJOINT,
    LEFT,
    LETTER,
    PLAIN,
    TRANSPOSED,
    Batch,
    P,
    copied,
    ints,
    library,
    takes,
    transposed,
)
from ..programs.copy import copy_view
from ..programs.index_space import window
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View, empty
from . import diagonal
from .linalg_small import plans
from .linalg_steps import parted, ready


def _kind(dtype: dt.dtype) -> tuple[str, str]:
    """The letter of a type, and the prefix of its orthogonal (unitary) matrices."""
    return LETTER[dtype], "un" if dtype.is_complex else "or"


def reflectors(columns: View, tau: View) -> None:
    """Householder vectors and R in place; `columns` holds transposes, row-major."""
    m = Batch(columns)
    cols, rows, letter = m.rows, m.cols, LETTER[columns.spec.dtype]
    item = columns.spec.dtype.itemsize
    work, size = library.work(f"{letter}geqrf", columns.spec, rows, cols, m.at(0), rows)
    info = ints(columns.spec, 1)
    for i in range(m.count):
        library.solve(
            f"{letter}geqrf",
            rows,
            cols,
            m.at(i),
            rows,
            P(tau.ptr + i * min(rows, cols) * item),
            P(work.ptr),
            size,
            P(info.ptr),
        )


@cuda("_geqrf", accepts=takes)
def geqrf(a: Slot) -> Run:
    few = plans.householder(a, min(a.shape[-2:]), packed=True, vectors=False)
    if few is not None:
        return lambda outs, a: few(outs[0].ptr, outs[0].ptr, outs[0].ptr, outs[1].ptr, a)
    if not ready(a):
        return None

    def run(outs: list[View], a: View) -> None:
        columns = copied(transposed(a))
        reflectors(columns, outs[1])
        copy_view(outs[0], transposed(columns))

    return run


def _rows(v: View, n: int) -> View:
    """The first n rows of matrices."""
    return window(v, (*v.spec.shape[:-2], n, v.spec.shape[-1]), v.spec.strides, 0)


@cuda("_qr", accepts=takes)
def qr(a: Slot, mode: str) -> Run:
    *batch, m, n = a.shape
    k = min(m, n)
    wide = m if mode == "complete" else k  # columns of Q
    if mode != "r":
        both = plans.qr_factors(a, wide)
        if both is not None:
            return both
    else:
        few = plans.householder(a, wide, packed=False, vectors=False)
        if few is not None:
            return lambda outs, a: few(outs[1].ptr, outs[1].ptr, outs[1].ptr, outs[1].ptr, a)
    if not ready(a):
        return None
    letter, unit = _kind(a.dtype)
    clean = parted(diagonal.triu, a.spec.like((*batch, wide, n)))

    def run(outs: list[View], a: View) -> None:
        q, r = outs
        columns, tau = copied(transposed(a)), empty(a.spec.like((math.prod(batch), k)))
        reflectors(columns, tau)
        copy_view(r, _rows(transposed(columns), wide))
        clean(r)
        if mode == "r":
            return
        vectors = empty(a.spec.like((*batch, wide, m)))
        copy_view(_rows(vectors, k), _rows(columns, k))
        b, info, item = Batch(vectors), ints(a.spec, 1), a.spec.dtype.itemsize
        name = f"{letter}{unit}gqr"
        work, size = library.work(name, a.spec, m, wide, k, b.at(0), m, P(tau.ptr))
        for i in range(b.count):
            library.solve(name, m, wide, k, b.at(i), m, P(tau.ptr + i * k * item), P(work.ptr), size, P(info.ptr))
        copy_view(q, transposed(vectors))

    return run


@cuda("_reflect", accepts=takes)
def reflect(v: Slot, tau: Slot, x: Slot, back: bool) -> Run:
    if x.numel and not tau.shape[-1] and tau.shape[:-1] == x.shape[:-2]:  # no reflection at all
        return lambda outs, v, tau, x: copy_view(outs[0], x)
    few = None
    if v.shape[:-2] == x.shape[:-2] == tau.shape[:-1]:
        few = plans.reflections(v, tau, x, x.shape[-1], back)
    if few is not None:
        return lambda outs, v, tau, x: few(outs[0], v, tau, x)
    if not ready(v, tau, x) or v.shape[:-2] != x.shape[:-2] or tau.shape[:-1] != x.shape[:-2]:
        return None
    *_, m, n = x.shape
    k, letter = tau.shape[-1], LETTER[x.dtype]
    name = f"{letter}{_kind(x.dtype)[1]}mqr"
    trans = PLAIN if not back else ADJOINT if x.dtype.is_complex else TRANSPOSED

    def run(outs: list[View], v: View, tau: View, x: View) -> None:
        # The first k vectors, in columns: rows of the transposes.
        b, c = Batch(copied(_rows(transposed(v), k))), Batch(copied(transposed(x)))
        if not tau.spec.contiguous:
            tau = copied(tau)
        info, item = ints(x.spec, 1), x.spec.dtype.itemsize
        how = (LEFT, trans, m, n, k)
        work, size = library.work(name, x.spec, *how, b.at(0), m, P(tau.ptr), c.at(0), m)
        for i in range(c.count):
            library.solve(name, *how, b.at(i), m, P(tau.ptr + i * k * item), c.at(i), m, P(work.ptr), size, P(info.ptr))
        copy_view(outs[0], transposed(c.view))

    return run
