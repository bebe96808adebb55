"""Products and distances of points: cross, cdist. Knows shapes, dtypes and gradients only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..core.errors import DtypeError, ShapeError, fail
from ..core.layout import Spec, broadcast_shapes, wrap_dim
from .autocast_policy import FLOAT32
from .matmul import check_dtypes, conjugate
from .registry import F, composite, structured

if TYPE_CHECKING:
    from .types import Tensor


def _infer_cross(a: Spec, b: Spec, dim: int) -> Spec:
    if a.ndim != b.ndim:
        fail(
            ShapeError, "cross", f"both arguments must have the same number of dimensions, got {a.shape} and {b.shape}."
        )
    if a.shape[dim] != 3 or b.shape[dim] != 3:
        fail(ShapeError, "cross", f"dim {dim} must have size 3, got shapes {a.shape} and {b.shape}.")
    check_dtypes("cross", a, b)
    return a.like(broadcast_shapes("cross", a.shape, b.shape))


structured(
    "_cross(Tensor input, Tensor other, int dim)",
    batch="dims",
    canon=lambda a, b, dim: (a, b, wrap_dim("cross", dim, a.ndim, a.shape)),
    infer=_infer_cross,
    grad={
        "input": lambda c, g: F._cross(conjugate(c.other), g, c.dim),
        "other": lambda c, g: F._cross(g, conjugate(c.input), c.dim),
    },
    doc="Cross products of the vectors along one dimension.",
)


@composite(name="cross", namespaces=("linalg",), method=False, out=True)
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Cross products of the 3-vectors along `dim`.

    >>> votive.linalg.cross(votive.tensor([1, 0, 0]), votive.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    return F._cross(input, other, dim)


@composite(out=True, autocast={"cuda": "widest"})
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Cross products of the 3-vectors along `dim`, or along the first dimension of size 3.

    >>> votive.cross(votive.tensor([1, 0, 0]), votive.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    if dim is None:
        shape = tuple(input.shape)
        if 3 not in shape:
            fail(ShapeError, "cross", f"no dimension has size 3 in shape {shape}.")
        dim = shape.index(3)
    return F._cross(input, other, dim)


def _infer_cdist(x1: Spec, x2: Spec, p: float, product: bool) -> Spec:
    for name, x in (("x1", x1), ("x2", x2)):
        if not x.dtype.is_floating_point:
            fail(DtypeError, "cdist", f"{name} must be floating-point, got {x.dtype}.")
        if x.ndim < 2:
            fail(ShapeError, "cdist", f"{name} needs at least 2 dimensions, got shape {x.shape}.")
    check_dtypes("cdist", x1, x2)
    if x1.shape[-1] != x2.shape[-1]:
        fail(ShapeError, "cdist", f"points differ in size: {x1.shape[-1]} != {x2.shape[-1]}.")
    if not p >= 0:
        fail(RuntimeError, "cdist", f"p must not be negative, got {p}.")
    batch = broadcast_shapes("cdist", x1.shape[:-2], x2.shape[:-2])
    return x1.like((*batch, x1.shape[-2], x2.shape[-2]))


def _cdist_gradient(g: Tensor, x1: Tensor, x2: Tensor, dist: Tensor, p: float, product: bool) -> Tensor:
    """The gradient by x1. Where two points coincide it is zero, the middle of all subgradients."""
    if p == 0:
        return F.zeros_like(x1)
    apart = dist != 0
    weight = F.where(apart, g, 0)
    if p not in (1, math.inf):
        weight = weight / F.where(apart, dist, 1) ** (p - 1)
    if product:
        return x1 * weight.sum(-1, True) - F.matmul(weight, x2)
    diff = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    weight = weight.unsqueeze(-1)
    if p == 2:
        return (diff * weight).sum(-2)
    sign = F.sign(diff)
    if p == math.inf:
        return (sign * (F.abs(diff) == dist.unsqueeze(-1)) * weight).sum(-2)
    if p != 1:
        # Powers are taken where the difference is not zero: others would make the next order NaN.
        differ = diff != 0
        power = F.where(differ, F.abs(diff), 1) ** (p - 1)
        sign = F.where(differ, sign * power, 0)
    return (sign * weight).sum(-2)


def _swap(x: Tensor) -> Tensor:
    return F.transpose(x, -2, -1)


structured(
    "_cdist(Tensor x1, Tensor x2, float p, bool product)",
    batch="broadcast",
    infer=_infer_cdist,
    grad={
        "x1": lambda c, g: _cdist_gradient(g, c.x1, c.x2, c.out, c.p, c.product),
        "x2": lambda c, g: _cdist_gradient(_swap(g), c.x2, c.x1, _swap(c.out), c.p, c.product),
    },
    doc="Distances of two sets of points; `product` computes Euclidean ones by a matrix product.",
)

_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": True,
    "donot_use_mm_for_euclid_dist": False,
}
# From this many points on torch takes the matrix product: faster, and less exact for near points.
_MANY = 25


@composite(method=False, autocast=FLOAT32)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The p-norm distance of every row of x1 to every row of x2, `(sum |x1 - x2|**p)**(1/p)`.

    >>> votive.cdist(votive.tensor([[0.0, 0.0]]), votive.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    if compute_mode not in _MODES:
        raise ValueError(f"cdist: compute_mode is one of {list(_MODES)}, got {compute_mode!r}.")
    product = _MODES[compute_mode]
    if product is None:
        product = x1.ndim > 1 < x2.ndim and max(x1.shape[-2], x2.shape[-2]) > _MANY
    return F._cdist(x1, x2, float(p), bool(product) and p == 2)
