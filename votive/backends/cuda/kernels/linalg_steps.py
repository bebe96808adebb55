"""Steps that composed matrix operators are written in: products, formulas, reductions of views,
each planned once per layout. Knows the real and complex rows, not operators.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import triton
import triton.language as tl

from ....core import dtype as dt
from ....core.errors import LinAlgError, fail
from ....core.layout import Layout, Spec, broadcast_shapes, broadcast_strides
from ....formula import Formula, var
from ....formula.expr import Expr, apply, conj
from ....formula.expr import conj as conjugate
from ...common.slot import Slot
from ..libraries.cusolver import fetched, library, transposed
from ..programs.copy import copy_view
from ..programs.fill import fill_view
from ..programs.layouts import expanded
from ..programs.pointwise import compile_formula
from ..programs.program import Program
from ..runtime.views import View, empty
from . import reduction
from .linalg_small.batch import Places, small
from .matmul.plan import Planned

_X = var("x")


@lru_cache(256)
def _product(a: Spec, b: Spec) -> tuple[Spec, Planned]:
    batch = broadcast_shapes("matmul", a.shape[:-2], b.shape[:-2])
    return a.like((*batch, a.shape[-2], b.shape[-1])), Planned(a, b, a)


def product(a: View, b: View) -> View:
    """Matrix products of two batches that broadcast."""
    spec, plan = _product(a.spec, b.spec)
    made = empty(spec)
    plan(made, a, b)
    return made


@lru_cache(256)
def _formula(body: Expr, names: tuple[str, ...], specs: tuple[Any, ...], out: Spec) -> Any:
    types = (out.dtype, *(s.dtype for s in specs if s is not None))
    kind = max(types, key=lambda d: (d.category, d.itemsize))
    roles = [(None if s is None else s.dtype, kind, None) for s in specs]
    formula = Formula("step", names, body)
    return compile_formula(formula, list(names), roles, list(specs), out, empty)[0]


def each(body: Expr, dtype: dt.dtype | None = None, **given: Any) -> View:
    """A formula of views that broadcast, and numbers; in the dtype of the first, or as asked."""
    views = [v for v in given.values() if v.__class__ is View]
    shape = broadcast_shapes("step", *(v.spec.shape for v in views))
    out = views[0].spec.like(shape, dtype=dtype or views[0].spec.dtype)
    specs = tuple(v.spec if v.__class__ is View else None for v in given.values())
    return _formula(body, tuple(given), specs, out)(*given.values())[1]


def with_last(v: View, at: int | None = None) -> View:
    """A new last dimension of size 1; or, in the last one, element `at` alone."""
    shape, strides = v.spec.shape, v.spec.strides
    if at is None:
        return View(v.ptr, v.spec.like((*shape, 1), strides=(*strides, 1)), v.storage)
    place = at % shape[-1] * strides[-1] * v.spec.dtype.itemsize
    spec = v.spec.like((*shape[:-1], 1), strides=strides)
    return View(v.ptr + place, spec, v.storage)


def across(v: View) -> View:
    """A new dimension of size 1 before the last."""
    shape, strides = v.spec.shape, v.spec.strides
    spec = v.spec.like((*shape[:-1], 1, shape[-1]), strides=(*strides[:-1], shape[-1], strides[-1]))
    return View(v.ptr, spec, v.storage)


def reduced(fn: Callable[..., Any], v: View, *static: Any, dtype: dt.dtype | None = None) -> View:
    """A row's reduction over the last dimension. `fn(slot, dims, keepdim, ...)` as rows are."""
    out = v.spec.like(v.spec.shape[:-1], dtype=dtype or v.spec.dtype)
    made = empty(out)
    _reducer(fn, v.spec, static)([made], v)
    return made


@lru_cache(256)
def _reducer(fn: Callable[..., Any], spec: Spec, static: tuple[Any, ...]) -> Any:
    return fn(Slot(0, spec), (spec.ndim - 1,), *static)


@lru_cache(256)
def _row(fn: Callable[..., Any], specs: tuple[Spec, ...], static: tuple[Any, ...]) -> Any:
    return fn(*(Slot(k, s) for k, s in enumerate(specs)), *static)


def called(fn: Callable[..., Any], outs: list[View], *given: View, static: tuple[Any, ...]) -> None:
    """A row of another operator, into memory that is there."""
    _row(fn, tuple(v.spec for v in given), static)(outs, *given)


def cast(v: View, dtype: dt.dtype) -> View:
    """The same values, row-major, in another dtype."""
    made = empty(v.spec.like(v.spec.shape, dtype=dtype))
    copy_view(made, v)
    return made


def adjoint_of(v: View) -> View:
    """The adjoint: conjugates, if there are any, in memory of their own."""
    return transposed(each(conj(_X), x=v) if v.spec.dtype.is_complex else v)


def largest_column(a: View) -> np.ndarray[Any, Any]:
    """The 1-norms of matrices, on the host."""
    real = a.spec.dtype.to_real()
    sizes = each(apply("abs", _X), real, x=transposed(a))
    return fetched(reduced(reduction.sum_, sizes, False, real)).max(axis=-1)


def ready(*slots: Any) -> bool:
    """Whether there is something to compute, and the libraries to do it."""
    return all(s.numel for s in slots) and library.load()


def composable(dtype: dt.dtype, *slots: Any) -> bool:
    """Whether there is something to compute, and all steps can be made: by the libraries, or as matrices are small."""
    return all(s.numel for s in slots) and (small(dtype, *slots[0].shape[-2:]) or library.load())


def parted(keep: Any, spec: Spec) -> Any:
    """`run(view)`: one triangle stays, in place."""
    if spec.dtype is dt.complex128:
        from .complex.rows import first

        seen = first(spec)
        run = keep(Slot(0, seen), 0)
        return lambda v: run([View(v.ptr, seen, v.storage)], View(v.ptr, seen, v.storage))
    run = keep(Slot(0, spec), 0)
    return lambda v: run([v], v)


def stretched(v: View, to: Spec) -> View:
    """A view broadcast to a shape."""
    strides = broadcast_strides(v.spec.shape, v.spec.strides, to.shape)
    return View(v.ptr, v.spec.like(to.shape, strides=strides), v.storage)


def identity(to: View) -> None:
    """Fill row-major square matrices with the identity."""
    *batch, n, _ = to.spec.shape
    fill_view(to, 0)
    strides = (*to.spec.strides[:-2], n + 1)
    fill_view(View(to.ptr, to.spec.like((*batch, n), strides=strides), to.storage), 1)


@triton.jit
def _addresses(o, count, inner, a, a_outer, a_inner, b, b_step, BLOCK: tl.constexpr):
    # Grid: blocks of matrices. Both lists lie one after the other.
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = i < count
    tl.store(o + i, a + (i // inner) * a_outer + (i % inner) * a_inner, mask=there)
    tl.store(o + count + i, b + i * b_step, mask=there)


_ADDRESSES = Program(_addresses, ["*i64", *["i64"] * 7], {"BLOCK": 256}, warps=2)


@lru_cache(256)
def _steps(a: Spec, batch: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    places = Places(batch, (a, 2))
    outer, inner = places.steps[0]
    item = a.dtype.itemsize
    return None if places.copied else (places.count, places.inner, outer * item, inner * item)


def even(a: View, batch: tuple[int, ...]) -> View:
    """Matrices that are found by even steps in a batch that they broadcast to; copied if they are not."""
    return a if _steps(a.spec, batch) is not None else expanded(a, (*batch, *a.spec.shape[-2:]))


def addresses(a: View, x: View) -> tuple[View, int, int]:
    """Where the matrices of `a`, broadcast, and of dense `x` begin: (what holds both lists, first, second)."""
    steps = _steps(a.spec, tuple(x.spec.shape[:-2]))
    assert steps is not None, "matrices that do not lie evenly"
    count, inner, *at = steps
    made = empty(Spec(Layout((2 * count,)), dt.int64, x.spec.device))
    step = math.prod(x.spec.shape[-2:]) * x.spec.dtype.itemsize
    _ADDRESSES((-(-count // 256),), made.ptr, count, inner, a.ptr, *at, x.ptr, step)
    return made, made.ptr, made.ptr + 8 * count


SMALL = 32  # rows and columns up to which the library iterates on a whole batch at once
_CONJUGATE = Formula("conjugate", ("x",), conjugate(var("x")))


def conjugated(spec: Spec) -> Any:
    """`run(view)`: complex conjugates in place; of reals nothing."""
    if not spec.dtype.is_complex:
        return lambda v: None
    roles = [(spec.dtype, spec.dtype, None)]
    into = compile_formula(_CONJUGATE, ["x"], roles, [spec], spec, empty)[1]
    return lambda v: into([v], v)


def require_converged(op: str, info: View, values: View | None = None) -> None:
    """Raise where an iteration failed, or made something else than numbers."""
    failed = fetched(info)
    finite = values is None or bool((fetched(values) < math.inf).all())
    if failed.any() or not finite:
        _not_converged(op, finite)


def require_rotated(op: str, info: View) -> None:
    """Raise where rotations did not end (1), or there was something else than numbers (2)."""
    failed = fetched(info)
    if failed.any():
        _not_converged(op, not (failed == 2).any())


def _not_converged(op: str, finite: bool) -> None:
    why = "" if finite else ": the matrix has elements that are not finite"
    fail(LinAlgError, op, f"the iteration did not converge{why}.")
