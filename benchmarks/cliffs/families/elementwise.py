"""Elementwise operators: one, two operands with broadcasting, and chains of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..draw import Draw
from ..family import Drawn, family
from ..side import Side, Work

ANY = ["abs", "neg", "exp", "tanh", "sigmoid", "sin", "cos", "relu", "square", "sign", "erf", "floor", "round"]
POSITIVE = ["log", "sqrt", "rsqrt", "reciprocal", "log1p", "log2"]
ACTIVATIONS = [
    "gelu",
    "silu",
    "elu",
    "selu",
    "mish",
    "softplus",
    "leaky_relu",
    "hardswish",
    "hardsigmoid",
    "relu6",
    "logsigmoid",
    "softsign",
    "celu",
]
BINARY = ["add", "sub", "mul", "div", "maximum", "minimum", "atan2", "pow"]
TESTS = ["lt", "eq", "ge"]
LINKS: dict[str, Callable[..., Any]] = {
    "add": lambda m, x, y: x + y,
    "mul": lambda m, x, y: x * y,
    "sub": lambda m, x, y: x - y,
    "scale": lambda m, x, y: x * 0.5 + 1.0,
    "tanh": lambda m, x, y: m.tanh(x),
    "exp": lambda m, x, y: m.exp(-x.abs()),
    "sigmoid": lambda m, x, y: m.sigmoid(x),
    "relu": lambda m, x, y: m.relu(x),
    "clamp": lambda m, x, y: x.clamp(-1.0, 1.0),
    "square": lambda m, x, y: x * x,
    "div": lambda m, x, y: x / (y.abs() + 1.0),
}


def _unary(d: Draw) -> Drawn:
    return d.pick(ANY * 2 + POSITIVE * 2 + ACTIVATIONS * 2), {"x": d.array(1, 4)}


@family("unary", _unary, weight=3)
def _build_unary(s: Side) -> Work:
    op = s.spec.op
    x = s(s.spec["x"], "positive" if op in POSITIVE else "normal")
    fn = getattr(s.F if op in ACTIVATIONS else s.m, op)
    return lambda: fn(x)


def _binary(d: Draw) -> Drawn:
    x = d.array(1, 4)
    return d.pick(BINARY * 3 + TESTS), {"x": x, "y": d.against(x)}


@family("binary", _binary, weight=3)
def _build_binary(s: Side) -> Work:
    fn = getattr(s.m, s.spec.op)
    if s.spec.op in TESTS:
        x, y = s.plain(s.spec["x"]), s.plain(s.spec["y"])
        if s.spec.grad:  # a comparison has none: that of its choice is asked for
            v = s(s.spec["x"])
            return lambda: s.m.where(fn(x, y), v, 0.0)
        return lambda: fn(x, y)
    fill = "positive" if s.spec.op in ("div", "pow", "atan2") else "normal"
    a, b = s(s.spec["x"], fill), s(s.spec["y"], fill)
    return lambda: fn(a, b)


def _chain(d: Draw) -> Drawn:
    x = d.array(1, 4)
    links = [d.pick(list(LINKS)) for _ in range(d.pick((2, 2, 3, 4, 6)))]
    return "+".join(links), {"x": x, "y": d.against(x)}


@family("chain", _chain, weight=2)
def _build_chain(s: Side) -> Work:
    x, y = s(s.spec["x"]), s(s.spec["y"])
    links = [LINKS[name] for name in s.spec.op.split("+")]

    def run() -> Any:
        value = x
        for link in links:
            value = link(s.m, value, y)
        return value

    return run


def _where(d: Draw) -> Drawn:
    x = d.array(1, 4)
    return d.pick(("where", "masked_fill", "lerp", "addcmul", "clamp", "cast", "isnan")), {"x": x, "y": d.against(x)}


@family("choice", _where)
def _build_where(s: Side) -> Work:
    op, m = s.spec.op, s.m
    x = s(s.spec["x"])
    if op in ("where", "masked_fill"):
        mask = s.plain(s.spec["y"], "bool")
        return (lambda: m.where(mask, x, 0.5)) if op == "where" else (lambda: x.masked_fill(mask, -1.0))
    if op == "clamp":
        return lambda: x.clamp(-0.5, 0.7)
    if op == "cast":
        target = m.bfloat16 if s.spec.dtype == "float32" else m.float32
        return lambda: x.to(target)
    if op == "isnan":
        return (lambda: m.nan_to_num(x)) if s.spec.grad else (lambda: m.isnan(x))
    y = s(s.spec["y"])
    return (lambda: m.lerp(x, y, 0.3)) if op == "lerp" else (lambda: m.addcmul(x, y, y, value=0.5))
