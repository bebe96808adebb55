"""Matrix products whose sums pass through an activation before they are stored.

Knows shapes, dtypes and gradients only. The composite twins say the same with single operators;
values agree with theirs to the bit wherever the products do.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import UnsupportedError, fail
from ..core.layout import Spec
from .addmm import _infer_addmm, _scaled
from .matmul import _infer_linear, _linear_weight_gradient, check_rank, left_gradient, right_gradient
from .registry import OPS, F, Op, composite, formula_op, structured

if TYPE_CHECKING:
    from .types import Context, Tensor

# Each activation: its operator and what that is given besides the input.
ACTIVATIONS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "relu": ("relu", ()),
    "gelu": ("gelu", ("none",)),
    "gelu_tanh": ("gelu", ("tanh",)),
    "silu": ("silu", ()),
}


def activate(name: str, x: Tensor) -> Tensor:
    """The activation `name` of a tensor."""
    op, given = ACTIVATIONS[name]
    return OPS[op].apply((x, *given))


@functools.cache
def _slope_op(name: str) -> tuple[Op, tuple[str, ...], Any]:
    op, given = ACTIVATIONS[name]
    formula = OPS[op].formula(given)
    grad = formula.gradient("input")
    assert grad is not None
    return formula_op(grad), grad.params, formula


def _before(name: str, g: Tensor, z: Tensor) -> Tensor:
    """The gradient of `activate(name, z)` by z, where g is the incoming one."""
    op, params, formula = _slope_op(name)
    values = {formula.incoming: g, "input": z}
    if formula.result in params:
        values[formula.result] = activate(name, z)
    return op(*(values[p] for p in params))


def _check(op: str, x: Spec, activation: str) -> None:
    if activation not in ACTIVATIONS:
        fail(ValueError, op, f"activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}.")
    if x.dtype.is_complex or (activation != "relu" and x.dtype.category < dt.FLOAT):
        fail(UnsupportedError, op, f"{activation} is not implemented for {x.dtype}.")


# --- linear ---------------------------------------------------------------------------------------


def _infer(x: Spec, weight: Spec, bias: Spec | None, activation: str) -> Spec:
    _check("linear", x, activation)
    return _infer_linear(x, weight, bias)


def _linear_gradients(c: Context, g: Tensor) -> tuple[Tensor | None, ...]:
    # The sums were not kept: whoever records gradients all the time uses the twin.
    z = F.linear(c.input, c.weight, c.bias)
    gz = _before(c.activation, g, z)
    by_input = left_gradient(gz, c.weight, c.spec("input")) if c.weight.ndim == 1 else F.matmul(gz, c.weight)
    by_weight = _linear_weight_gradient(gz, c.input, c.spec("weight"))
    return by_input, by_weight, None if c.bias is None else gz


structured(
    "_linear_activated(Tensor input, Tensor weight, Tensor? bias, str activation)",
    placement="activated linear",
    infer=_infer,
    grad=_linear_gradients,
    autocast={"cpu": "lower", "cuda": "lower"},
    doc="`activation(input @ weight.T + bias)`, stored once.",
)


@composite(name="_linear_activated_composite")
def linear_activated_composite(input: Tensor, weight: Tensor, bias: Tensor | None, activation: str) -> Tensor:
    """The same from single operators: what the fused kernel must agree with."""
    return activate(activation, F.linear(input, weight, bias))


# --- addmm ----------------------------------------------------------------------------------------


def _infer_activated(x: Spec, a: Spec, b: Spec, beta: int, alpha: float, activation: str) -> Spec:
    out = _infer_addmm(x, a, b, beta, alpha)
    _check("_addmm_activation", x, activation)
    return out


def _addmm_gradients(c: Context, g: Tensor) -> tuple[Tensor, ...]:
    z = F._addmm(c.input, c.mat1, c.mat2, c.beta, c.alpha)
    gz = _before(c.activation, g, z)
    return (
        _scaled(gz, c.beta),
        _scaled(left_gradient(gz, c.mat2, c.spec("mat1")), c.alpha),
        _scaled(right_gradient(gz, c.mat1, c.spec("mat2")), c.alpha),
    )


structured(
    "_addmm_activated(Tensor input, Tensor mat1, Tensor mat2, Scalar beta, Scalar alpha, str activation)",
    infer=_infer_activated,
    grad=_addmm_gradients,
    doc="`activation(beta * input + alpha * mat1 @ mat2)`, stored once.",
)


@composite(name="_addmm_activated_composite")
def addmm_activated_composite(
    input: Tensor, mat1: Tensor, mat2: Tensor, beta: int, alpha: float, activation: str
) -> Tensor:
    """The same from single operators: what the fused kernel must agree with."""
    return activate(activation, F._addmm(input, mat1, mat2, beta, alpha))


# torch's name has an underscore, which elsewhere marks what is not public.
@composite(out=True, method=False, namespaces=(), also=("_addmm_activation", "Tensor._addmm_activation"))
def addmm_activation(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: int = 1, alpha: int = 1, use_gelu: bool = False
) -> Tensor:
    """`relu(beta * input + alpha * mat1 @ mat2)`, or gelu of it, without a second pass.

    >>> a = votive.tensor([[1.0, -1.0], [0.0, 2.0]])
    >>> votive._addmm_activation(votive.tensor([0.5, 0.5]), a, a)
    tensor([[1.5000, 0.0000],
            [0.5000, 4.5000]])
    """
    check_rank("_addmm_activation", "mat1", mat1, 2)
    check_rank("_addmm_activation", "mat2", mat2, 2)
    return F._addmm_activated(input, mat1, mat2, beta, alpha, "gelu" if use_gelu else "relu")
