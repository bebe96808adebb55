"""Extremes beyond what a record can say: grids of integers, gradients at infinity, as in torch."""

from __future__ import annotations

import math
import operator
import warnings
from typing import Any

import numpy as np
import pytest

import votive as vt

INF, NAN = math.inf, math.nan
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
# int32 and int64 end the process of torch when the smallest integer is divided by -1.
DIVISIONS = ("remainder", "fmod", "floor_divide")


def values(dtype: str) -> list[int]:
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    near = {low, low + 1, high, high - 1, high // 2, high // 2 + 1, *range(10), 100}
    return sorted(near | {v for v in (-1, -2, -3, -100) if v >= low})


def grid(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    edge = np.array(values(dtype), dtype=dtype)
    a, b = np.meshgrid(edge, edge, indexing="ij")
    return a.ravel(), b.ravel()


def equal(torch: Any, name: str, *args: Any, **kwargs: Any) -> None:
    """The same call on the same arrays gives the same dtype and numbers."""
    call = operator.attrgetter(name)
    theirs = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in args]
    mine = [vt.from_numpy(a) if isinstance(a, np.ndarray) else a for a in args]
    want, got = call(torch)(*theirs, **kwargs), call(vt)(*mine, **kwargs)
    assert str(got.dtype).rpartition(".")[2] == str(want.dtype).rpartition(".")[2], name
    np.testing.assert_array_equal(got.numpy(), want.numpy(), err_msg=name)


@pytest.mark.parity
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_overflow_as_in_torch(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    a, b = grid(dtype)
    edge = np.array(values(dtype), dtype=dtype)
    low, bits = np.iinfo(dtype).min, np.iinfo(dtype).bits
    for name in ("add", "sub", "mul", "bitwise_xor", "maximum", "lt", "pow"):
        equal(torch, name, a, b)
    for name in ("neg", "abs", "square", "sign", "bitwise_not", "cumsum", "cumprod", "diff"):
        equal(torch, name, edge, *([0] if name.startswith("cum") else []))
    for name in ("bitwise_left_shift", "bitwise_right_shift"):
        equal(torch, name, a, b)
        for distance in (0, 1, bits - 1, bits, bits + 3, -1):
            equal(torch, name, edge, distance)
    for scalar in (1, -1, 127, 200, 2**31 - 1):
        for name in ("add", "sub", "mul"):
            equal(torch, name, edge, scalar)
    for base in (2, -3, 0, 1):
        equal(torch, "pow", base, edge)
    allowed = (b != 0) & ~((bits > 16) & (a == low) & (b.astype(np.int64) == -1))
    for name in DIVISIONS:
        equal(torch, name, a[allowed], b[allowed])
    equal(torch, "div", a[allowed], b[allowed], rounding_mode="trunc")
    for name in ("sum", "prod"):
        equal(torch, name, edge)
        equal(torch, name, np.full(300, edge[-1]))
    full = np.full((3, 300), edge[-1])
    equal(torch, "matmul", full, full.T.copy())
    equal(torch, "addcmul", edge, edge, edge, value=3)
    equal(torch, "add", edge, edge, alpha=3)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_divided_by_zero_are_refused(dtype: str) -> None:
    x = vt.tensor([1, 0], dtype=getattr(vt, dtype))
    zero = vt.zeros_like(x)
    for fn in (vt.remainder, vt.fmod, vt.floor_divide):
        with pytest.raises(RuntimeError):
            fn(x, zero)
    for mode in ("floor", "trunc"):
        with pytest.raises(RuntimeError):
            vt.div(x, zero, rounding_mode=mode)
    np.testing.assert_array_equal(vt.div(x, zero).numpy(), [INF, NAN])


def test_the_smallest_integer_over_minus_one_wraps_and_never_traps() -> None:
    for dtype in ("int8", "int16", "int32", "int64"):
        kind, low = getattr(vt, dtype), np.iinfo(dtype).min
        x, minus = vt.tensor([low], dtype=kind), vt.tensor([-1], dtype=kind)
        assert vt.floor_divide(x, minus).item() == low
        assert vt.div(x, minus, rounding_mode="trunc").item() == low
        assert vt.remainder(x, minus).item() == 0
        assert vt.fmod(x, minus).item() == 0


# --- gradients where values are not finite --------------------------------------------------------

ROWS = [
    [1e4, -1e4, 0.0],
    [1e4, 1e4, 1e4],
    [-INF, 0.0, 1.0],
    [-INF, -INF, 2.0],
    [-INF, -INF, -INF],
    [INF, 0.0, 1.0],
    [NAN, 0.0, 1.0],
]
ALONG: dict[str, Any] = {
    "softmax": lambda lib, x: lib.softmax(x, 1),
    "log_softmax": lambda lib, x: lib.log_softmax(x, 1),
    "logsumexp": lambda lib, x: lib.logsumexp(x, 1),
    "sum": lambda lib, x: x.sum(1),
    "mean": lambda lib, x: x.mean(1),
    "var": lambda lib, x: x.var(1),
    "norm": lambda lib, x: lib.linalg.vector_norm(x, dim=1),
    "layer_norm": lambda lib, x: lib.nn.functional.layer_norm(x + lib.arange(3), (3,)),
    "rms_norm": lambda lib, x: lib.nn.functional.rms_norm(x, (3,), None, 1e-5),
    "cross_entropy": lambda lib, x: lib.nn.functional.cross_entropy(
        x, lib.tensor([0, 1, 2, 2, 0, 1, 0]), reduction="none"
    ),
    "sigmoid": lambda lib, x: lib.sigmoid(x),
    "tanh": lambda lib, x: lib.tanh(x),
    "softplus": lambda lib, x: lib.nn.functional.softplus(x),
    "logsigmoid": lambda lib, x: lib.nn.functional.logsigmoid(x),
    "silu": lambda lib, x: lib.nn.functional.silu(x),
    "mish": lambda lib, x: lib.nn.functional.mish(x),
    "gelu": lambda lib, x: lib.nn.functional.gelu(x),
    "exp": lambda lib, x: lib.exp(x),
    "log": lambda lib, x: lib.log(x),
    "expm1": lambda lib, x: lib.expm1(x),
    "log1p": lambda lib, x: lib.log1p(x),
    "erf": lambda lib, x: lib.erf(x),
    "erfc": lambda lib, x: lib.erfc(x),
    "sqrt": lambda lib, x: lib.sqrt(x),
    "reciprocal": lambda lib, x: lib.reciprocal(x),
    "square": lambda lib, x: x.square(),
    "abs": lambda lib, x: x.abs(),
    "divide": lambda lib, x: x / lib.tensor([0.0, INF, 2.0], dtype=x.dtype),
    "power": lambda lib, x: x ** lib.tensor([0.0, 2.0, 0.5], dtype=x.dtype),
    "huber": lambda lib, x: lib.nn.functional.huber_loss(x, lib.zeros_like(x), reduction="none"),
    "smooth_l1": lambda lib, x: lib.nn.functional.smooth_l1_loss(x, lib.zeros_like(x), reduction="none"),
}


@pytest.mark.parity
@pytest.mark.parametrize("name", ALONG)
def test_gradients_at_infinity_and_nan_agree_with_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for lib in (vt, torch):
        x = lib.tensor(ROWS, dtype=lib.float64, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = ALONG[name](lib, x)
        weights = np.linspace(0.5, 1.5, y.detach().numpy().size).reshape(y.shape)
        (g,) = lib.autograd.grad(y, x, lib.from_numpy(weights))
        results.append((y.detach().numpy(), g.numpy()))
    (got, slope), (want, expected) = results
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(slope, expected, rtol=1e-10, atol=1e-10)


def test_a_masked_score_has_neither_weight_nor_gradient() -> None:
    x = vt.tensor([[-INF, 0.0, 1e4], [1e4, -INF, 1e4]], requires_grad=True)
    y = vt.softmax(x, 1)
    np.testing.assert_array_equal(y.detach().numpy(), [[0, 0, 1], [0.5, 0, 0.5]])
    (g,) = vt.autograd.grad((y * vt.tensor([1.0, 2.0, 3.0])).sum(), x)
    np.testing.assert_array_equal(g.numpy(), [[0, 0, 0], [-0.5, 0, 0.5]])
    # Of 1e4 + log 2 float64 keeps 12 digits of the logarithm.
    x = x.detach().double().requires_grad_()
    (g,) = vt.autograd.grad(vt.logsumexp(x, 1).sum(), x)
    np.testing.assert_allclose(g.numpy(), [[0, 0, 1], [0.5, 0, 0.5]], rtol=4e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients_of_half_types_are_summed_in_float32(dtype: str) -> None:
    kind = getattr(vt, dtype)
    row = vt.ones(1, 3, dtype=kind, requires_grad=True)
    row.expand(4096, 3).sum().backward()  # the engine sums the broadcast dimension
    np.testing.assert_array_equal(row.grad.float().numpy(), [[4096] * 3])
    weight = vt.ones(2, 1, dtype=kind, requires_grad=True)
    vt.nn.functional.linear(vt.ones(4096, 1, dtype=kind), weight).sum().backward()
    np.testing.assert_array_equal(weight.grad.float().numpy(), [[4096], [4096]])
    table = vt.zeros(2, dtype=kind, requires_grad=True)
    table[vt.zeros(4096, dtype=vt.int64)].sum().backward()
    np.testing.assert_array_equal(table.grad.float().numpy(), [4096, 0])
