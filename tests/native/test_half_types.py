"""Operators that work on tiles of half types without widening them agree with the reference, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
import votive.nn.functional as F
from votive.core import dtype as dt

from .compare import layouts, needs_native, reference_only

pytestmark = needs_native
HALF = [dt.bfloat16, dt.float16]
OPS: dict[str, Any] = {
    "neg": lambda a, b: -a,
    "abs": lambda a, b: a.abs(),
    "copysign": lambda a, b: votive.copysign(a, b),
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "add number": lambda a, b: a + 0.3,
    "number sub": lambda a, b: 0.3 - a,
    "mul number": lambda a, b: a * 1.7,
    "div number": lambda a, b: a / 3,
    "maximum": lambda a, b: votive.maximum(a, b),
    "minimum": lambda a, b: votive.minimum(a, b),
    "fmax": lambda a, b: votive.fmax(a, b),
    "fmin": lambda a, b: votive.fmin(a, b),
    "relu": lambda a, b: a.relu(),
    "clamp": lambda a, b: a.clamp(-0.3, 0.7),
    "clamp min": lambda a, b: a.clamp(min=0.1),
    "clamp tensors": lambda a, b: a.clamp(-b.abs(), b.abs()),
    "leaky_relu": lambda a, b: F.leaky_relu(a),
    "hardtanh": lambda a, b: F.hardtanh(a),
    "relu6": lambda a, b: F.relu6(a),
    "sqrt": lambda a, b: a.sqrt(),
    "square": lambda a, b: a.square(),
    "reciprocal": lambda a, b: a.reciprocal(),
    "floor": lambda a, b: a.floor(),
    "ceil": lambda a, b: a.ceil(),
    "trunc": lambda a, b: a.trunc(),
    "round": lambda a, b: a.round(),
    "sign": lambda a, b: a.sign(),
    "where": lambda a, b: votive.where(a > b, a, b),
    "where number": lambda a, b: votive.where(a > b, a, 0.1),
    "masked_fill": lambda a, b: a.masked_fill(a > b, 0.1),
    "gt": lambda a, b: a > b,
    "eq number": lambda a, b: a == 0,
    "float": lambda a, b: a.float(),
    "half": lambda a, b: (a.float() * 1.001).to(a.dtype),
}


def every(dtype: Any) -> Any:
    """All elements that the type has, twice, in a random order."""
    bits = np.random.default_rng(0).permutation(np.arange(1 << 16, dtype=np.uint16).repeat(2))
    return votive.tensor(bits.view(np.int16)).view(dtype)


def same_bits(ours: Any, theirs: Any) -> None:
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    kind = {1: dt.uint8, 2: dt.int16, 4: dt.int32}[ours.dtype.itemsize]
    x, y = ours.contiguous().view(kind).numpy(), theirs.contiguous().view(kind).numpy()
    # Any NaN is as good as another.
    either = ours.isnan().numpy() & theirs.isnan().numpy() if ours.dtype.is_floating_point else np.zeros(x.shape, bool)
    np.testing.assert_array_equal(np.where(either, 0, x), np.where(either, 0, y))


def check(name: str, a: Any, b: Any) -> None:
    ours = OPS[name](a, b)
    with reference_only():
        theirs = OPS[name](a, b)
    same_bits(ours, theirs)


@pytest.mark.parametrize("dtype", HALF, ids=str)
@pytest.mark.parametrize("name", OPS)
def test_every_element(name: str, dtype: Any) -> None:
    a = every(dtype)
    check(name, a, a.flip(0))


@pytest.mark.parametrize("dtype", HALF, ids=str)
@pytest.mark.parametrize("name", OPS)
def test_every_layout(name: str, dtype: Any) -> None:
    for shape in [(), (0,), (1,), (15,), (3, 17), (40, 33), (2, 3, 5, 7)]:
        count = int(np.prod(shape))
        a, b = every(dtype)[:count].reshape(shape), every(dtype)[5 : 5 + count].reshape(shape)
        for x, y in zip(layouts(a), layouts(b), strict=True):
            check(name, x, y)
    check(name, every(dtype)[:24].reshape(1, 4, 6), every(dtype)[9:21].reshape(2, 1, 6))
