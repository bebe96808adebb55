"""Tensor text: fixed examples, and equality with torch over generated arrays."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from votive.surface import printing
from votive.surface.printing import PrintOptions, format_tensor, tensor_suffixes

nan, inf = math.nan, math.inf
F32, F64 = np.float32, np.float64


def text(values: Any, dtype: Any = F32, **options: Any) -> str:
    return format_tensor(np.array(values, dtype=dtype), options=PrintOptions(**options))


GOLDEN = [
    (text(3.0), "tensor(3.)"),
    (text(-0.0), "tensor(-0.)"),
    (text(2.5), "tensor(2.5000)"),
    (text(7, np.int64), "tensor(7)"),
    (text(True, np.bool_), "tensor(True)"),
    (text([]), "tensor([])"),
    (text([1, 20, 3]), "tensor([ 1., 20.,  3.])"),
    (text([1, -2.5, 0]), "tensor([ 1.0000, -2.5000,  0.0000])"),
    (text([0, nan, inf]), "tensor([0., nan, inf])"),
    (text([1, nan, -inf]), "tensor([1., nan, -inf])"),
    (text([1.5, nan, -inf]), "tensor([1.5000,    nan,   -inf])"),
    (text([1e-5, 1]), "tensor([1.0000e-05, 1.0000e+00])"),
    (text([1, 1000]), "tensor([   1., 1000.])"),
    (text([1, 1001]), "tensor([1.0000e+00, 1.0010e+03])"),
    (text([1e8]), "tensor([100000000.])"),
    (text([1.1e8]), "tensor([1.1000e+08])"),
    (text([0.1, 0.25], precision=1), "tensor([0.1, 0.2])"),
    (text([1, 2], sci_mode=True, precision=2), "tensor([1.00e+00, 2.00e+00])"),
    (text([1e-5, 1.5], sci_mode=False), "tensor([0.0000, 1.5000])"),
    (text([5e-324, 1e308], F64, precision=1), "tensor([4.9e-324, 1.0e+308])"),
    (text([0.1, 1.5], ml_dtypes.bfloat16), "tensor([0.1001, 1.5000])"),
    (text([448, 0.5], ml_dtypes.float8_e4m3fn), "tensor([448.0000,   0.5000])"),
    (text([True, False], np.bool_), "tensor([ True, False])"),
    (text([-1, 10, 100], np.int8), "tensor([ -1,  10, 100])"),
    (text([1 + 2j, -1.5 - 0.5j], np.complex64), "tensor([ 1.0000+2.0000j, -1.5000-0.5000j])"),
    (text(complex(1, -0.0), np.complex64), "tensor(1.-0.j)"),
    (text([[1, 2], [3, 4]], np.int64), "tensor([[1, 2],\n        [3, 4]])"),
    (
        text(np.arange(8).reshape(2, 2, 2), np.int64),
        "tensor([[[0, 1],\n         [2, 3]],\n\n        [[4, 5],\n         [6, 7]]])",
    ),
    (
        text(np.arange(12), np.int64, linewidth=24),
        "tensor([ 0,  1,  2,  3,\n         4,  5,  6,  7,\n         8,  9, 10, 11])",
    ),
    (text(np.arange(1001), np.int64), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    (
        text(np.arange(12).reshape(4, 3), np.int64, threshold=5, edgeitems=1),
        "tensor([[ 0,  ...,  2],\n        ...,\n        [ 9,  ..., 11]])",
    ),
    (text(np.arange(9), np.int64, threshold=5, edgeitems=0), "tensor([...])"),
]


@pytest.mark.parametrize(("printed", "expected"), GOLDEN, ids=range(len(GOLDEN)))
def test_text_is_as_written_here(printed: str, expected: str) -> None:
    assert printed == expected


def test_suffixes_follow_torchs_order_and_rules() -> None:
    assert tensor_suffixes(dtype="float32", shape=(2,)) == []
    assert tensor_suffixes(dtype="bool", shape=()) == []
    assert tensor_suffixes(dtype="int64", shape=(0,)) == ["dtype=votive.int64"]
    assert tensor_suffixes(dtype="float32", shape=(0, 3)) == ["size=(0, 3)"]
    assert tensor_suffixes(dtype="complex64", shape=(1,)) == []
    assert tensor_suffixes(dtype="complex64", shape=(1,), default_dtype="float64") == ["dtype=votive.complex64"]
    assert tensor_suffixes(dtype="float64", shape=(2,), device="cuda:0", requires_grad=True) == [
        "device='cuda:0'",
        "dtype=votive.float64",
        "requires_grad=True",
    ]
    assert tensor_suffixes(dtype="float32", shape=(2,), requires_grad=True, grad_fn="AddBackward0") == [
        "grad_fn=<AddBackward0>"
    ]


def test_long_suffixes_go_to_a_line_of_their_own() -> None:
    printed = format_tensor(
        np.arange(1, 9, dtype=F64) / 8, prefix="Weight(", suffixes=["dtype=votive.float64", "grad_fn=<MulBackward0>"]
    )
    assert printed == (
        "Weight([0.1250, 0.2500, 0.3750, 0.5000, 0.6250, 0.7500, 0.8750, 1.0000],\n"
        "       dtype=votive.float64, grad_fn=<MulBackward0>)"
    )


def test_options_are_set_kept_and_restored() -> None:
    defaults = printing.get_printoptions()
    assert defaults == {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
    with printing.printoptions(precision=1, sci_mode=True):
        assert format_tensor(np.array([2.5])) == "tensor([2.5e+00])"
        printing.set_printoptions(linewidth=40)
        assert printing.get_printoptions()["precision"] == 1
        assert printing.get_printoptions()["sci_mode"] is None
        printing.set_printoptions(profile="short", edgeitems=5)
        assert printing.get_printoptions() == {**defaults, "precision": 2, "edgeitems": 5}
        printing.set_printoptions(profile="full")
        assert printing.get_printoptions() == {**defaults, "threshold": inf}
        with pytest.raises(ValueError, match="unknown profile 'loud'"):
            printing.set_printoptions(profile="loud")
    assert printing.get_printoptions() == defaults


DTYPES: dict[str, Any] = {
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "bool": np.bool_,
    "complex64": np.complex64,
    "complex128": np.complex128,
}
SHAPES = [
    *[(), (1,), (7,), (40,), (1100,), (2, 3), (9, 30), (40, 40), (2, 3, 4), (8, 9, 20)],
    *[(2, 1, 3, 2), (1, 1, 1, 1, 2), (0,), (0, 3), (2, 0, 4)],
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {},
    {"precision": 2},
    {"precision": 7, "linewidth": 60},
    {"threshold": 10, "edgeitems": 2},
    {"threshold": 0, "edgeitems": 1, "linewidth": 20},
    {"threshold": 5, "edgeitems": 0},
    {"edgeitems": 0},
    {"linewidth": 5},
    {"sci_mode": True},
    {"sci_mode": False, "precision": 3},
    {"profile": "full"},
    {"profile": "short"},
]


def random_reals(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Reals in one of the regimes between which the notation switches."""
    values = rng.standard_normal(shape)
    regime = rng.integers(6)
    if regime == 0:
        values = np.round(values * 20)
    elif regime == 1:
        values = values * 10.0 ** rng.integers(-8, 12)
    elif regime == 2:
        values = values * 10.0 ** rng.uniform(-3, 3, shape)
    elif regime == 3:
        values = np.sign(values) * rng.uniform(1, 30, shape)
    elif regime == 4:
        values = np.zeros(shape)
    if rng.integers(3) == 0:
        special = rng.choice([nan, inf, -inf, 0.0, -0.0], shape)
        values = np.where(rng.random(shape) < 0.3, special, values)
    return np.asarray(values)


def random_array(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if kind in "iu":
        limits = np.iinfo(dtype)
        reach = 2 ** int(rng.integers(1, 63))
        low, high = max(limits.min, -reach), min(limits.max, reach)
        return np.asarray(rng.integers(low, high, shape), dtype=dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        if kind == "c":
            values = np.empty(shape, dtype)
            values.real, values.imag = random_reals(rng, shape), random_reals(rng, shape)
            return values
        return random_reals(rng, shape).astype(dtype)


def as_torch(torch: Any, array: np.ndarray, name: str) -> Any:
    """The same bits as a torch tensor; NumPy extension dtypes cross over as integers."""
    if array.dtype.kind != "V" and hasattr(np, array.dtype.name):
        return torch.from_numpy(array.copy())
    carrier = {1: np.uint8, 2: np.uint16}[array.dtype.itemsize]
    return torch.from_numpy(array.view(carrier).copy()).view(getattr(torch, name))


@pytest.mark.parity
@pytest.mark.parametrize("name", DTYPES)
def test_text_equals_torchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(list(DTYPES).index(name))
    for trial in range(60):
        shape = SHAPES[rng.integers(len(SHAPES))]
        options = OPTIONS[rng.integers(len(OPTIONS))]
        array = random_array(rng, DTYPES[name], shape)
        tensor = as_torch(torch, array, name)
        flavour = rng.integers(3) if tensor.is_floating_point() or tensor.is_complex() else 0
        if flavour and name.startswith("float8"):
            flavour = 1
        if flavour:
            tensor.requires_grad_()
        if flavour == 2:
            tensor = tensor.view(shape)
        grad_fn = type(tensor.grad_fn).__name__ if tensor.grad_fn is not None else None
        with torch._tensor_str.printoptions(**options), printing.printoptions(**options):
            expected = repr(tensor).replace("torch.", "votive.")
            suffixes = tensor_suffixes(dtype=name, shape=shape, requires_grad=tensor.requires_grad, grad_fn=grad_fn)
            printed = format_tensor(array, suffixes=suffixes)
        assert printed == expected, (trial, shape, options)


@pytest.mark.parity
@pytest.mark.parametrize("default", ["float32", "float64", "bfloat16"])
def test_marked_dtypes_equal_torchs_for_each_default_dtype(default: str) -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, default))
    try:
        for name, dtype in DTYPES.items():
            for shape in [(2,), (0,), (0, 2), ()]:
                array = np.ones(shape).astype(dtype)
                suffixes = tensor_suffixes(dtype=name, shape=shape, default_dtype=default)
                expected = repr(as_torch(torch, array, name)).replace("torch.", "votive.")
                assert format_tensor(array, suffixes=suffixes) == expected
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parity
def test_every_line_length_breaks_before_suffixes_where_torch_breaks() -> None:
    torch = pytest.importorskip("torch")
    for width in range(1, 75):
        array = np.array([10.0 ** (width - 1)])
        expected_tensor = torch.from_numpy(array).requires_grad_()
        with torch._tensor_str.printoptions(sci_mode=False), printing.printoptions(sci_mode=False):
            suffixes = tensor_suffixes(dtype="float64", shape=(1,), requires_grad=True)
            expected = repr(expected_tensor).replace("torch.", "votive.")
            assert format_tensor(array, suffixes=suffixes) == expected


def test_summarising_reads_only_the_edges() -> None:
    huge = np.broadcast_to(np.float32(1.5), (10**6, 10**6))
    assert format_tensor(huge).count("1.5000") == 36
