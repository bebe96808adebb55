"""Activation functions: formulas, and torch's signatures over them. Do not know how they run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..core import dtype as dt
from ..core.errors import ShapeError, fail
from ..formula import Expr, apply, where
from .registry import OPS, F, Op, composite, pointwise

NN = ("nn.functional",)
# Formulas whose public form takes `inplace=`: that form is the composite of the same name.
HIDDEN: dict[str, Any] = {"namespaces": (), "method": False, "inplace": False, "out": False}


def exp(x: Expr) -> Expr:
    return apply("exp", x)


def sigmoid(x: Expr) -> Expr:
    return apply("sigmoid", x)


def _run(name: str, inplace: bool, *args: Any) -> Any:
    return Op.inplace(OPS[name], args) if inplace else OPS[name](*args)


def inplace_form(fn: Callable[..., Any], *also: str) -> None:
    """Declare `fn(..., inplace=True)` under the name with an underscore."""

    def run(input: Any, *args: Any, **kwargs: Any) -> Any:
        return fn(input, *args, **kwargs, inplace=True)

    run.__doc__ = f"In-place form of `{fn.__name__}`."
    composite(run, name=f"{fn.__name__}_", namespaces=NN, method=False, also=also)


# --- rectifiers -----------------------------------------------------------------------------------

pointwise(
    "relu(Tensor input)",
    lambda x: apply("maximum", x, 0),
    allow="if",
    grad={"input": lambda g, x, y: where(y <= 0, 0, g)},  # NaN passes the gradient, as in torch
    doc="""`max(input, 0)`, elementwise.

    >>> votive.relu(votive.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """,
)


@composite(namespaces=NN, method=False)
def relu(input: Any, inplace: bool = False) -> Any:
    """`max(input, 0)`, elementwise.

    >>> votive.nn.functional.relu(votive.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return _run("relu", inplace, input)


inplace_form(relu)

pointwise(
    "hardtanh(Tensor input, number min_val, number max_val)",
    lambda x, lo, hi: apply("minimum", apply("maximum", x, lo), hi),
    allow="if",
    grad={"input": lambda g, x, lo, hi, y: where((y <= lo) | (y >= hi), 0, g)},
    doc="Input limited to min_val..max_val.",
    **HIDDEN,
)


def _in_type_of(input: Any, *numbers: Any) -> tuple[Any, ...]:
    """Numbers as torch takes them: truncated beside an integer tensor."""
    if input._spec.dtype.category != dt.INT:
        return numbers
    return tuple(int(n) for n in numbers)


@composite(namespaces=NN, method=False)
def hardtanh(
    input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Any:
    """Input limited to `min_val..max_val`.

    >>> votive.nn.functional.hardtanh(votive.tensor([-2.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        fail(ValueError, "hardtanh", f"min_val {min_val} is greater than max_val {max_val}.")
    min_val, max_val = _in_type_of(input, min_val, max_val)
    if not input._spec.dtype.is_signed and min_val < 0:
        fail(RuntimeError, "hardtanh", f"min_val {min_val} is negative for {input.dtype}.")
    return _run("hardtanh", inplace, input, min_val, max_val)


inplace_form(hardtanh)


@composite(namespaces=NN, method=False)
def relu6(input: Any, inplace: bool = False) -> Any:
    """`min(max(input, 0), 6)`, elementwise.

    >>> votive.nn.functional.relu6(votive.tensor([-1.0, 2.0, 7.0]))
    tensor([0., 2., 6.])
    """
    return _run("hardtanh", inplace, input, 0, 6)


pointwise(
    "threshold(Tensor input, number threshold, number value)",
    lambda x, threshold, value: where(x <= threshold, value, x),
    allow="if",
    doc="Value where input is at most threshold, else input.",
    **HIDDEN,
)


@composite(namespaces=NN, method=False, also=("threshold",))
def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """`value` where input is at most `threshold`, else input.

    >>> votive.nn.functional.threshold(votive.tensor([0.5, 2.0]), 1.0, -1.0)
    tensor([-1.,  2.])
    """
    return _run("threshold", inplace, input, *_in_type_of(input, threshold, value))


inplace_form(threshold, "threshold_")

pointwise(
    "leaky_relu(Tensor input, number negative_slope)",
    lambda x, slope: where(x > 0, x, slope * x),
    allow="f",
    doc="Input where positive, else input times negative_slope.",
    **HIDDEN,
)


@composite(namespaces=NN, method=False)
def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """Input where it is positive, else `negative_slope * input`.

    >>> votive.nn.functional.leaky_relu(votive.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    return _run("leaky_relu", inplace, input, negative_slope)


inplace_form(leaky_relu)

pointwise(
    "_prelu(Tensor input, Tensor weight)",
    lambda x, w: where(x > 0, x, w * x),
    allow="f",
    doc="leaky_relu with a slope per element.",
    **HIDDEN,
)


@composite(also=("nn.functional.prelu",))
def prelu(input: Any, weight: Any) -> Any:
    """leaky_relu whose slope is learned: one for all, or one per channel (dimension 1).

    >>> votive.prelu(votive.tensor([-1.0, 2.0]), votive.tensor(0.25))
    tensor([-0.2500,  2.0000])
    """
    if input._spec.dtype is not weight._spec.dtype:
        fail(RuntimeError, "prelu", f"types differ, {input.dtype} and {weight.dtype}; cast one.")
    if weight.ndim > 1:
        fail(ShapeError, "prelu", f"weight must be a scalar or 1-D, got shape {weight.shape}.")
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.numel() != 1 and (input.ndim == 0 or channels != weight.numel()):
        fail(
            ShapeError, "prelu",
            f"weight has {weight.numel()} values for input of shape {tuple(input.shape)}; "
            f"give 1 or {channels}.",
        )  # fmt: skip
    shape = [1] * input.ndim
    if input.ndim > 1:
        shape[1] = weight.numel()
    return F._prelu(input, weight.reshape(shape))


# --- exponential units ----------------------------------------------------------------------------


def _elu_grad(
    g: Expr, x: Expr, alpha: float, scale: float, input_scale: float, y: Expr
) -> Expr:
    # With exp rather than 1 + expm1, which rounds small results to zero. At 0 the second derivative
    # is 0, as in torch.
    slope = alpha * scale * input_scale
    return where(x < 0, slope * g * exp(x * input_scale), where(x.eq(0), slope, scale) * g)


pointwise(
    "elu(Tensor input, number alpha, number scale, number input_scale)",
    lambda x, alpha, scale, input_scale: where(
        x <= 0, (alpha * scale) * apply("expm1", x * input_scale), scale * x
    ),
    allow="f",
    grad={"input": _elu_grad},
    doc="`scale * x` where positive, else `alpha * scale * (e^(input_scale x) - 1)`.",
    **HIDDEN,
)


@composite(namespaces=NN, method=False)
def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """Input where it is positive, else `alpha * (e^input - 1)`.

    >>> votive.nn.functional.elu(votive.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _run("elu", inplace, input, alpha, 1, 1)


inplace_form(elu)

# Klambauer et al. 2017, "Self-Normalizing Neural Networks", eq. 14: keeps mean 0 and variance 1.
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


@composite(namespaces=NN, method=False, also=("selu",))
def selu(input: Any, inplace: bool = False) -> Any:
    """elu scaled such that activations keep mean 0 and variance 1.

    >>> votive.selu(votive.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return _run("elu", inplace, input, SELU_ALPHA, SELU_SCALE, 1)


inplace_form(selu, "selu_")


@composite(namespaces=NN, method=False, also=("celu",))
def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """Input where it is positive, else `alpha * (e^(input / alpha) - 1)`.

    >>> votive.celu(votive.tensor([-1.0, 2.0]), 2.0)
    tensor([-0.7869,  2.0000])
    """
    if alpha == 0:
        fail(RuntimeError, "celu", "alpha must not be 0.")
    return _run("elu", inplace, input, alpha, 1, 1 / alpha)


inplace_form(celu, "celu_")


def _softplus_grad(g: Expr, x: Expr, beta: float, threshold: float, y: Expr) -> Expr:
    # The derived e^z / (1 + e^z) is inf / inf for large z.
    return where(x * beta > threshold, g, g * sigmoid(x * beta))


pointwise(
    "softplus(Tensor input, number beta=1, number threshold=20)",
    lambda x, beta, threshold: where(
        x * beta > threshold, x, apply("log1p", exp(x * beta)) / beta
    ),
    allow="f",
    grad={"input": _softplus_grad},
    namespaces=NN, method=False, inplace=False,
    doc="""`log(1 + e^(beta x)) / beta`, and x itself where `beta x` exceeds the threshold.

    >>> votive.nn.functional.softplus(votive.tensor([-1.0, 2.0]))
    tensor([0.3133, 2.1269])
    """,
)  # fmt: skip

pointwise(
    "logsigmoid(Tensor input)",
    lambda x: apply("minimum", x, 0) - apply("log1p", exp(-abs(x))),
    allow="f",
    grad={"input": lambda g, x, y: g * sigmoid(-x)},
    namespaces=NN, method=False, inplace=False,
    doc="""`log(sigmoid(input))` without overflow.

    >>> votive.nn.functional.logsigmoid(votive.tensor([-100.0, 0.0]))
    tensor([-100.0000,   -0.6931])
    """,
)  # fmt: skip


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
    namespaces=NN, method=False, inplace=False,
    doc="""`x * Phi(x)`, Phi the normal distribution function; or its approximation by tanh.

    >>> votive.nn.functional.gelu(votive.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """,
)  # fmt: skip

pointwise(
    "silu(Tensor input)",
    lambda x: x * sigmoid(x),
    allow="fc",
    doc="Input times its own sigmoid.",
    **HIDDEN,
)


@composite(namespaces=NN, method=False)
def silu(input: Any, inplace: bool = False) -> Any:
    """`input * sigmoid(input)`, elementwise.

    >>> votive.nn.functional.silu(votive.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """
    return _run("silu", inplace, input)


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
    **HIDDEN,
)


@composite(namespaces=NN, method=False)
def mish(input: Any, inplace: bool = False) -> Any:
    """`input * tanh(softplus(input))`, elementwise.

    >>> votive.nn.functional.mish(votive.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """
    return _run("mish", inplace, input)


pointwise(
    "_glu(Tensor input, Tensor gate)",
    lambda x, gate: x * sigmoid(gate),
    allow="f",
    doc="Input times the sigmoid of a gate.",
    **HIDDEN,
)


@composite(namespaces=NN, method=False)
def glu(input: Any, dim: int = -1) -> Any:
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
    namespaces=NN, method=False, inplace=False,
    doc="""`silu(gate) * up`, elementwise: the gated unit of Shazeer 2020 in one formula.

    >>> votive.nn.functional.swiglu(votive.tensor([-1.0, 2.0]), votive.tensor([1.0, 10.0]))
    tensor([-0.2689, 17.6159])
    """,
)  # fmt: skip


# --- piecewise linear and rational ----------------------------------------------------------------

pointwise(
    "hardsigmoid(Tensor input)",
    lambda x: apply("minimum", apply("maximum", x + 3, 0), 6) / 6,
    allow="f",
    grad={"input": lambda g, x, y: where((x > -3) & (x < 3), g / 6, 0)},
    doc="A line from 0 at -3 to 1 at 3.",
    **HIDDEN,
)


@composite(namespaces=NN, method=False)
def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """`min(max(input + 3, 0), 6) / 6`, elementwise.

    >>> votive.nn.functional.hardsigmoid(votive.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _run("hardsigmoid", inplace, input)


pointwise(
    "hardswish(Tensor input)",
    lambda x: x * apply("minimum", apply("maximum", x + 3, 0), 6) / 6,
    allow="f",
    grad={"input": lambda g, x, y: where(x <= -3, 0, where(x < 3, g * (x / 3 + 0.5), g))},
    doc="Input times its hardsigmoid.",
    **HIDDEN,
)


@composite(namespaces=NN, method=False)
def hardswish(input: Any, inplace: bool = False) -> Any:
    """`input * hardsigmoid(input)`, elementwise.

    >>> votive.nn.functional.hardswish(votive.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000, 0.6667, 4.0000])
    """
    return _run("hardswish", inplace, input)


pointwise(
    "hardshrink(Tensor input, number lambd=0.5)",
    lambda x, lambd: where((x >= -lambd) & (x <= lambd), 0, x),
    allow="f",
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
    namespaces=NN, method=False, inplace=False,
    doc="""Input moved toward 0 by `lambd`, and 0 where it would cross.

    >>> votive.nn.functional.softshrink(votive.tensor([-1.0, 0.25, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """,
)  # fmt: skip

pointwise(
    "tanhshrink(Tensor input)",
    lambda x: x - apply("tanh", x),
    dtypes="float",
    allow="ifc",
    # The derived 1 - (1 - tanh^2) rounds small gradients away.
    grad={"input": lambda g, x, y: g * (apply("tanh", x) * apply("tanh", x))},
    namespaces=NN, method=False, inplace=False, out=False,
    doc="""`input - tanh(input)`, elementwise.

    >>> votive.nn.functional.tanhshrink(votive.tensor([0.0, 2.0]))
    tensor([0.0000, 1.0360])
    """,
)  # fmt: skip

pointwise(
    "softsign(Tensor input)",
    lambda x: x / (1 + abs(x)),
    dtypes="float",
    allow="ifc",
    namespaces=NN, method=False, inplace=False, out=False,
    doc="""`input / (1 + |input|)`, elementwise.

    >>> votive.nn.functional.softsign(votive.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """,
)  # fmt: skip
