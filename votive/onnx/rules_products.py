"""How products and their activations are written as ONNX."""

from __future__ import annotations

from typing import Any

from ..compiler.graph import Value
from ..core import dtype as dt
from .formulas import FormulaWriter
from .translate import Call, translates


@translates("matmul")
def matmul(c: Call, x: Value, y: Value) -> str:
    return c.op("MatMul", c.name(x), c.name(y))


def linear_of(c: Call, x: Value, weight: Value, bias: Value | None) -> str:
    """x @ weight.T + bias."""
    if len(c.shape(x)) == 2 and len(c.shape(weight)) == 2 and c.dtype(x).is_floating_point:
        return c.op("Gemm", c.name(x), c.name(weight), c.maybe(bias), transB=1)
    turned = c.name(weight)
    if len(c.shape(weight)) == 2:
        turned = c.op("Transpose", turned, perm=[1, 0])
    made = c.op("MatMul", c.name(x), turned)
    return made if bias is None else c.op("Add", made, c.name(bias))


@translates("linear")
def linear(c: Call, x: Value, weight: Value, bias: Value | None) -> str:
    return linear_of(c, x, weight, bias)


@translates("_linear_add")
def linear_add(c: Call, x: Value, weight: Value, residual: Value) -> str:
    return c.op("Add", linear_of(c, x, weight, None), c.name(residual))


def activated(c: Call, x: str, activation: str, dtype: dt.dtype) -> str:
    """An activation by the name that fused operators give it."""
    from ..ops.registry import OPS

    name, options = ("gelu", ("tanh",)) if activation == "gelu_tanh" else (activation, ())
    op = OPS[name]
    statics = tuple(a.default for a in op.schema.args if not a.is_runtime)
    formula = op.formula(options or statics)
    return FormulaWriter(c.b, dtype, {formula.params[0]: (x, False)}).write(formula.body)[0]


@translates("_linear_activated")
def linear_activated(c: Call, x: Value, weight: Value, bias: Value | None, activation: str) -> str:
    return activated(c, linear_of(c, x, weight, bias), activation, c.dtype(x))


@translates("_feed_forward")
def feed_forward(
    c: Call, x: Value, w1: Value, b1: Value | None, w2: Value, b2: Value | None, activation: str
) -> list[str]:
    inner = activated(c, linear_of(c, x, w1, b1), activation, c.dtype(x))
    made = c.op("MatMul", inner, c.op("Transpose", c.name(w2), perm=[1, 0]))
    return [made if b2 is None else c.op("Add", made, c.name(b2))]


@translates("_addmm", "_addbmm")
def addmm(c: Call, x: Value, a: Value, b: Value, beta: Any, alpha: Any) -> str:
    made = c.op("MatMul", c.name(a), c.name(b))
    if c.node.op.name == "_addbmm" and len(c.out_shape) == 2:
        made = c.op("ReduceSum", made, c.b.constant([0]), keepdims=0)
    if alpha != 1:
        made = c.op("Mul", made, c.b.number(alpha, c.dtype(x)))
    if beta == 0:
        return made
    added = c.name(x) if beta == 1 else c.op("Mul", c.name(x), c.b.number(beta, c.dtype(x)))
    return c.op("Add", made, added)
