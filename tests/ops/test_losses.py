"""Losses beyond the catalog: fused against composite, weights, extremes, half types, warnings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import votive as vt
from votive.ops.registry import F as OP

from .records.cross_entropy import cross_entropy as reference

F = vt.nn.functional
RNG = np.random.default_rng(11)


def tensor(*shape: int, low: float = -2.0, high: float = 2.0) -> vt.Tensor:
    return vt.from_numpy(np.asarray(RNG.uniform(low, high, shape)))


def central(f: Any, x: vt.Tensor, v: vt.Tensor, eps: float = 1e-6) -> float:
    """The slope of f along v by a central difference."""
    with vt.no_grad():
        return (float(f(x + eps * v)) - float(f(x - eps * v))) / (2 * eps)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(5, 4), (2, 4, 3), (2, 4, 3, 2)])
def test_fused_cross_entropy_and_its_composite_twin_agree_to_the_third_derivative(
    shape: tuple[int, ...], weighted: bool, smoothing: float
) -> None:
    x = tensor(*shape).requires_grad_()
    t = vt.from_numpy(RNG.integers(-1, 4, (shape[0], *shape[2:])))
    weight = tensor(4, low=0.5, high=2.0) if weighted else None
    scale, v = tensor(*t.shape), tensor(*shape)
    found = []
    for form in (OP._cross_entropy, OP._cross_entropy_composite):
        y = (form(x, t, weight, -1, smoothing, vt.float64) * scale).sum()
        values = [y]
        for _ in range(3):
            (g,) = vt.autograd.grad(y, x, create_graph=True)
            values.append(g)
            y = (g * v).sum()
        found.append([a.detach().numpy() for a in values])
    for fused, composite in zip(*found, strict=True):
        np.testing.assert_allclose(fused, composite, rtol=1e-9, atol=1e-12)
    assert np.abs(found[0][3]).max() > 1e-3


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_class_weights_follow_the_formula(reduction: str, smoothing: float) -> None:
    x, w = tensor(6, 4), tensor(4, low=0.5, high=2.0)
    t = vt.tensor([0, 3, -1, 2, 2, -1])
    got = F.cross_entropy(x, t, w, ignore_index=-1, reduction=reduction, label_smoothing=smoothing)
    want = reference(x.numpy(), t.numpy(), w.numpy(), -1, reduction, smoothing)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    if not smoothing:
        logs = F.log_softmax(x, 1)
        same = F.nll_loss(logs, t, w, ignore_index=-1, reduction=reduction)
        np.testing.assert_allclose(same.numpy(), want, rtol=1e-12)


def test_weights_of_margins_multiply_the_target_class() -> None:
    x, t, w = tensor(3, 4), vt.tensor([2, 0, 2]), tensor(4, low=0.5, high=2.0)
    plain = F.multi_margin_loss(x, t, p=2, reduction="none")
    got = F.multi_margin_loss(x, t, p=2, weight=w, reduction="none")
    np.testing.assert_allclose(got.numpy(), (plain * w[t]).numpy())


def test_ignoring_everything_gives_no_mean_and_no_gradient_of_the_sum() -> None:
    x = tensor(3, 4).requires_grad_()
    t = vt.full((3,), -100)
    assert np.isnan(float(F.cross_entropy(x, t)))
    assert np.isnan(float(F.nll_loss(x, t)))
    F.cross_entropy(x, t, reduction="sum").backward()
    assert x.grad is not None
    assert not x.grad.numpy().any()


def test_cross_entropy_keeps_its_digits_far_from_zero() -> None:
    # Near 1e4 neighbouring float32 numbers are 1e-3 apart; the loss must not see that.
    near = vt.tensor([[0.0, 1.0, 2.0]])
    far = near + 1e4
    t = vt.tensor([0])
    assert float(F.cross_entropy(far, t)) == pytest.approx(float(F.cross_entropy(near, t)), rel=1e-6)
    far.requires_grad_()
    near.requires_grad_()
    F.cross_entropy(far, t).backward()
    F.cross_entropy(near, t).backward()
    assert far.grad is not None
    assert near.grad is not None
    np.testing.assert_allclose(far.grad.numpy(), near.grad.numpy(), rtol=1e-6)


@pytest.mark.parametrize("dtype", [vt.float16, vt.bfloat16])
def test_means_of_many_half_precision_losses_do_not_overflow(dtype: vt.dtype) -> None:
    # 20000 losses of log(64) add up to 83000; float16 ends at 65504.
    x = vt.zeros(20000, 64, dtype=dtype)
    t = vt.zeros(20000, dtype=vt.int64)
    got = F.cross_entropy(x, t)
    assert got.dtype is dtype
    assert float(got) == pytest.approx(np.log(64), rel=1e-2)
    total = F.cross_entropy(x, t, reduction="sum")
    assert math.isinf(float(total)) == (dtype is vt.float16)


def test_soft_margin_loss_does_not_overflow() -> None:
    x = vt.tensor([1e4, -1e4, 100.0]).requires_grad_()
    loss = F.soft_margin_loss(x, vt.tensor([-1.0, 1.0, -1.0]), reduction="none")
    assert loss.tolist() == [1e4, 1e4, 100.0]
    loss.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0, -1.0, 1.0]


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_the_gradient_of_ctc_behind_log_softmax_is_exact(zero_infinity: bool) -> None:
    x = tensor(6, 3, 4).requires_grad_()
    targets = vt.tensor([[1, 1, 2], [3, 2, 3], [1, 3, 3]])
    # The last sample needs 4 frames and has 3 when infinities are allowed to vanish.
    frames = (6, 5, 3 if zero_infinity else 4)

    def loss(x: vt.Tensor) -> vt.Tensor:
        logs = F.log_softmax(x, 2)
        return F.ctc_loss(logs, targets, frames, (3, 2, 3), zero_infinity=zero_infinity)

    (g,) = vt.autograd.grad(loss(x), x)
    for _ in range(3):
        v = tensor(6, 3, 4)
        assert float((g * v).sum()) == pytest.approx(central(loss, x.detach(), v), abs=1e-8)
    assert not g[5, 1:].numpy().any()
    assert not zero_infinity or not g[:, 2].numpy().any()


def test_ctc_says_that_its_gradient_has_no_gradient() -> None:
    x = tensor(3, 1, 3).requires_grad_()
    loss = F.ctc_loss(F.log_softmax(x, 2), vt.tensor([[1]]), (3,), (1,))
    (g,) = vt.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(NotImplementedError):
        vt.autograd.grad(g.sum(), x)


def test_labels_that_ctc_cannot_see_do_not_make_its_gradient_nan() -> None:
    logs = F.log_softmax(vt.tensor([[[0.0, 0.0, -math.inf]]] * 3), 2).requires_grad_()
    F.ctc_loss(logs, vt.tensor([[1]]), (3,), (1,)).backward()
    assert logs.grad is not None
    assert np.isfinite(logs.grad.numpy()).all()


PAIR = (vt.tensor([1.0, 2.0]), vt.tensor([0.0, 4.0]))


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"size_average": True}, "mean"),
        ({"size_average": False}, "sum"),
        ({"reduce": False}, "none"),
        ({"size_average": False, "reduce": True}, "sum"),
        ({"size_average": True, "reduce": False}, "none"),
    ],
)
def test_the_old_reduction_switches_work_and_warn(options: dict[str, bool], kind: str) -> None:
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "poisson_nll_loss"):
        with pytest.warns(UserWarning, match=f"reduction='{kind}'"):
            got = getattr(F, name)(*PAIR, **options)
        want = getattr(F, name)(*PAIR, reduction=kind)
        np.testing.assert_array_equal(got.numpy(), want.numpy())


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_stretching_a_target_warns_at_the_callers_line(name: str) -> None:
    with pytest.warns(UserWarning, match="stretched") as caught:
        getattr(F, name)(vt.zeros(2, 3), vt.zeros(3))
    assert caught[0].filename == __file__


def test_kl_div_warns_of_its_mean() -> None:
    with pytest.warns(UserWarning, match="batchmean"):
        F.kl_div(vt.zeros(2, 3), vt.ones(2, 3))


def test_triplets_take_any_distance() -> None:
    a, b, c = tensor(3, 4), tensor(3, 4), tensor(3, 4)
    got = F.triplet_margin_with_distance_loss(
        a, b, c, distance_function=lambda x, y: (x - y).abs().sum(-1), margin=5.0, reduction="none"
    )
    want = 5.0 + (a - b).abs().sum(-1) - (a - c).abs().sum(-1)
    np.testing.assert_allclose(got.numpy(), np.maximum(0, want.numpy()))
