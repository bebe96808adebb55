"""Finding a place in order, and counting into bins. Knows shapes; nothing here has a gradient."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, UnsupportedError, fail
from ..core.layout import Spec
from .registry import OPS, F, composite, structured
from .results import results
from .schema import is_tensor

if TYPE_CHECKING:
    from .declaration import Resolved
    from .types import Sequence, Tensor, dtype

_HISTOGRAM = results("histogram", "hist", "bin_edges")
_HISTOGRAMDD = results("histogramdd", "hist", "bin_edges")


def _infer_searchsorted(bounds: Spec, x: Spec, sorter: Spec | None, right: bool, dtype: dtype) -> Spec:
    op = "searchsorted"
    if bounds.ndim == 0:
        fail(ShapeError, op, "the sorted sequence must have at least 1 dimension, got 0.")
    if bounds.ndim != 1 and bounds.shape[:-1] != x.shape[:-1]:
        fail(
            ShapeError,
            op,
            f"a sorted sequence with several rows needs values with the same leading sizes, got "
            f"{bounds.shape} and {x.shape}.",
        )
    if bounds.ndim != 1 and x.ndim == 0:
        fail(ShapeError, op, "a 0-d value needs a sorted sequence with 1 dimension.")
    for s in (bounds, x):
        if s.dtype.is_complex or s.dtype is dt.bool_:
            raise UnsupportedError(f"{op}: not implemented for {s.dtype}.")
    if sorter is not None:
        if sorter.shape != bounds.shape:
            fail(
                ShapeError,
                op,
                f"sorter and the sequence must have the same shape, got {sorter.shape} and {bounds.shape}.",
            )
        if sorter.dtype is not dt.int64:
            fail(DtypeError, op, f"sorter must be int64, got {sorter.dtype}.")
    return x.like(x.shape, dtype=dtype)


structured(
    "_searchsorted(Tensor sorted_sequence, Tensor input, Tensor? sorter, bool right, dtype dtype)",
    infer=_infer_searchsorted,
    differentiable=False,
    doc="Where each value would be inserted into a sorted sequence.",
)


@composite(method=False, out=True)
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where each value would be inserted to keep the last dimension of a sequence sorted.

    On the left of equal values, or on their right with `right=True` or `side="right"`.

    >>> votive.searchsorted(votive.tensor([1, 3, 5]), votive.tensor([3, 6]))
    tensor([1, 3])
    """
    if side not in (None, "left", "right"):
        fail(RuntimeError, "searchsorted", f"side must be 'left' or 'right', got {side!r}.")
    if side == "left" and right:
        fail(RuntimeError, "searchsorted", "side='left' contradicts right=True.")
    if not hasattr(input, "_spec"):
        input = F.tensor(input, device=sorted_sequence.device)
    kind = dt.int32 if out_int32 else dt.int64
    return F._searchsorted(sorted_sequence, input, sorter, right or side == "right", kind)


@composite(method=False, out=True)
def bucketize(input: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Which of the intervals between sorted boundaries each value falls into.

    >>> votive.bucketize(votive.tensor([0, 3, 6]), votive.tensor([1, 3, 5]))
    tensor([0, 1, 3])
    """
    if boundaries.ndim != 1:
        fail(ShapeError, "bucketize", f"boundaries must be a vector, got {boundaries.shape}.")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


structured(
    "_bincount(Tensor input, Tensor? weights, int minlength)",
    infer=lambda x, weights, minlength: None,
    differentiable=False,
    doc="How often, or with what total weight, each value occurs.",
)


def _bincount_shortcut(input: Tensor, *, minlength: int = 0) -> Resolved:
    if input.dtype.category != dt.INT or input.ndim != 1 or minlength < 0:
        return None
    return OPS["_bincount"], (input, None, minlength)


@composite(shortcut=_bincount_shortcut)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each non-negative integer occurs, or the sum of its weights.

    >>> votive.bincount(votive.tensor([1, 1, 3]))
    tensor([0, 2, 0, 1])
    """
    op = "bincount"
    if input.dtype.category != dt.INT:
        raise UnsupportedError(f"{op}: takes integers, got {input.dtype}.")
    if minlength < 0:
        fail(RuntimeError, op, f"minlength must not be negative, got {minlength}.")
    if input.ndim != 1:
        fail(ShapeError, op, f"takes a vector, got shape {tuple(input.shape)}.")
    if weights is not None and weights._spec.shape != input._spec.shape:
        fail(
            ShapeError,
            op,
            f"weights must have the shape of input, got {tuple(weights.shape)} and {tuple(input.shape)}.",
        )
    if weights is not None and weights.dtype is not dt.float32:
        weights = weights.to(dt.float64)
    return F._bincount(input, weights, minlength)


def _float_only(op: str, input: Tensor, half: bool) -> None:
    d = input.dtype
    if not d.is_floating_point or (not half and d in dt.HALF):
        raise UnsupportedError(f"{op}: not implemented for {d}.")


def _range_of(op: str, input: Tensor, low: float, high: float, margin: float) -> tuple[float, float]:
    """The outer edges: as given, else the values' own range, widened when it is a single point."""
    if low == high and input._spec.numel:
        low, high = float(input.min()), float(input.max())
    if low == high:
        low, high = low - margin, high + margin
    if not (math.isfinite(low) and math.isfinite(high)):
        fail(RuntimeError, op, f"the range [{low}, {high}] is not finite.")
    return low, high


structured(
    "_histc(Tensor input, int bins, float min, float max)",
    infer=lambda x, bins, low, high: x.like((bins,)),
    differentiable=False,
    doc="Counts in bins of equal width.",
)


@composite(out=True)
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Counts in bins of equal width between `min` and `max`; both 0 mean the range of the values.

    >>> votive.histc(votive.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    _float_only("histc", input, True)
    if bins <= 0:
        fail(RuntimeError, "histc", f"bins must be positive, got {bins}.")
    low, high = _range_of("histc", input, float(min), float(max), 1.0)
    if low > high:
        fail(RuntimeError, "histc", f"max must be larger than min, got {low} and {high}.")
    return F._histc(input, bins, low, high)


structured(
    "_histogram(Tensor input, Tensor[] edges, Tensor? weight)",
    infer=lambda x, edges, weight: x.like(tuple(e.numel - 1 for e in edges)),
    differentiable=False,
    doc="Counts, or weights, of points (rows) in a grid of bins.",
)


def _edges(op: str, column: Tensor, bins: Tensor | int, limits: Sequence[float] | None) -> Tensor:
    if is_tensor(bins):
        if bins.dtype is not column.dtype:
            fail(DtypeError, op, f"bins must be {column.dtype} like input, got {bins.dtype}.")
        if bins.ndim != 1 or bins._spec.numel < 2:
            fail(RuntimeError, op, f"bin edges must be a vector of at least 2 values, got {tuple(bins.shape)}.")
        return bins
    if bins <= 0:
        fail(RuntimeError, op, f"bins must be positive, got {bins}.")
    if limits is not None:
        low, high = float(limits[0]), float(limits[1])
        if low > high:
            fail(RuntimeError, op, f"min must not exceed max, got {low} and {high}.")
        if low == high:
            low, high = low - 0.5, high + 0.5
    elif column._spec.numel == 0:
        low, high = 0.0, 1.0
    else:
        low, high = _range_of(op, column, 0.0, 0.0, 0.5)
    return F.linspace(low, high, bins + 1, dtype=column.dtype, device=column.device)


def _counted(op: str, points: Tensor, edges: list[Any], weight: Tensor | None, density: bool) -> Tensor:
    if weight is not None:
        if weight.dtype is not points.dtype:
            fail(DtypeError, op, f"weight must be {points.dtype} like input, got {weight.dtype}.")
        if weight._spec.numel != points._spec.shape[0]:
            fail(ShapeError, op, f"weight must have one value per point, got {weight.shape}.")
        weight = F.reshape(weight, -1)
    hist = F._histogram(points, tuple(edges), weight)
    if density:
        hist = hist / hist.sum()
        for d, e in enumerate(edges):
            width = F._slice(e, 0, 1, None, 1) - F._slice(e, 0, 0, -1, 1)
            hist = hist / F.reshape(width, *[-1 if k == d else 1 for k in range(len(edges))])
    return hist


@composite(out=True)
def histogram(
    input: Tensor,
    bins: Tensor | int,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """Counts in bins, given by their number or their edges, with the edges.

    >>> votive.histogram(votive.tensor([1.0, 2.0, 1.0]), bins=2, range=(0.0, 3.0)).hist
    tensor([2., 1.])
    """
    _float_only("histogram", input, False)
    edges = _edges("histogram", input, bins, range)
    points = F.reshape(input, -1, 1)
    if weight is not None and weight._spec.shape != input._spec.shape:
        fail(ShapeError, "histogram", f"weight must have the shape of input, got {weight.shape}.")
    return _HISTOGRAM(_counted("histogram", points, [edges], weight, density), edges)


@composite(method=False)
def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """Counts of points, the rows of `input`, in a grid of bins with one axis per column.

    >>> points = votive.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> votive.histogramdd(points, [2, 2]).hist
    tensor([[0., 1.],
            [1., 1.]])
    """
    op = "histogramdd"
    _float_only(op, input, False)
    if input.ndim < 2:
        fail(ShapeError, op, f"input must have at least 2 dimensions, got {input.ndim}.")
    columns = input._spec.shape[-1]
    given: list[Any] = [bins] * columns if isinstance(bins, int) else list(bins)
    if len(given) != columns:
        fail(ShapeError, op, f"needs bins for each of {columns} columns, got {len(given)}.")
    points = F.reshape(input, math.prod(input._spec.shape[:-1]), columns)
    pairs = [None] * columns if range is None else [range[i : i + 2] for i in _steps(columns)]
    edges = [
        _edges(op, F.select(points, 1, d), b, limits) for d, (b, limits) in enumerate(zip(given, pairs, strict=True))
    ]
    return _HISTOGRAMDD(_counted(op, points, edges, weight, density), tuple(edges))


def _steps(columns: int) -> list[int]:
    """Where each column's pair begins in a flat list of limits."""
    return [2 * d for d in range(columns)]
