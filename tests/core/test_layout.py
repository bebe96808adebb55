"""Shape and stride arithmetic against NumPy, by property."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from votive.core.errors import ShapeError
from votive.core.layout import (
    Layout,
    Size,
    broadcast_shapes,
    contiguous_strides,
    has_overlap,
    infer_size,
    is_contiguous,
    is_dense,
    view_strides,
    wrap_dim,
)

shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)
full = st.lists(st.integers(1, 4), max_size=4).map(tuple)


@given(full)
def test_row_major_strides_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    want = tuple(s // 8 for s in np.zeros(shape).strides)
    assert contiguous_strides(shape) == want


@st.composite
def strided(draw: st.DrawFn) -> np.ndarray:
    """An array seen through random permutations and slices."""
    a = np.arange(int(np.prod(draw(full), dtype=int)) or 1)
    shape = draw(full)
    a = np.arange(int(np.prod(shape, dtype=int))).reshape(shape)
    a = a.transpose(draw(st.permutations(range(a.ndim))))
    for d in range(a.ndim):
        step = draw(st.sampled_from([1, 1, 2]))
        start = draw(st.integers(0, max(a.shape[d] - 1, 0)))
        index = [slice(None)] * a.ndim
        index[d] = slice(start, None, step)
        a = a[tuple(index)]
    return a


@settings(max_examples=400)
@given(strided(), st.data())
def test_a_view_exists_exactly_when_numpy_can_reshape_without_copying(a: np.ndarray, data: st.DataObject) -> None:
    sizes = [a.size]
    for _ in range(data.draw(st.integers(0, 3))):
        n = sizes.pop()
        divisor = data.draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0] or [1]))
        sizes += [divisor, n // divisor]
    strides = tuple(s // a.itemsize for s in a.strides)
    got = view_strides(a.shape, strides, tuple(sizes))
    reshaped = a.reshape(sizes)
    shares = np.shares_memory(reshaped, a)
    assert (got is not None) == shares
    if got is not None:
        seen = np.lib.stride_tricks.as_strided(a, sizes, [s * a.itemsize for s in got])
        np.testing.assert_array_equal(seen, reshaped)


@given(strided())
def test_contiguity_and_density_agree_with_where_elements_lie(a: np.ndarray) -> None:
    strides = tuple(s // a.itemsize for s in a.strides)
    assert is_contiguous(a.shape, strides) == a.flags.c_contiguous
    offsets = (a - a.min()).ravel() if a.size else a.ravel()
    assert is_dense(a.shape, strides) == (sorted(offsets) == list(range(a.size)))
    assert not has_overlap(a.shape, strides)


def test_expanded_layouts_overlap() -> None:
    assert has_overlap((3, 2), (0, 1))
    assert has_overlap((4,), (0,))
    assert not has_overlap((1, 2), (0, 1))


@given(st.lists(shapes, min_size=1, max_size=3))
def test_broadcasting_agrees_with_numpy(many: list[tuple[int, ...]]) -> None:
    try:
        want = np.broadcast_shapes(*many)
    except ValueError:
        with pytest.raises(ShapeError):
            broadcast_shapes("test", *many)
        return
    assert broadcast_shapes("test", *many) == want


def test_one_size_can_be_inferred() -> None:
    assert infer_size("view", (2, -1), 6) == (2, 3)
    with pytest.raises(ShapeError, match="only one"):
        infer_size("view", (-1, -1), 6)
    with pytest.raises(ShapeError, match="invalid"):
        infer_size("view", (4, -1), 6)
    with pytest.raises(ShapeError, match="0 elements"):
        infer_size("view", (0, -1), 0)


def test_dimensions_wrap_and_report_their_range() -> None:
    assert wrap_dim("f", -1, 3) == 2
    assert wrap_dim("f", -1, 0) == 0
    with pytest.raises(IndexError, match=r"-2\.\.1"):
        wrap_dim("softmax", 3, 2, (2, 5))


def test_equal_layouts_are_one_object() -> None:
    assert Layout((2, 3)) is Layout((2, 3), (3, 1))
    assert Layout((2, 3)) is not Layout((2, 3), (1, 2))


def test_size_is_a_tuple_that_shows_itself() -> None:
    s = Size((2, 3))
    assert s == (2, 3)
    assert repr(s) == "votive.Size([2, 3])"
    assert s.numel() == 6
    assert isinstance(s[:1], Size)
    assert isinstance(s + (1,), Size)
