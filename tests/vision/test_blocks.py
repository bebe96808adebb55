"""Blocks of vision models, dropping and the focal loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from tests.vision.reference import to_torch, to_votive, torchvision
from votive import nn
from votive.vision import ops

BLOCKS = {
    "conv": ("Conv2dNormActivation", (4, 6), {"kernel_size": 5, "stride": 2, "dilation": 2}),
    "plain": ("Conv2dNormActivation", (4, 6), {"norm_layer": None, "activation_layer": None}),
    "groups": ("Conv2dNormActivation", (4, 8, (1, 3)), {"groups": 2, "bias": True}),
    "video": ("Conv3dNormActivation", (4, 6), {"kernel_size": (1, 3, 3)}),
    "squeeze": ("SqueezeExcitation", (4, 2), {}),
    "mlp": ("MLP", (5, [7, 6, 3]), {"bias": False}),
    "permute": ("Permute", ([0, 2, 3, 1],), {}),
    "frozen": ("FrozenBatchNorm2d", (4,), {"eps": 1e-3}),
}


@pytest.mark.parity
@pytest.mark.parametrize("case", BLOCKS)
def test_blocks_agree_with_torchvisions_in_names_and_values(case: str) -> None:
    tv = torchvision()
    name, args, options = BLOCKS[case]
    theirs, ours = getattr(tv.ops, name)(*args, **options), getattr(ops, name)(*args, **options)
    rng = np.random.default_rng(0)
    state = theirs.state_dict()
    assert list(ours.state_dict()) == list(state)
    for v in state.values():
        if v.dtype.is_floating_point:
            v.copy_(to_torch(votive.from_numpy(rng.uniform(0.2, 1, tuple(v.shape)))))
    ours.load_state_dict({k: to_votive(v) for k, v in state.items()})
    shape = {"mlp": (3, 5), "video": (2, 4, 3, 6, 7)}.get(case, (2, 4, 10, 11))
    x = votive.from_numpy(rng.normal(size=shape).astype(np.float32))
    got, expected = ours.eval()(x), theirs.eval()(to_torch(x))
    np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)
    assert [type(m).__name__ for m in ours.modules()] == [type(m).__name__ for m in theirs.modules()]


def test_a_frozen_norm_takes_the_state_of_an_ordinary_one() -> None:
    norm = nn.BatchNorm2d(3)
    norm.running_mean.copy_(votive.tensor([1.0, 2.0, 3.0]))
    frozen = ops.FrozenBatchNorm2d(3)
    frozen.load_state_dict(norm.state_dict())
    x = votive.randn(2, 3, 4, 4)
    assert votive.allclose(frozen(x), norm.eval()(x), atol=1e-6)
    assert list(frozen.parameters()) == []


@pytest.mark.parametrize("mode", ["row", "batch"])
def test_stochastic_depth_drops_rows_or_all_and_keeps_the_mean(mode: str) -> None:
    votive.manual_seed(0)
    x = votive.ones(4000 if mode == "row" else 3, 2, 2)
    y = ops.stochastic_depth(x, 0.25, mode)
    if mode == "row":
        assert sorted(set(y.flatten().tolist())) == pytest.approx([0, 4 / 3])
        assert y.mean().item() == pytest.approx(1, abs=0.05)
        assert votive.equal(y, y[:, :1, :1].expand(4000, 2, 2))
    else:
        seen = {ops.stochastic_depth(x, 0.25, mode).unique().item() for _ in range(40)}
        assert sorted(seen) == pytest.approx([0, 4 / 3])
    assert ops.stochastic_depth(x, 0.25, mode, training=False) is x
    assert ops.stochastic_depth(x, 1.0, mode).abs().sum() == 0
    with pytest.raises(ValueError, match="between 0 and 1"):
        ops.stochastic_depth(x, 1.5, mode)
    with pytest.raises(ValueError, match="'batch' or 'row'"):
        ops.stochastic_depth(x, 0.5, "column")


def test_a_seed_makes_dropping_reproducible() -> None:
    x = votive.ones(8, 2, 9, 9)
    for drop in (ops.StochasticDepth(0.5, "row"), ops.DropBlock2d(0.3, 3)):
        votive.manual_seed(7)
        first = drop(x)
        votive.manual_seed(7)
        assert votive.equal(first, drop(x))
        assert not votive.equal(first, drop(x))


@pytest.mark.parametrize("n", [2, 3])
def test_drop_block_drops_whole_blocks_and_keeps_the_mean(n: int) -> None:
    votive.manual_seed(1)
    fn = ops.drop_block2d if n == 2 else ops.drop_block3d
    x = votive.ones(4, 8, *(21,) * n)
    y = fn(x, 0.2, 3)
    assert y.mean().item() == pytest.approx(1, abs=1e-4)
    dropped = (y == 0).float().mean().item()
    assert dropped == pytest.approx(0.18, abs=0.04)  # overlapping blocks make it a little less
    # Every zero lies in a block of zeros.
    pool = votive.nn.functional.max_pool2d if n == 2 else votive.nn.functional.max_pool3d
    zero = (y == 0).float()
    opened = pool(1 - pool(1 - zero, 3, 1, 1), 3, 1, 1)
    assert votive.equal(opened, zero)
    z = votive.ones(4, 8, *(21,) * n)
    assert fn(z, 0.2, 3, inplace=True) is z
    with pytest.raises(ValueError, match="odd"):
        fn(x, 0.2, 4)
    with pytest.raises(ValueError, match=f"{n + 2} dimensional"):
        fn(x[0], 0.2, 3)


@pytest.mark.parity
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(("alpha", "gamma"), [(0.25, 2), (-1, 1.5), (0.7, 0)])
def test_the_focal_loss_agrees_with_torchvision(alpha: float, gamma: float, reduction: str) -> None:
    tv = torchvision()
    rng = np.random.default_rng(0)
    x = votive.from_numpy(rng.normal(0, 3, (4, 5))).requires_grad_()
    t = votive.from_numpy(rng.integers(0, 2, (4, 5)).astype(np.float64))
    ours = ops.sigmoid_focal_loss(x, t, alpha, gamma, reduction)
    ours.sum().backward()
    z = to_torch(x).requires_grad_()
    expected = tv.ops.sigmoid_focal_loss(z, to_torch(t), alpha, gamma, reduction)
    expected.sum().backward()
    np.testing.assert_allclose(ours.detach().numpy(), expected.detach().numpy(), rtol=1e-9)
    np.testing.assert_allclose(x.grad.numpy(), z.grad.numpy(), rtol=1e-7, atol=1e-12)


def test_the_focal_loss_weighs_hard_examples_and_tells_wrong_options() -> None:
    x, t = votive.tensor([0.0, 0.0]), votive.tensor([1.0, 0.0])
    # p = 1/2: ln 2 / 4, times alpha or 1 - alpha.
    expected = [np.log(2) / 4 * 0.25, np.log(2) / 4 * 0.75]
    assert ops.sigmoid_focal_loss(x, t).tolist() == pytest.approx(expected)
    with pytest.raises(ValueError, match="alpha"):
        ops.sigmoid_focal_loss(x, t, alpha=2.0)
    with pytest.raises(ValueError, match="reduction"):
        ops.sigmoid_focal_loss(x, t, reduction="max")


def test_options_of_blocks_are_honoured() -> None:
    block: Any = ops.Conv2dNormActivation(3, 4, activation_layer=nn.SiLU, inplace=None)
    assert isinstance(block[2], nn.SiLU)
    assert block.out_channels == 4
    with pytest.raises(ValueError, match="hidden_channels"):
        ops.MLP(3, [])
