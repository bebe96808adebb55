"""Covariance and correlation of rows. Composites; knows shapes and dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import fail
from .registry import F, composite
from .warning import warn

if TYPE_CHECKING:
    from .types import Tensor


def _weights(name: str, weights: Tensor | None, count: int, integral: bool) -> Tensor | None:
    """Check one weight per observation, as torch checks it."""
    if weights is None:
        return None
    if weights.ndim > 1:
        fail(RuntimeError, "cov", f"{name} must have at most one dimension, got {weights.ndim}.")
    if integral == weights.dtype.is_inexact or weights.dtype.is_complex:
        kind = "integral" if integral else "floating point"
        fail(RuntimeError, "cov", f"{name} must be {kind}, got {weights.dtype}.")
    if weights.numel() != count:
        fail(RuntimeError, "cov", f"{name} has {weights.numel()} values for {count} observations.")
    if count and bool((weights < 0).any()):
        fail(RuntimeError, "cov", f"{name} must not be negative.")
    return weights.reshape((count,))


@composite
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Covariance of the rows: `sum_k w_k (x_ik - m_i) conj(x_jk - m_j) / n`.

    >>> votive.cov(votive.tensor([[0.0, 2.0], [1.0, 3.0]]))
    tensor([[2., 2.],
            [2., 2.]])
    """
    if input.ndim > 2:
        fail(RuntimeError, "cov", f"expected at most two dimensions, got {input.ndim}.")
    if input.dtype is dt.bool_:
        fail(RuntimeError, "cov", "bool tensors are not supported.")
    x = input.reshape((1, -1)) if input.ndim < 2 else input
    count = x.shape[1]
    f = _weights("fweights", fweights, count, True)
    a = _weights("aweights", aweights, count, False)
    w = f if a is None else (a if f is None else f * a)
    total: Any = count if w is None else w.sum()
    if w is not None and count and total.item() == 0:
        raise ZeroDivisionError("cov: the weights sum to zero, so they cannot be normalised.")
    mean = (x if w is None else x * w).sum(1, True) / total
    # Reliability weights lower the degrees of freedom (see numpy.cov).
    if w is None:
        norm: Any = F.tensor(total - correction, dtype=mean.dtype.to_real())
    elif a is None:
        norm = total - correction
    else:
        norm = total - correction * (w * a).sum() / total
    if norm.item() <= 0:
        warn("cov(): degrees of freedom is <= 0.")
        norm = F.zeros_like(norm)
    centred = x - mean
    weighted = centred if w is None else centred * w
    out = weighted @ centred.mH.to(weighted.dtype) / norm
    return out.squeeze()


@composite
def corrcoef(input: Tensor) -> Tensor:
    """Pearson's correlation of the rows: covariance divided by both standard deviations.

    >>> votive.corrcoef(votive.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.ndim > 2:
        fail(RuntimeError, "corrcoef", f"expected at most two dimensions, got {input.ndim}.")
    c = cov(input)
    if c.ndim == 0:
        return c / c
    scale = c.diagonal()
    if scale.dtype.is_complex:
        scale = F.real(scale)
    scale = scale.sqrt()
    c = c / scale.unsqueeze(1) / scale.unsqueeze(0)
    if c.dtype.is_complex:
        return F.complex(F.real(c).clamp(-1, 1), F.imag(c).clamp(-1, 1))
    return c.clamp(-1, 1)
