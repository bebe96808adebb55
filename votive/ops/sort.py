"""Order: sorting, the largest few, distinct values. Knows shapes; NaN counts as largest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, UnsupportedError, fail
from ..core.layout import Spec, reduced_shape, wrap_dim
from .index import blank, filled
from .registry import F, composite, structured
from .results import named, results

if TYPE_CHECKING:
    from .types import Context, Tensor

_SORT = results("sort", "values", "indices")
_TOPK = results("topk", "values", "indices")
_KTH = results("kthvalue", "values", "indices")


def _put_back(g: Tensor, shape: tuple[int, ...], dim: int, index: Tensor) -> Tensor:
    """The gradient of values picked once each along `dim`."""
    return blank(shape, g).scatter_(dim, index.detach(), g)


def _infer_sort(x: Spec, dim: int, descending: bool) -> tuple[Spec, Spec]:
    if x.dtype.is_complex:
        fail(DtypeError, "sort", f"complex values have no order, got {x.dtype}.")
    return x.like(x.shape), x.like(x.shape, dtype=dt.int64)


structured(
    "_sort(Tensor input, int dim, bool descending)",
    placement="along dim",
    batch="dims",
    canon=lambda x, dim, descending: (x, wrap_dim("sort", dim, x.ndim, x.shape), descending),
    infer=_infer_sort,
    grad={"input": lambda c, g, _: _put_back(g, c.shape("input"), c.dim, c.out1)},
    n_out=2,
    doc="Values in order along a dimension, and where they stood; equal ones keep their order.",
)


@composite(out=True)
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Values in order along `dim`, and the index each had. Equal values keep their order always.

    >>> votive.sort(votive.tensor([3, 1, 2]), descending=True).indices
    tensor([0, 2, 1])
    """
    return named(_SORT, F._sort(input, dim, descending))


@composite(out=True)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that put values in order along `dim`.

    >>> votive.argsort(votive.tensor([3, 1, 2]))
    tensor([1, 2, 0])
    """
    return F._sort(input, dim, descending)[1]


@composite(out=True)
def msort(input: Tensor) -> Tensor:
    """Values in order along the first dimension.

    >>> votive.msort(votive.tensor([3, 1, 2]))
    tensor([1, 2, 3])
    """
    return F._sort(input, 0, False)[0]


def _infer_topk(x: Spec, k: int, dim: int, largest: bool, ordered: bool) -> tuple[Spec, Spec]:
    if x.dtype.is_complex or x.dtype is dt.bool_:
        fail(DtypeError, "topk", f"does not support {x.dtype}.")
    size = filled(x.shape)[dim]
    if not 0 <= k <= size:
        fail(RuntimeError, "topk", f"k={k} is out of range for size {size}; use 0..{size}.")
    shape = (*x.shape[:dim], k, *x.shape[dim + 1 :]) if x.ndim else ()
    return x.like(shape), x.like(shape, dtype=dt.int64)


def _canon_topk(x: Spec, k: int, dim: int, *rest: bool) -> tuple[Any, ...]:
    # A single value has no room for none of it: k=0 gives it as k=1 does, as in torch.
    k = 1 if x.ndim == 0 and k == 0 else k
    return x, k, wrap_dim("topk", dim, x.ndim, x.shape), *rest


structured(
    "_topk(Tensor input, int k, int dim, bool largest, bool sorted)",
    placement="along dim",
    batch="dims",
    skips_elements=True,
    canon=_canon_topk,
    infer=_infer_topk,
    grad={"input": lambda c, g, _: _put_back(g, c.shape("input"), c.dim, c.out1)},
    n_out=2,
    doc="The k largest or smallest values along a dimension, and where they stood.",
)


@composite(out=True)
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest (or smallest) values along `dim`, in order, and the index each had.

    >>> votive.topk(votive.tensor([3, 1, 4, 2]), 2).values
    tensor([4, 3])
    """
    return named(_TOPK, F._topk(input, k, dim, largest, sorted))


def _infer_kthvalue(x: Spec, k: int, dim: int, keepdim: bool) -> tuple[Spec, Spec]:
    op = "kthvalue"
    if x.dtype.is_complex or x.dtype is dt.bool_:
        raise UnsupportedError(f"{op}: not implemented for {x.dtype}.")
    size = filled(x.shape)[dim]
    if size == 0:
        fail(IndexError, op, f"dimension {dim} of shape {x.shape} is empty.")
    if not 1 <= k <= size:
        fail(RuntimeError, op, f"k={k} is out of range for size {size}; use 1..{size}.")
    shape = reduced_shape(x.shape, (dim,), keepdim)
    return x.like(shape), x.like(shape, dtype=dt.int64)


def _grad_kthvalue(c: Context, g: Tensor, _: Any) -> Tensor:
    index = c.out1
    if not c.keepdim and len(c.shape("input")):
        g, index = g.unsqueeze(c.dim), index.unsqueeze(c.dim)
    return _put_back(g, c.shape("input"), c.dim, index)


structured(
    "_kthvalue(Tensor input, int k, int dim, bool keepdim)",
    placement="reduces",
    batch="dims",
    canon=lambda x, k, dim, keepdim: (x, k, wrap_dim("kthvalue", dim, x.ndim, x.shape), keepdim),
    infer=_infer_kthvalue,
    grad={"input": _grad_kthvalue},
    n_out=2,
    doc="The k-th smallest value along a dimension, and where it stood.",
)


@composite(out=True, out_no_overlap=True)
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest value along `dim`, counted from 1, and its index.

    >>> votive.kthvalue(votive.tensor([30, 10, 20]), 2).values
    tensor(20)
    """
    return named(_KTH, F._kthvalue(input, k, dim, keepdim))


structured(
    "_unique(Tensor input, int? dim, bool consecutive, bool inverse, bool counts)",
    infer=lambda x, dim, consecutive, inverse, counts: None,
    n_out=3,
    doc="Distinct values or slices, which of them each one is, and how many there are of each; what is not wanted of "
    "the latter may hold anything.",
)


def _distinct(op: str, input: Tensor, dim: int | None, consecutive: bool, inverse: bool, counts: bool) -> Any:
    x = input._spec
    if x.dtype.is_complex:
        raise UnsupportedError(f"{op}: not implemented for {x.dtype}.")
    if dim is not None:
        dim = wrap_dim(op, dim, x.ndim, x.shape)
        if any(n == 0 for d, n in enumerate(x.shape) if d != dim):
            fail(RuntimeError, op, f"a dimension other than dim={dim} of shape {x.shape} is empty.")
    found, which, number = F._unique(input, dim, consecutive, bool(inverse), bool(counts))
    out = (found, *([which] if inverse else []), *([number] if counts else []))
    return out if len(out) > 1 else found


@composite
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct values, or slices along `dim`, in order.

    With `return_inverse` also the position of each element among them, with `return_counts` also
    how often each occurs.

    >>> votive.unique(votive.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    return _distinct("unique", input, dim, False, return_inverse, return_counts)


@composite
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The values, or slices along `dim`, of which neighbours that repeat are kept once.

    >>> votive.unique_consecutive(votive.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    return _distinct("unique_consecutive", input, dim, True, return_inverse, return_counts)
