"""Fused functions that end in a reduction: one kernel, the same values, gradients and errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import votive as vt

from .compare import layouts, needs_native, reference_only, same

REDUCTIONS = ["sum", "mean", "amax", "amin", "prod"]


def values(shape: tuple[int, ...], dtype: Any = vt.float32, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    if not dtype.is_floating_point:
        return vt.tensor(rng.integers(-9, 10, shape)).to(dtype)
    return vt.tensor(rng.standard_normal(shape)).to(dtype)


def fused_agrees(fn: Any, *args: Any) -> Any:
    """Fused with native kernels, fused without and unfused agree."""
    fused = vt.fuse(fn)
    ours = fused(*args)
    with reference_only():
        same(ours, fused(*args))
        # The values in between are not rounded to a half type.
        exact = {vt.float16: 2e-2, vt.bfloat16: 5e-2}
        same(ours, fn(*args), rtol=exact.get(ours.dtype), atol=exact.get(ours.dtype))
    return ours


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (5, 7), (40, 300), (300, 3), (3, 4, 5), (70_000,)], ids=str)
def test_reductions_of_products_over_every_dim(op: str, shape: tuple[int, ...]) -> None:
    y = values(shape, seed=1)
    for x in layouts(values(shape)):
        for dim, keepdim in itertools.product((None, *range(len(shape))), (False, True)):
            if dim is None:
                fused_agrees(lambda a, b: getattr(a * b * 0.01 + 1, op)(), x, y)
            else:
                fused_agrees(lambda a, b, d=dim, k=keepdim: getattr(a * b * 0.01 + 1, op)(d, k), x, y)


def test_sums_over_several_dims_broadcast_operands_and_numbers() -> None:
    x, row, column = values((6, 5, 300)), values((300,), seed=1), values((5, 1), seed=2)
    for dim in [(0, 1), (0, 2), (1, 2), (0, 1, 2), -1]:
        fused_agrees(lambda a, b, c, d=dim: (a * b + c).sum(d), x, row, column)
        fused_agrees(lambda a, b, d=dim: (a.exp() * b).mean(d, True), x, 0.5)
    fused_agrees(lambda a, b: (a * b).sum(0), x, vt.tensor(2.0))
    fused_agrees(lambda a, b: ((a - b) ** 2).mean(), x, row)


@pytest.mark.parametrize(
    "dtype", [vt.float32, vt.float64, vt.float16, vt.bfloat16, vt.int64, vt.int32, vt.uint8], ids=str
)
def test_types(dtype: Any) -> None:
    x, y = values((30, 50), dtype), values((30, 50), dtype, 1)
    for dim in (0, 1):
        fused_agrees(lambda a, b, d=dim: (a + b).sum(d), x, y)
        fused_agrees(lambda a, b, d=dim: (a + b).amax(d), x, y)
        fused_agrees(lambda a, b, d=dim: (a > b).sum(d), x, y)
        fused_agrees(lambda a, b, d=dim: (a > b).amax(d), x, y)
        fused_agrees(lambda a, b, d=dim: (a + b).sum(d, dtype=vt.float64), x, y)
        fused_agrees(lambda a, b, d=dim: (a * 0.5 + b).sum(d), x, y)


def test_gradients_are_those_of_the_function() -> None:
    def loss(a: Any, b: Any) -> Any:
        return ((a.tanh() - b) ** 2).mean()

    found = []
    for fn in (loss, vt.fuse(loss)):
        a, b = (values((4, 5), vt.float64, s).requires_grad_() for s in (0, 1))
        fn(a, b).backward()
        (twice,) = vt.autograd.grad(vt.autograd.grad(fn(a, b), a, create_graph=True)[0].sum(), a)
        found.append((a.grad, b.grad, twice))
    same(found[0], found[1])
    for op in REDUCTIONS:
        x = values((4, 5), vt.float64).requires_grad_()
        (fused,) = vt.autograd.grad(vt.fuse(lambda t, o=op: getattr(t * t, o)(1))(x).sum(), x)
        (plain,) = vt.autograd.grad(getattr(x * x, op)(1).sum(), x)
        same(fused, plain)


@needs_native
def test_no_tensor_is_made_of_the_values_in_between() -> None:
    dot = vt.fuse(lambda a, b: (a * b).sum())
    x, y = values((300_000,)), values((300_000,), seed=1)
    dot(x, y)
    (reduction,) = next(iter(dot.plans.values()))[0]
    assert all(reduction.plans.values()), "no kernel was bound"
    vt.cpu.reset_peak_memory_stats()
    before = vt.cpu.max_memory_allocated()
    dot(x, y)
    assert vt.cpu.max_memory_allocated() - before < x.nbytes // 2


def test_what_nothing_can_be_chosen_from_is_refused_as_ever() -> None:
    fused = vt.fuse(lambda t: (t * 2).amax())
    with pytest.raises(IndexError, match="nothing to choose"):
        fused(vt.zeros(0))
    assert vt.fuse(lambda t: (t * 2).sum())(vt.zeros(0)).item() == 0


def test_the_formula_names_its_reduction() -> None:
    fused = vt.fuse(lambda a, b: (a * b).sum(1))
    assert fused.formula(vt.ones(2, 3), vt.ones(2, 3)) == "sum(x0 * x1, dim=(1,), keepdim=False)"
    first, total = vt.fuse(lambda a: (a + 1, (a * a).sum()))(vt.tensor([1.0, 2.0]))
    assert first.tolist() == [2.0, 3.0]
    assert total.item() == 5.0


def test_inference_mode_and_no_grad_fuse() -> None:
    fused = vt.fuse(lambda t: (t * t).sum())
    x = vt.ones(5).requires_grad_()
    with vt.no_grad():
        assert not fused(x).requires_grad
    with vt.inference_mode():
        assert fused(x).is_inference()
    assert fused(x).requires_grad
