"""What dropout draws: how much is dropped, that the rest makes up for it, and that it repeats."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive as vt
import votive.nn.functional as nf

ELEMENTS = [nf.dropout, nf.alpha_dropout]
CHANNELS = [nf.dropout1d, nf.dropout2d, nf.dropout3d, nf.feature_alpha_dropout]
each = pytest.mark.parametrize("fn", ELEMENTS + CHANNELS, ids=lambda f: f.__name__)


def input_for(fn: Callable[..., Any], **options: Any) -> Any:
    ndim = {nf.dropout2d: 4, nf.dropout3d: 5}.get(fn, 3)
    return vt.ones((3, 4, 5, 2, 3)[:ndim], **options)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_a_share_p_is_dropped_and_the_mean_stays(p: float) -> None:
    n = 100_000
    y = nf.dropout(vt.ones(n), p, generator=vt.Generator().manual_seed(1)).numpy()
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / (1 - p))}
    # Five standard deviations of a binomial share.
    assert abs((y == 0).mean() - p) < 5 * math.sqrt(p * (1 - p) / n)


def test_alpha_dropout_keeps_mean_and_variance_of_normal_numbers() -> None:
    generator = vt.Generator().manual_seed(2)
    x = vt.randn(200_000, dtype=vt.float64, generator=generator)
    y = nf.alpha_dropout(x, 0.3, training=True, generator=generator).numpy()
    assert abs(y.mean()) < 0.02
    assert abs(y.var() - 1) < 0.02


@pytest.mark.parametrize("fn", CHANNELS, ids=lambda f: f.__name__)
def test_channels_live_or_die_as_a_whole(fn: Callable[..., Any]) -> None:
    y = fn(input_for(fn), 0.5, True, generator=vt.Generator().manual_seed(3)).numpy()
    whole = y.reshape(12, -1)
    assert (whole == whole[:, :1]).all()
    assert len(np.unique(whole)) == 2


def test_unbatched_inputs_drop_their_first_dimension() -> None:
    for fn, shape in ((nf.dropout1d, (64, 3)), (nf.dropout3d, (64, 2, 1, 3))):
        y = fn(vt.ones(shape), 0.5, generator=vt.Generator().manual_seed(4)).numpy()
        whole = y.reshape(64, -1)
        assert (whole == whole[:, :1]).all()
        assert len(np.unique(whole)) == 2


@each
def test_a_generator_repeats_what_it_drew(fn: Callable[..., Any]) -> None:
    x = input_for(fn)
    generator = vt.Generator().manual_seed(5)
    first, second = fn(x, 0.5, True, generator=generator), fn(x, 0.5, True, generator=generator)
    again = fn(x, 0.5, True, generator=generator.manual_seed(5))
    assert (first == again).all()
    assert not (first == second).all()


@each
def test_in_place_draws_the_same_and_changes_the_tensor(fn: Callable[..., Any]) -> None:
    want = fn(input_for(fn), 0.5, True, generator=vt.Generator().manual_seed(6))
    x = input_for(fn)
    got = fn(x, 0.5, True, True, generator=vt.Generator().manual_seed(6))
    assert got is x
    assert (x == want).all()


@each
def test_the_gradient_goes_where_the_value_went(fn: Callable[..., Any]) -> None:
    x = input_for(fn, dtype=vt.float64, requires_grad=True)
    y = fn(x, 0.25, True, generator=vt.Generator().manual_seed(7))
    (g,) = vt.autograd.grad(y.sum(), x, create_graph=True)
    shifted = fn(x.detach() + 1, 0.25, True, generator=vt.Generator().manual_seed(7))
    # Every kind is linear in its input once the mask is drawn.
    np.testing.assert_allclose(g.detach().numpy(), (shifted - y).detach().numpy(), atol=1e-12)
    assert not g.requires_grad or not any(
        t is not None and t.any() for t in vt.autograd.grad(g.sum(), x, allow_unused=True)
    )


def test_no_mask_is_kept_for_backward() -> None:
    x = vt.ones(1000, requires_grad=True)
    y = nf.dropout(x)
    assert y.grad_fn.kept == {}


def test_memory_layout_does_not_change_what_is_dropped() -> None:
    x = vt.arange(12.0).reshape(3, 4)
    plain, turned = (nf.dropout(t, 0.5, generator=vt.Generator().manual_seed(8)) for t in (x, x.t().contiguous().t()))
    assert (plain == turned).all()


def test_wrong_ranks_are_told() -> None:
    with pytest.warns(UserWarning, match="dropout1d"):
        nf.dropout2d(vt.ones(2, 3, 4))
    with pytest.warns(UserWarning, match="use dropout"):
        nf.dropout3d(vt.ones(2, 3))
