"""QR, singular values and eigenvalues by cuSOLVER. Without the library: the CPU's."""

from __future__ import annotations

import math
from typing import Any

from ....core.errors import LinAlgError, fail
from ....core.layout import Spec
from ....formula import Formula, var
from ....formula.expr import conj as conjugate
from ..libraries.cusolver import (
    ADJOINT,
    LEFT,
    LETTER,
    LOWER,
    PLAIN,
    TRANSPOSED,
    UPPER,
    Batch,
    P,
    copied,
    fetched,
    ints,
    library,
    takes,
    turned,
)
from ..programs.copy import copy_view
from ..programs.index_space import window
from ..programs.pointwise import compile_formula
from ..rows import cuda
from ..runtime.views import View, empty
from . import diagonal
from .linalg_factor import parted, ready

SMALL = 32  # rows and columns up to which the library iterates on a whole batch at once
_CONJUGATE = Formula("conjugate", ("x",), conjugate(var("x")))


def _kind(dtype: Any) -> tuple[str, str]:
    """The letter of a type, and the prefix of its orthogonal (unitary) matrices."""
    return LETTER[dtype], "un" if dtype.is_complex else "or"


def _conjugated(spec: Spec) -> Any:
    """`run(view)`: complex conjugates in place; of reals nothing."""
    if not spec.dtype.is_complex:
        return lambda v: None
    roles = [(spec.dtype, spec.dtype, None)]
    into = compile_formula(_CONJUGATE, ["x"], roles, [spec], spec, empty)[1]
    return lambda v: into([v], v)


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
def geqrf(a: Any) -> Any:
    if not ready(a):
        return None

    def run(outs: list[View], a: View) -> None:
        columns = copied(turned(a))
        reflectors(columns, outs[1])
        copy_view(outs[0], turned(columns))

    return run


def _rows(v: View, n: int) -> View:
    """The first n rows of matrices."""
    return window(v, (*v.spec.shape[:-2], n, v.spec.shape[-1]), v.spec.strides, 0)


@cuda("_qr", accepts=takes)
def qr(a: Any, mode: str) -> Any:
    if not ready(a):
        return None
    *batch, m, n = a.shape
    k = min(m, n)
    wide = m if mode == "complete" else k  # columns of Q
    letter, unit = _kind(a.dtype)
    clean = parted(diagonal.triu, a.spec.like((*batch, wide, n)))

    def run(outs: list[View], a: View) -> None:
        q, r = outs
        columns, tau = copied(turned(a)), empty(a.spec.like((math.prod(batch), k)))
        reflectors(columns, tau)
        copy_view(r, _rows(turned(columns), wide))
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
        copy_view(q, turned(vectors))

    return run


@cuda("_reflect", accepts=takes)
def reflect(v: Any, tau: Any, x: Any, back: bool) -> Any:
    if x.numel and not tau.shape[-1] and tau.shape[:-1] == x.shape[:-2]:  # no reflection at all
        return lambda outs, v, tau, x: copy_view(outs[0], x)
    if not ready(v, tau, x) or v.shape[:-2] != x.shape[:-2] or tau.shape[:-1] != x.shape[:-2]:
        return None
    *_, m, n = x.shape
    k, letter = tau.shape[-1], LETTER[x.dtype]
    name = f"{letter}{_kind(x.dtype)[1]}mqr"
    trans = PLAIN if not back else ADJOINT if x.dtype.is_complex else TRANSPOSED

    def run(outs: list[View], v: View, tau: View, x: View) -> None:
        # The first k vectors, in columns: rows of the transposes.
        b, c = Batch(copied(_rows(turned(v), k))), Batch(copied(turned(x)))
        if not tau.spec.contiguous:
            tau = copied(tau)
        info, item = ints(x.spec, 1), x.spec.dtype.itemsize
        how = (LEFT, trans, m, n, k)
        work, size = library.work(name, x.spec, *how, b.at(0), m, P(tau.ptr), c.at(0), m)
        for i in range(c.count):
            library.solve(name, *how, b.at(i), m, P(tau.ptr + i * k * item), c.at(i), m, P(work.ptr), size, P(info.ptr))
        copy_view(outs[0], turned(c.view))

    return run


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
        how = (int(vectors), rows, cols, m.at(0), rows, P(s.ptr), left.at(0), rows, right.at(0))
        work, size = library.work(name, a.spec, *how, cols, last=(params, m.count))
        library.solve(name, *how, cols, P(work.ptr), size, P(info.ptr), params, m.count)
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


def _require(op: str, info: View, values: View | None = None) -> None:
    """Raise where an iteration failed, or made something else than numbers."""
    failed = fetched(info)
    finite = values is None or bool((fetched(values) < math.inf).all())
    if failed.any() or not finite:
        why = "" if finite else ": the matrix has elements that are not finite"
        fail(LinAlgError, op, f"the iteration did not converge{why}.")


@cuda("_svd", accepts=takes)
def svd(a: Any, full: bool, vectors: bool) -> Any:
    """Row-major memory holds A': its left vectors are conjugates of our right ones."""
    if not ready(a):
        return None
    *batch, m, n = a.shape
    k = min(m, n)
    mine = a.spec.like((*batch, m if full else k, m))  # U', row-major
    turn = _conjugated(mine)

    def run(outs: list[View], a: View) -> None:
        u, s, vh = outs
        if not vectors:
            # The library wants room for vectors even if it leaves it alone.
            vh, u_turned = empty(a.spec.like((*batch, k, n))), empty(a.spec.like((*batch, k, m)))
            info = singular(copied(a), s, vh, u_turned, False, False)
        else:
            u_turned = empty(mine)
            info = singular(copied(a), s, vh, u_turned, full, True)
        _require("linalg.svd", info, s)
        if vectors:
            turn(u_turned)
            copy_view(u, turned(u_turned))

    return run


@cuda("_eigh", accepts=takes)
def eigh(a: Any, uplo: str, vectors: bool) -> Any:
    if not ready(a):
        return None
    n = a.shape[-1]
    letter = LETTER[a.dtype]
    stem = "he" if a.dtype.is_complex else "sy"
    side = UPPER if uplo == "L" else LOWER  # the triangle's name in columns
    turn = _conjugated(a.spec.like(a.shape))

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
            how = (int(vectors), side, n)
            work, size = library.work(name, a.spec, *how, b.at(0), n, P(values.ptr))
            for i in range(b.count):
                to = P(values.ptr + i * n * item)
                library.solve(name, *how, b.at(i), n, to, P(work.ptr), size, P(info.ptr + 4 * i))
        _require("linalg.eigh", info)
        if vectors:
            turn(b.view)
            copy_view(found, turned(b.view))

    return run
