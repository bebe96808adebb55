"""Norms over the last dimensions, and over neighbouring channels. Knows shapes and gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import ShapeError, UnsupportedError, fail
from ..core.layout import Spec
from ..core.mode import mode
from .registry import F, composite, structured
from .sizes import ints
from .standardise import (
    NN,
    affine,
    affine_gradients,
    check_parameters,
    check_shapes,
    standardise,
    standardise_gradient,
    widened,
)

if TYPE_CHECKING:
    from .types import Context, Ints, Tensor


def _trailing(x: Tensor, dims: int) -> tuple[int, ...]:
    return tuple(range(x.ndim - dims, x.ndim))


def _row_statistics(x: Spec, dims: int) -> Spec:
    """One number per row, in the type that sums are carried in."""
    shape = (*x.shape[: x.ndim - dims], *[1] * dims)
    return x.like(shape, dtype=dt.compute_type(x.dtype))


# --- layer_norm -----------------------------------------------------------------------------------


def _infer_layer(x: Spec, weight: Spec | None, bias: Spec | None, dims: int, eps: float) -> tuple[Spec, ...]:
    check_parameters("layer_norm", x, weight=weight, bias=bias)
    rows = _row_statistics(x, dims)
    return x.like(x.shape), rows, rows


def _grad_layer(c: Context, g: Tensor, *_: Any) -> tuple[Any, ...]:
    if mode.grad:
        return F._layer_norm_backward_composite(g, c.input, c.weight, c.dims, c.eps)
    wants = c.needs("weight") or c.needs("bias")
    return F._layer_norm_backward(g, c.input, c.out1, c.out2, c.weight, c.dims, c.needs("input"), wants)


structured(
    "_layer_norm(Tensor input, Tensor? weight, Tensor? bias, int dims, float eps)",
    placement="rows",
    infer=_infer_layer,
    grad=_grad_layer,
    n_out=3,
    doc="`(x - mean) * rstd * weight + bias` over the last `dims` dimensions; mean and rstd too.",
)

structured(
    "_layer_norm_backward(Tensor grad, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, "
    "int dims, bool by_input, bool by_affine)",
    infer=lambda g, x, mean, rstd, w, dims, by_input, by_affine: (
        x.like(x.shape if by_input else (0,)),
        *affine_gradients(x, x.shape[x.ndim - dims :], by_affine),
    ),
    differentiable=False,  # with a graph being made, the composite runs instead
    n_out=3,
    doc="The gradients of layer_norm by input, weight and bias.",
)


@composite(name="_layer_norm_composite")
def layer_norm_composite(input: Tensor, weight: Tensor, bias: Tensor | None, dims: int, eps: float) -> Tensor:
    """layer_norm from single operators: what the fused kernel must agree with."""
    x, _ = standardise(widened(input), _trailing(input, dims), eps)
    return F._to_dtype(affine(x, weight, bias), input.dtype)


@composite(name="_layer_norm_backward_composite")
def layer_norm_backward_composite(
    grad: Tensor, input: Tensor, weight: Tensor, dims: int, eps: float
) -> tuple[Any, Any, Any]:
    """The gradients of layer_norm from single operators, so that they have gradients too."""
    over = _trailing(input, dims)
    x, rstd = standardise(widened(input), over, eps)
    g = widened(grad)
    return standardise_gradient(affine(g, weight, None), x, rstd, over), g * x, g


def _normalized(op: str, input: Tensor, normalized_shape: Ints) -> tuple[int, ...]:
    """The shape that is normalised over, which must be the last sizes of the input."""
    if not isinstance(normalized_shape, (tuple, list)):
        kind = type(normalized_shape).__name__
        raise TypeError(f"{op}: normalized_shape must be a tuple of ints, got {kind}.")
    shape = ints(op, "normalized_shape", normalized_shape)
    if not shape:
        fail(RuntimeError, op, "normalized_shape must name at least one size, got ().")
    have = tuple(input.shape)
    if len(shape) > len(have) or have[len(have) - len(shape) :] != shape:
        short = op == "rms_norm" and len(shape) > len(have)
        fail(ValueError if short else ShapeError, op, f"the input must end in sizes {shape}, got shape {have}.")
    return shape


@composite(namespaces=NN, method=False, autocast={"cuda": "float32"})
def layer_norm(
    input: Tensor, normalized_shape: Ints, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """`(x - mean) / sqrt(var + eps) * weight + bias` over the last dimensions.

    >>> votive.nn.functional.layer_norm(votive.tensor([[1.0, 2.0, 3.0]]), (3,))
    tensor([[-1.2247,  0.0000,  1.2247]])
    """
    shape = _normalized("layer_norm", input, normalized_shape)
    check_shapes("layer_norm", shape, weight=weight, bias=bias)
    return F._layer_norm(input, weight, bias, len(shape), eps)[0]


@composite(name="layer_norm", method=False, autocast={"cuda": "float32"})
def torch_layer_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """`(x - mean) / sqrt(var + eps) * weight + bias` over the last dimensions.

    >>> votive.layer_norm(votive.tensor([[1.0, 2.0, 3.0]]), (3,))
    tensor([[-1.2247,  0.0000,  1.2247]])
    """
    return layer_norm(input, normalized_shape, weight, bias, eps)


# --- rms_norm -------------------------------------------------------------------------------------


def _grad_rms(c: Context, g: Tensor, *_: Any) -> tuple[Any, ...]:
    if mode.grad:
        return F._rms_norm_backward_composite(g, c.input, c.weight, c.dims, c.eps)
    return F._rms_norm_backward(g, c.input, c.out1, c.weight, c.dims, c.needs("input"), c.needs("weight"))


structured(
    "_rms_norm(Tensor input, Tensor? weight, int dims, float eps)",
    placement="rows",
    infer=lambda x, weight, dims, eps: (x.dense_like(), _row_statistics(x, dims)),
    grad=_grad_rms,
    n_out=2,
    doc="`x * rstd * weight` over the last `dims` dimensions, `rstd = rsqrt(mean(x^2) + eps)` too.",
)

structured(
    "_rms_norm_backward(Tensor grad, Tensor input, Tensor rstd, Tensor? weight, int dims, "
    "bool by_input, bool by_weight)",
    infer=lambda g, x, rstd, w, dims, by_input, by_weight: (
        x.like(x.shape if by_input else (0,)),
        affine_gradients(x, x.shape[x.ndim - dims :], by_weight)[0],
    ),
    differentiable=False,  # with a graph being made, the composite runs instead
    n_out=2,
    doc="The gradients of rms_norm by input and weight.",
)


def _rms(x: Tensor, over: tuple[int, ...], eps: float) -> tuple[Any, Any]:
    # The square of a complex number, not of its size, as in torch.
    rstd = F.rsqrt((x * x).mean(over, True) + eps)
    return x * rstd, rstd


@composite(name="_rms_norm_composite")
def rms_norm_composite(input: Tensor, weight: Tensor | None, dims: int, eps: float) -> Tensor:
    """rms_norm from single operators: what the fused kernel must agree with."""
    x, _ = _rms(widened(input), _trailing(input, dims), eps)
    return F._to_dtype(affine(x, weight, None), input.dtype)


@composite(name="_rms_norm_backward_composite")
def rms_norm_backward_composite(grad: Tensor, input: Tensor, weight: Tensor, dims: int, eps: float) -> tuple[Any, Any]:
    """The gradients of rms_norm from single operators, so that they have gradients too."""
    over = _trailing(input, dims)
    x, rstd = _rms(widened(input), over, eps)
    g = widened(grad)
    h = affine(g, weight, None)
    return rstd * (h - x * (h * x).mean(over, True)), g * x


@composite(namespaces=NN, method=False, also=("rms_norm",), autocast={"cuda": "float32"})
def rms_norm(input: Tensor, normalized_shape: Ints, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """`x / sqrt(mean(x^2) + eps) * weight` over the last dimensions.

    >>> votive.nn.functional.rms_norm(votive.tensor([[3.0, 4.0]]), (2,))
    tensor([[0.8485, 1.1314]])
    """
    shape = _normalized("rms_norm", input, normalized_shape)
    check_shapes("rms_norm", shape, weight=weight)
    kind = input.dtype
    if not kind.is_inexact or kind in dt.FLOAT8:
        fail(UnsupportedError, "rms_norm", f"not implemented for {kind}; use .float().")
    if eps is None:
        eps = dt.finfo(dt.compute_type(kind)).eps
    if kind.is_complex:
        return rms_norm_composite(input, weight, len(shape), eps)
    return F._rms_norm(input, weight, len(shape), eps)[0]


# --- local_response_norm --------------------------------------------------------------------------


@composite(namespaces=NN, method=False, autocast={"cpu": "off"})
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """`x / (k + alpha * mean of x^2 over `size` neighbouring channels) ** beta`.

    Krizhevsky et al. 2012, "ImageNet Classification with Deep Convolutional Neural Networks",
    section 3.3, with torch's mean in place of the sum.

    >>> votive.nn.functional.local_response_norm(votive.ones(1, 2, 1), 2, alpha=1.0, beta=1.0)
    tensor([[[0.6667],
             [0.5000]]])
    """
    op = "local_response_norm"
    if input.ndim < 3:
        fail(ValueError, op, f"takes 3 or more dimensions, got shape {tuple(input.shape)}.")
    if input.numel() == 0:
        return input
    if size < 1:
        fail(RuntimeError, op, f"size must be positive, got {size}.")
    if input.dtype.is_complex:
        fail(UnsupportedError, op, f"not implemented for {input.dtype}.")
    squares = input * input
    n, _, *rest = input.shape
    before, after = (
        F.zeros((n, m, *rest), dtype=squares.dtype, device=squares.device) for m in (size // 2, (size - 1) // 2)
    )
    windows = F.cat([before, squares, after], 1).unfold(1, size, 1)
    if input.dtype.is_floating_point:
        mean = windows.mean(-1)
    else:  # integers are averaged as torch pools them, rounded toward zero
        mean = F.div(windows.sum(-1), size, rounding_mode="trunc")
    return input / (mean * alpha + k) ** beta
