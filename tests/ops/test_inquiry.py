"""Questions about tensors have the right answers, as Python values."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import votive as vt

DTYPES = (vt.bool, vt.uint8, vt.int8, vt.int64, vt.bfloat16, vt.float32, vt.float64, vt.complex64)
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_the_kind_of_a_dtype_is_told(dtype: vt.dtype) -> None:
    x = vt.ones(2, dtype=dtype)
    assert vt.is_floating_point(x) is (dtype.name in ("bfloat16", "float32", "float64"))
    assert vt.is_complex(x) is (dtype is vt.complex64)
    assert vt.is_signed(x) is (dtype not in (vt.bool, vt.uint8))
    assert vt.is_conj(x.conj()) is (dtype is vt.complex64)
    assert vt.is_neg(x) is False


def test_tensors_are_told_from_other_things() -> None:
    assert vt.is_tensor(vt.ones(2)) is True
    assert vt.is_tensor([1.0]) is False
    assert vt.numel(vt.zeros(2, 0, 3)) == 0
    assert vt.numel(vt.zeros(2, 5)) == 10
    assert vt.is_same_size(vt.zeros(2, 3), vt.ones(2, 3)) is True
    assert vt.is_same_size(vt.zeros(2, 3), vt.ones(3)) is False
    assert vt.is_inference(vt.zeros(1)) is False
    with vt.inference_mode():
        assert vt.is_inference(vt.zeros(1)) is True


@pytest.mark.parametrize(("value", "answer"), [(0.0, False), (-0.0, False), (NAN, True), (2, True), (0j, False)])
def test_one_element_is_zero_or_not(value: Any, answer: bool) -> None:
    assert vt.is_nonzero(vt.tensor([value])) is answer


@pytest.mark.parametrize(
    ("a", "b", "answer"),
    [
        ([1.0, 2.0], [1.0, 2.0], True),
        ([1.0, 2.0], [1.0, 3.0], False),
        ([1.0, 2.0], [[1.0, 2.0]], False),
        ([1, 2], [1.0, 2.0], True),
        ([NAN], [NAN], False),
        ([], [], True),
    ],
)
def test_equal_needs_the_same_shape_and_elements(a: Any, b: Any, answer: bool) -> None:
    assert vt.equal(vt.tensor(a), vt.tensor(b)) is answer


def test_allclose_bounds_every_difference() -> None:
    x = vt.tensor([1.0, 100.0])
    assert vt.allclose(x, x + 1e-6) is True
    assert vt.allclose(x, x + 1e-3) is False
    assert vt.allclose(x, x + 1e-3, atol=1e-2) is True
    assert vt.allclose(vt.tensor([INF]), vt.tensor([INF])) is True
    assert vt.allclose(vt.tensor([INF]), vt.tensor([-INF])) is False
    assert vt.allclose(vt.tensor([NAN]), vt.tensor([NAN])) is False
    assert vt.allclose(vt.tensor([NAN]), vt.tensor([NAN]), equal_nan=True) is True


@pytest.mark.parity
def test_the_type_of_two_operands_is_that_of_torch() -> None:
    torch = pytest.importorskip("torch")
    numbers = (True, 1, 1.5, 1j)
    for a, b in itertools.product(DTYPES, DTYPES):
        for shapes in itertools.product(((), (2,)), repeat=2):
            ours = vt.result_type(vt.ones(shapes[0], dtype=a), vt.ones(shapes[1], dtype=b))
            theirs = torch.result_type(
                torch.ones(shapes[0], dtype=getattr(torch, a.name)), torch.ones(shapes[1], dtype=getattr(torch, b.name))
            )
            assert ours.name == str(theirs).removeprefix("torch."), (a, b, shapes)
    for a, n in itertools.product(DTYPES, numbers):
        ours = vt.result_type(vt.ones(2, dtype=a), n)
        theirs = torch.result_type(torch.ones(2, dtype=getattr(torch, a.name)), n)
        assert ours.name == str(theirs).removeprefix("torch."), (a, n)
