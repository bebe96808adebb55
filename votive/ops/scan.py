"""Running results along a dimension: cumsum, cumprod, cummax, logcumsumexp, diff, trapezoid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, UnsupportedError, fail
from ..core.layout import Spec, wrap_dim
from .extremum import place
from .reduction import refuse
from .registry import F, composite, structured
from .results import named, results

if TYPE_CHECKING:
    from .types import Callable, Context, Operand, Tensor

_CUMMAX = results("cummax", "values", "indices")
_CUMMIN = results("cummin", "values", "indices")


def _canon_total(op: str) -> Callable[..., Any]:
    def canon(x: Spec, dim: int, dtype: dt.dtype | None) -> tuple[Any, ...]:
        refuse(op, x)
        if dtype is dt.bool_:
            fail(UnsupportedError, op, "a running total of type bool is not implemented.")
        want = dtype or (x.dtype if x.dtype.is_inexact else dt.int64)
        return x, wrap_dim(op, dim, x.ndim, x.shape), want

    return canon


def _infer_total(x: Spec, dim: int, dtype: dt.dtype) -> Spec:
    return x.dense_like(dtype)


def _cumsum_back(g: Tensor, dim: int) -> Tensor:
    """Sums from each place to the end."""
    if not g.shape:
        return g
    return F.flip(F.cumsum(F.flip(g, (dim,)), dim), (dim,))


structured(
    "cumsum(Tensor input, int dim, *, dtype? dtype=None)",
    placement="along dim",
    multilinear=("input",),
    batch="dims",
    canon=_canon_total("cumsum"),
    infer=_infer_total,
    grad={"input": lambda c, g: _cumsum_back(g, c.dim)},
    inplace=True,
    doc="""The sum of all elements up to each place along a dimension.

    >>> votive.cumsum(votive.tensor([1, 2, 3]), 0)
    tensor([1, 3, 6])
    """,
    autocast={"cuda": "float32"},
)

structured(
    "_shift(Tensor input, int dim, int by, number fill)",
    placement="along dim",
    batch="dims",
    infer=lambda x, dim, by, fill: x.like(x.shape),
    grad={"input": lambda c, g: F._shift(g, c.dim, -c.by, 0)},
    doc="The elements moved `by` places (1 or -1) along a dimension, the free place filled.",
)


def _grad_recurrence(c: Context, g: Tensor) -> tuple[Any, Any]:
    step = -1 if c.reverse else 1
    onward = F._shift(F.conj_physical(c.gain), c.dim, -step, 0)
    back = F._recurrence(onward, g, c.dim, not c.reverse)
    return back * F.conj_physical(F._shift(c.out, c.dim, step, 0)), back


structured(
    "_recurrence(Tensor gain, Tensor input, int dim, bool reverse)",
    placement="along dim",
    batch="dims",
    infer=lambda gain, x, dim, reverse: x.like(x.shape),
    grad=_grad_recurrence,
    doc="""`y[k] = gain[k] * y[k - 1] + input[k]` along a dimension; from the end, `y[k + 1]`.

    The gradient of a recurrence is one in the other direction; with it running products and running
    logsumexp have gradients of any order, without division and so without trouble at zeros.
    """,
)


def _grad_cumprod(c: Context, g: Tensor) -> Tensor:
    x = c.input.to(g.dtype)
    before = F._shift(c.out, c.dim, 1, 1)
    after = F._recurrence(F._shift(F.conj_physical(x), c.dim, -1, 0), g, c.dim, True)
    return F.conj_physical(before) * after


structured(
    "cumprod(Tensor input, int dim, *, dtype? dtype=None)",
    placement="along dim",
    batch="dims",
    canon=_canon_total("cumprod"),
    infer=_infer_total,
    grad={"input": _grad_cumprod},
    inplace=True,
    doc="""The product of all elements up to each place along a dimension.

    >>> votive.cumprod(votive.tensor([1, 2, 3]), 0)
    tensor([1, 2, 6])
    """,
    autocast={"cuda": "float32"},
)


def _canon_logcumsumexp(x: Spec, dim: int) -> tuple[Any, ...]:
    refuse("logcumsumexp", x, kinds="bi")
    return x, wrap_dim("logcumsumexp", dim, x.ndim, x.shape)


def _grad_logcumsumexp(c: Context, g: Tensor) -> Tensor:
    x, y = c.input, c.out
    # exp(y[k] - y[k + 1]) never overflows, since y rises; exp(x) and exp(-y) alone would.
    fall = F._shift(F._shift(y, c.dim, 1, 0) - y, c.dim, -1, 0)
    return F.conj_physical(F.exp(x - y)) * F._recurrence(F.conj_physical(F.exp(fall)), g, c.dim, True)


structured(
    "logcumsumexp(Tensor input, int dim)",
    placement="along dim",
    batch="dims",
    canon=_canon_logcumsumexp,
    infer=lambda x, dim: x.dense_like(),
    grad={"input": _grad_logcumsumexp},
    doc="""`log(cumsum(exp(input)))` along a dimension, without overflow.

    >>> votive.logcumsumexp(votive.tensor([0.0, 0.0]), 0)
    tensor([0.0000, 0.6931])
    """,
)


def _canon_extreme(op: str) -> Callable[..., Any]:
    def canon(x: Spec, dim: int) -> tuple[Any, ...]:
        refuse(op, x, *dt.BAREBONES, kinds="c")
        return x, wrap_dim(op, dim, x.ndim, x.shape)

    return canon


for _name in ("cummax", "cummin"):
    structured(
        f"_{_name}(Tensor input, int dim)",
        batch="dims",
        canon=_canon_extreme(_name),
        infer=lambda x, dim: (x.dense_like(), x.dense_like(dt.int64)),
        n_out=2,
        grad={"input": lambda c, g, _: place(g, c.shape("input"), c.dim, True, c.out1)},
        doc="Running extremes and the index of the last element that was equal to them.",
    )


@composite(out=True, out_exact_dtype=True)
def cummax(input: Tensor, dim: int) -> Any:
    """The largest element up to each place along a dimension, and where it is.

    >>> votive.cummax(votive.tensor([1, 3, 2]), 0)
    votive.return_types.cummax(
    values=tensor([1, 3, 3]),
    indices=tensor([0, 1, 1]))
    """
    return named(_CUMMAX, F._cummax(input, dim))


@composite(out=True, out_exact_dtype=True)
def cummin(input: Tensor, dim: int) -> Any:
    """The smallest element up to each place along a dimension, and where it is.

    >>> votive.cummin(votive.tensor([3, 1, 2]), 0)
    votive.return_types.cummin(
    values=tensor([3, 1, 1]),
    indices=tensor([0, 1, 1]))
    """
    return named(_CUMMIN, F._cummin(input, dim))


@composite(out=True)
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Differences of neighbours along a dimension, taken `n` times.

    >>> votive.diff(votive.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    if input.ndim == 0:
        fail(ShapeError, "diff", "the input must have at least one dimension, got shape ().")
    if n < 0:
        fail(ShapeError, "diff", f"n must be non-negative, got {n}.")
    where = wrap_dim("diff", dim, input.ndim, input._spec.shape)
    parts = [t for t in (prepend, input, append) if t is not None]
    if any(t.ndim != input.ndim for t in parts):
        fail(ShapeError, "diff", "prepend and append must have as many dimensions as the input.")
    if n == 0:
        return F.clone(input)
    x = F.cat(parts, where) if len(parts) > 1 else input
    rounds = min(n, x.shape[where])
    for _ in range(rounds):
        x = _neighbours(x, where)
    return x if rounds else F.clone(x)


def _neighbours(x: Tensor, dim: int) -> Tensor:
    """One round of differences; of bools, whether they differ."""
    later, earlier = _pairs(x, dim)
    return F.logical_xor(later, earlier) if x.dtype is dt.bool_ else later - earlier


def _pairs(x: Tensor, dim: int) -> tuple[Any, Any]:
    """All elements but the first, and all but the last."""
    n = x.shape[dim]
    return F.narrow(x, dim, min(1, n), max(n - 1, 0)), F.narrow(x, dim, 0, max(n - 1, 0))


def _areas(op: str, y: Tensor, x: Tensor | None, dx: Operand | None, dim: int) -> Tensor:
    """Twice the areas of the trapezoids between neighbouring samples."""
    if y.ndim == 0:
        fail(IndexError, op, f"dim={dim} needs a tensor with dimensions, got shape ().")
    if y.dtype is dt.bool_ or (x is not None and x.dtype is dt.bool_):
        fail(DtypeError, op, "bool samples are not supported; cast them first.")
    if x is not None and dx is not None:
        raise TypeError(f"{op}: takes either x or dx, got both.")
    width: Operand = 1 if dx is None else dx
    if x is not None:
        width = _neighbours(_aligned(op, x, y, dim), dim)
    later, earlier = _pairs(y, dim)
    return (later + earlier) * width


def _aligned(op: str, x: Tensor, y: Tensor, dim: int) -> Tensor:
    """Sample points with as many dimensions as the samples: a single row runs along `dim`."""
    if x.ndim == 1:
        if x.shape[0] != y.shape[dim]:
            fail(ShapeError, op, f"x has {x.shape[0]} sample points, y has {y.shape[dim]}.")
        return x.reshape([x.shape[0] if d == dim else 1 for d in range(y.ndim)])
    return x.reshape((1,) * (y.ndim - x.ndim) + tuple(x.shape)) if x.ndim < y.ndim else x


@composite(method=False, aliases=("trapz",))
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Operand | None = None, dim: int = -1) -> Tensor:
    """The integral of samples `y` at points `x` (or `dx` apart) by the trapezoidal rule.

    >>> votive.trapezoid(votive.tensor([1.0, 2.0, 3.0]))
    tensor(4.)
    """
    where = wrap_dim("trapezoid", dim, y.ndim, y._spec.shape)
    return F.sum(_areas("trapezoid", y, x, dx, where), where) / 2


@composite(method=False)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Operand | None = None, dim: int = -1) -> Tensor:
    """The running integral of samples by the trapezoidal rule.

    >>> votive.cumulative_trapezoid(votive.tensor([1.0, 2.0, 3.0]))
    tensor([1.5000, 4.0000])
    """
    where = wrap_dim("cumulative_trapezoid", dim, y.ndim, y._spec.shape)
    return F.cumsum(_areas("cumulative_trapezoid", y, x, dx, where) / 2, where)
