"""Gamma and Dirichlet samples that carry a gradient to their parameters. Draws no numbers itself.

A sample x of a distribution F(x; a) moves with its parameter along `dx/da = -(dF/da) / (dF/dx)`,
which keeps its rank F(x; a): Figurnov, Mohamed and Mnih 2018, "Implicit Reparameterization
Gradients", eq. 6. As in torch, the second derivative is not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..backends.common.sampling import counters
from ..core import dtype as dt
from ..core.errors import ShapeError, UnsupportedError, fail
from ..core.layout import Spec
from .random import _reserve as reserve
from .registry import F, composite, structured

if TYPE_CHECKING:
    from .types import Context, Generator, Tensor


def _infer(op: str, alpha: Spec) -> Spec:
    if alpha.dtype not in (dt.float32, dt.float64, *dt.HALF):
        fail(UnsupportedError, op, f"parameters must be floating-point, got {alpha.dtype}.")
    return alpha.dense_like()


structured(
    "_gamma(Tensor alpha, Scalar key, Scalar counter)",
    infer=lambda alpha, key, counter: _infer("_standard_gamma", alpha),
    grad={"alpha": lambda c, g: g * F._standard_gamma_grad(c.alpha, c.out)},
    doc="Gamma numbers of shape alpha and rate 1.",
)

structured(
    "_standard_gamma_grad(Tensor alpha, Tensor sample)",
    batch="same",
    infer=lambda alpha, sample: sample.dense_like(),
    grad={},
    doc="How a gamma number moves with its shape: -(dF/dalpha) / density.",
)


def _grad_dirichlet(c: Context, g: Tensor) -> Any:
    # Coordinate i alone is a beta number; what it gains the others lose in proportion.
    x = c.out
    slope = F._dirichlet_grad(x, c.alpha, F.sum(c.alpha, -1, True))
    return slope * (g - F.sum(x * g, -1, True))


structured(
    "_dirichlet(Tensor alpha, Scalar key, Scalar counter)",
    infer=lambda alpha, key, counter: _infer("_sample_dirichlet", alpha),
    grad={"alpha": _grad_dirichlet},
    doc="Points of the simplex, along the last dimension.",
)

structured(
    "_dirichlet_grad(Tensor sample, Tensor alpha, Tensor total)",
    infer=lambda sample, alpha, total: sample.dense_like(),
    grad={},
    doc="How a beta number of shapes (alpha, total - alpha) moves with alpha, over 1 - sample.",
)


@composite
def _standard_gamma(input: Tensor, generator: Generator | None = None) -> Any:
    """Gamma numbers with the shapes that stand in `input` and rate 1; differentiable by them."""
    _infer("_standard_gamma", input._spec)
    n = counters("gamma", input.numel())
    return F._gamma(input, *reserve("_standard_gamma", generator, input.device, n))


@composite
def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Any:
    """Points of the simplex with the concentrations of the last dimension; differentiable."""
    _infer("_sample_dirichlet", input._spec)
    if input.ndim == 0:
        fail(ShapeError, "_sample_dirichlet", "concentrations must have a last dimension, got 0-d.")
    n = counters("gamma", input.numel())
    return F._dirichlet(input, *reserve("_sample_dirichlet", generator, input.device, n))
