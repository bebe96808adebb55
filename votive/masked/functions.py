"""Reductions and normalisations that leave masked-out elements out: these become what does not change the result."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.dtype import iinfo
from ..core.layout import wrap_dim
from ..ops.registry import F
from .sparse import also_sparse

if TYPE_CHECKING:
    from ..tensor import Tensor

Dims = Any  # an int, a sequence of them, or None


def _opened(input: Any, mask: Any) -> tuple[Any, Any]:
    """Data and mask of an input that may be a MaskedTensor."""
    if hasattr(input, "get_mask"):
        own = input.get_mask()
        return input.data_with_history(), own if mask is None else own & mask_of(input, mask)
    if input.layout.name != "strided":
        raise ValueError(f"masked functions expect strided tensors (got {input.layout} tensor); use .to_dense().")
    return input, mask


def mask_of(input: Tensor, mask: Tensor) -> Tensor:
    """A mask of bools in the shape of the input."""
    if mask.ndim > input.ndim:
        raise IndexError(
            f"expected a mask that can be broadcast to {tuple(input.shape)}, got one of more dimensions, "
            f"{tuple(mask.shape)}."
        )
    if mask.layout.name != "strided":
        mask = mask.to_dense()
    return F.expand(mask, tuple(input.shape)).to(dt.bool_)


def _filled(input: Any, mask: Any, value: Any) -> Any:
    """The input with a value at what is masked out."""
    if mask is None:
        return input
    fill = F.full((), value, dtype=input.dtype, device=input.device)
    return F.where(mask_of(input, mask), input, fill)


def _dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    if dim is None or dim == ():
        return tuple(range(ndim))
    found: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        at = wrap_dim("masked", d, max(ndim, 1))
        if at in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        found.append(at)
    return tuple(sorted(found))


def _lowest(x: Tensor) -> float:
    if x.dtype.is_complex or x.dtype is dt.bool_:
        raise NotImplementedError(f"masked: {x.dtype} has no smallest and largest value.")
    return -math.inf if x.dtype.is_floating_point else iinfo(x.dtype).min


def _highest(x: Tensor) -> float:
    return math.inf if _lowest(x) == -math.inf else iinfo(x.dtype).max


def _summed(dtype: dt.dtype) -> dt.dtype:
    """The type of a sum: small integers are widened."""
    return dt.int64 if not dtype.is_inexact else dtype


@also_sparse(False, "sparse_coo sparse_csr")
def sum(input: Any, dim: Dims = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """The sum of the elements that are not masked out; 0 where there is none.

    >>> votive.masked.sum(votive.tensor([1.0, 2.0, 4.0]), mask=votive.tensor([True, False, True]))
    tensor(5.)
    """
    x, mask = _opened(input, mask)
    return F.sum(_filled(x, mask, 0), _dims(dim, x.ndim), bool(keepdim), dtype=dtype or _summed(x.dtype))


@also_sparse(False, "sparse_coo sparse_csr")
def prod(input: Any, dim: Dims = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """The product of the elements that are not masked out; 1 where there is none.

    >>> votive.masked.prod(votive.tensor([3.0, 2.0, 4.0]), mask=votive.tensor([True, False, True]))
    tensor(12.)
    """
    x, mask = _opened(input, mask)
    out = _filled(x, mask, 1)
    wanted = dtype or _summed(x.dtype)
    for d in reversed(_dims(dim, x.ndim)):
        out = F.prod(out, d, bool(keepdim), dtype=wanted)
    return out.to(wanted)


@also_sparse(True, "sparse_coo sparse_csr")
def amax(input: Any, dim: Dims = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """The largest element that is not masked out.

    >>> votive.masked.amax(votive.tensor([1.0, 9.0, 4.0]), mask=votive.tensor([True, False, True]))
    tensor(4.)
    """
    x, mask = _opened(input, mask)
    low = 0 if mask is None else _lowest(x)
    return F.amax(_filled(x, mask, low), _dims(dim, x.ndim), bool(keepdim)).to(dtype or x.dtype)


@also_sparse(True, "sparse_coo sparse_csr")
def amin(input: Any, dim: Dims = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """The smallest element that is not masked out.

    >>> votive.masked.amin(votive.tensor([1.0, 0.0, 4.0]), mask=votive.tensor([True, False, True]))
    tensor(1.)
    """
    x, mask = _opened(input, mask)
    high = 0 if mask is None else _highest(x)
    return F.amin(_filled(x, mask, high), _dims(dim, x.ndim), bool(keepdim)).to(dtype or x.dtype)


def argmax(
    input: Any, dim: int | None = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The position of the largest element that is not masked out, in the type of the input unless `dtype` is given.

    >>> votive.masked.argmax(votive.tensor([1, 9, 4]), mask=votive.tensor([True, False, True]))
    tensor(2)
    """
    x, mask = _opened(input, mask)
    low = 0 if mask is None else _lowest(x)
    return F.argmax(_filled(x, mask, low), dim, bool(keepdim)).to(dtype or x.dtype)


def argmin(
    input: Any, dim: int | None = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The position of the smallest element that is not masked out, in the type of the input unless `dtype` is given.

    >>> votive.masked.argmin(votive.tensor([5, 0, 4]), mask=votive.tensor([True, False, True]))
    tensor(2)
    """
    x, mask = _opened(input, mask)
    high = 0 if mask is None else _highest(x)
    return F.argmin(_filled(x, mask, high), dim, bool(keepdim)).to(dtype or x.dtype)


def _count(x: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Any) -> Any:
    """How many elements count."""
    if mask is not None:
        return F.sum(mask_of(x, mask), dims, keepdim)
    return F.sum(F.ones(tuple(x.shape), dtype=dt.int64, device=x.device), dims, keepdim)


@also_sparse(True, "sparse_csr")
def mean(input: Any, dim: Dims = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """The mean of the elements that are not masked out; nan where there is none.

    >>> votive.masked.mean(votive.tensor([1.0, 9.0, 4.0]), mask=votive.tensor([True, False, True]))
    tensor(2.5000)
    """
    x, mask = _opened(input, mask)
    wanted = dtype or x.dtype
    if not wanted.is_inexact:
        source = "Input" if dtype is None else "Optional"
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. "
            f"Got: {wanted}"
        )
    dims = _dims(dim, x.ndim)
    return sum(x, dims, keepdim=keepdim, dtype=wanted, mask=mask) / _count(x, dims, bool(keepdim), mask)


def median(input: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """The median of the elements that are not masked out, the lower one of two; nan where there is none.

    >>> votive.masked.median(votive.tensor([1.0, 9.0, 4.0]), mask=votive.tensor([True, False, True]))
    tensor(1.)
    """
    x, mask = _opened(input, mask)
    at = _dims(dim, x.ndim)[0]
    inexact = x.dtype.is_floating_point
    wide = x if inexact else x.to(dt.float32)
    out = F.nanmedian(_filled(wide, mask, math.nan), at, keepdim)[0]
    if inexact:
        return out
    if bool(F.isnan(out).any()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return out.to(dtype or x.dtype)


def logsumexp(input: Any, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """`log(sum(exp(x)))` of the elements that are not masked out.

    >>> votive.masked.logsumexp(votive.tensor([1.0, 9.0]), mask=votive.tensor([True, False]))
    tensor(1.)
    """
    x, mask = _opened(input, mask)
    low = 0 if mask is None else -math.inf if x.dtype.is_inexact else _lowest(x)
    return F.logsumexp(_filled(x, mask, low), _dims(dim, x.ndim), keepdim).to(dtype or x.dtype)


def logaddexp(input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None) -> Tensor:
    """`log(exp(x) + exp(y))`, where elements that are masked out count as minus infinity.

    >>> one = votive.tensor([True])
    >>> votive.masked.logaddexp(votive.tensor([1.0]), votive.tensor([9.0]), input_mask=one, other_mask=~one)
    tensor([1.])
    """
    x, input_mask = _opened(input, input_mask)
    y, other_mask = _opened(other, other_mask)
    x_low = 0 if input_mask is None else _lowest(x)
    y_low = 0 if other_mask is None else _lowest(y)
    return F.logaddexp(_filled(x, input_mask, x_low), _filled(y, other_mask, y_low)).to(dtype or x.dtype)


def norm(
    input: Any,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The norm of the elements that are not masked out.

    >>> votive.masked.norm(votive.tensor([3.0, 9.0, 4.0]), mask=votive.tensor([True, False, True]))
    tensor(5.)
    """
    x, mask = _opened(input, mask)
    order = 2.0 if ord is None else ord
    filled = _filled(x, mask, math.inf if order == -math.inf else 0)
    vector_norm = getattr(F, "linalg.vector_norm")
    out: Tensor = vector_norm(filled, order, _dims(dim, x.ndim), bool(keepdim), dtype=dtype or x.dtype)
    return out


def var(
    input: Any,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The variance of the elements that are not masked out, with `correction` (1) fewer degrees of freedom.

    >>> votive.masked.var(votive.tensor([1.0, 9.0, 3.0]), mask=votive.tensor([True, False, True]))
    tensor(2.)
    """
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    less = float(correction) if correction is not None else 0.0 if unbiased is False else 1.0
    x, mask = _opened(input, mask)
    wanted = dtype or (x.dtype if x.dtype.is_inexact else dt.float32)
    compute = wanted if wanted.is_inexact else dt.float32
    dims = _dims(dim, x.ndim)
    count = _count(x, dims, True, mask)
    off = x - sum(x, dims, keepdim=True, dtype=wanted, mask=mask) / count
    total = sum(off * F.conj_physical(off), dims, keepdim=keepdim, dtype=compute, mask=mask)
    count = count if keepdim else count.reshape(total.shape)
    if less:
        real = total.real.dtype if compute.is_complex else compute
        count = F.clamp(count.to(real) - less, min=0)
    return (total / count).to(wanted)


def std(
    input: Any,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The root of `var`.

    >>> votive.masked.std(votive.tensor([1.0, 9.0, 5.0]), mask=votive.tensor([True, False, True]))
    tensor(2.8284)
    """
    return F.sqrt(var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask))


def softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Softmax of the elements that are not masked out; the others become 0.

    >>> votive.masked.softmax(votive.tensor([1.0, 9.0, 1.0]), 0, mask=votive.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    x, mask = _opened(input, mask)
    low = 0 if mask is None else _lowest(x)
    return F.softmax(_filled(x, mask, low), _dims(dim, x.ndim)[0], dtype=dtype or x.dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """The logarithm of `softmax`.

    >>> votive.masked.log_softmax(votive.tensor([1.0, 9.0]), 0, mask=votive.tensor([True, False]))
    tensor([0., -inf])
    """
    x, mask = _opened(input, mask)
    low = 0 if mask is None else _lowest(x)
    return F.log_softmax(_filled(x, mask, low), _dims(dim, x.ndim)[0], dtype=dtype or x.dtype)


def softmin(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Softmax of the negated elements that are not masked out.

    >>> votive.masked.softmin(votive.tensor([1.0, 9.0, 1.0]), 0, mask=votive.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    x, mask = _opened(input, mask)
    high = 0 if mask is None else _highest(x)
    return F.softmax(-_filled(x, mask, high), _dims(dim, x.ndim)[0], dtype=dtype or x.dtype)


def normalize(input: Any, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None) -> Tensor:
    """Elements over their norm along a dimension; what is masked out becomes 0 and does not count.

    >>> votive.masked.normalize(votive.tensor([3.0, 9.0, 4.0]), 2, 0, mask=votive.tensor([True, False, True]))
    tensor([0.6000, 0.0000, 0.8000])
    """
    x, mask = _opened(input, mask)
    size = norm(x, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return F.div(_filled(x, mask, 0), F.maximum(size, F.full_like(size, eps)))


def cumsum(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Running sums over the elements that are not masked out.

    >>> votive.masked.cumsum(votive.tensor([1.0, 9.0, 4.0]), 0, mask=votive.tensor([True, False, True]))
    tensor([1., 1., 5.])
    """
    x, mask = _opened(input, mask)
    wanted = dtype or x.dtype
    return F.cumsum(_filled(x, mask, 0), _dims(dim, x.ndim)[0], dtype=wanted).to(wanted)


def cumprod(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Running products over the elements that are not masked out.

    >>> votive.masked.cumprod(votive.tensor([2.0, 9.0, 4.0]), 0, mask=votive.tensor([True, False, True]))
    tensor([2., 2., 8.])
    """
    x, mask = _opened(input, mask)
    wanted = dtype or x.dtype
    return F.cumprod(_filled(x, mask, 1), _dims(dim, x.ndim)[0], dtype=wanted).to(wanted)
