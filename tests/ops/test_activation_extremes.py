"""Values and slopes of smooth functions where naive formulas overflow, cancel or divide by zero."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import votive as vt

nn, special = vt.nn.functional, vt.special
INF, NAN = math.inf, math.nan


def slopes(fn: Any, x: float, dtype: Any) -> tuple[float, float, float]:
    """Value, first and second derivative at one point."""
    t = vt.tensor(x, dtype=dtype, requires_grad=True)
    y = fn(t)
    (first,) = vt.autograd.grad(y, t, create_graph=True)
    second = vt.autograd.grad(first, t)[0].item() if first.requires_grad else 0.0
    return y.item(), first.item(), second


# Function, argument, then value, slope and second derivative in the limit.
LIMITS = [
    (nn.softplus, 1e4, 1e4, 1, 0),
    (nn.softplus, -1e4, 0, 0, 0),
    (nn.softplus, INF, INF, 1, 0),
    (nn.softplus, -INF, 0, 0, 0),
    (nn.logsigmoid, -1e4, -1e4, 1, 0),
    (nn.logsigmoid, 1e4, 0, 0, 0),
    (nn.logsigmoid, -INF, -INF, 1, 0),
    (vt.sigmoid, 1e4, 1, 0, 0),
    (vt.sigmoid, -1e4, 0, 0, 0),
    (vt.sigmoid, -INF, 0, 0, 0),
    (nn.gelu, 1e4, 1e4, 1, 0),
    (nn.gelu, -1e4, 0, 0, 0),
    (lambda x: nn.gelu(x, approximate="tanh"), 1e4, 1e4, 1, 0),
    (lambda x: nn.gelu(x, approximate="tanh"), -1e4, 0, 0, 0),
    (nn.silu, 1e4, 1e4, 1, 0),
    (nn.silu, -1e4, 0, 0, 0),
    (nn.mish, 1e4, 1e4, 1, 0),
    (nn.mish, -1e4, 0, 0, 0),
    (nn.mish, 25.0, 25, 1, 0),
    (nn.elu, -1e4, -1, 0, 0),
    (nn.elu, 1e4, 1e4, 1, 0),
    (nn.elu, 0.0, 0, 1, 0),
    (vt.tanh, 1e4, 1, 0, 0),
    (vt.tanh, -INF, -1, 0, 0),
    (vt.sinc, 0.0, 1, 0, -(math.pi**2) / 3),
    (special.spherical_bessel_j0, 0.0, 1, 0, -1 / 3),
    (special.i1, 0.0, 0, 0.5, 0),
    (special.bessel_j1, 0.0, 0, 0.5, 0),
    (special.log_ndtr, 100.0, 0, 0, 0),
    (special.ndtr, -1e4, 0, 0, 0),
    (vt.erf, 1e4, 1, 0, 0),
]


@pytest.mark.parametrize("dtype", [vt.float64, vt.float32])
@pytest.mark.parametrize("row", range(len(LIMITS)))
def test_limits_are_reached_without_overflow(row: int, dtype: Any) -> None:
    fn, x, *want = LIMITS[row]
    np.testing.assert_allclose(slopes(fn, x, dtype), want, rtol=1e-6, atol=1e-30)


def test_the_series_near_zero_meets_the_closed_form() -> None:
    # Just below and just above the change of form, both must have the digits of the type.
    for fn, at in (
        (vt.sinc, 0.75 / math.pi),
        (special.spherical_bessel_j0, 0.75),
        (special.i1, 0.75),
        (special.i1e, 0.75),
        (special.bessel_j1, 0.75),
    ):
        below = slopes(fn, at * (1 - 1e-13), vt.float64)
        above = slopes(fn, at * (1 + 1e-13), vt.float64)
        np.testing.assert_allclose(below, above, rtol=1e-11)


def test_logit_with_eps_has_no_slope_outside_and_without_eps_nan() -> None:
    x = vt.tensor([-1.0, 0.1, 0.5, 0.95, 2.0], requires_grad=True)
    (g,) = vt.autograd.grad(vt.logit(x, eps=0.2).sum(), x)
    np.testing.assert_allclose(g.numpy(), [0, 0, 4, 0, 0])
    (g,) = vt.autograd.grad(vt.logit(x).sum(), x)
    np.testing.assert_allclose(g.numpy(), [NAN, 1 / 0.09, 4, 1 / 0.0475, NAN], rtol=1e-5)


def test_xlogy_and_xlog1py_are_pinned_to_zero() -> None:
    for fn, pole in ((vt.xlogy, 0.0), (special.xlog1py, -1.0)):
        a = vt.tensor([0.0, 0.0, 2.0, 0.0], requires_grad=True)
        b = vt.tensor([pole, pole - 1, pole + 1, NAN], requires_grad=True)
        y = fn(a, b)
        np.testing.assert_array_equal(y.detach().numpy(), [0, 0, 0, NAN])
        by_a, _ = vt.autograd.grad(y.sum(), (a, b))
        np.testing.assert_array_equal(by_a.numpy(), [0, 0, 0, NAN])


def test_atan2_has_zero_slope_at_the_origin() -> None:
    a, b = vt.zeros(2, requires_grad=True), vt.tensor([0.0, 2.0], requires_grad=True)
    by_a, by_b = vt.autograd.grad(vt.atan2(a, b).sum(), (a, b))
    np.testing.assert_array_equal(by_a.numpy(), [0, 0.5])
    np.testing.assert_array_equal(by_b.numpy(), [0, 0])


def test_logaddexp_of_infinities() -> None:
    a = vt.tensor([INF, -INF, -INF, 1e4], requires_grad=True)
    b = vt.tensor([0.0, 0.0, -INF, -1e4], requires_grad=True)
    for fn in (vt.logaddexp, vt.logaddexp2):
        y = fn(a, b)
        np.testing.assert_array_equal(y.detach().numpy(), [INF, 0, -INF, 1e4])
        by_a, by_b = vt.autograd.grad(y.sum(), (a, b))
        np.testing.assert_array_equal(by_a.numpy(), [1, 0, NAN, 1])
        np.testing.assert_array_equal(by_b.numpy(), [0, 1, NAN, 0])


def test_tanhshrink_and_elu_keep_small_slopes() -> None:
    _, slope, _ = slopes(nn.tanhshrink, 1e-9, vt.float64)
    assert slope == pytest.approx(1e-18, rel=1e-9)
    _, slope, _ = slopes(nn.elu, -60.0, vt.float64)
    assert slope == pytest.approx(math.exp(-60), rel=1e-12)


def test_float32_log10_is_exact_at_powers_of_ten() -> None:
    x = vt.tensor([10.0**n for n in range(11)])
    np.testing.assert_array_equal(vt.log10(x).numpy(), range(11))


def test_acosh_gradient_stays_on_its_branch() -> None:
    for z in (2 + 1j, -2 + 1j, -2 - 1j, 0.5 - 2j):
        t = vt.tensor(z, dtype=vt.complex128, requires_grad=True)
        (g,) = vt.autograd.grad(vt.acosh(t), t, vt.tensor(1 + 0j, dtype=vt.complex128))
        step = 1e-6
        want = (np.arccosh(z + step) - np.arccosh(z - step)) / (2 * step)
        assert g.item() == pytest.approx(np.conj(want), rel=1e-8)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "elu", "selu", "celu", "hardtanh", "rrelu"])
def test_inplace_functions_write_into_their_argument_and_differentiate(name: str) -> None:
    values = [-2.0, -0.5, 0.7, 3.0]
    leaf = vt.tensor(values, dtype=vt.float64, requires_grad=True)
    plain = getattr(nn, name)(leaf)
    (want,) = vt.autograd.grad(plain.sum(), leaf)
    for write in (getattr(nn, f"{name}_"), lambda x: getattr(nn, name)(x, inplace=True)):
        x = leaf.clone()
        assert write(x) is x
        np.testing.assert_array_equal(x.detach().numpy(), plain.detach().numpy())
        np.testing.assert_array_equal(vt.autograd.grad(x.sum(), leaf)[0].numpy(), want.numpy())


def test_rrelu_draws_a_slope_per_element_in_training() -> None:
    vt.manual_seed(0)
    x = vt.full((10000,), -1.0, requires_grad=True)
    y = nn.rrelu(x, 0.2, 0.6, training=True)
    drawn = -y.detach().numpy()
    assert drawn.min() >= 0.2
    assert drawn.max() <= 0.6
    assert drawn.mean() == pytest.approx(0.4, abs=5 * 0.4 / math.sqrt(12 * 10000))
    (g,) = vt.autograd.grad(y.sum(), x)
    np.testing.assert_array_equal(g.numpy(), drawn)
