"""Launches for batches of small matrices: each gives `run(outs, *values)`, or None where matrices are not small."""

from __future__ import annotations

import math
from typing import Any

from .....core import dtype as dt
from .....core.layout import Layout, Spec, broadcast_shapes
from ....common.slot import Slot
from ...libraries.cusolver import library
from ...programs.program import TYPE, Program, pointer
from ...programs.types import Run
from ...runtime.views import View, empty
from . import batch, cholesky, jacobi, lu, qr, triangular
from .batch import Places, block, held, small, warps

WAVE = 128  # matrices that are worked on at the same time; of more, the library's smaller programs are done earlier
RIGHT = 64  # columns of right sides that a program takes
MOST_RIGHT = 512  # beyond which the library's own blocks pay


def _one(a: Slot) -> tuple[Places, tuple[int, ...]]:
    places = Places(a.shape[:-2], (a.spec, 2))
    return places, (places.inner, *places.matrix(0, a.spec))


def _program(
    fn: Any, pointers: list[str], ints: list[str], constants: dict[str, Any], elements: int, alone: int = 2048
) -> Program:
    size = 8 if pointers[0] == "*fp64" else 4
    return Program(fn, [*pointers, *ints], constants, warps=warps(elements * size, alone), stages=1)


_STEPS = ["i64"] * 5


def _left(ours: bool) -> bool:
    """Whether matrices are left to the library, where there is one, as programs of ours are not the faster ones."""
    return not ours and library.load()


def lu_factor(a: Slot) -> Run:
    if not a.numel or not small(a.dtype, *a.shape[-2:]):
        return None
    (places, where), (rows, cols), p = _one(a), a.shape[-2:], pointer(a.dtype)
    if _left(max(rows, cols) <= 32 or places.count <= WAVE):
        return None
    constants = {"M": block(rows), "N": block(cols)}
    program = _program(
        lu.factor, [p, "*i32", "*i32", p], [*_STEPS, "i32", "i32"], constants, math.prod(constants.values())
    )
    grid = (places.count,)

    def run(outs: list[View], a: View) -> None:
        out, pivots, info = outs
        program(grid, out.ptr, pivots.ptr, info.ptr, places.placed(a).ptr, *where, rows, cols)

    return run


def determinant(a: Slot, logs: bool) -> Run:
    if not a.numel or not small(a.dtype, a.shape[-1]):
        return None
    (places, where), n, p = _one(a), a.shape[-1], pointer(a.dtype)
    if _left(n <= 32 or places.count <= WAVE):
        return None
    constants = {"LOGS": logs, "N": block(n)}
    program = _program(lu.determinant, [p] * 3, [*_STEPS, "i32"], constants, block(n) ** 2)
    grid = (places.count,)

    def run(outs: list[View], a: View) -> None:
        program(grid, outs[0].ptr, outs[-1].ptr, places.placed(a).ptr, *where, n)

    return run


def cofactor(a: Slot) -> Any:
    """`run(out, poor, a)`: the cofactors, and where they are not to be trusted (int32)."""
    if not a.numel or not small(a.dtype, a.shape[-1]):
        return None
    (places, where), n, p = _one(a), a.shape[-1], pointer(a.dtype)
    types = [*_STEPS, "i32", TYPE[a.dtype]]
    program = _program(lu.cofactor, [p, "*i32", p], types, {"N": block(n)}, 2 * block(n) ** 2)
    grid, limit = (places.count,), float(dt.finfo(a.dtype).eps) ** -0.5

    def run(out: View, poor: View, a: View) -> None:
        program(grid, out.ptr, poor.ptr, places.placed(a).ptr, *where, n, limit)

    return run


def _sides(columns: int) -> int:
    return min(max(block(columns), 16), RIGHT)


def inverse(a: Slot) -> Run:
    if not a.numel or not small(a.dtype, a.shape[-1]):
        return None
    (places, where), n, p = _one(a), a.shape[-1], pointer(a.dtype)
    if _left(n <= 32 or 1 < places.count <= WAVE):
        return None
    constants = {"INVERSE": True, "N": block(n), "R": block(n)}
    program = _program(lu.solve, [p, "*i32", p, p], ["i64"] * 11 + ["i32"] * 2, constants, 2 * block(n) ** 2)
    grid, rest = (places.count, 1), (0, 0, 0, 0, places.inner, 1, n, n)

    def run(outs: list[View], a: View) -> None:
        out, info = outs
        x = places.placed(a)
        program(grid, out.ptr, info.ptr, x.ptr, x.ptr, *where, *rest)

    return run


def solve(a: Slot, b: Slot) -> Run:
    n, columns = b.shape[-2:]
    both = broadcast_shapes("linalg.solve", a.shape[:-2], b.shape[:-2])
    if not a.numel or not b.numel or not small(a.dtype, n) or _left(columns <= MOST_RIGHT):
        return None
    info = Spec(Layout(a.shape[:-2]), dt.int32, a.spec.device)
    places = Places(both, (a.spec, 2), (b.spec, 2), (info, 0))
    if (places.copied and a.shape[:-2] != both) or _left(n <= 32 or 1 < places.count <= WAVE):
        return None
    p, size = pointer(a.dtype), _sides(columns)
    constants = {"INVERSE": False, "N": block(n), "R": size}
    elements = block(n) * (block(n) + size)
    program = _program(lu.solve, [p, "*i32", p, p], ["i64"] * 11 + ["i32"] * 2, constants, elements)
    grid = (places.count, -(-columns // size))
    how = (places.inner, *places.matrix(0, a.spec), *places.matrix(1, b.spec), *places.steps[2], n, columns)

    def run(outs: list[View], a: View, b: View) -> None:
        out, info = outs
        program(grid, out.ptr, info.ptr, places.placed(a).ptr, places.placed(b).ptr, *how)

    return run


def triangle(a: Slot, b: Slot, upper: bool, unit: bool, twice: bool = False) -> Any:
    """`run(out, a, b)`: X with `A X = B`; `twice`: with `A A' X = B`, or `A' A X = B` for an upper triangle."""
    n, columns = b.shape[-2:]
    both = broadcast_shapes("linalg.solve_triangular", a.shape[:-2], b.shape[:-2])
    if not a.numel or not b.numel or not small(a.dtype, n) or _left(n <= 16 and columns <= MOST_RIGHT):
        return None
    places = Places(both, (a.spec, 2), (b.spec, 2))
    how = (places.inner, *places.matrix(0, a.spec), *places.matrix(1, b.spec), n, columns)
    program, grid = _triangle(a, n, columns, upper, unit, twice, False, places.count)

    def run(out: View, a: View, b: View) -> None:
        program(grid, out.ptr, places.placed(a).ptr, places.placed(b).ptr, *how)

    return run


def _triangle(
    a: Slot, n: int, columns: int, upper: bool, unit: bool, twice: bool, identity: bool, count: int
) -> tuple[Program, tuple[int, int]]:
    p, size = pointer(a.dtype), _sides(columns)
    constants = {"UPPER": upper, "UNIT": unit, "TWICE": twice, "IDENTITY": identity, "N": block(n), "R": size}
    program = _program(triangular.solve, [p] * 3, ["i64"] * 9 + ["i32"] * 2, constants, block(n) * size)
    return program, (count, -(-columns // size))


def cholesky_inverse(a: Slot, upper: bool) -> Run:
    if not a.numel or not small(a.dtype, a.shape[-1]) or _left(a.shape[-1] <= 16):
        return None
    (places, where), n = _one(a), a.shape[-1]
    program, grid = _triangle(a, n, n, upper, False, True, True, places.count)

    def run(outs: list[View], a: View) -> None:
        x = places.placed(a)
        program(grid, outs[0].ptr, x.ptr, x.ptr, *where, 0, 0, 0, 0, n, n)

    return run


def cholesky_factor(a: Slot, upper: bool) -> Run:
    if not a.numel or not small(a.dtype, a.shape[-1]) or _left(a.shape[-1] <= 32):
        return None
    (places, where), n, p = _one(a), a.shape[-1], pointer(a.dtype)
    constants = {"UPPER": upper, "N": block(n)}
    program = _program(cholesky.factor, [p, "*i32", p], [*_STEPS, "i32"], constants, block(n) ** 2)
    grid = (places.count,)

    def run(outs: list[View], a: View) -> None:
        program(grid, outs[0].ptr, outs[1].ptr, places.placed(a).ptr, *where, n)

    return run


def cholesky_finish(a: Slot, upper: bool) -> Any:
    """`run(factors, info)`: zeros in the other triangle, and pivots that are no numbers told."""
    n, count, rows, cols = a.shape[-1], math.prod(a.shape[:-2]), 32, 128
    constants = {"UPPER": upper, "ROWS": rows, "COLS": cols}
    program = Program(cholesky.finish, [pointer(a.dtype), "*i32", "i32", "i32"], constants)
    down = -(-n // rows)
    tiles = down * -(-n // cols)
    if tiles > 65535:
        return None

    def run(factors: View, info: View) -> None:
        program((count, tiles), factors.ptr, info.ptr, n, down)

    return run


def householder(a: Slot, wide: int, packed: bool, vectors: bool) -> Any:
    """`run(q, r, packed, tau, a)`: addresses of QR factors, or of reflectors with R and of taus, if `packed`."""
    rows, cols = a.shape[-2:]
    if not a.numel or not (small(a.dtype, rows, cols, wide) if vectors else held(a.dtype, rows, cols)):
        return None
    return _householder(a, wide, packed, not packed, vectors)


def _householder(a: Slot, wide: int, packed: bool, triangle: bool, vectors: bool) -> Any:
    (places, where), (rows, cols), p = _one(a), a.shape[-2:], pointer(a.dtype)
    flags = {"PACKED": packed, "TRIANGLE": triangle, "VECTORS": vectors}
    width = block(wide) if vectors else 1
    constants = {**flags, "M": block(rows), "N": block(cols), "W": width}
    elements = block(rows) * (block(cols) + width * vectors)
    program = _program(qr.factor, [p] * 5, [*_STEPS, "i32", "i32", "i32"], constants, elements)
    grid = (places.count,)

    def run(q: int, r: int, packed: int, tau: int, a: View) -> None:
        program(grid, q, r, packed, tau, places.placed(a).ptr, *where, rows, cols, wide)

    return run


def qr_factors(a: Slot, wide: int) -> Run:
    """Q and R in one launch, or in two where registers hold one of them alone."""
    few = householder(a, wide, packed=False, vectors=True)
    if few is not None:
        return lambda outs, a: few(outs[0].ptr, outs[1].ptr, outs[0].ptr, outs[0].ptr, a)
    *batch, rows, cols = a.shape
    if not a.numel or not held(a.dtype, rows, cols):
        return None
    dense, taus = a.spec.like(a.shape), a.spec.like((*batch, min(rows, cols)))
    product = reflections(Slot(0, dense), Slot(1, taus), None, wide, False)
    if product is None:
        return None
    factor = _householder(a, wide, True, True, False)

    def run(outs: list[View], a: View) -> None:
        q, r = outs
        packed, tau = empty(dense), empty(taus)
        factor(q.ptr, r.ptr, packed.ptr, tau.ptr, a)
        product(q, packed, tau, packed)

    return run


MOST_REFLECTED = 512  # rows


def reflections(v: Slot, tau: Slot, x: Slot | None, columns: int, back: bool) -> Any:
    """`run(out, v, tau, x)`: `Q x`, or `Q' x` for `back`; the first columns of Q itself if there is no x."""
    rows, steps = v.shape[-2], tau.shape[-1]
    if not v.numel or not steps or not columns or v.dtype not in (dt.float32, dt.float64):
        return None
    if rows > MOST_REFLECTED or not batch.LARGEST:
        return None
    y = v if x is None else x
    places = Places(v.shape[:-2], (v.spec, 2), (tau.spec, 1), (y.spec, 2))
    p, size = pointer(v.dtype), 16 if rows > 64 else _sides(columns)
    constants = {"BACK": back, "IDENTITY": x is None, "M": block(rows), "R": size}
    program = _program(qr.reflect, [p] * 4, ["i64"] * 12 + ["i32"] * 3, constants, block(rows) * size)
    step = 1 if places.copied else tau.strides[-1]
    how = (places.inner, *places.matrix(0, v.spec), *places.steps[1], step, *places.matrix(2, y.spec))
    grid = (places.count, -(-columns // size))

    def run(out: View, v: View, tau: View, x: View) -> None:
        at = [places.placed(v).ptr, places.placed(tau, 1).ptr, places.placed(x).ptr]
        program(grid, out.ptr, *at, *how, rows, columns, steps)

    return run


def singular(a: Slot, full: bool, vectors: bool) -> Any:
    """`run(u, s, vh, info, a)`: singular values; `info` 1: rotations did not end, 2: numbers are not finite."""
    rows, cols = a.shape[-2:]
    n, wide = min(rows, cols), max(rows, cols) if full and vectors else min(rows, cols)
    if not a.numel or not small(a.dtype, rows, cols):
        return None
    (places, (inner, outside, inside, row, col)), p = _one(a), pointer(a.dtype)
    tall = max(rows, cols)
    if rows >= cols:
        how = (row, col, rows * wide, wide, 1, 1, n)
    else:  # the transpose is rotated, and left is right
        how = (col, row, wide * cols, 1, cols, n, 1)
    constants = {"VECTORS": vectors, "M": block(tall), "N": block(wide), "K": block(n)}
    elements = block(wide) * (block(tall) + block(n) * vectors)
    kind, bits = TYPE[a.dtype], dt.finfo(a.dtype)
    types = ["i64"] * 10 + ["i32"] * 3 + [kind, kind]
    # Columns that change places inside of a warp need no shared memory.
    program = _program(jacobi.singular, [p, p, p, "*i32", p], types, constants, elements, alone=8192)
    grid, turned = (places.count,), rows < cols
    limits = (float(bits.eps) * max(tall, 4) ** 0.5, float(bits.tiny) * 4)

    def run(u: int, s: int, vh: int, info: int, a: View) -> None:
        left, right = (vh, u) if turned else (u, vh)
        program(grid, left, s, right, info, places.placed(a).ptr, inner, outside, inside, *how, tall, n, wide, *limits)

    return run


def symmetric(a: Slot, upper: bool, vectors: bool) -> Any:
    """`run(values, vectors, info, a)`: eigenvalues; `info` as of singular values."""
    if not a.numel or not small(a.dtype, a.shape[-1]):
        return None
    (places, where), n, p = _one(a), a.shape[-1], pointer(a.dtype)
    few = 24 if places.count == 1 else 16 if a.dtype is dt.float32 else 12
    # From 33 on the library takes matrices of a batch one by one.
    if _left(n <= few or (n > 32 and places.count > 2)):
        return None
    constants = {"UPPER": upper, "VECTORS": vectors, "N": block(n)}
    elements = block(n) ** 2 * (2 if vectors else 1)
    types = [*_STEPS, "i32", TYPE[a.dtype]]
    program = _program(jacobi.symmetric, [p, p, "*i32", p], types, constants, elements)
    grid, tolerance = (places.count,), float(dt.finfo(a.dtype).eps)

    def run(values: int, found: int, info: int, a: View) -> None:
        program(grid, values, found, info, places.placed(a).ptr, *where, n, tolerance)

    return run
