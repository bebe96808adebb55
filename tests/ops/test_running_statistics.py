"""What batch_norm and instance_norm write into running statistics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import votive as vt
import votive.nn.functional as nf

X = np.random.default_rng(0).uniform(-2, 2, (4, 3, 5))
OVER = (0, 2)


def fresh(dtype: Any = vt.float64) -> tuple[Any, Any]:
    return vt.full((3,), 0.5, dtype=dtype), vt.full((3,), 2.0, dtype=dtype)


@pytest.mark.parametrize("momentum", [0.0, 0.1, 0.5, 1, -0.25])
def test_batch_norm_moves_them_by_momentum(momentum: float) -> None:
    mean, var = fresh()
    nf.batch_norm(vt.tensor(X), mean, var, training=True, momentum=momentum)
    want_mean = 0.5 * (1 - momentum) + momentum * X.mean(OVER)
    want_var = 2.0 * (1 - momentum) + momentum * X.var(OVER, ddof=1)
    np.testing.assert_allclose(mean.numpy(), want_mean, rtol=1e-12)
    np.testing.assert_allclose(var.numpy(), want_var, rtol=1e-12)


def test_instance_norm_moves_them_by_the_mean_over_samples() -> None:
    mean, var = fresh()
    nf.instance_norm(vt.tensor(X), mean, var, momentum=0.3)
    np.testing.assert_allclose(mean.numpy(), 0.35 + 0.3 * X.mean(2).mean(0), rtol=1e-12)
    np.testing.assert_allclose(var.numpy(), 1.4 + 0.3 * X.var(2, ddof=1).mean(0), rtol=1e-12)


def test_evaluation_reads_them_and_leaves_them_alone() -> None:
    mean, var = fresh()
    y = nf.batch_norm(vt.tensor(X), mean, var)
    z = nf.instance_norm(vt.tensor(X), mean, var, use_input_stats=False)
    np.testing.assert_allclose(y.numpy(), (X - 0.5) / math.sqrt(2 + 1e-5), rtol=1e-12)
    assert (y == z).all()
    assert (mean == 0.5).all()
    assert (var == 2.0).all()


def test_an_empty_batch_says_nothing() -> None:
    for fn, options in ((nf.batch_norm, {"training": True}), (nf.instance_norm, {})):
        mean, var = fresh()
        fn(vt.zeros(0, 3, 5, dtype=vt.float64), mean, var, **options)
        assert (mean == 0.5).all()
        assert (var == 2.0).all()


def test_one_value_per_channel_has_no_variance() -> None:
    mean, var = fresh()
    row = vt.tensor(X[:1, :, 0])
    with pytest.raises(ValueError, match="more than 1 value"):
        nf.batch_norm(row, mean, var, training=True)
    assert (mean == 0.5).all()
    vt.batch_norm(row, None, None, mean, var, True, 0.1, 1e-5, False)
    assert var.isnan().all()


def test_the_update_is_no_part_of_the_graph() -> None:
    mean, var = fresh()
    weight = vt.ones(3, dtype=vt.float64, requires_grad=True)
    x = vt.tensor(X, requires_grad=True)
    y = nf.batch_norm(x, mean, var, weight, training=True)
    assert not mean.requires_grad
    assert not var.requires_grad
    vt.autograd.grad((y * y).sum(), [x, weight])
    with pytest.raises(RuntimeError, match="must not require grad"):
        nf.batch_norm(x, mean.requires_grad_(), var, training=True)


def test_half_inputs_keep_statistics_in_float32() -> None:
    mean, var = fresh(vt.float32)
    x = vt.tensor(X).to(vt.bfloat16)
    y = nf.batch_norm(x, mean, var, training=True, momentum=1.0)
    assert y.dtype is vt.bfloat16
    wide = x.double().numpy()
    np.testing.assert_allclose(mean.numpy(), wide.mean(OVER), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(var.numpy(), wide.var(OVER, ddof=1), rtol=1e-6)


def test_statistics_of_many_values_are_summed_with_care() -> None:
    # 2**22 values in float32 near 1e3: a running float32 sum would lose the digits of the mean.
    x = np.random.default_rng(1).normal(1e3, 1, (2**11, 1, 2**11)).astype(np.float32)
    mean, var = vt.zeros(1), vt.zeros(1)
    nf.batch_norm(vt.tensor(x), mean, var, training=True, momentum=1.0)
    np.testing.assert_allclose(mean.numpy(), x.mean(dtype=np.float64), rtol=1e-7)
    np.testing.assert_allclose(var.numpy(), x.var(dtype=np.float64), rtol=1e-5)
