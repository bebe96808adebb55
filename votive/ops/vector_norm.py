"""Lengths of vectors: linalg.vector_norm, norm, dist, renorm. Knows shapes and gradients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, UnsupportedError, fail
from ..core.layout import Spec, reduced_shape, wrap_dim, wrap_dims
from ..core.promotion import promote_types
from .reduction import keep_dims
from .registry import COMPOSITES, OPS, F, composite, structured

if TYPE_CHECKING:
    from .types import Context, Ints, Sequence, Tensor, dtype

# What torch adds to a norm before dividing by it in `renorm`.
RENORM_EPS = 1e-7


def _canon_norm(x: Spec, ord: float, dim: Sequence[int] | None, keepdim: bool) -> tuple[Any, ...]:
    if not x.dtype.is_inexact or x.dtype in dt.FLOAT8:
        fail(
            DtypeError,
            "linalg.vector_norm",
            f"takes floating-point and complex tensors, got {x.dtype}; cast it with .to().",
        )
    if isinstance(ord, complex):
        fail(DtypeError, "linalg.vector_norm", f"ord must be a real number, got {ord}.")
    dims = wrap_dims("linalg.vector_norm", dim, x.ndim)
    if (ord < 0 or ord == math.inf) and any(x.shape[d] == 0 for d in dims):
        fail(
            ShapeError,
            "linalg.vector_norm",
            f"the norm of order {ord} has no value for no elements, got shape {x.shape}.",
        )
    return x, float(ord), dims, keepdim


def _grad_norm(c: Context, g: Tensor) -> Tensor:
    x, p = c.input, c.ord
    g, norm = keep_dims(g, c.dim, c.keepdim), keep_dims(c.out, c.dim, c.keepdim)
    if p == 0:
        return F.zeros_like(x)
    if p == 1:
        return g * F.sgn(x)
    if math.isinf(p):
        size = F.abs(x)
        chosen = F.logical_or(size == norm, F.isnan(size))
        return F.sgn(x) * (g / F.sum(chosen, c.dim, True) * chosen)
    # At zero the norm has no derivative: take the subgradient 0, and let 1 keep NaN away.
    zero = norm == 0
    ratio = x / F.where(zero, 1, norm)
    if p > 2:
        ratio = ratio * F.abs(ratio) ** (p - 2)
    elif p < 2:
        steep = F.abs(ratio) ** (p - 1)
        ratio = F.sgn(x) * (F.where(x == 0, 0, steep) if p < 1 else steep)
    return g * F.where(zero, 0, ratio)


structured(
    "_vector_norm(Tensor input, number ord, int[]? dim, bool keepdim)",
    placement="reduces",
    batch="dims",
    canon=_canon_norm,
    infer=lambda x, ord, dim, keepdim: x.like(reduced_shape(x.shape, dim, keepdim), dtype=x.dtype.to_real()),
    grad={"input": _grad_norm},
    doc="`sum(abs(input) ** ord) ** (1 / ord)` and its limits.",
)


def _as_type(op: str, input: Tensor, dtype: dtype | None) -> Tensor:
    """The input in the type that the norm is asked in: the same kind, and no narrower."""
    have = input._spec.dtype
    if dtype is None or dtype is have:
        return input
    if dtype.is_complex != have.is_complex or not dtype.is_inexact:
        fail(DtypeError, op, f"dtype must be of the input's kind, got {dtype} for {have}.")
    if promote_types(have, dtype) is not dtype:
        fail(DtypeError, op, f"dtype must hold the input's type, {dtype} is narrower than {have}.")
    return input.to(dtype)


@composite(method=False, namespaces=("linalg",), out=True, autocast={"cuda": "float32"})
def vector_norm(
    input: Tensor, ord: float = 2, dim: Ints | None = None, keepdim: bool = False, *, dtype: dtype | None = None
) -> Tensor:
    """`sum(abs(input) ** ord) ** (1 / ord)` over dimensions; inf, -inf and 0 are limits.

    >>> votive.linalg.vector_norm(votive.tensor([3.0, -4.0]))
    tensor(5.)
    """
    if not input._spec.dtype.is_inexact:
        fail(DtypeError, "linalg.vector_norm", f"takes floating-point tensors, got {input.dtype}.")
    return F._vector_norm(_as_type("linalg.vector_norm", input, dtype), ord, dim, keepdim)


def _nuclear(input: Tensor, dim: Any, keepdim: bool) -> Any:
    """The sum of a matrix's singular values."""
    dims = wrap_dims("norm", dim, input.ndim)
    if len(dims) != 2:
        fail(ShapeError, "norm", f"p='nuc' takes two dimensions, got {len(dims)}.")
    found = OPS.get("svdvals") or getattr(COMPOSITES.get("linalg.svdvals"), "fn", None)
    if found is None:
        fail(UnsupportedError, "norm", "p='nuc' needs linalg.svdvals, which is not available.")
    values = F.sum(found(F.movedim(input, dims, (-2, -1))), -1)
    return keep_dims(values, dims, not keepdim)


@composite(out=True, autocast={"cuda": "float32"})
def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
) -> Tensor:
    """The norm of a tensor, or of its slices along `dim`: of order p, 'fro' or 'nuc'.

    >>> votive.norm(votive.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(5.)
    """
    x = _as_type("norm", input, dtype) if input._spec.dtype.is_inexact else input
    if isinstance(p, str) and p != "fro":
        if p != "nuc":
            fail(RuntimeError, "norm", f"p must be a number, 'fro' or 'nuc', got {p!r}.")
        return _nuclear(x, dim, keepdim)
    if p == "fro" and isinstance(dim, (tuple, list)) and len(dim) > 2:
        fail(ShapeError, "norm", f"p='fro' takes at most two dimensions, got dim={tuple(dim)}.")
    return F._vector_norm(x, 2 if p in (None, "fro") else p, dim, keepdim)


@composite(autocast={"cuda": "float32"})
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The norm of order p of `input - other`.

    >>> votive.dist(votive.tensor([1.0, 1.0]), votive.tensor([4.0, 5.0]))
    tensor(5.)
    """
    return F._vector_norm(input - other, p, None, False)


@composite(inplace=True, out=True, autocast={"cuda": "float32"})
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Shrink the slices along `dim` whose norm of order p is above `maxnorm` to that norm.

    >>> votive.renorm(votive.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    if isinstance(p, complex) or isinstance(maxnorm, complex):
        fail(DtypeError, "renorm", f"p and maxnorm must be real numbers, got {p} and {maxnorm}.")
    if p <= 0 or maxnorm < 0:
        fail(RuntimeError, "renorm", f"needs p > 0 and maxnorm >= 0, got {p} and {maxnorm}.")
    if input.ndim < 2:
        fail(ShapeError, "renorm", f"takes at least 2 dimensions, got shape {tuple(input.shape)}.")
    where = wrap_dim("renorm", dim, input.ndim, input._spec.shape)
    size = F._vector_norm(input, p, [d for d in range(input.ndim) if d != where], True)
    return input * F.where(size > maxnorm, maxnorm / (size + RENORM_EPS), 1)
