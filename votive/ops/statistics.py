"""Statistics of samples: variance, median, mode, quantiles. Knows shapes and gradients."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, fail
from ..core.layout import Spec, reduced_shape, wrap_dim, wrap_dims
from ..core.remembered import remembered
from .extremum import infer_pick, no_identity, place, spread
from .reduction import count, keep_dims, refuse
from .registry import F, composite, structured
from .results import named, results
from .schema import is_tensor

if TYPE_CHECKING:
    from .types import Ints, Tensor

_MEDIAN = results("median", "values", "indices")
_MODE = results("mode", "values", "indices")
_NANMEDIAN = results("nanmedian", "values", "indices")


def _infer_var(x: Spec, dim: tuple[int, ...], correction: float, keepdim: bool) -> Spec:
    return x.like(reduced_shape(x.shape, dim, keepdim), dtype=x.dtype.to_real())


def _grad_var(x: Tensor, g: Tensor, dim: tuple[int, ...], correction: float, keepdim: bool) -> Tensor:
    free = count(x.shape, dim) - correction
    scale = 2 / free if free else math.inf
    return keep_dims(g, dim, keepdim) * scale * (x - F.mean(x, dim, True))


structured(
    "_var(Tensor input, int[] dim, float correction, bool keepdim)",
    placement="reduces",
    batch="dims",
    infer=_infer_var,
    grad={"input": lambda c, g: _grad_var(c.input, g, c.dim, c.correction, c.keepdim)},
    doc="The mean squared distance from the mean, divided by count - correction.",
)

structured(
    "_std(Tensor input, int[] dim, float correction, bool keepdim)",
    placement="reduces",
    batch="dims",
    infer=_infer_var,
    # The root has no derivative at 0; like torch, take 0 there.
    grad={
        "input": lambda c, g: _grad_var(
            c.input, F.where(c.out == 0, 0, g / (2 * F.where(c.out == 0, 1, c.out))), c.dim, c.correction, c.keepdim
        )
    },
    doc="The root of `_var`.",
)


@remembered(4096, typed=True)
def _spread_args(
    op: str, shape: tuple[int, ...], dtype: dt.dtype, dim: Ints | None, unbiased: bool | None, correction: float | None
) -> tuple[tuple[int, ...], float, bool]:
    """The dimensions and the correction that torch's overloads of var and std mean, and whether
    there are elements enough.
    """
    if isinstance(dim, bool):
        if unbiased is not None:
            raise TypeError(f"{op}: unbiased was given twice.")
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise TypeError(f"{op}: takes either unbiased or correction, got both.")
    if unbiased is not None and not isinstance(unbiased, bool):
        raise TypeError(f"{op}: argument 'unbiased' must be bool, got {type(unbiased).__name__}.")
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    if not dtype.is_inexact or dtype in dt.FLOAT8:
        fail(DtypeError, op, f"takes floating-point and complex tensors, got {dtype}.")
    dims = wrap_dims(op, dim, len(shape))
    return dims, float(correction), count(shape, dims) > correction


def _spread(op: str, input: Tensor, dim: Ints | None, unbiased: bool | None, correction: float | None) -> Any:
    """`_spread_args`, with a warning where there is nothing to spread."""
    x = input._spec
    if dim.__class__ is list:
        dim = tuple(dim)
    try:
        dims, less, enough = _spread_args(op, x.shape, x.dtype, dim, unbiased, correction)
    except TypeError:  # a value without a hash, or wrong: both show below
        dims, less, enough = _spread_args.__wrapped__(op, x.shape, x.dtype, dim, unbiased, correction)
    if not enough:
        warnings.warn(
            f"{op}(): degrees of freedom is <= 0: {count(x.shape, dims)} elements per result, "
            f"correction {less:g}. The result is NaN or infinite.",
            UserWarning,
            stacklevel=4,
        )
    return dims, less


@composite(out=True)
def var(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Variance over all or some dimensions, divided by count - correction (1 unless given).

    >>> votive.var(votive.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor(1.6667)
    """
    return F._var(input, *_spread("var", input, dim, unbiased, correction), keepdim)


@composite(out=True)
def std(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Standard deviation over all or some dimensions: the root of `var`.

    >>> votive.std(votive.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor(1.2910)
    """
    return F._std(input, *_spread("std", input, dim, unbiased, correction), keepdim)


@composite(method=False)
def var_mean(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Any, Any]:
    """Variance and mean over all or some dimensions.

    >>> votive.var_mean(votive.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    dims, correction = _spread("var_mean", input, dim, unbiased, correction)
    return F._var(input, dims, correction, keepdim), F.mean(input, dims, keepdim)


@composite(method=False)
def std_mean(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Any, Any]:
    """Standard deviation and mean over all or some dimensions.

    >>> votive.std_mean(votive.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    dims, correction = _spread("std_mean", input, dim, unbiased, correction)
    return F._std(input, dims, correction, keepdim), F.mean(input, dims, keepdim)


def _canon_pick(x: Spec, op: str, dim: int, keepdim: bool) -> tuple[Any, ...]:
    refuse(op, x, *dt.BAREBONES, kinds="c" if op == "mode" else "bc")
    where = wrap_dim(op, dim, x.ndim, x.shape)
    no_identity(op, x, (where,))
    return x, op, where, keepdim


structured(
    "_sample(Tensor input, str kind, int dim, bool keepdim)",
    placement="reduces",
    batch="dims",
    canon=_canon_pick,
    infer=lambda x, kind, dim, keepdim: infer_pick(x, dim, keepdim),
    n_out=2,
    grad={"input": lambda c, g, _: place(g, c.shape("input"), c.dim, c.keepdim, c.out1)},
    doc="The median, nanmedian or mode along a dimension and the index where it was found.",
)


def _canon_median(x: Spec, kind: str) -> tuple[Any, ...]:
    refuse(kind, x, *dt.BAREBONES, kinds="bc")
    return x, kind


structured(
    "_median(Tensor input, str kind)",
    canon=_canon_median,
    infer=lambda x, kind: x.like(()),
    grad={"input": lambda c, g: spread(g, c.input, c.out, tuple(range(c.input.ndim)), False)},
    doc="The median or nanmedian of all elements.",
)


@composite(out=True, out_exact_dtype=True)
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element, the lower of two; with a dim also where it is. NaN if any element is.

    >>> votive.median(votive.tensor([[3, 1, 2], [6, 4, 5]]), 1)
    votive.return_types.median(
    values=tensor([2, 5]),
    indices=tensor([2, 2]))
    """
    if dim is None:
        return F._median(input, "median")
    return named(_MEDIAN, F._sample(input, "median", dim, keepdim))


@composite(out=True, out_exact_dtype=True)
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element of those that are not NaN; with a dim also where it is.

    >>> votive.nanmedian(votive.tensor([1.0, float("nan"), 3.0, 2.0]))
    tensor(2.)
    """
    if dim is None:
        return F._median(input, "nanmedian")
    return named(_NANMEDIAN, F._sample(input, "nanmedian", dim, keepdim))


@composite(out=True, out_exact_dtype=True)
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent value along a dimension, the smallest of several, and where it last is.

    >>> votive.mode(votive.tensor([2, 1, 2, 1, 3]))
    votive.return_types.mode(
    values=tensor(1),
    indices=tensor(3))
    """
    return named(_MODE, F._sample(input, "mode", dim, keepdim))


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _checked_q(op: str, input: Tensor, q: Tensor | float, interpolation: str) -> Tensor:
    if input._spec.dtype not in (dt.float32, dt.float64):
        fail(DtypeError, op, f"takes float32 and float64 tensors, got {input.dtype}.")
    if input._spec.numel == 0:
        fail(ShapeError, op, f"the input must not be empty, got shape {tuple(input.shape)}.")
    if interpolation not in _INTERPOLATIONS:
        fail(RuntimeError, op, f"interpolation must be one of {', '.join(_INTERPOLATIONS)}, got {interpolation!r}.")
    if not is_tensor(q):
        if not 0 <= q <= 1:
            fail(RuntimeError, op, f"q must lie in [0, 1], got {q}.")
        return F.tensor(float(q), dtype=input.dtype, device=input.device)
    if q.ndim > 1:
        fail(ShapeError, op, f"q must be a number or have one dimension, got {tuple(q.shape)}.")
    if q._spec.dtype is not input._spec.dtype:
        fail(DtypeError, op, f"q must have the type of the input, {input.dtype}, got {q.dtype}.")
    inside = F.logical_and(q >= 0, q <= 1)
    if not bool(F.all(inside)):
        fail(RuntimeError, op, "all values of q must lie in [0, 1].")
    return q


def _quantile(op: str, input: Tensor, q: Tensor | float, dim: int | None, keepdim: bool, interpolation: str) -> Tensor:
    q = _checked_q(op, input, q, interpolation)
    where = None if dim is None else wrap_dim(op, dim, input.ndim, input._spec.shape)
    shape = reduced_shape(input._spec.shape, tuple(range(input.ndim)) if where is None else (where,), keepdim)
    rows = input.reshape(-1) if where is None or input.ndim == 0 else F.movedim(input, where, -1)
    rows = F.sort(rows, -1)[0]  # (..., n)
    missing = F.isnan(rows.detach())
    last = rows.shape[-1] - 1
    points = q.reshape(-1)  # (k,)
    if op == "nanquantile":
        known = (last - F.sum(missing, -1, True)).to(q.dtype)
        rank = F.clamp(points * known, min=0)  # (..., k)
    else:
        # A row with a NaN has NaN quantiles, and sorting put the NaN last.
        rank = F.where(F.any(missing, -1, True), last, points * last)
    rank = rank.expand((*rows.shape[:-1], rank.shape[-1]))
    picked = _interpolate(rows, rank, interpolation)
    # The results for each q come first, in front of what is left of the input's shape.
    picked = F.movedim(picked, -1, 0)
    return picked.reshape((*q.shape, *shape))


def _interpolate(rows: Tensor, rank: Tensor, interpolation: str) -> Tensor:
    """Values of sorted rows at ranks that may lie between two places."""
    whole = {"lower": F.floor, "higher": F.ceil, "nearest": F.round}.get(interpolation)
    if whole is not None:
        return F.gather(rows, -1, whole(rank.detach()).to(dt.int64))
    below = F.floor(rank.detach())
    weight = 0.5 if interpolation == "midpoint" else rank - below
    low = F.gather(rows, -1, below.to(dt.int64))
    high = F.gather(rows, -1, F.ceil(rank.detach()).to(dt.int64))
    return F.lerp(low, high, weight)


@composite(out=True, autocast={"cpu": "float32"})
def quantile(
    input: Tensor, q: Tensor | float, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """The values below which a share q of the elements lies; with several q, one slice for each.

    >>> votive.quantile(votive.tensor([1.0, 2.0, 3.0, 4.0]), 0.5)
    tensor(2.5000)
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation)


@composite(out=True, autocast={"cpu": "float32"})
def nanquantile(
    input: Tensor, q: Tensor | float, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """Quantiles of the elements that are not NaN.

    >>> votive.nanquantile(votive.tensor([1.0, float("nan"), 3.0]), 0.5)
    tensor(2.)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation)
