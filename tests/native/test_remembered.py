"""Composites whose calls are remembered give what the function itself gives, call after call."""

import numpy as np
import pytest

import votive
from votive.nn import functional as F


def test_padding_follows_mode_value_and_amounts() -> None:
    a = np.arange(24.0).reshape(1, 2, 3, 4)
    x = votive.from_numpy(a)
    for _ in range(3):
        np.testing.assert_array_equal(F.pad(x, (1, 2)).numpy(), np.pad(a, ((0, 0), (0, 0), (0, 0), (1, 2))))
        np.testing.assert_array_equal(
            F.pad(x, (1, 2), value=7).numpy(), np.pad(a, ((0, 0), (0, 0), (0, 0), (1, 2)), constant_values=7)
        )
        np.testing.assert_array_equal(
            F.pad(x, (1, 2), "constant", 0.5).numpy(), np.pad(a, ((0, 0), (0, 0), (0, 0), (1, 2)), constant_values=0.5)
        )
        np.testing.assert_array_equal(
            F.pad(x, [1, 2, 2, 1], mode="reflect").numpy(), np.pad(a, ((0, 0), (0, 0), (2, 1), (1, 2)), "reflect")
        )
        with pytest.raises(RuntimeError, match="reflect"):
            F.pad(x, (4, 0), mode="reflect")
        with pytest.raises(RuntimeError, match="takes no value"):
            F.pad(x, (1, 1), "reflect", 3)


def test_repeated_elements_and_counts() -> None:
    a = np.arange(6).reshape(2, 3)
    x = votive.from_numpy(a)
    for _ in range(3):
        for dim in (0, 1, -1):
            np.testing.assert_array_equal(votive.repeat_interleave(x, 2, dim).numpy(), a.repeat(2, dim))
        np.testing.assert_array_equal(x.repeat_interleave(2).numpy(), a.repeat(2))
        np.testing.assert_array_equal(votive.repeat_interleave(x, 0, 1).numpy(), a.repeat(0, 1))
        np.testing.assert_array_equal(votive.repeat_interleave(x, x[0], 1).numpy(), a.repeat([0, 1, 2], 1))
        with pytest.raises(RuntimeError, match="negative"):
            votive.repeat_interleave(x, -1, 0)
        np.testing.assert_array_equal(votive.bincount(x.flatten()).numpy(), np.ones(6, np.int64))
        assert votive.bincount(x.flatten(), minlength=9).shape == (9,)
        assert votive.bincount(x.flatten()[:0]).shape == (0,)
        assert votive.bincount(x.flatten()[:0], minlength=3).tolist() == [0, 0, 0]
        weights = x.flatten().double()
        assert votive.bincount(x.flatten(), weights).tolist() == list(range(6))
        with pytest.raises(RuntimeError, match="negative"):
            votive.bincount(-x.flatten())
        with pytest.raises(RuntimeError, match="minlength"):
            votive.bincount(x.flatten(), minlength=-1)
    y = votive.ones(2, 3, requires_grad=True)
    votive.repeat_interleave(y, 3, 1).sum().backward()
    assert y.grad.tolist() == [[3.0] * 3] * 2


def test_draws_in_place_reach_every_layout_and_remember_nothing() -> None:
    votive.manual_seed(3)
    first = votive.empty(4, 6).uniform_(2, 3)
    votive.manual_seed(3)
    turned = votive.empty(6, 4).t().uniform_(2, 3)
    np.testing.assert_array_equal(first.numpy(), turned.numpy())
    assert not votive.equal(turned, turned.clone().uniform_(2, 3))
    before = turned._version
    turned.normal_()
    assert turned._version == before + 1
    p = votive.tensor([0.0, 1.0], requires_grad=True)
    drawn = votive.bernoulli(p)
    assert drawn.tolist() == [0.0, 1.0]
    (grad,) = votive.autograd.grad(drawn.sum(), [p])
    assert grad.tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError):
        p.uniform_()
