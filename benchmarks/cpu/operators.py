"""Operators on 4 thousand, 1 million and 16 million elements, in several layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .case import Case, ints, randn, tensor, uniform

SIDES = {"4K": 64, "1M": 1024, "16M": 4096}

F = Callable[..., Any]
UNARY: dict[str, F] = {
    "neg": lambda m, x: -x,
    "abs": lambda m, x: x.abs(),
    "square": lambda m, x: x.square(),
    "reciprocal": lambda m, x: x.reciprocal(),
    "exp": lambda m, x: x.exp(),
    "expm1": lambda m, x: x.expm1(),
    "sin": lambda m, x: x.sin(),
    "tanh": lambda m, x: x.tanh(),
    "erf": lambda m, x: x.erf(),
    "sigmoid": lambda m, x: x.sigmoid(),
    "relu": lambda m, x: x.relu(),
    "gelu": lambda m, x: m.nn.functional.gelu(x),
    "gelu tanh": lambda m, x: m.nn.functional.gelu(x, approximate="tanh"),
    "silu": lambda m, x: m.nn.functional.silu(x),
    "leaky_relu": lambda m, x: m.nn.functional.leaky_relu(x),
    "elu": lambda m, x: m.nn.functional.elu(x),
    "softplus": lambda m, x: m.nn.functional.softplus(x),
    "hardswish": lambda m, x: m.nn.functional.hardswish(x),
    "pow 2": lambda m, x: x**2,
    "pow 3": lambda m, x: x**3,
    "floor": lambda m, x: x.floor(),
    "round": lambda m, x: x.round(),
    "sign": lambda m, x: x.sign(),
    "clamp": lambda m, x: x.clamp(-1, 1),
    "isnan": lambda m, x: x.isnan(),
    "add scalar": lambda m, x: x + 1.5,
    "mul scalar": lambda m, x: x * 1.5,
    "gt scalar": lambda m, x: x > 0,
    "to float64": lambda m, x: x.to(m.float64),
    "to bfloat16": lambda m, x: x.to(m.bfloat16),
    "to int64": lambda m, x: x.to(m.int64),
    "clone": lambda m, x: x.clone(),
    "contiguous": lambda m, x: x.contiguous(),
    "dropout": lambda m, x: m.nn.functional.dropout(x, 0.5),
}
POSITIVE: dict[str, F] = {
    "log": lambda m, x: x.log(),
    "log1p": lambda m, x: x.log1p(),
    "sqrt": lambda m, x: x.sqrt(),
    "rsqrt": lambda m, x: x.rsqrt(),
    "pow 0.3": lambda m, x: x**0.3,
}
BINARY: dict[str, F] = {
    "add": lambda m, x, y: x + y,
    "sub": lambda m, x, y: x - y,
    "mul": lambda m, x, y: x * y,
    "div": lambda m, x, y: x / y,
    "maximum": lambda m, x, y: m.maximum(x, y),
    "atan2": lambda m, x, y: m.atan2(x, y),
    "eq": lambda m, x, y: x == y,
    "lt": lambda m, x, y: x < y,
    "where": lambda m, x, y: m.where(x > 0, x, y),
    "lerp": lambda m, x, y: m.lerp(x, y, 0.3),
    "addcmul": lambda m, x, y: m.addcmul(x, x, y, value=0.5),
    "add_": lambda m, x, y: x.add_(y),
    "mul_": lambda m, x, y: x.mul_(y),
    "copy_": lambda m, x, y: x.copy_(y),
    "masked_fill": lambda m, x, y: x.masked_fill(y > 0.5, 0.0),
    "mse_loss": lambda m, x, y: m.nn.functional.mse_loss(x, y.expand(x.shape)),
}
REDUCE: dict[str, F] = {
    "sum": lambda m, x: x.sum(),
    "mean": lambda m, x: x.mean(),
    "max": lambda m, x: x.max(),
    "argmax": lambda m, x: x.argmax(),
    "norm": lambda m, x: x.norm(),
    "prod": lambda m, x: x.prod(),
    "isfinite all": lambda m, x: x.isfinite().all(),
    "sum -1": lambda m, x: x.sum(-1),
    "sum 0": lambda m, x: x.sum(0),
    "mean -1": lambda m, x: x.mean(-1),
    "amax -1": lambda m, x: x.amax(-1),
    "max 0": lambda m, x: x.max(0),
    "argmax -1": lambda m, x: x.argmax(-1),
    "var -1": lambda m, x: x.var(-1),
    "std 0": lambda m, x: x.std(0),
    "logsumexp -1": lambda m, x: x.logsumexp(-1),
    "softmax -1": lambda m, x: x.softmax(-1),
    "softmax 0": lambda m, x: x.softmax(0),
    "log_softmax -1": lambda m, x: x.log_softmax(-1),
    "layer_norm": lambda m, x: m.nn.functional.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda m, x: m.nn.functional.rms_norm(x, x.shape[-1:]),
    "cumsum -1": lambda m, x: x.cumsum(-1),
    "cumsum 0": lambda m, x: x.cumsum(0),
}
MOVE: dict[str, F] = {
    "cat 0": lambda m, x, i, j: m.cat([x, x], 0),
    "cat 1": lambda m, x, i, j: m.cat([x, x], 1),
    "stack": lambda m, x, i, j: m.stack([x, x]),
    "flip": lambda m, x, i, j: x.flip(0, 1),
    "roll": lambda m, x, i, j: x.roll(1, 1),
    "tril": lambda m, x, i, j: x.tril(),
    "repeat": lambda m, x, i, j: x.repeat(2, 1),
    "index_select": lambda m, x, i, j: x.index_select(0, i),
    "x[i]": lambda m, x, i, j: x[i],
    "embedding": lambda m, x, i, j: m.nn.functional.embedding(i, x),
    "gather": lambda m, x, i, j: x.gather(1, j),
    "scatter_add": lambda m, x, i, j: m.zeros_like(x).scatter_add_(1, j, x),
    "index_add": lambda m, x, i, j: m.zeros_like(x).index_add_(0, i, x),
    "x[mask]": lambda m, x, i, j: x[x > 0],
    "nonzero": lambda m, x, i, j: (x > 0).nonzero(),
    "sort": lambda m, x, i, j: x.sort(-1),
    "topk": lambda m, x, i, j: x.topk(10, -1),
    "cross_entropy": lambda m, x, i, j: m.nn.functional.cross_entropy(x, i),
    "pad": lambda m, x, i, j: m.nn.functional.pad(x, (1, 1, 1, 1)),
    "add int64": lambda m, x, i, j: j + j,
    "bitwise_and int64": lambda m, x, i, j: j & j,
    "sum int64": lambda m, x, i, j: j.sum(),
    "int64 to float32": lambda m, x, i, j: j.to(m.float32),
}
CREATE: dict[str, F] = {
    "zeros": lambda m, n: m.zeros(n, n),
    "ones": lambda m, n: m.ones(n, n),
    "arange": lambda m, n: m.arange(n * n),
    "rand": lambda m, n: m.rand(n, n),
    "randn": lambda m, n: m.randn(n, n),
}
BF16: dict[str, F] = {
    "add": lambda m, x: x + x,
    "mul": lambda m, x: x * x,
    "gelu": lambda m, x: m.nn.functional.gelu(x),
    "silu": lambda m, x: m.nn.functional.silu(x),
    "sum": lambda m, x: x.sum(),
    "softmax -1": lambda m, x: x.softmax(-1),
    "rms_norm": lambda m, x: m.nn.functional.rms_norm(x, x.shape[-1:]),
    "to float32": lambda m, x: x.to(m.float32),
    "t contiguous": lambda m, x: x.t().contiguous(),
}


def _case(name: str, fn: F, make: Callable[[Any], tuple[Any, ...]], seconds: float) -> Case:
    def setup(m: Any) -> Callable[[], object]:
        values = make(m)
        return lambda: fn(m, *values)

    return Case(name, setup, seconds)


def _transposed(m: Any, array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    return (tensor(m, array).t(),)


def cases(scale: str) -> Iterator[Case]:
    """Operators × sizes × layouts."""
    sizes = {"full": ("4K", "1M", "16M"), "quick": ("4K", "1M"), "tiny": ("tiny",)}[scale]
    for size in sizes:
        yield from _of_size(size, {**SIDES, "tiny": 12}[size], scale)


def _of_size(size: str, n: int, scale: str) -> Iterator[Case]:
    seconds = {"full": 0.3, "quick": 0.08, "tiny": 0.0}[scale]
    x, y = randn(n, n), uniform(n, n, seed=1)
    row = uniform(n)

    def case(name: str, layout: str, fn: F, make: Any) -> Case:
        return _case(f"{name} {size} {layout}".strip(), fn, make, seconds)

    strided = scale != "quick" or size == "1M"
    for table, values in ((UNARY, x), (POSITIVE, y), (REDUCE, x)):
        for name, fn in table.items():
            if name not in ("contiguous",):
                yield case(name, "", fn, lambda m, v=values: (tensor(m, v),))
            if strided:
                yield case(name, "transposed", fn, lambda m, v=values: _transposed(m, v))
    for name, fn in BINARY.items():
        # Written in place: not the arrays that others read.
        own = (lambda v: v.copy()) if name.endswith("_") else (lambda v: v)
        yield case(name, "", fn, lambda m, own=own: (tensor(m, own(x)), tensor(m, y)))
        if strided:
            yield case(name, "broadcast", fn, lambda m, own=own: (tensor(m, own(x)), tensor(m, row)))
            yield case(name, "mixed", fn, lambda m, own=own: (tensor(m, own(x)), tensor(m, y).t()))
    i, j = ints(n, high=n), ints(n, n, high=n)
    for name, fn in MOVE.items():
        yield case(name, "", fn, lambda m: (tensor(m, x), tensor(m, i), tensor(m, j)))
        if strided and "int" not in name:
            yield case(name, "transposed", fn, lambda m: (*_transposed(m, x), tensor(m, i), tensor(m, j)))
    for name, fn in CREATE.items():
        yield case(name, "", fn, lambda m: (n,))
    half = randn(n, n, dtype="bfloat16")
    for name, fn in BF16.items():
        yield case(f"{name} bf16", "", fn, lambda m: (tensor(m, half),))
