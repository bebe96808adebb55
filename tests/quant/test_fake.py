"""Fake quantization: numbers and straight-through gradients are torch's, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.quant import fake


def test_gradients_pass_where_codes_are_in_the_range() -> None:
    x = votive.tensor([-9.0, -0.3, 0.26, 3.6, 9.0], requires_grad=True)
    y = votive.fake_quantize_per_tensor_affine(x, 0.5, 1, -8, 7)
    (y * votive.arange(1.0, 6.0)).sum().backward()
    assert y.tolist() == [-4.5, -0.5, 0.5, 3.0, 3.0]
    assert x.grad.tolist() == [0, 2, 3, 0, 0]


def test_wrong_arguments_raise() -> None:
    x = votive.ones(2, 3)
    for call, text in (
        (lambda: votive.fake_quantize_per_tensor_affine(x, 0.5, 0, 8, 7), "quant_min"),
        (lambda: votive.fake_quantize_per_tensor_affine(x.int(), 0.5, 0, 0, 7), "floating-point"),
        (lambda: votive.fake_quantize_per_tensor_affine(x, votive.ones(2), 0, 0, 7), "one number"),
        (lambda: votive.fake_quantize_per_channel_affine(x, votive.ones(2), votive.zeros(2).int(), 2, 0, 7), "axis"),
        (lambda: votive.fake_quantize_per_channel_affine(x, votive.ones(2), votive.zeros(2).int(), 1, 0, 7), "1-D"),
        (lambda: votive.fake_quantize_per_channel_affine(x, votive.ones(2), votive.zeros(2), 0, 0, 7), None),
        (lambda: votive.fake_quantize_per_channel_affine(x, votive.ones(2), votive.zeros(2).long(), 0, 0, 7), "Int32"),
    ):
        if text is None:
            call()
            continue
        with pytest.raises(RuntimeError, match=text):
            call()


def test_an_observer_that_is_off_changes_nothing() -> None:
    low, high = votive.tensor(float("inf")), votive.tensor(float("-inf"))
    scale, zero = votive.tensor([0.5]), votive.tensor([0], dtype=votive.int32)
    on, off = votive.tensor([1]), votive.tensor([0])
    x = votive.tensor([0.3, 1.0])
    y = votive.fused_moving_avg_obs_fake_quant(x, off, off, low, high, scale, zero, 0.01, 0, 255, -1)
    assert y is x
    assert float(low) == float("inf")
    y = votive.fused_moving_avg_obs_fake_quant(x, off, on, low, high, scale, zero, 0.01, 0, 255, -1)
    assert y.tolist() == [0.5, 1.0]
    assert float(scale) == 0.5


def _both(rng: Any, shape: tuple[int, ...], scale: float) -> tuple[Any, Any]:
    torch = pytest.importorskip("torch")
    x = (rng.standard_normal(shape) * scale).astype("f4")
    return torch.from_numpy(x).requires_grad_(), votive.from_numpy(x.copy()).requires_grad_()


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_numbers_and_gradients_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    for i in range(30):
        step, zero = float(rng.uniform(0.001, 1)), int(rng.integers(-5, 6))
        a, b = _both(rng, (4, 9), 10 * step)
        steps, zeros = rng.uniform(0.01, 1, 9).astype("f4"), rng.integers(-5, 6, 9).astype("i4")
        pairs = [
            (
                torch.fake_quantize_per_tensor_affine(a, step, zero, -8, 7),
                votive.fake_quantize_per_tensor_affine(b, step, zero, -8, 7),
            ),
            (
                torch.fake_quantize_per_channel_affine(a, *map(torch.from_numpy, (steps, zeros)), 1, -8, 7),
                votive.fake_quantize_per_channel_affine(b, *map(votive.from_numpy, (steps, zeros)), 1, -8, 7),
            ),
        ]
        for y, z in pairs:
            np.testing.assert_array_equal(y.detach().numpy(), z.detach().numpy())
            a.grad = b.grad = None
            y.sum().backward()
            z.sum().backward()
            np.testing.assert_array_equal(a.grad.numpy(), b.grad.numpy())
        for kind in ("float16", "float64"):
            y = torch.fake_quantize_per_tensor_affine(a.detach().to(getattr(torch, kind)), step, zero, -8, 7)
            z = votive.fake_quantize_per_tensor_affine(b.detach().to(getattr(votive, kind)), step, zero, -8, 7)
            assert str(z.dtype) == f"votive.{kind}"
            assert np.abs(y.numpy() - z.numpy()).max() <= 1e-3 * step, i


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_learned_steps_have_the_gradients_of_torch(axis: int | None) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    a, b = _both(rng, (5, 7), 3.0)
    n = 1 if axis is None else (5, 7)[axis]
    s, z = rng.uniform(0.2, 0.5, n).astype("f4"), rng.uniform(-2, 2, n).astype("f4")
    given = [[m.from_numpy(v.copy()).requires_grad_() for v in (s, z)] for m in (torch, votive)]
    rest = (-8, 7, 0.5) if axis is None else (axis, -8, 7, 0.5)
    name = "per_tensor" if axis is None else "per_channel"
    y = getattr(torch, f"_fake_quantize_learnable_{name}_affine")(a, *given[0], *rest)
    v = getattr(fake, f"fake_quantize_learnable_{name}_affine")(b, *given[1], *rest)
    np.testing.assert_allclose(y.detach().numpy(), v.detach().numpy(), atol=1e-6)
    y.sum().backward()
    v.sum().backward()
    for p, q in zip((a, *given[0]), (b, *given[1]), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), atol=1e-4)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_fused_observers_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(2)
    for i in range(60):
        x = (rng.standard_normal((3, 4)) * rng.choice([1e-6, 1e-3, 1, 100])).astype("f4")
        x = np.abs(x) if i % 5 == 0 else -np.abs(x) if i % 7 == 0 else x * 0 if i % 11 == 0 else x
        rows, symmetric = bool(i % 3 == 0), bool(i % 2)
        low, high = [(0, 255), (-128, 127), (0, 127), (-127, 127)][i % 4]
        found = []
        for m in (torch, votive):
            n = 3 if rows else 1
            ends = [m.full((3,), v) if rows else m.tensor(v) for v in (float("inf"), float("-inf"))]
            scale, zero, on = m.ones(n), m.zeros(n, dtype=m.int32), m.tensor([1])
            how = (0.01, low, high, 0, rows, symmetric)
            for factor in (1.0, 2.0):
                given = m.from_numpy(x * np.float32(factor))
                y = m.fused_moving_avg_obs_fake_quant(given, on, on, *ends, scale, zero, *how)
            found.append([t.numpy() for t in (y, *ends, scale, zero)])
        for p, q in zip(*found, strict=True):
            np.testing.assert_array_equal(p, q, err_msg=str(i))
