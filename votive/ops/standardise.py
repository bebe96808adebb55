"""What all norms share: types of parameters, and statistics taken out of a tensor. No operators.

A norm's fused operator keeps the statistics it found, and its gradient kernel reuses them. The
composite twin says the same with single operators, from the functions here: the oracle of both
kernels, and what runs when a gradient will itself be differentiated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, UnsupportedError, fail
from ..core.layout import Spec
from .registry import F

if TYPE_CHECKING:
    from .types import Tensor

NN = ("nn.functional",)


def check_parameters(op: str, x: Spec, **parameters: Any) -> None:
    """Parameters have the input's type; float32 serves half types as well, for all or none."""
    if not x.dtype.is_floating_point or x.dtype in dt.FLOAT8:
        fail(UnsupportedError, op, f"not implemented for {x.dtype}; use .float().")
    given = {name: p.dtype for name, p in parameters.items() if p is not None}
    types = set(given.values())
    if types - {x.dtype} and not (x.dtype in dt.HALF and types == {dt.float32}):
        told = ", ".join(f"{name} {kind}" for name, kind in given.items())
        fail(
            DtypeError,
            op,
            f"parameters must have the input's type {x.dtype}"
            f"{' or all be float32' if x.dtype in dt.HALF else ''}, got {told}.",
        )


def widened(x: Tensor) -> Tensor:
    """Half types as float32: statistics are computed there."""
    return F._to_dtype(x, dt.compute_type(x.dtype))


def affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """`x * weight + bias`, either of which may be missing."""
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def standardise(x: Tensor, dims: tuple[int, ...], eps: float) -> tuple[Any, Any]:
    """`(x - mean) * rstd`, and `rstd = rsqrt(var + eps)`."""
    centred = x - x.mean(dims, True)
    rstd = F.rsqrt((centred * centred).mean(dims, True) + eps)
    return centred * rstd, rstd


def standardise_gradient(g: Tensor, x: Tensor, rstd: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The gradient by what `standardise` was given, from its two results.

    Both statistics depend on every element, which takes the mean of g and its component along the
    result out: Ioffe and Szegedy 2015, "Batch Normalization", section 3.
    """
    return rstd * (g - g.mean(dims, True) - x * (g * x).mean(dims, True))


def per_channel(parameter: Tensor | None, ndim: int) -> Any:
    """A vector with one number per channel, such that it broadcasts over (N, C, ...)."""
    return None if parameter is None else parameter.reshape(1, -1, *[1] * (ndim - 2))


def affine_gradients(x: Spec, shape: tuple[int, ...], wanted: bool) -> tuple[Spec, Spec]:
    """Gradients of weight and bias; nothing where nobody asks for them."""
    like = x.like(shape if wanted else (0,), dtype=dt.compute_type(x.dtype))
    return like, like


def check_shapes(op: str, shape: tuple[int, ...], **parameters: Any) -> None:
    """Every parameter that is given has `shape`."""
    for name, value in parameters.items():
        if value is not None and tuple(value.shape) != shape:
            fail(ShapeError, op, f"{name} must have shape {shape}, got {tuple(value.shape)}.")
