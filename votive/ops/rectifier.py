"""Rectifiers and exponential units: formulas, and torch's signatures over them.

Does not know how they run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import ShapeError, fail
from ..formula import Expr, apply, where
from .activation import NN, exp, run
from .autocast_policy import LOWER
from .registry import F, composite, pointwise

if TYPE_CHECKING:
    from .types import Generator, Tensor


def inplace_form(fn: Callable[..., Any], call: str, shown: str, *also: str) -> None:
    """Declare `fn(..., inplace=True)` under the name with an underscore, with an example."""
    name = f"{fn.__name__}_"

    def over(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return fn(input, *args, **kwargs, inplace=True)

    example = f">>> votive.nn.functional.{name}({call})\n{shown}"
    over.__doc__ = f"In-place form of `{fn.__name__}`.\n\n{example}"
    composite(name=name, namespaces=NN, method=False, also=also)(over)


pointwise(
    "relu(Tensor input)",
    lambda x: apply("maximum", x, 0),
    allow="if",
    grad={"input": lambda g, x, y: where(y <= 0, 0, g)},  # NaN passes the gradient, as in torch
    doc="""`max(input, 0)`, elementwise.

    >>> votive.relu(votive.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """,
    inplace_function=True,
    gate=True,
)


@composite(namespaces=NN, method=False)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """`max(input, 0)`, elementwise.

    >>> votive.nn.functional.relu(votive.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return run("relu", inplace, input)


inplace_form(relu, "votive.tensor([-1.0, 2.0])", "tensor([0., 2.])")

pointwise(
    "hardtanh(Tensor input, number min_val, number max_val)",
    lambda x, lo, hi: apply("minimum", apply("maximum", x, lo), hi),
    allow="if",
    grad={"input": lambda g, x, lo, hi, y: where((y > lo) & (y < hi), g, 0)},
    doc="Input limited to min_val..max_val.",
    typical=((-1.0, 1.0), (0.0, 6.0), (0, 6)),
    hidden=True,
)


def _in_type_of(input: Tensor, *numbers: float) -> tuple[Any, ...]:
    """Numbers as torch takes them: truncated beside an integer tensor."""
    if input._spec.dtype.category != dt.INT:
        return numbers
    return tuple(int(n) for n in numbers)


@composite(namespaces=NN, method=False)
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Input limited to `min_val..max_val`.

    >>> votive.nn.functional.hardtanh(votive.tensor([-2.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        fail(ValueError, "hardtanh", f"min_val {min_val} is greater than max_val {max_val}.")
    min_val, max_val = _in_type_of(input, min_val, max_val)
    if not input._spec.dtype.is_signed and min_val < 0:
        fail(RuntimeError, "hardtanh", f"min_val {min_val} is negative for {input.dtype}.")
    return run("hardtanh", inplace, input, min_val, max_val)


inplace_form(hardtanh, "votive.tensor([-2.0, 2.0])", "tensor([-1.,  1.])")


@composite(namespaces=NN, method=False)
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """`min(max(input, 0), 6)`, elementwise.

    >>> votive.nn.functional.relu6(votive.tensor([-1.0, 2.0, 7.0]))
    tensor([0., 2., 6.])
    """
    return run("hardtanh", inplace, input, 0, 6)


pointwise(
    "threshold(Tensor input, number threshold, number value)",
    lambda x, threshold, value: where(x <= threshold, value, x),
    allow="if",
    doc="Value where input is at most threshold, else input.",
    hidden=True,
)


@composite(namespaces=NN, method=False, also=("threshold",))
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`value` where input is at most `threshold`, else input.

    >>> votive.nn.functional.threshold(votive.tensor([0.5, 2.0]), 1.0, -1.0)
    tensor([-1.,  2.])
    """
    return run("threshold", inplace, input, *_in_type_of(input, threshold, value))


inplace_form(threshold, "votive.tensor([0.5, 2.0]), 1.0, -1.0", "tensor([-1.,  2.])", "threshold_")

pointwise(
    "leaky_relu(Tensor input, number negative_slope)",
    lambda x, slope: where(x > 0, x, slope * x),
    allow="f",
    doc="Input where positive, else input times negative_slope.",
    gate=True,
    typical=((0.01,), (0.2,)),
    hidden=True,
)


@composite(namespaces=NN, method=False)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Input where it is positive, else `negative_slope * input`.

    >>> votive.nn.functional.leaky_relu(votive.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    return run("leaky_relu", inplace, input, negative_slope)


inplace_form(leaky_relu, "votive.tensor([-1.0, 2.0]), 0.5", "tensor([-0.5000,  2.0000])")

pointwise(
    "_prelu(Tensor input, Tensor weight)",
    lambda x, w: where(x > 0, x, w * x),
    allow="f",
    doc="leaky_relu with a slope per element.",
)


@composite(also=("nn.functional.prelu",), autocast=LOWER)
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`leaky_relu` whose slope is learned: one for all, or one per channel (dimension 1).

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
            ShapeError,
            "prelu",
            f"weight has {weight.numel()} values for input of shape {tuple(input.shape)}; give 1 or {channels}.",
        )
    shape = [1] * input.ndim
    if input.ndim > 1:
        shape[1] = weight.numel()
    return F._prelu(input, weight.reshape(shape))


def _rrelu(
    input: Tensor, lower: float, upper: float, training: bool, generator: Generator | None, inplace: bool
) -> Tensor:
    if lower > upper:
        fail(RuntimeError, "rrelu", f"lower {lower} is greater than upper {upper}.")
    if not training:
        return run("leaky_relu", inplace, input, (lower + upper) / 2)
    slope = F.empty_like(input).uniform_(lower, upper, generator=generator)
    return run("_prelu", inplace, input, slope)


@composite(namespaces=NN, method=False)
def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """`leaky_relu` with slopes drawn from `lower..upper` in training, their mean otherwise.

    >>> votive.nn.functional.rrelu(votive.tensor([-1.0, 2.0]), 0.25, 0.75)
    tensor([-0.5000,  2.0000])
    """
    return _rrelu(input, lower, upper, training, None, inplace)


@composite(name="rrelu", method=False)
def torch_rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """`leaky_relu` with slopes drawn from `lower..upper` in training, their mean otherwise.

    >>> votive.rrelu(votive.tensor([-1.0, 2.0]), 0.25, 0.75)
    tensor([-0.5000,  2.0000])
    """
    return _rrelu(input, lower, upper, training, generator, False)


@composite(name="rrelu_", method=False, also=("nn.functional.rrelu_",))
def torch_rrelu_(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """In-place form of `rrelu`.

    >>> votive.rrelu_(votive.tensor([-1.0, 2.0]), 0.25, 0.75)
    tensor([-0.5000,  2.0000])
    """
    return _rrelu(input, lower, upper, training, generator, True)


# --- exponential units ----------------------------------------------------------------------------


def _elu_grad(g: Expr, x: Expr, alpha: float, scale: float, input_scale: float, y: Expr) -> Expr:
    # With exp rather than 1 + expm1, which rounds small results to zero. At 0 the second derivative
    # is 0, as in torch.
    slope = alpha * scale * input_scale
    below = where(x.eq(0), slope * g, slope * g * exp(x * input_scale))
    return where(x > 0, scale * g, below)


pointwise(
    "elu(Tensor input, number alpha, number scale, number input_scale)",
    lambda x, alpha, scale, input_scale: where(x > 0, scale * x, (alpha * scale) * apply("expm1", x * input_scale)),
    allow="f",
    grad={"input": _elu_grad},
    doc="`scale * x` where positive, else `alpha * scale * (e^(input_scale x) - 1)`.",
    gate=True,
    typical=((1.0, 1.0, 1.0),),
    hidden=True,
)


@composite(namespaces=NN, method=False)
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Input where it is positive, else `alpha * (e^input - 1)`.

    >>> votive.nn.functional.elu(votive.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return run("elu", inplace, input, alpha, 1, 1)


inplace_form(elu, "votive.tensor([-1.0, 2.0])", "tensor([-0.6321,  2.0000])")

# Klambauer et al. 2017, "Self-Normalizing Neural Networks", eq. 14: keeps mean 0 and variance 1.
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


@composite(namespaces=NN, method=False, also=("selu",))
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu` scaled such that activations keep mean 0 and variance 1.

    >>> votive.selu(votive.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return run("elu", inplace, input, SELU_ALPHA, SELU_SCALE, 1)


inplace_form(selu, "votive.tensor([-1.0, 2.0])", "tensor([-1.1113,  2.1014])", "selu_")


@composite(namespaces=NN, method=False, also=("celu",))
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Input where it is positive, else `alpha * (e^(input / alpha) - 1)`.

    >>> votive.celu(votive.tensor([-1.0, 2.0]), 2.0)
    tensor([-0.7869,  2.0000])
    """
    if alpha == 0:
        fail(RuntimeError, "celu", "alpha must not be 0.")
    return run("elu", inplace, input, alpha, 1, 1 / alpha)


inplace_form(celu, "votive.tensor([-1.0, 2.0])", "tensor([-0.6321,  2.0000])", "celu_")
