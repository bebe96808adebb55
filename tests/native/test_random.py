"""Random numbers on native kernels are those of the reference."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import votive
from votive.core import dtype as dt
from votive.ops.registry import OPS

from .compare import agree, needs_native, reference_only, served_by_native

pytestmark = needs_native

DTYPES = [dt.float32, dt.float64, dt.float16, dt.bfloat16]
SIZES = [(0,), (), (1,), (2,), (3,), (5,), (33,), (129,), (2047,), (2049,), (70001,), (31, 67)]
KEYS = [0, 2**64 - 1, 12345678901234567890]
# Logarithms, sines and tangents may differ in the last bits; a tangent is steep.
ROUNDING = {"normal": 2e-6, "log_normal": 5e-6, "exponential": 1e-6, "cauchy": 2e-5}


def filled(op: str, shape: Any, dtype: Any, key: int, counter: int, *parameters: Any) -> Any:
    x = votive.zeros(shape, dtype=dtype)
    return votive.ops.registry.Op.write(OPS[f"_{op}"], (x, key, counter, *parameters))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("op", "parameters"),
    [
        ("uniform", (0, 1)),
        ("uniform", (0.0, 1.0)),
        ("uniform", (-3, 0.5)),
        ("uniform", (2, 2)),
        ("uniform", (-1.0, 0)),
        ("normal", (0, 1)),
        ("normal", (1.5, 2)),
        ("log_normal", (0, 0.5)),
        ("exponential", (1,)),
        ("exponential", (0.3,)),
        ("cauchy", (1, 2)),
        ("geometric", (0.3,)),
        ("bernoulli", (0.3,)),
        ("bernoulli", (1,)),
        ("bernoulli", (0,)),
        ("random", (0, None)),
        ("random", (-5, 100)),
    ],
    ids=str,
)
def test_draws_agree(op: str, parameters: Any, key: int, dtype: Any) -> None:
    rtol = ROUNDING.get(op, 0.0)
    if dtype in dt.HALF and rtol:
        rtol = 1e-2 if dtype is dt.bfloat16 else 1e-3
    for shape in SIZES:
        agree(lambda s=shape: filled(op, s, dtype, key, 2**63 + 7, *parameters), rtol=rtol, atol=rtol and 1e-6)


@pytest.mark.parametrize("dtype", [dt.bool_, dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64], ids=str)
def test_integers_agree(dtype: Any) -> None:
    for shape in SIZES:
        agree(lambda s=shape: filled("random", s, dtype, 3, 1, 0, None))
        agree(lambda s=shape: filled("random", s, dtype, 3, 1, 0, 2))
        agree(lambda s=shape: filled("bernoulli", s, dtype, 3, 1, 0.4))


def test_the_widest_ranges_agree() -> None:
    for low, high in ((-(2**63), 2**63), (-(2**63), 1), (0, 2**63), (2**62, 2**62 + 1)):
        agree(lambda a=low, b=high: filled("random", (50,), dt.int64, 1, 0, a, b))


@pytest.mark.parametrize("dtype", [*DTYPES, dt.int64, dt.int32, dt.uint8], ids=str)
def test_new_memory_gets_the_numbers_that_fills_give(dtype: Any) -> None:
    def new(op: str, n: int, *parameters: Any) -> Any:
        return OPS[f"_new_{op}"]((n,), dtype, votive.device("cpu"), 2**64 - 5, 3, *parameters)

    for n in (0, 1, 33, 5000):
        cases = [("random", (3, 90)), ("randperm", ())]
        if dtype.is_floating_point:
            cases += [("uniform", (0, 1)), ("normal", (0, 1)), ("normal", (0.5, 2))]
        for op, parameters in cases:
            if op == "randperm" and n > 200 and dtype not in (dt.float32, dt.float64, dt.int64):
                continue
            want = filled(op, (n,), dtype, 2**64 - 5, 3, *parameters)
            agree(lambda o=op, p=parameters, n=n: new(o, n, *p), rtol=1e-2 if dtype in dt.HALF else 1e-5)
            assert (new(op, n, *parameters) == want).all()


@pytest.mark.parametrize("n", [0, 1, 2, 100, 511, 512, 513, 100_000])
@pytest.mark.parametrize("dtype", [dt.int64, dt.int32, dt.float32], ids=str)
def test_permutations_agree(n: int, dtype: Any) -> None:
    order = agree(lambda: filled("randperm", (n,), dtype, 5, 9))
    assert (order.sort().values == votive.arange(n, dtype=dtype)).all()


def test_chances_in_a_tensor_agree() -> None:
    p = votive.rand(300, 7)
    for form in (p, p.t().contiguous().t(), p.double(), p.half()):
        agree(lambda c=form: filled("bernoulli", (300, 7), dt.float32, 5, 9, c))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("p", [0.1, 0.5, 1.0])
def test_dropout_agrees_in_every_layout(dtype: Any, p: float) -> None:
    x = votive.tensor(np.random.default_rng(0).standard_normal((37, 121))).to(dtype)
    x[0, 0], x[0, 1] = float("nan"), float("inf")
    wide = votive.zeros(37, 243, dtype=dtype)
    wide[:, 1::2] = x
    for form in (x, x.t(), wide[:, 1::2], x[:1].expand(37, 121), x[0, 5]):
        agree(lambda t: OPS["_dropout"](t, 2**64 - 3, 8, p), form)


@pytest.mark.parametrize(
    ("op", "parameters"),
    [
        ("uniform", (1.5, 0.25)),
        ("uniform", (float("nan"), 1.0)),
        ("uniform", (0, 1e39)),
        ("uniform", (-3e38, 3e38)),
        ("normal", (0.0, -1.0)),
        ("log_normal", (0.0, 0)),
        ("exponential", (-0.5,)),
        ("cauchy", (0, 0.0)),
        ("geometric", (1.25,)),
        ("bernoulli", (1.5,)),
        ("random", (5, 5)),
        ("random", (0, 2**40)),
    ],
    ids=str,
)
def test_wrong_parameters_read_the_same(op: str, parameters: Any) -> None:
    told = []
    dtype = dt.int32 if op == "random" else dt.float32
    for way in (nullcontext, reference_only):
        with way(), pytest.raises(RuntimeError) as caught:
            filled(op, (3,), dtype, 0, 0, *parameters)
        told.append(str(caught.value))
    assert told[0] == told[1]


def test_rows_are_native() -> None:
    assert served_by_native("_new_uniform", lambda: votive.rand(3))
    assert served_by_native("_new_normal", lambda: votive.randn(3))
    assert served_by_native("_new_random", lambda: votive.randint(5, (3,)))
    assert served_by_native("_new_randperm", lambda: votive.randperm(5))
    assert served_by_native("_uniform", lambda: votive.zeros(3).uniform_())
    assert served_by_native("_normal", lambda: votive.zeros(3).normal_())
    assert served_by_native("_random", lambda: votive.zeros(3).random_())
    x = votive.rand(3)
    assert served_by_native("_dropout", lambda: votive.dropout(x, 0.5, True))
