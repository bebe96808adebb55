"""Elementwise operators on the tile engine, held against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.backends.cpu import native
from votive.core import dtype as dt
from votive.core.words import words
from votive.ops.registry import OPS

from .compare import agree, layouts, needs_native, reference_only, same

pytestmark = needs_native

FLOATS = [dt.float32, dt.float64, dt.float16, dt.bfloat16]
INTS = [dt.int64, dt.int32, dt.int16, dt.int8, dt.uint8]

UNARY = words(
    "abs neg square sqrt rsqrt reciprocal floor ceil trunc round sign sgn signbit isnan isinf isfinite isposinf "
    "isneginf logical_not exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh "
    "atanh erf erfc sigmoid sinc angle relu"
)
SPECIAL = [
    "lgamma",
    "digamma",
    "erfinv",
    "special.erfcx",
    "special.log_ndtr",
    "special.ndtri",
    "special.entr",
    "i0",
    "special.i0e",
    "special.i1",
    "special.i1e",
]
BINARY = words(
    "add sub mul div maximum minimum fmax fmin lt le gt ge eq ne logical_and logical_or logical_xor pow atan2 hypot "
    "copysign nextafter logaddexp logaddexp2 xlogy special.xlog1py fmod remainder floor_divide ldexp"
)
INT_UNARY = [
    "abs",
    "neg",
    "square",
    "sign",
    "signbit",
    "isnan",
    "isinf",
    "isfinite",
    "logical_not",
    "bitwise_not",
    "floor",
]
INT_BINARY = [
    "add",
    "sub",
    "mul",
    "maximum",
    "minimum",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "ne",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_left_shift",
    "bitwise_right_shift",
    "gcd",
    "lcm",
    "floor_divide",
    "remainder",
    "fmod",
]
ACTIVATIONS = [
    "relu",
    "gelu",
    "silu",
    "softplus",
    "elu",
    "leaky_relu",
    "mish",
    "hardswish",
    "hardtanh",
    "hardsigmoid",
    "relu6",
    "selu",
    "celu",
    "logsigmoid",
    "softsign",
    "tanhshrink",
    "softshrink",
    "hardshrink",
]
# Around the width of vectors, of tiles and where threads begin.
SIZES = [0, 1, 15, 16, 17, 1023, 1025, 70_001]


def fn(name: str) -> Any:
    found: Any = votive
    for part in name.split("."):
        found = getattr(found, part)
    return found


def floats(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) * 2
    flat = x.reshape(-1)
    for k, v in enumerate([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 3.0, -2.0]):
        if flat.size > 3 * k + 3:
            flat[3 * k + 2] = v
    return votive.tensor(x).to(dtype)


def ints(shape: tuple[int, ...], dtype: Any, seed: int = 0, low: int = -100) -> Any:
    rng = np.random.default_rng(seed)
    low = max(low, int(np.iinfo(dtype.np).min), 0 if dtype is dt.uint8 else low)
    return votive.tensor(rng.integers(low, 100, shape)).to(dtype)


def on_engine(name: str) -> bool:
    """Whether every plan of the operator runs on the engine."""
    module = native.module
    plans = list(OPS[name].plans.values())
    return bool(plans) and all(isinstance(p.compute, module.Elementwise) for p in plans)


def test_the_python_side_knows_what_the_engine_offers() -> None:
    from votive.backends.cpu.native import program
    from votive.backends.cpu.native.loader import codes

    has = native.module.has_tile
    for kinds, names in (((dt.float32, dt.float64), program.FLOAT), ((dt.int32, dt.int64), program.INT)):
        every = program.FLOAT | program.INT
        for kind in kinds:
            assert {n for n in every if has(n, codes[kind])} == names


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*UNARY, *SPECIAL])
def test_unary(name: str, dtype: Any) -> None:
    for shape in ((7,), (5, 33), ()):
        for x in layouts(floats(shape, dtype)):
            agree(fn(name), x)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, dtype: Any) -> None:
    x, y = floats((6, 37), dtype), floats((6, 37), dtype, seed=1)
    for a in layouts(x):
        for b in layouts(y):
            agree(fn(name), a, b)
    agree(fn(name), x, y[:1])
    agree(fn(name), x[:, :1], y)
    agree(fn(name), x, y[2, 3])


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("name", INT_UNARY)
def test_unary_of_integers(name: str, dtype: Any) -> None:
    for x in layouts(ints((5, 33), dtype)):
        agree(fn(name), x)


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("name", INT_BINARY)
def test_binary_of_integers(name: str, dtype: Any) -> None:
    divides = name in ("floor_divide", "remainder", "fmod")
    x, y = ints((6, 37), dtype), ints((6, 37), dtype, seed=1)
    if divides:
        y = votive.where(y == 0, votive.ones_like(y) * 3, y)
    for a in layouts(x):
        for b in layouts(y):
            agree(fn(name), a, b)
    agree(fn(name), x, y[:, :1])
    if name not in ("maximum", "minimum", "gcd", "lcm"):  # these take tensors only
        agree(fn(name), x, 5)


@pytest.mark.parametrize("dtype", INTS)
def test_integer_powers(dtype: Any) -> None:
    x = ints((200,), dtype, low=-5) % 7
    n = ints((200,), dtype, seed=1, low=0) % 40
    agree(votive.pow, x, n)
    agree(lambda a: a**3, x)
    agree(lambda a: 2**a, n)


@pytest.mark.parametrize("op", ["floor_divide", "remainder", "fmod"])
@pytest.mark.parametrize("dtype", INTS)
def test_integer_division_by_zero_is_refused(op: str, dtype: Any) -> None:
    x = ints((3000,), dtype)
    y = votive.ones(3000, dtype=dtype)
    y[2900] = 0
    for divisor in (y, 0):
        with pytest.raises(RuntimeError, match="ZeroDivisionError") as ours:
            fn(op)(x, divisor)
        with reference_only(), pytest.raises(RuntimeError) as theirs:
            fn(op)(x, divisor)
        assert str(ours.value) == str(theirs.value)
    with pytest.raises(RuntimeError, match="div: ZeroDivisionError"):
        votive.div(x, y, rounding_mode="trunc")


def test_the_smallest_integer_divided_by_minus_one_wraps() -> None:
    for dtype in (dt.int64, dt.int32, dt.int8):
        least = int(np.iinfo(dtype.np).min)
        x, y = votive.tensor([least, least + 1], dtype=dtype), votive.tensor([-1, -1], dtype=dtype)
        assert votive.floor_divide(x, y).tolist() == [least, -(least + 1)]
        assert votive.div(x, y, rounding_mode="trunc").tolist() == [least, -(least + 1)]
        assert votive.remainder(x, y).tolist() == [0, 0]
        assert votive.fmod(x, y).tolist() == [0, 0]


@pytest.mark.parametrize("mode", ["trunc", "floor"])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTS])
def test_rounded_quotients(dtype: Any, mode: str) -> None:
    if dtype in FLOATS:
        x, y = floats((400,), dtype), floats((400,), dtype, seed=1)
    else:
        x = ints((400,), dtype)
        y = ints((400,), dtype, seed=1)
        y = votive.where(y == 0, votive.ones_like(y) * 3, y)
    agree(lambda a, b: votive.div(a, b, rounding_mode=mode), x, y)
    agree(lambda a: votive.div(a, 3, rounding_mode=mode), x)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64])
def test_remainders_of_far_apart_numbers(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x = votive.tensor(2.0 ** rng.uniform(-60, 60, 4000) * rng.choice([-1, 1], 4000)).to(dtype)
    y = votive.tensor(2.0 ** rng.uniform(-30, 30, 4000) * rng.choice([-1, 1], 4000)).to(dtype)
    for op in (votive.fmod, votive.remainder):
        agree(op, x, y, rtol=0, atol=0)
    near = votive.tensor(rng.integers(-1000, 1000, 4000) / 8).to(dtype)
    small = votive.tensor(rng.integers(1, 40, 4000) / 8).to(dtype)
    for op in (votive.fmod, votive.remainder, votive.floor_divide):
        for b in (small, -small):
            got = agree(op, near, b, rtol=0, atol=0)
            with reference_only():
                want = op(near, b)
            np.testing.assert_array_equal(np.signbit(got.numpy()), np.signbit(want.numpy()))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_and_their_gradients(name: str, dtype: Any) -> None:
    f = getattr(votive.nn.functional, name)
    for x in layouts(floats((4, 37), dtype)):
        agree(f, x)

        def both(x: Any) -> Any:
            x = x.detach().requires_grad_()
            f(x).backward(votive.ones_like(x))
            return x.grad

        if dtype in (dt.float32, dt.float64):
            agree(both, x)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [dt.float32, dt.bfloat16, dt.int64, dt.bool_])
def test_sizes(n: int, dtype: Any) -> None:
    x = floats((n,), dt.float32).nan_to_num(0, 1, -1).to(dtype)
    agree(lambda a: a + a, x)
    agree(lambda a: a == a, x)
    agree(lambda a: votive.where(a.to(dt.bool_), a, 0), x)
    if dtype.is_floating_point:
        agree(votive.exp, x)
        agree(lambda a: a * 2.5, x)


@pytest.mark.parametrize("left", [*FLOATS, dt.int64, dt.int8, dt.uint8, dt.bool_])
@pytest.mark.parametrize("right", [*FLOATS, dt.int32, dt.uint8, dt.bool_])
def test_mixed_types(left: Any, right: Any) -> None:
    x = floats((9, 40), dt.float32).nan_to_num(0, 1, -1).to(left)
    y = floats((9, 40), dt.float32, 1).nan_to_num(0, 1, -1).to(right)
    for op in (votive.add, votive.mul, votive.lt, votive.maximum):
        agree(op, x, y)
        agree(op, x.transpose(0, 1), y.transpose(0, 1))
        agree(op, x, y[:, 3:4])


def test_numbers_enter_as_c_would_convert_them() -> None:
    small = votive.tensor([250, 3, 255], dtype=dt.uint8)
    assert (small + 10).tolist() == [4, 13, 9]
    assert (votive.tensor([2**31 - 1], dtype=dt.int32) + 1).tolist() == [-(2**31)]
    assert (votive.tensor([2**63 - 1]) + 1).tolist() == [-(2**63)]
    assert (votive.tensor([1]) + (2**64 - 1)).tolist() == [0]
    with pytest.raises(OverflowError, match="does not fit into 64 bits"):
        votive.tensor([1]) + 2**64
    # Once, after the whole formula.
    x = votive.tensor([1.0, 3.0], dtype=dt.bfloat16)
    agree(lambda a: a * 1.0009765625 + 0.001, x)
    assert (votive.tensor([2.0**-24], dtype=dt.float16) * 0.5).tolist() == [0.0]
    assert (votive.tensor([65504.0], dtype=dt.float16) + 16).tolist() == [np.inf]


@pytest.mark.parametrize("dtype", [dt.float32, dt.bfloat16, dt.int32])
def test_in_place_with_any_strides(dtype: Any) -> None:
    def run(view: Any) -> Any:
        base = votive.arange(6 * 8 * 10).reshape(6, 8, 10).to(dtype)
        part = view(base)
        part.add_(3)
        part.mul_(part)
        part.sub_(votive.ones(part.shape[-1], dtype=dtype))
        return base

    views = [
        lambda b: b,
        lambda b: b[:, ::2],
        lambda b: b[..., 1::3],
        lambda b: b.transpose(0, 2),
        lambda b: b[:, 3],
        lambda b: b.permute(1, 2, 0)[1:, 2:],
        lambda b: b[2, 3, 4:5],
    ]
    for view in views:
        agree(run, view)


def test_out_with_other_strides() -> None:
    x, y = floats((30, 50), dt.float32).nan_to_num(), floats((30, 50), dt.float32, 1).nan_to_num()
    for _ in range(2):
        wide = votive.zeros(50, 60)
        out = wide.t()[::2]
        votive.add(x, y, out=out)
        same(out.contiguous(), x + y, rtol=0, atol=0)
        assert (wide.t()[1::2] == 0).all()
        votive.exp(x, out=wide[:30, :50])
        same(wide[:30, :50].contiguous(), votive.exp(x), rtol=0, atol=0)


def test_overlapping_operands_in_place() -> None:
    x = votive.arange(5000).to(dt.float32)
    x[1:].add_(x[:-1].clone())
    want = np.arange(5000, dtype=np.float32)
    want[1:] += np.arange(4999, dtype=np.float32)
    np.testing.assert_array_equal(x.numpy(), want)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1, 1)])
def test_degenerate_shapes(shape: tuple[int, ...]) -> None:
    x = votive.ones(*shape) if shape else votive.tensor(2.0)
    agree(lambda a: a * 2 + 1, x)
    agree(lambda a: a + votive.ones(4, *([1] * a.ndim)), x)
    agree(lambda a: a.to(dt.int64) // 2, x)


def test_many_dimensions() -> None:
    x = floats((2, 3, 1, 2, 3, 2, 2), dt.float32).nan_to_num()
    y = x.permute(6, 1, 4, 3, 2, 5, 0)
    agree(lambda a: a + 1, y)
    agree(lambda a: a + a.flip(0), y)
    agree(votive.mul, y, y[:, :1, :, :, :, :1])


@pytest.mark.parametrize("name", ["exp", "add", "gelu", "remainder", "lgamma", "lt"])
def test_the_engine_serves(name: str) -> None:
    OPS[name].forget()
    x = floats((40,), dt.float32)
    two = name in ("add", "remainder", "lt")
    f = votive.nn.functional.gelu if name == "gelu" else fn(name)
    _ = f(x, x) if two else f(x)
    assert on_engine(name)
