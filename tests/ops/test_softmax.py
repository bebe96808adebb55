"""Fused softmax against its composite twin, its special rows, and the implicit dimension."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import votive as vt
from votive.ops.registry import F

INF, NAN = math.inf, math.nan
TWINS = [("softmax", "_softmax_composite"), ("log_softmax", "_log_softmax_composite")]


def gradients(fn: Any, x: Any, dim: int) -> tuple[Any, Any, Any]:
    """Result, gradient and second gradient with the same weights each time."""
    rng = np.random.default_rng(0)
    x = vt.from_numpy(x).requires_grad_()
    y = fn(x, dim)
    g = vt.from_numpy(rng.uniform(-1, 1, tuple(y.shape)))
    (first,) = vt.autograd.grad(y, x, g, create_graph=True)
    (second,) = vt.autograd.grad((first * first).sum(), x)
    return y.detach().numpy(), first.detach().numpy(), second.numpy()


@pytest.mark.parametrize(("fused", "twin"), TWINS)
@pytest.mark.parametrize(("shape", "dim"), [((5,), 0), ((3, 4), 0), ((2, 3, 4), -2), ((), 0)])
def test_the_fused_kernel_agrees_with_its_composite_twin_to_order_two(
    fused: str, twin: str, shape: tuple[int, ...], dim: int
) -> None:
    x = np.array(np.random.default_rng(1).normal(0, 5, shape))
    got = gradients(getattr(F, fused), x, dim)
    want = gradients(getattr(F, twin), x, dim)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-13)


def test_large_values_do_not_overflow_and_rows_without_a_maximum_are_nan() -> None:
    x = vt.tensor([[1e4, 0.0], [-1e4, -1e4], [-INF, 0.0], [-INF, -INF], [INF, 0.0], [NAN, 0.0]])
    want = [[1, 0], [0.5, 0.5], [0, 1], [NAN, NAN], [NAN, NAN], [NAN, NAN]]
    np.testing.assert_array_equal(vt.softmax(x, 1).numpy(), np.array(want, np.float32))
    logs = vt.log_softmax(x, 1).numpy()
    np.testing.assert_array_equal(logs[0], [0, -1e4])
    np.testing.assert_array_equal(logs[2], [-INF, 0])
    assert np.isnan(logs[3:]).all()


@pytest.mark.parametrize("dtype", [vt.float16, vt.bfloat16])
def test_half_types_sum_long_rows_in_float32(dtype: Any) -> None:
    # 20000 equal terms: summed in a half type they would stop growing at 2048 or at 256.
    y = vt.softmax(vt.zeros(20000, dtype=dtype), 0)
    assert y.dtype is dtype
    np.testing.assert_allclose(y.to(vt.float32).numpy(), 1 / 20000, rtol=4e-3)
    x = vt.zeros(20000, dtype=dtype).requires_grad_()
    # y (1 - sum(y)) is 0; a sum that stops growing would leave y itself, 5e-5.
    vt.softmax(x, 0).backward(vt.ones(20000, dtype=dtype))
    np.testing.assert_allclose(x.grad.to(vt.float32).numpy(), 0, atol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
@pytest.mark.parametrize(("shape", "dim"), [((), 0), ((4,), 0), ((3, 4), 1), ((2, 3, 4), 0), ((2, 3, 2, 2), 1)])
def test_a_missing_dim_is_chosen_by_the_old_rule_with_a_warning(name: str, shape: tuple[int, ...], dim: int) -> None:
    fn = getattr(vt.nn.functional, name)
    x = vt.from_numpy(np.array(np.random.default_rng(2).normal(size=shape)))
    with pytest.warns(UserWarning, match="implicit"):
        got = fn(x)
    np.testing.assert_array_equal(got.numpy(), fn(x, dim).numpy())


def test_the_result_keeps_the_order_of_dimensions_in_memory() -> None:
    x = vt.ones(2, 3, 4).permute(2, 0, 1)
    assert vt.softmax(x, 1).stride() == x.stride()


def test_gumbel_softmax_samples_follow_the_distribution() -> None:
    vt.manual_seed(0)
    p = np.array([0.1, 0.2, 0.7])
    logits = vt.from_numpy(np.log(p)).expand(20000, 3)
    y = vt.nn.functional.gumbel_softmax(logits, tau=0.5, hard=True)
    np.testing.assert_array_equal(y.sum(1).numpy(), 1)
    np.testing.assert_allclose(y.mean(0).numpy(), p, atol=4 * 0.5 / math.sqrt(20000))


def test_hard_gumbel_samples_carry_the_soft_gradient() -> None:
    x = vt.tensor([0.3, -0.2, 0.1], dtype=vt.float64, requires_grad=True)
    w = vt.tensor([1.0, 2.0, 3.0], dtype=vt.float64)
    grads = []
    for hard in (False, True):
        vt.manual_seed(1)
        y = vt.nn.functional.gumbel_softmax(x, hard=hard)
        grads.append(vt.autograd.grad((y * w).sum(), x)[0].numpy())
    np.testing.assert_allclose(grads[0], grads[1], rtol=1e-12)
    assert np.abs(grads[0]).max() > 0
