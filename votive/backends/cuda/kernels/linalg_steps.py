"""Steps that composed matrix operators are written in: products, formulas, reductions of views,
each planned once per layout. Knows the real and complex rows, not operators.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ....core import dtype as dt
from ....core.layout import Spec, broadcast_shapes
from ....formula import Formula
from ....formula.expr import Expr
from ...cpu.native.rows import Slot
from ..libraries.cusolver import moved, turned
from ..programs.copy import copy_view
from ..programs.pointwise import compile_formula
from ..runtime.views import View, empty
from .linalg_triangular import stretched
from .matmul.products import Planned


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
    return _formula(body, tuple(given), specs, out)(*given.values())[1]  # type: ignore[no-any-return]


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


def reduced(fn: Any, v: View, *static: Any, dtype: dt.dtype | None = None) -> View:
    """A row's reduction over the last dimension. `fn(slot, dims, keepdim, ...)` as rows are."""
    out = v.spec.like(v.spec.shape[:-1], dtype=dtype or v.spec.dtype)
    made = empty(out)
    _reducer(fn, v.spec, static)([made], v)
    return made


@lru_cache(256)
def _reducer(fn: Any, spec: Spec, static: tuple[Any, ...]) -> Any:
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


__all__ = ["across", "called", "cast", "each", "moved", "product", "reduced", "stretched", "turned", "with_last"]
