"""Pools over layouts and planes with loops of their own, against definitions in NumPy; calls that are remembered."""

import itertools

import numpy as np
import pytest

import votive
from votive.nn import functional as F


def windows(a: np.ndarray, boxes: list[list[tuple[int, int]]]) -> np.ndarray:
    """The part of the last two dimensions that each box covers, flat."""
    return [[a[..., h0:h1, w0:w1].reshape(*a.shape[:2], -1) for w0, w1 in boxes[1]] for h0, h1 in boxes[0]]


def adaptive(n: int, o: int) -> list[tuple[int, int]]:
    return [(i * n // o, -(-(i + 1) * n // o)) for i in range(o)]


def sliding(n: int, k: int, stride: int) -> list[tuple[int, int]]:
    return [(i, i + k) for i in range(0, n - k + 1, stride)]


def laid_out(a: np.ndarray, dtype: votive.dtype) -> list[votive.Tensor]:
    x = votive.from_numpy(a).to(dtype)
    last = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    return [x, last, x.transpose(2, 3).contiguous().transpose(2, 3)]


@pytest.mark.parametrize("dtype", [votive.float32, votive.float64, votive.bfloat16])
@pytest.mark.parametrize("channels", [1, 3, 11, 16, 21, 70])
@pytest.mark.parametrize(("h", "w"), [(5, 6), (9, 40), (3, 33)])
def test_means_and_largest_of_boxes_in_every_layout(dtype: votive.dtype, channels: int, h: int, w: int) -> None:
    a = np.random.default_rng(1).integers(-8, 9, (2, channels, h, w)).astype(np.float32)
    for x, size in itertools.product(laid_out(a, dtype), (1, 2, 3)):
        parts = windows(a, [adaptive(h, size), adaptive(w, size)])
        mean = np.stack([np.stack([p.mean(-1) for p in row], -1) for row in parts], -2)
        most = np.stack([np.stack([p.max(-1) for p in row], -1) for row in parts], -2)
        near = 2e-2 if dtype is votive.bfloat16 else 1e-5
        np.testing.assert_allclose(F.adaptive_avg_pool2d(x, size).double().numpy(), mean, rtol=near, atol=near)
        values, at = F.adaptive_max_pool2d(x, size, return_indices=True)
        np.testing.assert_array_equal(values.double().numpy(), most)
        flat = a.reshape(2, channels, -1)
        np.testing.assert_array_equal(
            np.take_along_axis(flat, at.numpy().reshape(2, channels, -1), -1), most.reshape(2, channels, -1)
        )
        if size == 1:
            np.testing.assert_array_equal(at.numpy().reshape(2, channels), flat.argmax(-1))
    for x, stride in itertools.product(laid_out(a, dtype), (1, 2)):
        parts = windows(a, [sliding(h, 3, stride), sliding(w, 3, stride)])
        most = np.stack([np.stack([p.max(-1) for p in row], -1) for row in parts], -2)
        mean = np.stack([np.stack([p.mean(-1) for p in row], -1) for row in parts], -2)
        np.testing.assert_array_equal(F.max_pool2d(x, 3, stride).double().numpy(), most)
        near = 2e-2 if dtype is votive.bfloat16 else 1e-5
        np.testing.assert_allclose(F.avg_pool2d(x, 3, stride).double().numpy(), mean, rtol=near, atol=near)


@pytest.mark.parametrize("dtype", [votive.float32, votive.bfloat16])
def test_gradients_of_pools_do_not_depend_on_layouts(dtype: votive.dtype) -> None:
    a = np.random.default_rng(2).integers(-40, 41, (2, 19, 13, 12)).astype(np.float32)
    for fn in (
        lambda x: F.avg_pool2d(x, 5, 5, 2),
        lambda x: F.max_pool2d(x, 2, 2, 1),
        lambda x: F.adaptive_avg_pool2d(x, 3),
        lambda x: F.adaptive_max_pool2d(x, 2),
    ):
        found = []
        for x in (votive.from_numpy(a).double(), *laid_out(a, dtype)):
            x = x.detach().requires_grad_()
            y = fn(x)
            g = votive.arange(y.numel()).remainder(7).to(y.dtype).view(y.shape)
            found.append(votive.autograd.grad(y, [x], [g])[0].double().numpy())
        for other in found[1:]:
            np.testing.assert_allclose(other, found[0], rtol=1e-2 if dtype is votive.bfloat16 else 1e-5, atol=1e-6)


def test_the_last_nan_of_a_wide_box_is_its_largest() -> None:
    a = np.zeros((1, 1, 4, 50), np.float32)
    for places in ([(0, 3)], [(0, 3), (2, 17)], [(1, 49), (0, 0)], [(3, 48), (3, 47)]):
        x = a.copy()
        for h, w in places:
            x[0, 0, h, w] = np.nan
        value, at = F.adaptive_max_pool2d(votive.from_numpy(x), 1, return_indices=True)
        assert np.isnan(value.item())
        assert at.item() == max(h * 50 + w for h, w in places)
    x = np.full((1, 1, 3, 40), -np.inf, np.float32)
    assert F.adaptive_max_pool2d(votive.from_numpy(x), 1, return_indices=True)[1].item() == 0


def test_a_remembered_pool_still_looks_at_every_argument() -> None:
    x = votive.arange(25.0).view(1, 1, 5, 5)
    for _ in range(3):
        assert F.max_pool2d(x, 2, 2, 0, 1, False).shape == (1, 1, 2, 2)
        assert F.max_pool2d(x, 2, 2, 0, 1, True).shape == (1, 1, 3, 3)
        assert F.max_pool2d(x, 2, ceil_mode=True).shape == (1, 1, 3, 3)
        assert len(F.max_pool2d(x, 2, return_indices=True)) == 2
        with_padding = F.avg_pool2d(x, 2, padding=1, count_include_pad=True)
        without = F.avg_pool2d(x, 2, padding=1, count_include_pad=False)
        assert with_padding[0, 0, 0, 1].item() == 0.5 * without[0, 0, 0, 1].item()
        y = x.clone().requires_grad_()
        F.max_pool2d(y, 2).sum().backward()
        assert y.grad.sum().item() == 4.0
        assert not F.max_pool2d(x, 2).requires_grad
        with pytest.raises(TypeError):
            F.avg_pool1d(x[0], 2, divisor_override=None)
        with pytest.raises(RuntimeError):
            F.max_pool2d(x, 9)


@pytest.mark.parametrize("dtype", [votive.float32, votive.float64, votive.bfloat16])
def test_largest_of_whole_volumes_and_of_parts(dtype: votive.dtype) -> None:
    a = np.random.default_rng(4).integers(-99, 100, (2, 3, 5, 7, 6))
    x = votive.from_numpy(a).to(dtype)
    for given in (x, x.permute(0, 1, 4, 2, 3).contiguous().permute(0, 1, 3, 4, 2)):
        for size in ((1, 1, 1), (2, 1, 1), (1, 3, 1), (2, 3, 4)):
            values, at = F.adaptive_max_pool3d(given, size, return_indices=True)
            for d, h, w in itertools.product(*map(range, size)):
                box = [adaptive(n, o)[i] for n, o, i in zip((5, 7, 6), size, (d, h, w), strict=True)]
                mask = np.full((5, 7, 6), -1000)
                mask[tuple(slice(*b) for b in box)] = 0
                flat = (a + mask).reshape(2, 3, -1)
                np.testing.assert_array_equal(values[..., d, h, w].double().numpy(), flat.max(-1))
                np.testing.assert_array_equal(at[..., d, h, w].numpy(), flat.argmax(-1))
