"""Records of extremes: large and infinite arguments, sums of half types, integers that overflow.

Operators stand here a second time; their ordinary records are in the file of their family. Rows
whose tensors name their own dtype have `dtypes="b"`, which lets the loops pass once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import votive as vt
from tests.ops.catalog import S, op

F = "nn.functional."
INF, NAN = math.inf, math.nan
erf = np.vectorize(math.erf, otypes=[float])


def lit(*values: Any, dtype: str | None = None) -> S:
    """A tensor of literal values."""
    return S(values=list(values), dtype=dtype)


# --- ±1e4, infinities and NaN in smooth functions -------------------------------------------------


def log_softmax(x: Any, dim: int = -1) -> Any:
    x = x - x.max(dim, keepdims=True)
    return x - np.log(np.exp(x).sum(dim, keepdims=True))


def softmax(x: Any, dim: int = -1) -> Any:
    return np.exp(log_softmax(x, dim))


def logsumexp(x: Any, dim: int) -> Any:
    top = x.max(dim, keepdims=True)
    top = np.where(np.isinf(top), 0, top)
    return np.squeeze(top, dim) + np.log(np.exp(x - top).sum(dim))


def softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def sigmoid(x: Any) -> Any:
    return np.exp(-softplus(-x))


def gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "none":
        return x * (1 + erf(x / math.sqrt(2))) / 2
    return x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


FAR = lit(1e4, -1e4, 3e4, -3e4, 25.0, -25.0, 0.0, 1.0)
ENDS = lit(INF, -INF, NAN, 1e4)
# Rows of one scale: a winner, a draw, all far below, one that vanishes.
ROWS = lit([1e4, -1e4, 0.0], [1e4, 1e4, 1e4], [-1e4, -1e4, -1e4], [0.0, -3e4, 1.0])
HIDDEN = lit([-INF, 0.0, 1.0], [-INF, -INF, 2.0], [1.0, NAN, 0.0])
SMOOTH: dict[str, Callable[[Any], Any]] = {
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    F + "silu": lambda x: x * sigmoid(x),
    F + "softplus": softplus,
    F + "logsigmoid": lambda x: -softplus(-x),
    F + "mish": lambda x: x * np.tanh(softplus(x)),
    "erf": erf,
    "erfc": np.vectorize(math.erfc, otypes=[float]),
    "atan": np.arctan,
}
# What exp(-inf) * inf would make NaN of, though the limit is known; torch has NaN there too.
LIMITLESS = (F + "silu", F + "mish")

FUNCTIONS = [
    *[op(name, samples=[(FAR,)], reference=fn) for name, fn in SMOOTH.items()],
    *[op(name, samples=[(ENDS,)], reference=fn, grad=False) for name, fn in SMOOTH.items() if name not in LIMITLESS],
    *[op(name, samples=[(lit(INF, NAN),)], reference=SMOOTH[name], grad=False) for name in LIMITLESS],
    op(
        F + "elu",
        samples=[(lit(1e4, -1e4, 25.0, -25.0),)],
        reference=lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    ),
    op(F + "gelu", samples=[(FAR,), (FAR, {"approximate": "tanh"})], reference=gelu),
    # torch's vectorised gelu of infinity is NaN in float32, its scalar one is not.
    op(
        F + "gelu",
        samples=[(lit(INF, NAN),), (lit(INF, NAN), {"approximate": "tanh"})],
        reference=gelu,
        grad=False,
        torch=False,
    ),
    op("exp", samples=[(lit(INF, -INF, NAN, 1e4, -1e4, 0.0),)], reference=np.exp, grad=False),
    op("expm1", samples=[(lit(INF, -INF, NAN, 1e4, -1e4, 1e-6, -1e-6),)], reference=np.expm1, grad=False),
    op("log", samples=[(lit(INF, -INF, NAN, 0.0, -0.0, -1.0),)], reference=np.log, grad=False),
    op("log1p", samples=[(lit(INF, -INF, NAN, -1.0, -2.0, 1e-6, -1e-6),)], reference=np.log1p, grad=False),
    op(
        "erfinv",
        samples=[(lit(1.0, -1.0, 1.5, NAN, 0.0),)],
        grad=False,
        reference=lambda p: np.where(np.abs(p) > 1, NAN, np.where(p == 0, 0, p * INF)),
    ),
    *[
        op(name, samples=[(ROWS, 1), (ROWS, 0)], reference=fn)
        for name, fn in (
            ("softmax", softmax),
            ("log_softmax", log_softmax),
            ("logsumexp", logsumexp),
            (F + "softmin", lambda x, dim: softmax(-x, dim)),
        )
    ],
    *[
        op(name, samples=[(HIDDEN, 1)], reference=fn, grad=False)
        for name, fn in (("softmax", softmax), ("log_softmax", log_softmax), ("logsumexp", logsumexp))
    ],
    # A row of -inf alone has the logarithm of zero as its sum, and no softmax.
    op(
        "logsumexp",
        samples=[(lit([-INF, -INF], [INF, 0.0], [INF, INF]), 1)],
        grad=False,
        reference=lambda x, dim: np.array([-INF, INF, INF]),
    ),
    op(
        "softmax",
        samples=[(lit([-INF, -INF], [INF, 0.0]), 1)],
        grad=False,
        reference=lambda x, dim: np.full((2, 2), NAN),
    ),
    op(
        F + "cross_entropy",
        samples=[(ROWS, lit(0, 1, 2, 1, dtype="int64"))],
        reference=lambda x, t: -log_softmax(x)[np.arange(4), t].mean(),
    ),
    op(
        F + "binary_cross_entropy_with_logits",
        samples=[(FAR, lit(0.0, 1.0, 1.0, 0.0, 0.5, 0.5, 1.0, 0.0), {"reduction": "none"})],
        reference=lambda x, t, reduction: softplus(x) - t * x,
        grad=(0,),
    ),
]


# --- sums of half types are taken in float32 ------------------------------------------------------

# In float16 a sum of ones stops at 2048, in bfloat16 at 256.
ONES = S(values=[1.0] * 4096)
SMALL = S(values=[512.0] + [0.125] * 4096)
LARGE = S(values=[6e4] * 64)
UNIT = {"domain": (0.0, 1.0), "grad": False}


def layer_norm(x: Any, shape: Any) -> Any:
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def rms_norm(x: Any, shape: Any, weight: Any = None, eps: float = 1e-5) -> Any:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


SUMS = [
    op("sum", samples=[(ONES,), (SMALL,), (S(3, 5000), 1)], reference=np.sum, **UNIT),
    # The sum is beyond float16, the mean is not.
    op("mean", samples=[(ONES,), (SMALL,), (LARGE,), (S(2, 9000), 1)], reference=np.mean, **UNIT),
    op("sum", samples=[(LARGE, {"dtype": vt.float32})], grad=False, reference=lambda x, dtype: np.sum(x)),
    op("var", samples=[(S(4096, low=90.0, high=110.0),)], grad=False, reference=lambda x: np.var(x, ddof=1)),
    op(
        "std",
        samples=[(S(2, 4096, low=90.0, high=110.0), 1)],
        grad=False,
        reference=lambda x, dim: np.std(x, axis=dim, ddof=1),
    ),
    op("linalg.vector_norm", samples=[(ONES,), (S(values=[300.0] * 100),)], reference=np.linalg.norm, grad=False),
    op("cumsum", samples=[(ONES, 0), (SMALL, 0)], reference=np.cumsum, grad=False),
    op("logsumexp", samples=[(S(2, 10000), 1)], reference=logsumexp, **UNIT),
    op("softmax", samples=[(S(2, 10000), 1)], reference=softmax, **UNIT),
    op("log_softmax", samples=[(S(2, 10000), 1)], reference=log_softmax, **UNIT),
    op("matmul", samples=[(S(3, 4096), S(4096, 2)), (S(4096), S(4096))], reference=np.matmul, **UNIT),
    op("bmm", samples=[(S(2, 2, 4096), S(2, 4096, 2))], reference=np.matmul, **UNIT),
    op("dot", samples=[(ONES, ONES)], reference=np.dot, grad=False),
    op(F + "linear", samples=[(S(3, 4096), S(2, 4096))], reference=lambda x, w: x @ w.T, **UNIT),
    op("einsum", samples=[("ik,kj->ij", S(3, 4096), S(4096, 2))], reference=np.einsum, **UNIT),
    op(
        F + "avg_pool1d",
        samples=[(S(1, 1, 64, values=[[[6e4] * 64]]), 64)],
        grad=False,
        reference=lambda x, k: x.mean(-1, keepdims=True),
    ),
    op(
        "scatter_add",
        samples=[(S(values=[0.0]), 0, S(4096, dtype="int64", low=0, high=1), ONES)],
        reference=lambda x, d, i, s: np.array([s.sum()]),
        grad=False,
    ),
    # torch adds to an index in the half type itself, and stops at 2048.
    op(
        "index_add",
        samples=[(S(values=[0.0]), 0, S(4096, dtype="int64", low=0, high=1), ONES)],
        reference=lambda x, d, i, s: np.array([s.sum()]),
        grad=False,
        torch=False,
    ),
    op(F + "layer_norm", samples=[(S(2, 4096, low=0.0, high=2.0), (4096,))], reference=layer_norm, grad=False),
    # The squares are beyond float16.
    op(F + "rms_norm", samples=[(S(2, 64, low=1e3, high=2e4), (64,), None, 1e-5)], reference=rms_norm, grad=False),
    op(
        F + "cross_entropy",
        samples=[(S(5, 5000), S(5, dtype="int64", low=0, high=5000))],
        reference=lambda x, t: -log_softmax(x)[np.arange(5), t].mean(),
        **UNIT,
    ),
]


# --- zero and infinity in arithmetic --------------------------------------------------------------

LEFT = lit(1.0, -1.0, 0.0, -0.0, INF, -INF, NAN, 2.0, -2.0, 0.0, 5.0, -5.0, 7.0, -7.0)
RIGHT = lit(0.0, 0.0, 0.0, 1.0, 0.0, INF, 1.0, INF, INF, -INF, -INF, -INF, 3.0, 3.0)


def remainder(a: Any, b: Any) -> Any:
    """`a - b floor(a / b)` with the sign of b; an infinite b leaves a, or takes its place."""
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


def floored(a: Any, b: Any) -> Any:
    """The floor of a / b, which just below zero is -1; by zero the quotient itself."""
    far = np.isinf(b) & np.isfinite(a)
    return np.where(far, np.where(a * np.sign(b) < 0, -1.0, 0.0), np.floor(a / b))


ARITHMETIC = [
    op("div", samples=[(LEFT, RIGHT)], reference=np.divide, grad=False),
    op("fmod", samples=[(LEFT, RIGHT)], reference=np.fmod, grad=False),
    op("remainder", samples=[(LEFT, RIGHT)], reference=remainder, grad=False),
    op("floor_divide", samples=[(LEFT, RIGHT)], reference=floored, grad=False),
    op("reciprocal", samples=[(lit(0.0, -0.0, INF, -INF, NAN),)], reference=lambda x: 1 / x, grad=False),
    op("rsqrt", samples=[(lit(0.0, INF, -1.0, NAN),)], reference=lambda x: 1 / np.sqrt(x), grad=False),
    op(
        "pow",
        samples=[
            (LEFT, RIGHT),
            (LEFT, 0),
            (LEFT, 2),
            (LEFT, -1),
            (LEFT, 3.0),
            (LEFT, 0.0),
            (LEFT, INF),
            (2.0, LEFT),
            (0.0, LEFT),
            (1.0, LEFT),
        ],
        reference=np.power,
        grad=False,
    ),
    op(
        "xlogy",
        samples=[(lit(0.0, 0.0, 0.0, 1.0, INF, 0.0), lit(0.0, INF, NAN, 0.0, 0.0, -1.0))],
        grad=False,
        reference=lambda a, b: np.where((a == 0) & ~np.isnan(b), 0, a * np.log(b)),
    ),
    op("maximum", samples=[(LEFT, RIGHT)], reference=np.maximum, grad=False),
    op("fmin", samples=[(LEFT, RIGHT)], reference=np.fmin, grad=False),
    op(
        "atan2",
        samples=[(lit(0.0, -0.0, 0.0, INF, INF), lit(0.0, -0.0, -1.0, INF, -INF))],
        reference=np.arctan2,
        grad=False,
    ),
    op("hypot", samples=[(lit(INF, NAN, 3e4, 0.0), lit(NAN, INF, 4e4, -0.0))], reference=np.hypot, grad=False),
]


# --- integers that overflow -----------------------------------------------------------------------

SIGNED = ("int8", "int16", "int32", "int64")
ONCE: dict[str, Any] = {"dtypes": "b", "grad": False}


def wrapping(fn: Callable[..., int], dtype: str) -> Callable[..., Any]:
    """Exact integers, then the low bits of the type."""
    info = np.iinfo(dtype)

    def wrap(value: int) -> int:
        return (value - int(info.min)) % (1 << info.bits) + int(info.min)

    def reference(*arrays: Any) -> Any:
        each = np.broadcast_arrays(*arrays)
        flat = [wrap(fn(*map(int, row))) for row in zip(*(a.ravel() for a in each), strict=True)]
        return np.array(flat, dtype=np.int64).reshape(each[0].shape)

    return reference


def edges(dtype: str) -> list[int]:
    info = np.iinfo(dtype)
    near = {int(info.min), int(info.min) + 1, int(info.max), int(info.max) - 1, int(info.max) // 2}
    return sorted(near | {v for v in (-3, -1, 0, 1, 2, 7, 100) if v >= info.min})


def square(dtype: str) -> tuple[S, S]:
    """Every pair of edges."""
    values = edges(dtype)
    pairs = [(a, b) for a in values for b in values]
    return lit(*[a for a, _ in pairs], dtype=dtype), lit(*[b for _, b in pairs], dtype=dtype)


def power(a: int, b: int) -> int:
    """Integer powers; of negative exponents only those of 1 and -1 are not zero."""
    if b >= 0:
        return pow(a, b, 1 << 70) if abs(a) > 1 else a**b
    return a ** (b % 2) if abs(a) == 1 else 0


def shifts(dtype: str) -> list[int]:
    info = np.iinfo(dtype)
    return [v for v in (0, 1, info.bits - 1, info.bits, info.bits + 1, 100, -1) if v >= info.min]


def left_shift(bits: int) -> Callable[[int, int], int]:
    return lambda a, b: a << b if 0 <= b < bits else 0


def right_shift(bits: int) -> Callable[[int, int], int]:
    # A distance beyond the width, or below zero, leaves the sign.
    return lambda a, b: a >> (b if 0 <= b < bits else bits)


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def integer_rows(dtype: str) -> list[Any]:
    bits = np.iinfo(dtype).bits
    ends = lit(*edges(dtype), dtype=dtype)
    at = lit(*[a for a in edges(dtype) for _ in shifts(dtype)], dtype=dtype)
    by = lit(*[b for _ in edges(dtype) for b in shifts(dtype)], dtype=dtype)
    exponents = [0, 1, 2, 3, 8, 63, 64, 100, *([-1, -2] if dtype in SIGNED else [])]
    base = lit(*[a for a in edges(dtype) for _ in exponents], dtype=dtype)
    exponent = lit(*[b for _ in edges(dtype) for b in exponents], dtype=dtype)
    # The smallest integer over -1 does not fit: narrow types wrap, int32 and int64 end the process
    # of torch, so they are left out.
    whole = [
        (a, b)
        for a in edges(dtype)
        for b in edges(dtype)
        if b != 0 and not (bits > 16 and b == -1 and a == np.iinfo(dtype).min)
    ]
    top, under = lit(*[a for a, _ in whole], dtype=dtype), lit(*[b for _, b in whole], dtype=dtype)
    zero: Any = ((lit(1, 0, dtype=dtype), lit(0, 0, dtype=dtype)), RuntimeError)
    many = S(values=[int(np.iinfo(dtype).max)] * 300, dtype=dtype)
    same = {"dtype": getattr(vt, dtype)}
    negative: Any = ((ends, -1), RuntimeError)
    return [
        op("add", samples=[square(dtype)], reference=wrapping(lambda a, b: a + b, dtype), **ONCE),
        op("sub", samples=[square(dtype)], reference=wrapping(lambda a, b: a - b, dtype), **ONCE),
        op("mul", samples=[square(dtype)], reference=wrapping(lambda a, b: a * b, dtype), **ONCE),
        op("neg", samples=[(ends,)], reference=wrapping(lambda a: -a, dtype), **ONCE),
        op("abs", samples=[(ends,)], reference=wrapping(abs, dtype), **ONCE),
        op("square", samples=[(ends,)], reference=wrapping(lambda a: a * a, dtype), **ONCE),
        op("pow", samples=[(base, exponent)], reference=wrapping(power, dtype), errors=[negative], **ONCE),
        op("bitwise_left_shift", samples=[(at, by)], reference=wrapping(left_shift(bits), dtype), **ONCE),
        op("bitwise_right_shift", samples=[(at, by)], reference=wrapping(right_shift(bits), dtype), **ONCE),
        op(
            "floor_divide",
            samples=[(top, under)],
            reference=wrapping(lambda a, b: a // b, dtype),
            errors=[zero],
            **ONCE,
        ),
        op(
            "div",
            samples=[(top, under, {"rounding_mode": "trunc"})],
            reference=lambda a, b, rounding_mode: wrapping(truncated, dtype)(a, b),
            **ONCE,
        ),
        op("remainder", samples=[(top, under)], reference=wrapping(lambda a, b: a % b, dtype), errors=[zero], **ONCE),
        op(
            "fmod",
            samples=[(top, under)],
            errors=[zero],
            reference=wrapping(lambda a, b: a - b * truncated(a, b), dtype),
            **ONCE,
        ),
        op("div", samples=[square(dtype)], reference=np.divide, **ONCE),
        # Sums are int64, whatever the integers; with a dtype they wrap in that one.
        op("sum", samples=[(many,)], reference=wrapping_sum("int64"), **ONCE),
        op("sum", samples=[(many, same)], reference=wrapping_sum(dtype), **ONCE),
        op(
            "prod",
            samples=[(lit(*([3] * 45), dtype=dtype),)],
            **ONCE,
            reference=lambda x: wrapping(lambda a: a, "int64")(np.array(3**45, dtype=object)),
        ),
        op("cumsum", samples=[(many, 0)], **ONCE, reference=lambda x, dim: np.cumsum(x.astype(np.int64))),
    ]


def wrapping_sum(dtype: str) -> Callable[..., Any]:
    def reference(x: Any, dtype_: Any = None, **_: Any) -> Any:
        return wrapping(lambda a: a, dtype)(np.array(sum(map(int, x)), dtype=object))

    return reference


INTEGERS = [row for dtype in ("uint8", *SIGNED) for row in integer_rows(dtype)]


# --- conversions ----------------------------------------------------------------------------------

WITHIN = lit(0.0, -0.0, 0.5, -0.5, 0.99, -0.99, 1.5, -1.5, 2.5, 99.9, -99.9, 127.0, -128.0)
CASTS = [
    *[
        op("Tensor.to", samples=[(WITHIN, getattr(vt, dtype))], grad=False,
           reference=lambda x, dtype: np.trunc(x).astype(np.int64))
        for dtype in SIGNED
    ],
    op("Tensor.to", samples=[(lit(0.0, 0.5, 1.5, 99.9, 127.0, 255.0), vt.uint8)], grad=False,
       reference=lambda x, dtype: np.trunc(x).astype(np.int64)),
    op("Tensor.to", samples=[(lit(0.0, -0.0, 1e-6, NAN, INF, -2.0), vt.bool)], grad=False,
       reference=lambda x, dtype: x != 0),
    *[
        # Integers to narrower ones keep the low bits.
        op("Tensor.to", samples=[(lit(*edges("int64"), dtype="int64"), getattr(vt, dtype))],
           reference=lambda x, _, dtype=dtype: wrapping(lambda a: a, dtype)(x), **ONCE)
        for dtype in ("uint8", "int8", "int16", "int32")
    ],
    # Half of the last step rounds to even; what rounds beyond the largest number is infinite.
    op("Tensor.to", samples=[(lit(65504.0, 65519.0, 65520.0, -7e4, 2049.0, 2051.0, 6e-8, 2.9e-8,
                                  dtype="float64"), vt.float16)], **ONCE,
       reference=lambda x, dtype: np.array([65504, 65504, INF, -INF, 2048, 2052, 2.0**-24, 0.0])),
    op("Tensor.to", samples=[(lit(1.00390625, 1.01171875, 3.3895e38, 3.4e38, 9.3e-41,
                                  dtype="float32"), vt.bfloat16)], **ONCE,
       reference=lambda x, dtype: np.array([1.0, 1.015625, 3.3895313892515355e38, INF, 2.0**-133])),
]  # fmt: skip

RECORDS = [*FUNCTIONS, *SUMS, *ARITHMETIC, *INTEGERS, *CASTS]
