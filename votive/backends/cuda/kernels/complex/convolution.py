"""Convolutions and cross products of complex tensors: products of sums are four real ones of their
parts, read and written where they lie.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .....core.layout import Spec, broadcast_strides
from .....formula import var
from .....formula.expr import Expr
from ....common.slot import Slot
from ...programs.copy import copy_view
from ...programs.fill import parts
from ...programs.index_space import cached_by_spec, window
from ...programs.types import Run
from ...rows import cuda
from ...runtime.views import View, empty
from ..convolution import convolve as convolution
from .products import elementwise

_A, _B, _C, _D = (var(n) for n in "abcd")


def _part(s: Slot) -> Slot:
    """One part of a complex argument: every other number."""
    spec = s.spec.like(dtype=s.dtype.to_real(), strides=tuple(2 * n for n in s.strides))
    return Slot(s.index, spec)


def _real(body: Expr, spec: Spec) -> Any:
    return elementwise(body, "ab", [spec, spec], spec)


def _four(fn: Callable[..., Any], x: Slot, y: Slot, *static: Any) -> Any:
    """`run(out, x, y)` of a bilinear row."""
    if not x.dtype.is_complex or x.dtype is not y.dtype:
        return None
    one = fn(_part(x), _part(y), *static)
    if one is None:
        return None

    def joins(out: Spec) -> Any:
        half = out.like(out.shape, dtype=out.dtype.to_real())
        return half, _real(_A - _B, half), _real(_A + _B, half)

    find = cached_by_spec(joins)

    def run(out: View, x: View, y: View) -> None:
        half, less, more = find(out.spec)
        (a, b), (c, d) = parts(x), parts(y)
        for to, pairs, join in zip(parts(out), (((a, c), (b, d)), ((a, d), (b, c))), (less, more), strict=True):
            made = [empty(half) for _ in pairs]
            for m, (p, q) in zip(made, pairs, strict=True):
                one([m], p, q)
            join(made, made[0])
            copy_view(to, made[0])

    return run


def _accepts(x: Spec, *rest: Spec) -> bool:
    return x.dtype.is_complex and all(s.dtype is x.dtype for s in rest)


def _biased(fn: Callable[..., Any], x: Any, weight: Any, bias: Slot | None, *static: Any) -> Any:
    run = _four(lambda p, q: fn(p, q, None, *static), x, weight)
    if run is None:
        return None

    def adding(out: Spec) -> Any:
        assert bias is not None
        strides = (0, bias.strides[0], *(0,) * (out.ndim - 2))
        return elementwise(_A + _B, "ab", [out, out.like(out.shape, strides=strides)], out)

    find = cached_by_spec(adding)

    def launch(outs: list[View], x: View, weight: View, bias: View | None = None) -> None:
        run(outs[0], x, weight)
        if bias is not None:
            find(outs[0].spec)([outs[0], bias], outs[0])

    return launch


@cuda("_convolution", accepts=_accepts, priority=20)
def forward(x: Slot, weight: Slot, bias: Slot | None, *static: Any) -> Run:
    return _biased(convolution.convolution, x, weight, bias, *static)


@cuda("_convolution_transpose", accepts=_accepts, priority=20)
def transposed(x: Slot, weight: Slot, bias: Slot | None, *static: Any) -> Run:
    return _biased(convolution.convolution_transpose, x, weight, bias, *static)


@cuda("_convolution_weight", accepts=_accepts, priority=20)
def weights(x: Slot, grad: Slot, *static: Any) -> Run:
    run = _four(convolution.convolution_weight, x, grad, *static)
    return run and (lambda outs, x, grad: run(outs[0], x, grad))


@cuda("_cross", accepts=_accepts, priority=20)
def cross(a: Slot, b: Slot, dim: int) -> Run:
    """`a[k + 1] b[k + 2] - a[k + 2] b[k + 1]`, places counted around."""
    if not a.numel or not b.numel:
        return None
    shape = tuple(max(m, n) for m, n in zip(a.shape, b.shape, strict=True))
    flat = (*shape[:dim], *shape[dim + 1 :])
    specs = []
    for s in (a, b):
        strides = broadcast_strides(s.shape, s.strides, shape)
        specs.append((strides[dim], (*strides[:dim], *strides[dim + 1 :])))
    out = a.spec.like(shape)
    to = out.like(flat, strides=(*out.strides[:dim], *out.strides[dim + 1 :]))
    (far_a, left), (far_b, right) = specs
    seen = [a.spec.like(flat, strides=left), b.spec.like(flat, strides=right)]
    run = elementwise(_A * _B - _C * _D, "abcd", [*seen, *seen], to)

    def launch(outs: list[View], a: View, b: View) -> None:
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            given = [
                window(a, flat, left, i * far_a),
                window(b, flat, right, j * far_b),
                window(a, flat, left, j * far_a),
                window(b, flat, right, i * far_b),
            ]
            run(given, window(outs[0], flat, to.strides, k * out.strides[dim]))

    return launch
