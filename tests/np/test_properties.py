"""Random shapes, dtypes and indices: votive.np does what NumPy does."""

from __future__ import annotations

import warnings
from typing import Any

import numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import array_api
from hypothesis.extra import numpy as nps

import votive

from .compare import same

np = votive.np
xps = array_api.make_strategies_namespace(np, api_version="2024.12")
few = settings(max_examples=60, deadline=None, derandomize=True, database=None)
DTYPES = ["bool", "int8", "int64", "uint8", "uint16", "uint64", "float32", "float64", "complex128"]


def arrays(dtypes: Any = tuple(DTYPES), **shapes: Any) -> Any:
    """NumPy arrays of any shape, also empty and without dimensions."""
    shape = nps.array_shapes(**({"min_dims": 0, "max_dims": 4, "min_side": 0, "max_side": 4} | shapes))
    return st.sampled_from(dtypes).flatmap(lambda d: nps.arrays(d, shape, elements=_elements(d)))


def _elements(dtype: str) -> Any:
    kind = numpy.dtype(dtype).kind
    if kind == "f":
        return st.floats(-8, 8, width=32)
    if kind == "c":
        return st.complex_numbers(max_magnitude=8, allow_subnormal=False)
    return nps.from_dtype(numpy.dtype(dtype))


def both(fn: Any, *given_arrays: Any) -> str | None:
    results: list[Any] = []
    for module, convert in ((numpy, numpy.array), (np, lambda a: np.asarray(numpy.array(a)))):
        try:
            with warnings.catch_warnings(), numpy.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                results.append(fn(module, *[convert(a) for a in given_arrays]))
        except Exception as problem:
            results.append(problem)
    return same(*results)


@few
@given(st.data())
def test_strategies_of_the_standard_make_arrays(data: Any) -> None:
    x = data.draw(xps.arrays(xps.scalar_dtypes(), xps.array_shapes(min_dims=0, min_side=0)))
    assert isinstance(x, np.ndarray)
    index = data.draw(xps.indices(x.shape, allow_newaxis=True))
    want = numpy.asarray(x)[index]
    assert same(want, x[index]) is None


@few
@given(st.data())
def test_reading_and_writing_by_basic_indices(data: Any) -> None:
    a = data.draw(arrays())
    index = data.draw(nps.basic_indices(a.shape, allow_newaxis=True, allow_ellipsis=True))
    assert both(lambda m, x: x[index], a) is None

    def write(m: Any, x: Any) -> Any:
        x[index] = m.flip(x[index]) if x[index].ndim else x[index]
        return x

    assert both(write, a) is None


@few
@given(st.data())
def test_reading_and_writing_by_arrays_of_indices(data: Any) -> None:
    a = data.draw(arrays(min_dims=1, min_side=1))
    index = data.draw(nps.integer_array_indices(a.shape))
    assert both(lambda m, x: x[index], a) is None
    mask = data.draw(nps.arrays(bool, a.shape))

    def write(m: Any, x: Any, chosen: Any) -> Any:
        x[chosen] = 1
        return x

    assert both(lambda m, x, chosen: x[chosen], a, mask) is None
    assert both(write, a, mask) is None
    assert both(lambda m, x: write(m, x, index), a) is None


@few
@given(st.data())
def test_mixed_indices(data: Any) -> None:
    a = data.draw(nps.arrays("float64", nps.array_shapes(min_dims=3, max_dims=4, min_side=2, max_side=4)))
    parts = []
    for n in a.shape[: data.draw(st.integers(1, a.ndim))]:
        one = st.integers(-n, n - 1)
        parts.append(data.draw(st.one_of(one, st.lists(one, min_size=2, max_size=2), st.slices(n), st.none())))
    index = tuple(numpy.array(p) if isinstance(p, list) else p for p in parts)
    assert both(lambda m, x: x[index], a) is None


REDUCTIONS = ["sum", "prod", "max", "min", "all", "any", "mean", "std", "argmax", "argmin", "count_nonzero", "median"]


@few
@given(st.data(), st.sampled_from(REDUCTIONS), st.booleans())
def test_reductions(data: Any, name: str, keepdims: bool) -> None:
    a = data.draw(arrays([d for d in DTYPES if d != "complex128"]))
    one = name.startswith("arg")
    axes = nps.valid_tuple_axes(a.ndim) if not one else st.integers(-a.ndim, a.ndim - 1) if a.ndim else st.none()
    axis = data.draw(st.one_of(st.none(), axes))
    if name == "median" and a.dtype == bool:
        return
    assert both(lambda m, x: getattr(m, name)(x, axis=axis, keepdims=keepdims), a) is None


MOVES = [
    "sort",
    "argsort",
    "flip",
    "roll",
    "cumsum",
    "diff",
    "unique",
    "repeat",
    "squeeze",
    "ravel",
    "transpose",
    "tile",
]


@few
@given(st.data(), st.sampled_from(MOVES))
def test_functions_that_move_elements(data: Any, name: str) -> None:
    a = data.draw(arrays(["int8", "int64", "uint8", "float32", "float64"]))
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1)) if a.ndim else None
    count = data.draw(st.integers(0, 3))
    if name == "argsort":
        assert both(lambda m, x: m.argsort(x, axis=axis, stable=True), a) is None
    elif name in ("sort", "flip", "cumsum"):
        assert both(lambda m, x: getattr(m, name)(x, axis=axis), a) is None
    elif name == "diff":
        assert both(lambda m, x: m.diff(x, count, -1 if axis is None else axis), a) is None
    elif name in ("roll", "repeat"):
        assert both(lambda m, x: getattr(m, name)(x, count, axis), a) is None
    elif name == "tile":
        assert both(lambda m, x: m.tile(x, (count, 2)), a) is None
    else:
        assert both(lambda m, x: getattr(m, name)(x), a) is None


@few
@given(st.data(), st.sampled_from(["add", "subtract", "multiply", "floor_divide", "maximum", "bitwise_and", "less"]))
def test_broadcasting_and_overflow(data: Any, name: str) -> None:
    shapes = data.draw(nps.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=3)).input_shapes
    kinds = st.sampled_from(["int8", "int32", "int64", "uint8", "uint32", "uint64"])
    a, b = (data.draw(kinds.flatmap(lambda d, s=s: nps.arrays(d, s))) for s in shapes)
    assert both(lambda m, x, y: getattr(m, name)(x, y), a, b) is None


@few
@given(st.data())
def test_joining_and_reshaping(data: Any) -> None:
    a = data.draw(arrays(min_dims=1))
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    order = data.draw(st.sampled_from("CF"))
    assert both(lambda m, x: m.concatenate([x, x], axis), a) is None
    assert both(lambda m, x: m.stack([x, x], axis), a) is None
    assert both(lambda m, x: m.reshape(x, a.shape[::-1], order=order), a) is None
    assert both(lambda m, x: m.moveaxis(x, 0, axis), a) is None
    assert both(lambda m, x: m.array_split(x, 2, axis), a) is None
