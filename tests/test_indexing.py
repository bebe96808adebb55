"""Property tests of `x[index]` and `x[index] = value`: random index expressions against NumPy.

The oracle indexes an array of positions in two steps, basic entries first: torch, unlike NumPy,
does not count an integer as an index tensor when it decides where the indexed dimensions go.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import votive

COMMON = settings(max_examples=200, deadline=None)


# --- random index expressions ---------------------------------------------------------------------


@st.composite
def slices(draw: Any, size: int) -> slice:
    edge = st.none() | st.integers(-size - 2, size + 2)
    return slice(draw(edge), draw(edge), draw(st.none() | st.integers(1, 3)))


@st.composite
def cases(draw: Any, advanced: bool = True) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """A shape and an index that is valid for it; arrays stand for index tensors."""
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=4)))
    common = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    parts: list[Any] = []
    d, has_ellipsis = 0, False
    while True:
        kinds = ["stop", "none"]
        if not has_ellipsis:
            kinds.append("ellipsis")
        if advanced:
            kinds.append("bool")
        if d < len(shape):
            kinds += ["slice"] + ["int"] * (shape[d] > 0)
            if advanced:
                kinds += ["mask"] + ["array", "array"] * (shape[d] > 0)
        kind = draw(st.sampled_from(kinds))
        if kind == "stop" or len(parts) > 6:
            break
        if kind == "none":
            parts.append(None)
        elif kind == "ellipsis":
            parts.append(...)
            has_ellipsis = True
            d = draw(st.integers(d, len(shape)))
        elif kind == "bool":
            parts.append(draw(st.booleans()))
        elif kind == "int":
            parts.append(draw(st.integers(-shape[d], shape[d] - 1)))
            d += 1
        elif kind == "slice":
            parts.append(draw(slices(shape[d])))
            d += 1
        elif kind == "array":
            sizes = tuple(draw(st.sampled_from([n, 1])) for n in common)
            elements = st.integers(-shape[d], shape[d] - 1)
            n = int(np.prod(sizes))
            flat = draw(st.lists(elements, min_size=n, max_size=n))
            dtype = draw(st.sampled_from([np.int64, np.int32]))
            parts.append(np.array(flat, dtype).reshape(sizes))
            d += 1
        else:
            wide = draw(st.integers(1, len(shape) - d))
            n = int(np.prod(shape[d : d + wide]))
            flat = draw(st.lists(st.booleans(), min_size=n, max_size=n))
            parts.append(np.array(flat, bool).reshape(shape[d : d + wide]))
            d += wide
    if has_ellipsis:
        # What the ellipsis swallowed is fixed by what stands behind it.
        parts += [slice(None)] * (len(shape) - d)
    return shape, tuple(parts)


def _consumed(part: Any) -> int:
    if part is None or part is ... or isinstance(part, bool):
        return 0
    return part.ndim if isinstance(part, np.ndarray) and part.dtype == bool else 1


def positions(shape: tuple[int, ...], index: tuple[Any, ...]) -> np.ndarray | None:
    """Which element of the flat tensor each element of `x[index]` is; None if it is not defined."""
    everything = np.arange(int(np.prod(shape))).reshape(shape)
    basic: list[Any] = []
    rest: list[Any] = []
    tensors = False
    used = sum(_consumed(p) for p in index)
    for p in index if any(p is ... for p in index) else (*index, ...):
        if isinstance(p, np.ndarray) and p.ndim == 0:
            p = int(p)
        if p is ...:
            basic.append(p)
            rest.extend([slice(None)] * (len(shape) - used))
        elif isinstance(p, bool):
            basic.append(None)
            rest.append(np.zeros(int(p), np.int64))
            tensors = True
        elif isinstance(p, np.ndarray):
            basic.extend([slice(None)] * _consumed(p))
            rest.append(p)
            tensors = True
        else:
            basic.append(p)
            if not isinstance(p, int):
                rest.append(slice(None))
    view = everything[tuple(basic)]
    if not tensors:
        return view
    try:
        return view[tuple(rest)]
    except IndexError:
        return None  # the lengths of masks and index arrays do not broadcast


def as_tensors(index: tuple[Any, ...], tensor: Any = votive.tensor) -> tuple[Any, ...]:
    return tuple(tensor(p) if isinstance(p, np.ndarray) else p for p in index)


def values(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape)


# --- properties -----------------------------------------------------------------------------------


@COMMON
@given(cases())
def test_reading_gives_what_numpy_gives(case: Any) -> None:
    shape, index = case
    a, at = values(shape), positions(shape, index)
    x = votive.tensor(a)
    if at is None:
        with pytest.raises(IndexError, match="shape mismatch"):
            x[as_tensors(index)]
        return
    got = x[as_tensors(index)]
    assert tuple(got.shape) == at.shape
    np.testing.assert_array_equal(got.numpy(), a.reshape(-1)[at])


@COMMON
@given(cases(advanced=False))
def test_basic_indexes_are_views(case: Any) -> None:
    shape, index = case
    x, at = votive.tensor(values(shape)), positions(shape, index)
    view = x[index]
    assert view._base is x
    view.fill_(7.0)
    expected = values(shape)
    expected.reshape(-1)[at] = 7.0
    np.testing.assert_array_equal(x.numpy(), expected)


@COMMON
@given(cases(), st.booleans())
def test_writing_gives_what_numpy_gives(case: Any, as_number: bool) -> None:
    shape, index = case
    at = positions(shape, index)
    if at is None:
        return
    expected = values(shape)
    # Elements that are written twice get the same value both times: the order is not defined.
    new = np.array(3.5) if as_number else at * 10.0
    expected.reshape(-1)[at] = new
    x = votive.tensor(values(shape))
    x[as_tensors(index)] = 3.5 if as_number else votive.tensor(new)
    np.testing.assert_array_equal(x.numpy(), expected)


@COMMON
@given(cases(), st.data())
def test_values_broadcast_when_written(case: Any, data: Any) -> None:
    shape, index = case
    at = positions(shape, index)
    if at is None or len(set(at.ravel().tolist())) != at.size:
        return
    small = tuple(n if data.draw(st.booleans()) else 1 for n in at.shape)
    small = small[data.draw(st.integers(0, len(small))) :]
    new = np.random.default_rng(1).normal(size=small)
    expected = values(shape)
    expected.reshape(-1)[at] = new
    x = votive.tensor(values(shape))
    x[as_tensors(index)] = votive.tensor(new)
    np.testing.assert_array_equal(x.numpy(), expected)


@COMMON
@given(cases())
def test_the_gradient_of_reading_adds_up_where_elements_repeat(case: Any) -> None:
    shape, index = case
    at = positions(shape, index)
    if at is None:
        return
    x = votive.tensor(values(shape), requires_grad=True)
    g = votive.tensor(np.random.default_rng(2).normal(size=at.shape), requires_grad=True)
    (dx,) = votive.autograd.grad(x[as_tensors(index)], x, g, create_graph=True)
    expected = np.zeros(shape)
    np.add.at(expected.reshape(-1), at.ravel(), g.detach().numpy().ravel())
    np.testing.assert_allclose(dx.detach().numpy(), expected, rtol=1e-12, atol=1e-12)
    # Reading is linear: the gradient of its gradient by g reads again.
    h = np.random.default_rng(3).normal(size=shape)
    (dg,) = votive.autograd.grad(dx, g, votive.tensor(h))
    np.testing.assert_array_equal(dg.numpy(), h.reshape(-1)[at])


@COMMON
@given(cases())
def test_the_gradient_of_writing_goes_to_the_value_and_leaves_the_rest(case: Any) -> None:
    shape, index = case
    at = positions(shape, index)
    if at is None or len(set(at.ravel().tolist())) != at.size:
        return
    x = votive.tensor(values(shape), requires_grad=True)
    v = votive.tensor(np.random.default_rng(4).normal(size=at.shape), requires_grad=True)
    y = x * 2
    y[as_tensors(index)] = v
    g = np.random.default_rng(5).normal(size=shape)
    dx, dv = votive.autograd.grad(y, (x, v), votive.tensor(g), materialize_grads=True)
    np.testing.assert_array_equal(dv.numpy(), g.reshape(-1)[at])
    g.reshape(-1)[at] = 0
    np.testing.assert_allclose(dx.numpy(), 2 * g, rtol=1e-12)


@pytest.mark.parity
@COMMON
@given(cases())
def test_reading_and_writing_agree_with_torch(case: Any) -> None:
    torch = pytest.importorskip("torch")
    shape, index = case
    theirs, ours = torch.tensor(values(shape)), votive.tensor(values(shape))
    try:
        expected = theirs[as_tensors(index, torch.tensor)]
    except IndexError:
        with pytest.raises(IndexError):
            ours[as_tensors(index)]
        return
    got = ours[as_tensors(index)]
    assert tuple(got.shape) == tuple(expected.shape)
    np.testing.assert_array_equal(got.numpy(), expected.numpy())
    theirs[as_tensors(index, torch.tensor)] = 9.0
    ours[as_tensors(index)] = 9.0
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


# --- the grammar's corners ------------------------------------------------------------------------

READ = [
    "x[[0, 1]]", "x[[0, 1], [2, 0]]", "x[((0, 1), (1, 2))]", "x[(0, (1, 2))]", "x[[True, False]]",
    "x[[]]", "x[[], []]", "x[range(2)]", "x[np.array([1, 0])]", "x[np.array([True, False])]",
    "x[np.array(1)]", "x[np.int64(1)]", "x[np.array([1.0])]", "x[lib.tensor(1)]",
    "x[lib.tensor(1, dtype=lib.int16)]", "x[lib.tensor(0) : lib.tensor(1)]", "x[lib.tensor(True)]",
    "x[..., ...]", "x[..., 0, ...]", "x[True, [0, 1]]", "x[0, True]", "x[5:2]", "x[-9:9]",
    "t[0, :, [0, 1]]", "t[:, 0, [0, 1]]", "t[[0, 1], 0, [0, 1]]", "t[[0, 1], None, [0, 1]]",
    "z[()]", "z[...]", "z[None]", "z[True]", "z[lib.tensor(False)]",
]  # fmt: skip
REFUSED = [
    "x[0, 0, 0]",
    "x[2]",
    "x[-3]",
    "x[:, 5]",
    "x[::-1]",
    "x[::0]",
    "x[1.0]",
    "x['a']",
    "x[0, 'a']",
    "x[1:'a']",
    "x[1.5:2]",
    "x[object()]",
    "x[{}]",
    "x[[0, 5]]",
    "x[[-3, 0]]",
    "x[[0, 1], [0, 1, 2]]",
    "x[lib.tensor([True])]",
    "x[:, lib.tensor([True, False])]",
    "x[lib.tensor([[True, False], [False, True]])]",
    "x[lib.tensor([0], dtype=lib.int16)]",
    "x[lib.tensor([0.0])]",
    "z[0]",
    "z[:]",
    "z[[0]]",
    "z[lib.tensor(0)]",
]
WRITTEN = [
    "x[0] = 1",
    "x[0] = np.float64(3)",
    "x[0] = lib.tensor([1, 2, 3])",
    "x[0] = lib.tensor([[[1.0, 2.0, 3.0]]])",
    "x[0, 0] = lib.tensor([[5.0]])",
    "x[[0]] = lib.tensor([[[1.0, 2.0, 3.0]]])",
    "x[[0, 0]] = lib.tensor([[1.0], [1.0]])",
    "x[x > 2] = 0",
    "x[x > 2] = lib.tensor([7.0, 8.0, 9.0])",
    "x[x > 2] = lib.tensor(7)",
    "x[:, lib.tensor([True, False, True])] = 4.0",
    "x[lib.tensor([True, False])] = lib.tensor([6.0])",
    "x[1:] = x[:1]",
    "x[[0, 1]] = x[[1, 0]]",
    "x[None] = lib.ones(2, 3)",
    "x[0:0] = lib.ones(3)",
    "x[False] = lib.ones(2, 3)",
    "x[[]] = 5",
    "x[True] = 3",
    "n[0] = 1.7",
    "n[[0]] = 1.7",
    "n[n > 2] = 1.7",
    "n[0] = lib.tensor(1.7)",
    "z[()] = 1",
    "z[...] = 1",
    "z[None] = 1",
    "z[True] = 3",
    "z[False] = 3",
]
UNWRITABLE = [
    "x[0] = [1, 2, 3]",
    "x[0] = np.array([1.0, 2.0, 3.0])",
    "x[0] = 'a'",
    "x[0] = None",
    "x[0] = 1j",
    "x[[0]] = 1j",
    "x[0] = lib.tensor([1.0, 2.0])",
    "x[0] = lib.ones(2, 1)",
    "x[:, :] = lib.ones(2, 2, 3)",
    "x[[0]] = lib.tensor([1, 2, 3])",
    "x[[0]] = lib.tensor([1.0, 2.0])",
    "x[x > 2] = lib.tensor([7.0, 8.0])",
    "n[[0]] = lib.tensor(1.7)",
    "x[0:0] = lib.ones(2)",
    "x[[]] = lib.ones(2)",
    "x[2] = 0",
    "x[[2]] = 0",
    "z[0] = 1",
    "x['a'] = 1",
]


def scope(lib: Any) -> dict[str, Any]:
    """The names that the expressions above use, with votive or torch as `lib`."""
    return {
        "lib": lib,
        "np": np,
        "z": lib.tensor(2.5),
        "x": lib.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]),
        "n": lib.tensor([[0, 1, 2], [3, 4, 5]]),
        "t": lib.tensor(np.arange(24.0).reshape(2, 3, 4)),
    }


@pytest.mark.parity
@pytest.mark.parametrize("text", READ)
def test_unusual_indexes_read_as_in_torch(text: str) -> None:
    torch = pytest.importorskip("torch")
    expected, got = eval(text, scope(torch)), eval(text, scope(votive))
    assert tuple(got.shape) == tuple(expected.shape)
    np.testing.assert_array_equal(got.numpy(), expected.numpy())


@pytest.mark.parity
@pytest.mark.parametrize("text", WRITTEN)
def test_unusual_indexes_write_as_in_torch(text: str) -> None:
    torch = pytest.importorskip("torch")
    theirs, ours = scope(torch), scope(votive)
    exec(text, theirs)
    exec(text, ours)
    np.testing.assert_array_equal(ours[text[0]].numpy(), theirs[text[0]].numpy())


@pytest.mark.parity
@pytest.mark.parametrize("text", [*REFUSED, *UNWRITABLE])
def test_wrong_indexes_raise_what_torch_raises(text: str) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises((IndexError, TypeError, ValueError, RuntimeError)) as theirs:
        exec(text, scope(torch))
    with pytest.raises(theirs.type):
        exec(text, scope(votive))


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("x[0, 0, 0]", IndexError, "too many indices for tensor of dimension 2"),
        ("x[:, 5]", IndexError, "index 5 is out of bounds for dimension 1 with size 3"),
        ("x[[0, 5]]", IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        ("x[::-1]", ValueError, "step must be greater than zero"),
        ("x[1.0]", IndexError, "got float"),
        ("x[lib.tensor([0.0])]", IndexError, "must be int64, int32 or bool tensors"),
        ("x[:, lib.tensor([True, False])]", IndexError, r"mask \(2,\) at index 0 does not match"),
        ("x[[0, 1], [0, 1, 2]]", IndexError, "shape mismatch"),
        ("x[[0]] = lib.tensor([1.0, 2.0])", RuntimeError, "shape mismatch: values of shape"),
        ("x[0] = [1, 2, 3]", TypeError, "can't assign to a tensor of .*got list"),
    ],
)
def test_errors_name_the_rule_and_what_came(text: str, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        exec(text, scope(votive))


def test_a_list_with_more_than_numbers_is_a_tuple_and_warns() -> None:
    x = votive.tensor([[0, 1], [2, 3]])
    with pytest.warns(UserWarning, match="taken for a tuple"):
        assert x[[[0, 1], [1, 0]]].tolist() == [1, 2]


def test_uint8_masks_still_work_and_warn() -> None:
    with pytest.warns(UserWarning, match="uint8"):
        picked = votive.tensor([1, 2, 3])[votive.tensor([1, 0, 1], dtype=votive.uint8)]
    assert picked.tolist() == [1, 3]
