"""Smooth, gated and shrinking activations: formulas, and torch's signatures over them.

Does not know how they run; the rectifiers stand in rectifier.py.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..core.errors import ShapeError, fail
from ..formula import Expr, apply, where
from .registry import OPS, F, Op, composite, pointwise

if TYPE_CHECKING:
    from .types import Operand, Tensor

NN = ("nn.functional",)
# Formulas whose public form takes `inplace=`: that form is the composite of the same name.


def exp(x: Expr) -> Expr:
    return apply("exp", x)


def sigmoid(x: Expr) -> Expr:
    return apply("sigmoid", x)


def run(name: str, inplace: bool, *args: Operand) -> Tensor:
    """The operator `name`, writing over its first argument if asked."""
    return Op.write(OPS[name], args) if inplace else OPS[name].apply(args)


def _softplus_grad(g: Expr, x: Expr, beta: float, threshold: float, y: Expr) -> Expr:
    # The derived e^z / (1 + e^z) is inf / inf for large z.
    return where(x * beta > threshold, g, g * sigmoid(x * beta))


pointwise(
    "softplus(Tensor input, number beta=1, number threshold=20)",
    lambda x, beta, threshold: where(x * beta > threshold, x, apply("log1p", exp(x * beta)) / beta),
    allow="f",
    grad={"input": _softplus_grad},
    namespaces=NN,
    method=False,
    inplace=False,
    doc="""`log(1 + e^(beta x)) / beta`, and x itself where `beta x` exceeds the threshold.

    >>> votive.nn.functional.softplus(votive.tensor([-1.0, 2.0]))
    tensor([0.3133, 2.1269])
    """,
    autocast={"cuda": "float32"},
    gate=True,
)

pointwise(
    "logsigmoid(Tensor input)",
    lambda x: apply("minimum", x, 0) - apply("log1p", exp(-abs(x))),
    allow="f",
    grad={"input": lambda g, x, y: g * sigmoid(-x)},
    namespaces=NN,
    method=False,
    inplace=False,
    doc="""`log(sigmoid(input))` without overflow.

    >>> votive.nn.functional.logsigmoid(votive.tensor([-100.0, 0.0]))
    tensor([-100.0000,   -0.6931])
    """,
)


# --- gated units ----------------------------------------------------------------------------------


def _gelu(x: Expr, approximate: str) -> Expr:
    if approximate == "none":
        return 0.5 * x * (1 + apply("erf", x * math.sqrt(0.5)))
    if approximate == "tanh":  # Hendrycks and Gimpel 2016, "Gaussian Error Linear Units", section 2
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
        return 0.5 * x * (1 + apply("tanh", inner))
    fail(RuntimeError, "gelu", f"approximate must be 'none' or 'tanh', got {approximate!r}.")


pointwise(
    "gelu(Tensor input, *, str approximate='none')",
    _gelu,
    allow="f",
    namespaces=NN,
    method=False,
    inplace=False,
    doc="""`x * Phi(x)`, Phi the normal distribution function; or its approximation by tanh.

    >>> votive.nn.functional.gelu(votive.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """,
    gate=True,
    typical=(("none",), ("tanh",)),
)

pointwise(
    "silu(Tensor input)",
    lambda x: x * sigmoid(x),
    allow="fc",
    doc="Input times its own sigmoid.",
    gate=True,
    hidden=True,
)


@composite(namespaces=NN, method=False)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * sigmoid(input)`, elementwise.

    >>> votive.nn.functional.silu(votive.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """
    return run("silu", inplace, input)


def _mish_grad(g: Expr, x: Expr, y: Expr) -> Expr:
    # tanh(log(1 + e)) = w / (w + 2) with w = e (e + 2): every derivative of this form is smooth.
    # Past 20 the tanh is 1 to double precision, and soon the squares below would overflow.
    e = exp(x)
    w = e * (e + 2)
    gate = where(x > 20, 1.0, w / (w + 2))
    slope = where(x > 20, 0.0, 4 * (e * (e + 1)) / ((w + 2) * (w + 2)))
    return g * (gate + x * slope)


pointwise(
    "mish(Tensor input)",
    lambda x: x * apply("tanh", apply("log1p", exp(x))),
    allow="f",
    grad={"input": _mish_grad},
    doc="Input times tanh of its softplus.",
    gate=True,
    hidden=True,
)


@composite(namespaces=NN, method=False)
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * tanh(softplus(input))`, elementwise.

    >>> votive.nn.functional.mish(votive.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """
    return run("mish", inplace, input)


pointwise(
    "_glu(Tensor input, Tensor gate)",
    lambda x, gate: x * sigmoid(gate),
    allow="f",
    doc="Input times the sigmoid of a gate.",
)


@composite(namespaces=NN, method=False)
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second half.

    >>> votive.nn.functional.glu(votive.tensor([2.0, 4.0, 0.0, 0.0]))
    tensor([1., 2.])
    """
    if input.ndim == 0:
        fail(RuntimeError, "glu", "a 0-d tensor has no dimension to halve.")
    size = input.size(dim)
    if size % 2:
        fail(ShapeError, "glu", f"the halved dimension must be even, dim {dim} has size {size}.")
    return F._glu(input.narrow(dim, 0, size // 2), input.narrow(dim, size // 2, size // 2))


pointwise(
    "swiglu(Tensor gate, Tensor up)",
    lambda gate, up: gate * sigmoid(gate) * up,
    allow="f",
    namespaces=NN,
    method=False,
    inplace=False,
    doc="""`silu(gate) * up`, elementwise: the gated unit of Shazeer 2020 in one formula.

    >>> votive.nn.functional.swiglu(votive.tensor([-1.0, 2.0]), votive.tensor([1.0, 10.0]))
    tensor([-0.2689, 17.6159])
    """,
    gate=True,
)


# --- piecewise linear and rational ----------------------------------------------------------------

pointwise(
    "hardsigmoid(Tensor input)",
    lambda x: apply("minimum", apply("maximum", x + 3, 0), 6) / 6,
    allow="f",
    grad={"input": lambda g, x, y: where((x > -3) & (x < 3), g / 6, 0)},
    doc="A line from 0 at -3 to 1 at 3.",
    hidden=True,
)


@composite(namespaces=NN, method=False)
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """`min(max(input + 3, 0), 6) / 6`, elementwise.

    >>> votive.nn.functional.hardsigmoid(votive.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return run("hardsigmoid", inplace, input)


pointwise(
    "hardswish(Tensor input)",
    lambda x: x * apply("minimum", apply("maximum", x + 3, 0), 6) / 6,
    allow="f",
    grad={"input": lambda g, x, y: where(x <= -3, 0, where(x < 3, g * (x / 3 + 0.5), g))},
    doc="Input times its hardsigmoid.",
    gate=True,
    hidden=True,
)


@composite(namespaces=NN, method=False)
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * hardsigmoid(input)`, elementwise.

    >>> votive.nn.functional.hardswish(votive.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000, 0.6667, 4.0000])
    """
    return run("hardswish", inplace, input)


def _outside(g: Expr, x: Expr, lambd: float, y: Expr) -> Expr:
    """The gradient of both shrinking functions; 0 where input is NaN, as in torch."""
    return where((x < -lambd) | (x > lambd), g, 0)


pointwise(
    "hardshrink(Tensor input, number lambd=0.5)",
    lambda x, lambd: where((x >= -lambd) & (x <= lambd), 0, x),
    allow="f",
    grad={"input": _outside},
    inplace=False,
    also=("nn.functional.hardshrink",),
    doc="""0 where input lies within `-lambd..lambd`, else input.

    >>> votive.hardshrink(votive.tensor([-1.0, 0.25, 2.0]))
    tensor([-1.,  0.,  2.])
    """,
)


def _softshrink(x: Expr, lambd: float) -> Expr:
    if not lambd >= 0:
        fail(RuntimeError, "softshrink", f"lambd must not be negative, got {lambd}.")
    return where((x >= -lambd) & (x <= lambd), 0, x - lambd * apply("sign", x))


pointwise(
    "softshrink(Tensor input, number lambd=0.5)",
    _softshrink,
    allow="f",
    grad={"input": _outside},
    namespaces=NN,
    method=False,
    inplace=False,
    doc="""Input moved toward 0 by `lambd`, and 0 where it would cross.

    >>> votive.nn.functional.softshrink(votive.tensor([-1.0, 0.25, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """,
)

pointwise(
    "tanhshrink(Tensor input)",
    lambda x: x - apply("tanh", x),
    dtypes="float",
    allow="ifc",
    # The derived 1 - (1 - tanh^2) rounds small gradients away.
    grad={"input": lambda g, x, y: g * (apply("tanh", x) * apply("tanh", x))},
    namespaces=NN,
    method=False,
    inplace=False,
    out=False,
    doc="""`input - tanh(input)`, elementwise.

    >>> votive.nn.functional.tanhshrink(votive.tensor([0.0, 2.0]))
    tensor([0.0000, 1.0360])
    """,
)

pointwise(
    "softsign(Tensor input)",
    lambda x: x / (1 + abs(x)),
    dtypes="float",
    allow="ifc",
    namespaces=NN,
    method=False,
    inplace=False,
    out=False,
    doc="""`input / (1 + |input|)`, elementwise.

    >>> votive.nn.functional.softsign(votive.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """,
)
