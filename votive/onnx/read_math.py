"""What ONNX's elementwise operators, products and reductions mean."""

from __future__ import annotations

from functools import reduce
from typing import Any

from ..core import dtype as dt
from ..ops.registry import F
from ..tensor import Tensor
from .read import Attributes, is_float, reads, whole

A = Attributes

for _name, _fn in {
    "Abs": "abs",
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "Log": "log",
    "Neg": "neg",
    "Reciprocal": "reciprocal",
    "Round": "round",
    "Sigmoid": "sigmoid",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
    "Relu": "relu",
    "IsNaN": "isnan",
    "Not": "logical_not",
    "Softplus": "softplus",
    "BitwiseNot": "bitwise_not",
    "Mish": "mish",
    "Add": "add",
    "Sub": "sub",
    "Mul": "mul",
    "And": "logical_and",
    "Or": "logical_or",
    "Xor": "logical_xor",
    "Equal": "eq",
    "Less": "lt",
    "LessOrEqual": "le",
    "Greater": "gt",
    "GreaterOrEqual": "ge",
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "MatMul": "matmul",
    "Det": "det",
    "Softsign": "softsign",
    "HardSwish": "hardswish",
}.items():

    @reads(_name)
    def _same(a: A, *inputs: Tensor, fn: str = _fn) -> Any:
        return getattr(F, fn)(*inputs)


@reads("Identity")
def identity(a: A, x: Any) -> Any:
    return x


@reads("Div")
def div(a: A, x: Tensor, y: Tensor) -> Any:
    return F.div(x, y) if is_float(x) else F.div(x, y, rounding_mode="trunc")


@reads("Mod")
def mod(a: A, x: Tensor, y: Tensor) -> Any:
    return F.fmod(x, y) if a("fmod", 0) else F.remainder(x, y)


@reads("Pow")
def power(a: A, x: Tensor, y: Tensor) -> Any:
    return F.to(F.pow(x, y), x.dtype)


@reads("BitShift")
def bit_shift(a: A, x: Tensor, y: Tensor) -> Any:
    return F.bitwise_left_shift(x, y) if a("direction") == "LEFT" else F.bitwise_right_shift(x, y)


@reads("IsInf")
def isinf(a: A, x: Tensor) -> Any:
    up, down = a("detect_positive", 1), a("detect_negative", 1)
    if up and down:
        return F.isinf(x)
    return F.isposinf(x) if up else F.isneginf(x) if down else F.zeros_like(x, dtype=dt.bool_)


@reads("Max")
def maximum(a: A, *xs: Tensor) -> Any:
    return reduce(F.maximum, xs)


@reads("Min")
def minimum(a: A, *xs: Tensor) -> Any:
    return reduce(F.minimum, xs)


@reads("Sum")
def total(a: A, *xs: Tensor) -> Any:
    return reduce(F.add, xs)


@reads("Mean")
def mean_of(a: A, *xs: Tensor) -> Any:
    return reduce(F.add, xs) / len(xs)


@reads("Where")
def where(a: A, test: Tensor, x: Tensor, y: Tensor) -> Any:
    return F.where(test, x, y)


@reads("Clip")
def clip(a: A, x: Tensor, low: Any = None, high: Any = None) -> Any:
    low = a("min") if low is None else low
    high = a("max") if high is None else high
    if low is not None:
        x = F.maximum(x, low) if isinstance(low, Tensor) else F.clamp(x, min=low)
    if high is not None:
        x = F.minimum(x, high) if isinstance(high, Tensor) else F.clamp(x, max=high)
    return x


@reads("Gelu")
def gelu(a: A, x: Tensor) -> Any:
    return F.gelu(x, approximate=a("approximate", "none"))


@reads("Elu")
def elu(a: A, x: Tensor) -> Any:
    return F.where(x > 0, x, a("alpha", 1.0) * F.expm1(x))


@reads("Celu")
def celu(a: A, x: Tensor) -> Any:
    alpha = a("alpha", 1.0)
    return F.clamp(x, min=0) + F.clamp(alpha * F.expm1(x / alpha), max=0)


@reads("Selu")
def selu(a: A, x: Tensor) -> Any:
    alpha, gamma = a("alpha", 1.67326319217681884765625), a("gamma", 1.05070102214813232421875)
    return gamma * F.where(x > 0, x, alpha * F.expm1(x))


@reads("LeakyRelu")
def leaky_relu(a: A, x: Tensor) -> Any:
    return F.where(x >= 0, x, x * a("alpha", 0.01))


@reads("ThresholdedRelu")
def thresholded(a: A, x: Tensor) -> Any:
    return F.where(x > a("alpha", 1.0), x, F.zeros_like(x))


@reads("PRelu")
def prelu(a: A, x: Tensor, slope: Tensor) -> Any:
    return F.where(x >= 0, x, x * slope)


@reads("HardSigmoid")
def hardsigmoid(a: A, x: Tensor) -> Any:
    return F.clamp(a("alpha", 0.2) * x + a("beta", 0.5), 0, 1)


@reads("Shrink")
def shrink(a: A, x: Tensor) -> Any:
    bias, lambd = a("bias", 0.0), a("lambd", 0.5)
    return F.to(F.where(x < -lambd, x + bias, F.where(x > lambd, x - bias, F.zeros_like(x))), x.dtype)


@reads("Swish")
def swish(a: A, x: Tensor) -> Any:
    return x * F.sigmoid(a("alpha", 1.0) * x)


@reads("Cast", "CastLike")
def cast(a: A, x: Tensor, like: Tensor | None = None) -> Any:
    from .load import dtype_of

    dtype = dtype_of(a("to")) if like is None else like.dtype
    if dtype not in dt.FLOAT8 or not is_float(x):
        return F.to(x, dtype)
    # Beyond the largest number: that number, or what the type has for infinity.
    top = float(dt.finfo(dtype).max)
    outside = F.isfinite(x) & (F.abs(x) > top) if a("saturate", 1) else F.abs(x) > top
    if dtype is dt.float8_e5m2 and not a("saturate", 1):
        return F.to(x, dtype)
    if a("saturate", 1):
        bound = F.clamp(x, -top, top)
        return F.to(F.where(F.isinf(x), bound, F.where(outside, bound, x)), dtype)
    return F.to(F.where(outside, F.full_like(x, float("nan")), x), dtype)


@reads("Gemm")
def gemm(a: A, x: Tensor, y: Tensor, z: Tensor | None = None) -> Any:
    x = x.t() if a("transA", 0) else x
    if a("transB", 0) and a("alpha", 1.0) == 1 and a("beta", 1.0) == 1 and (z is None or z.ndim == 1):
        return F.linear(x, y, z)
    made = F.matmul(x, y.t() if a("transB", 0) else y)
    made = made if a("alpha", 1.0) == 1 else made * a("alpha")
    if z is None:
        return made
    return made + (z if a("beta", 1.0) == 1 else z * a("beta"))


@reads("Einsum")
def einsum(a: A, *xs: Tensor) -> Any:
    return F.einsum(a("equation"), *xs)


# --- reductions -----------------------------------------------------------------------------------


def axes_of(a: A, x: Tensor, axes: Tensor | None) -> tuple[int, ...] | None:
    """The dimensions to reduce; None where nothing is to be done."""
    named = whole(axes) if axes is not None else a("axes")
    if not named:
        return None if a("noop_with_empty_axes", 0) else tuple(range(x.ndim))
    return tuple(int(d) % x.ndim for d in named)


def _square(x: Tensor) -> Tensor:
    return F.mul(x, x)


_REDUCE = {
    "ReduceSum": (None, "sum", None),
    "ReduceMean": (None, "mean", None),
    "ReduceMax": (None, "amax", None),
    "ReduceMin": (None, "amin", None),
    "ReduceL1": ("abs", "sum", None),
    "ReduceL2": (_square, "sum", "sqrt"),
    "ReduceSumSquare": (_square, "sum", None),
    "ReduceLogSum": (None, "sum", "log"),
    "ReduceLogSumExp": (None, "logsumexp", None),
}

for _name, _parts in _REDUCE.items():

    @reads(_name)
    def _reduce(a: A, x: Tensor, axes: Tensor | None = None, parts: Any = _parts) -> Any:
        dims, (before, fn, after) = axes_of(a, x, axes), parts
        keep, dtype = bool(a("keepdims", 1)), x.dtype
        if dims is None:
            # Nothing is reduced, but what is done to each value is.
            return (
                getattr(F, after)(x if before is None else F.abs(x) if before == "abs" else before(x))
                if after
                else (x if before is None else F.abs(x) if before == "abs" else before(x))
            )
        if before is not None:
            x = F.abs(x) if before == "abs" else before(x)
        if dtype is dt.bool_:
            return F.to(getattr(F, fn)(F.to(x, dt.uint8), dims, keep), dt.bool_)
        if fn in ("mean", "logsumexp") and not dtype.is_floating_point:
            x = F.to(x, dt.float64)
        if 0 in x.shape and fn in ("amax", "amin") and any(x.shape[d] == 0 for d in dims):
            low = dtype.is_floating_point and float("-inf") if fn == "amax" else float("inf")
            shape = [1 if d in dims else n for d, n in enumerate(x.shape) if keep or d not in dims]
            info = dt.iinfo(dtype) if not dtype.is_floating_point else None
            value = (info.min if fn == "amax" else info.max) if info else low
            return F.full(shape, value, dtype=dtype)
        found = getattr(F, fn)(x, dims, keep) if dims or fn != "logsumexp" else x
        if not dims:
            found = x
        return F.to(getattr(F, after)(found) if after else found, dtype)


@reads("ReduceProd")
def reduce_prod(a: A, x: Tensor, axes: Tensor | None = None) -> Any:
    dims, keep = axes_of(a, x, axes), bool(a("keepdims", 1))
    if dims is None:
        return x
    for d in sorted(dims, reverse=True):
        x = F.to(F.prod(x, d, keep), x.dtype)
    return x


@reads("ArgMax", "ArgMin")
def argument(a: A, x: Tensor) -> Any:
    axis, keep = a("axis", 0), bool(a("keepdims", 1))
    find = F.argmax if a.op == "ArgMax" else F.argmin
    if a("select_last_index", 0):
        return x.shape[axis] - 1 - find(F.flip(x, (axis,)), axis, keep)
    return find(x, axis, keep)


@reads("CumSum")
def cumsum(a: A, x: Tensor, axis: Tensor) -> Any:
    return _scanned(a, x, int(axis), F.cumsum, 0)


@reads("CumProd")
def cumprod(a: A, x: Tensor, axis: Tensor) -> Any:
    return _scanned(a, x, int(axis), F.cumprod, 1)


def _scanned(a: A, x: Tensor, dim: int, scan: Any, start: int) -> Any:
    if a("reverse", 0):
        x = F.flip(x, (dim,))
    found = F.to(scan(x, dim), x.dtype)
    if a("exclusive", 0):
        first = F.full_like(F.narrow(found, dim, 0, 1), start)
        found = F.cat([first, F.narrow(found, dim, 0, found.shape[dim] - 1)], dim)
    return F.flip(found, (dim,)) if a("reverse", 0) else found


@reads("Softmax", "LogSoftmax", "Hardmax")
def softmax(a: A, x: Tensor) -> Any:
    fn = {"Softmax": F.softmax, "LogSoftmax": F.log_softmax, "Hardmax": _hardmax}[a.op]
    if a.opset >= 13:
        return fn(x, a("axis", -1))
    axis = a("axis", 1) % max(x.ndim, 1)
    flat = x.reshape(_product(x.shape[:axis]), -1)  # before opset 13 the rest counts as one dimension
    return fn(flat, -1).reshape(x.shape)


def _product(sizes: Any) -> int:
    return reduce(lambda p, n: p * n, sizes, 1)


def _hardmax(x: Tensor, dim: int) -> Any:
    return F.zeros_like(x).scatter_(dim, F.argmax(x, dim, True), 1)


@reads("TopK")
def topk(a: A, x: Tensor, k: Tensor | None = None) -> Any:
    count = int(k) if k is not None else a("k")
    found = F.topk(x, count, a("axis", -1), bool(a("largest", 1)), True)
    return found[0], found[1]


@reads("Dropout")
def dropout(a: A, x: Tensor, ratio: Tensor | None = None, training: Tensor | None = None) -> Any:
    p = float(ratio) if ratio is not None else a("ratio", 0.5)
    if training is not None and bool(training) and p:
        raise NotImplementedError("Dropout in training mode is not supported in ONNX files.")
    return (x, F.ones_like(x, dtype=dt.bool_))[: a.outputs]


@reads("LpNormalization")
def lp_normalization(a: A, x: Tensor) -> Any:
    norm = F.norm(x, a("p", 2), a("axis", -1), True)
    return F.where(norm == 0, F.zeros_like(x), x / F.where(norm == 0, F.ones_like(norm), norm))


@reads("MeanVarianceNormalization")
def mean_variance(a: A, x: Tensor) -> Any:
    dims = tuple(a("axes", [0, 2, 3]))
    centred = x - F.mean(x, dims, True)
    return centred / (F.sqrt(F.mean(centred * centred, dims, True)) + 1e-9)
