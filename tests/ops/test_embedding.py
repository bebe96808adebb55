"""Embedding tables: which rows learn, and how much; limits on norms; what is not supported."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import votive as vt
import votive.nn.functional as nf
from tests.native.compare import reference_only

AT = vt.tensor([[1, 1], [2, 4]])


def table() -> vt.Tensor:
    return vt.arange(15.0, dtype=vt.float64).reshape(5, 3).requires_grad_()


def learned(**options: object) -> np.ndarray:
    """The gradient of a sum of rows, one number per row."""
    w = table()
    (g,) = vt.autograd.grad(nf.embedding(AT, w, **options).sum(), w)
    assert (g == g[:, :1]).all()
    return g[:, 0].numpy()


def test_a_row_learns_from_each_of_its_copies() -> None:
    np.testing.assert_array_equal(learned(), [0, 2, 1, 0, 1])


@pytest.mark.parametrize("padding_idx", [1, -4])
def test_the_padding_row_does_not_learn(padding_idx: int) -> None:
    np.testing.assert_array_equal(learned(padding_idx=padding_idx), [0, 0, 1, 0, 1])


def test_frequent_rows_can_learn_as_much_as_rare_ones() -> None:
    np.testing.assert_array_equal(learned(scale_grad_by_freq=True), [0, 1, 1, 0, 1])


def test_second_gradients_follow_padding() -> None:
    w = table()
    y = nf.embedding(AT, w, padding_idx=4)
    (g,) = vt.autograd.grad((y * y).sum(), w, create_graph=True)
    (h,) = vt.autograd.grad(g.sum(), w)
    np.testing.assert_array_equal(h[:, 0].numpy(), [0, 4, 2, 0, 0])


def test_max_norm_shrinks_used_rows_in_place_even_of_a_leaf() -> None:
    w = table()
    before = w.detach().numpy().copy()
    y = nf.embedding(AT, w, max_norm=5.0)
    size = np.linalg.norm(w.detach().numpy(), axis=1)
    np.testing.assert_allclose(size[[1, 2, 4]], 5.0, rtol=1e-6)
    np.testing.assert_array_equal(w.detach().numpy()[[0, 3]], before[[0, 3]])
    assert w.is_leaf
    np.testing.assert_array_equal(y.detach().numpy(), w.detach().numpy()[AT.numpy()])


def test_a_sparse_gradient_has_the_rows_that_were_used() -> None:
    w = table()
    nf.embedding(AT, w, sparse=True).sum().backward()
    assert w.grad.is_sparse
    assert w.grad._nnz() == AT.numel()


def test_a_bag_learns_through_what_entered_it() -> None:
    at, offsets = vt.tensor([1, 2, 4, 0, 1]), vt.tensor([0, 3, 3])
    for mode, want in (("sum", [1, 2, 1, 0, 0]), ("mean", [0.5, 1, 0.5, 0, 0]), ("max", [0, 1, 1, 0, 0])):
        w = table()
        y = nf.embedding_bag(at, w, offsets, mode=mode, padding_idx=4)
        assert not y[1].any()
        (g,) = vt.autograd.grad(y.sum(), w)
        np.testing.assert_array_equal(g[:, 0].numpy(), want)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize(
    ("offsets", "said"),
    [
        ([0, 3, 2], "offsets must not fall, but 2 follows 3"),
        ([0, -1], "offsets must not fall, but -1 follows 0"),
        ([0, 9, 4], "offsets must not fall, but 4 follows 9"),
        ([0, -5, 2], "offsets must not fall, but -5 follows 0"),
        ([-1, 2], "the first bag must begin at 0"),
        ([1, 2], "the first bag must begin at 0"),
        ([0, 5], "offset 5 lies behind all 4 indices"),
    ],
)
def test_offsets_of_bags_rise_from_0_to_the_last_index(
    offsets: list[int], said: str, backend: str, ends: bool, mode: str
) -> None:
    at, given = vt.tensor([0, 1, 2, 3]), vt.tensor(offsets)

    where = reference_only() if backend == "reference" else nullcontext()
    with where, pytest.raises(RuntimeError, match=f"embedding_bag: .*{said}"):
        nf.embedding_bag(at, table(), given, mode=mode, include_last_offset=ends)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_may_be_empty_where_offsets_repeat(mode: str) -> None:
    at, w = vt.tensor([4, 1]), table()
    y = nf.embedding_bag(at, w, vt.tensor([0, 0, 1, 1, 2]), mode=mode).detach()
    np.testing.assert_array_equal(y[[1, 3]].numpy(), w.detach().numpy()[[4, 1]])
    assert not y[[0, 2, 4]].any()


def test_a_bag_ends_where_the_last_offset_says() -> None:
    at, w = vt.tensor([0, 1, 2, 3]), table().detach()
    ends = vt.tensor([0, 1, 3])
    y = nf.embedding_bag(at, w, ends, mode="sum", include_last_offset=True)
    np.testing.assert_array_equal(y.numpy(), [w.numpy()[0], w.numpy()[1] + w.numpy()[2]])
