"""Sums, products and tests over dimensions. Knows shapes and gradients, not how they run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, UnsupportedError, fail
from ..core.layout import Spec, reduced_shape, wrap_dim, wrap_dims
from .autocast_policy import FLOAT32
from .registry import F, composite, structured

if TYPE_CHECKING:
    from .types import Callable, Context, Ints, Sequence, Tensor, dtype


def unreduce(g: Tensor, shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """Stretch a reduced gradient back over the reduced dimensions."""
    return keep_dims(g, dims, keepdim).expand(shape)


def keep_dims(g: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """A reduced tensor with its reduced dimensions put back as size 1."""
    if not keepdim:
        for d in dims:
            g = g.unsqueeze(d)
    return g


def refuse(op: str, x: Spec, *types: dt.dtype, kinds: str = "") -> None:
    """Raise for float8 tensors, for the given types and for the given kinds (of b, i, f, c)."""
    if x.dtype in dt.FLOAT8 or x.dtype in types or "bifc"[x.dtype.category] in kinds:
        fail(UnsupportedError, op, f"not implemented for {x.dtype}; cast the tensor with .to().")


def _total_type(x: Spec, dtype: dt.dtype | None) -> dt.dtype:
    """The type of a sum or product: integers and bools are added up as int64."""
    if dtype is not None:
        return dtype
    return x.dtype if x.dtype.is_inexact else dt.int64


def _canon_total(op: str) -> Callable[..., Any]:
    def canon(x: Spec, dim: Sequence[int] | None, keepdim: bool, dtype: dtype | None) -> tuple[Any, ...]:
        refuse(op, x, kinds="c" if op == "nansum" else "")
        return x, wrap_dims(op, dim, x.ndim), keepdim, _total_type(x, dtype)

    return canon


def _infer_total(x: Spec, dim: tuple[int, ...], keepdim: bool, dtype: dt.dtype) -> Spec:
    return x.like(reduced_shape(x.shape, dim, keepdim), dtype=dtype)


structured(
    "sum(Tensor input, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None)",
    placement="reduces by sum",
    multilinear=("input",),
    batch="dims",
    canon=_canon_total("sum"),
    infer=_infer_total,
    grad={"input": lambda c, g: unreduce(g, c.shape("input"), c.dim, c.keepdim)},
    doc="""Sum over all or some dimensions.

    >>> votive.sum(votive.tensor([[1, 2], [3, 4]]), dim=0)
    tensor([4, 6])
    """,
    autocast={"cuda": "float32"},
)

structured(
    "nansum(Tensor input, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None)",
    placement="reduces",
    batch="dims",
    canon=_canon_total("nansum"),
    infer=_infer_total,
    grad={"input": lambda c, g: F.where(F.isnan(c.input), 0, unreduce(g, c.shape("input"), c.dim, c.keepdim))},
    doc="""Sum over all or some dimensions, counting NaN as zero.

    >>> votive.nansum(votive.tensor([1.0, float("nan"), 2.0]))
    tensor(3.)
    """,
)


def _canon_mean(x: Spec, dim: Sequence[int] | None, keepdim: bool, dtype: dtype | None) -> tuple[Any, ...]:
    refuse("mean", x)
    want = dtype or x.dtype
    if not want.is_inexact:
        fail(DtypeError, "mean", f"a mean is floating point or complex, got {want}; pass dtype= or cast first.")
    return x, wrap_dims("mean", dim, x.ndim), keepdim, want


def count(shape: tuple[int, ...], dims: tuple[int, ...]) -> int:
    """How many elements go into one result of a reduction."""
    return math.prod(shape[d] for d in dims)


structured(
    "mean(Tensor input, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None)",
    placement="reduces by mean",
    multilinear=("input",),
    batch="dims",
    canon=_canon_mean,
    infer=_infer_total,
    grad={
        "input": lambda c, g: unreduce(g / max(count(c.shape("input"), c.dim), 1), c.shape("input"), c.dim, c.keepdim)
    },
    doc="""Average over all or some dimensions.

    >>> votive.mean(votive.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
    tensor([1.5000, 3.5000])
    """,
)


@composite(out=True)
def nanmean(input: Tensor, dim: Ints | None = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Tensor:
    """Average over all or some dimensions, leaving NaN out.

    >>> votive.nanmean(votive.tensor([1.0, float("nan"), 2.0]))
    tensor(1.5000)
    """
    if not input._spec.dtype.is_inexact:
        fail(DtypeError, "nanmean", f"takes floating-point tensors, got {input.dtype}.")
    known = F.sum(F.logical_not(F.isnan(input.detach())), dim, keepdim)
    return F.nansum(input, dim, keepdim, dtype=dtype) / known


def _canon_prod(x: Spec, dim: int | None, keepdim: bool, dtype: Any) -> tuple[Any, ...]:
    refuse("prod", x)
    where = None if dim is None else wrap_dim("prod", dim, x.ndim, x.shape)
    return x, where, keepdim, _total_type(x, dtype)


def _infer_prod(x: Spec, dim: int | None, keepdim: bool, dtype: dt.dtype) -> Spec:
    dims = tuple(range(x.ndim)) if dim is None else (dim,) * (x.ndim > 0)
    return x.like(reduced_shape(x.shape, dims, keepdim), dtype=dtype)


def product_of_others(x: Tensor, dim: int) -> Tensor:
    """At each place the product of all other elements along `dim`.

    Products from the left and from the right instead of product / element: right at zeros too.
    """
    left = F.cumprod(F._shift(x, dim, 1, 1), dim)
    right = F.cumprod(F._shift(F.flip(x, (dim,)), dim, 1, 1), dim)
    return left * F.flip(right, (dim,))


def _grad_prod(c: Context, g: Tensor) -> Tensor:
    x = c.input.to(g.dtype)
    if c.dim is None:
        rest = product_of_others(x.reshape(-1), 0).reshape(c.shape("input"))
        return g * F.conj_physical(rest)
    rest = product_of_others(x, c.dim) if c.shape("input") else F.ones_like(x)
    dims = (c.dim,) if c.shape("input") else ()
    return keep_dims(g, dims, c.keepdim) * F.conj_physical(rest)


structured(
    "prod(Tensor input, int? dim=None, bool keepdim=False, *, dtype? dtype=None)",
    placement="reduces by product",
    batch="dims",
    canon=_canon_prod,
    infer=_infer_prod,
    grad={"input": _grad_prod},
    doc="""Product over all dimensions or one.

    >>> votive.prod(votive.tensor([[1, 2], [3, 4]]), 1)
    tensor([ 2, 12])
    """,
    autocast=FLOAT32,
)


def _canon_logsumexp(x: Spec, dim: Sequence[int], keepdim: bool) -> tuple[Any, ...]:
    refuse("logsumexp", x)
    return x, wrap_dims("logsumexp", dim, x.ndim), keepdim


def _infer_logsumexp(x: Spec, dim: tuple[int, ...], keepdim: bool) -> Spec:
    result = x.dtype if x.dtype.is_inexact else dt.get_default_dtype()
    return x.like(reduced_shape(x.shape, dim, keepdim), dtype=result)


structured(
    "logsumexp(Tensor input, int[] dim, bool keepdim=False)",
    placement="reduces",
    batch="dims",
    canon=_canon_logsumexp,
    infer=_infer_logsumexp,
    grad={
        "input": lambda c, g: (
            keep_dims(g, c.dim, c.keepdim) * F.conj_physical(F.exp(c.input - keep_dims(c.out, c.dim, c.keepdim)))
        )
    },
    also=("special.logsumexp",),
    doc="""`log(sum(exp(input)))` over some dimensions, without overflow.

    >>> votive.logsumexp(votive.tensor([100.0, 100.0]), 0)
    tensor(100.6931)
    """,
    autocast={"cuda": "float32"},
)


def _canon_truth(op: str) -> Callable[..., Any]:
    def canon(x: Spec, dim: Sequence[int] | None, keepdim: bool) -> tuple[Any, ...]:
        refuse(op, x)
        return x, wrap_dims(op, dim, x.ndim, empty_is_all=False), keepdim

    return canon


def _infer_truth(x: Spec, dim: tuple[int, ...], keepdim: bool) -> Spec:
    # uint8 stays uint8, as torch keeps it: it was the type of masks before bool existed.
    result = dt.uint8 if x.dtype is dt.uint8 else dt.bool_
    return x.like(reduced_shape(x.shape, dim, keepdim), dtype=result)


structured(
    "all(Tensor input, int[]? dim=None, bool keepdim=False)",
    placement="reduces",
    batch="dims",
    canon=_canon_truth("all"),
    infer=_infer_truth,
    differentiable=False,
    doc="""Whether all elements are nonzero, over all or some dimensions.

    >>> votive.all(votive.tensor([[True, False], [True, True]]), dim=1)
    tensor([False,  True])
    """,
)

structured(
    "any(Tensor input, int[]? dim=None, bool keepdim=False)",
    placement="reduces",
    batch="dims",
    canon=_canon_truth("any"),
    infer=_infer_truth,
    differentiable=False,
    doc="""Whether some element is nonzero, over all or some dimensions.

    >>> votive.any(votive.tensor([[True, False], [False, False]]), dim=1)
    tensor([ True, False])
    """,
)

structured(
    "count_nonzero(Tensor input, int[]? dim=None)",
    placement="reduces",
    batch="dims",
    canon=lambda x, dim: (x, wrap_dims("count_nonzero", dim, x.ndim)),
    infer=lambda x, dim: x.like(reduced_shape(x.shape, dim, False), dtype=dt.int64),
    differentiable=False,
    out=False,
    doc="""How many elements are not zero, over all or some dimensions.

    >>> votive.count_nonzero(votive.tensor([[0, 1], [2, 3]]), dim=0)
    tensor([1, 2])
    """,
)


@composite(name="_reduce_to")
def reduce_to(input: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Sum over the dimensions that broadcasting stretched."""
    shape = tuple(shape)
    have = input._spec.shape
    if have == shape:
        return input
    lead = len(have) - len(shape)
    inner = tuple([i + lead for i, n in enumerate(shape) if n == 1 and have[i + lead] != 1])
    if not inner:
        return F.sum(input, tuple(range(lead)), False)
    out = F.sum(input, (*range(lead), *inner), True)
    return F.reshape(out, shape) if lead else out


@composite(namespaces=())
def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """Sum over dimensions until the shape is `size`, which must broadcast to the tensor's own.

    >>> votive.tensor([[1, 2], [3, 4]]).sum_to_size(1, 2)
    tensor([[4, 6]])
    """
    one = len(size) == 1 and not hasattr(size[0], "__index__")
    shape = tuple(n.__index__() for n in (size[0] if one else size))
    have = input._spec.shape
    tail = have[len(have) - len(shape) :]
    if len(shape) > len(have) or any(n not in (1, m) for n, m in zip(shape, tail, strict=True)):
        fail(ShapeError, "sum_to_size", f"size {shape} does not broadcast to the shape {have}.")
    # torch adds up to a single number with sum(), which turns integers into int64.
    return F._reduce_to(input, shape) if shape else F.sum(input)
