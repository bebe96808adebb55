"""Writing along one dimension at positions an index tensor names. Knows shapes and gradients."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import ShapeError, UnsupportedError, fail
from ..core.layout import Shape, Spec, wrap_dim
from ..core.mode import mode
from .index import blank, check_index, check_same, filled
from .registry import OPS, F, Op, composite, structured
from .schema import is_tensor

if TYPE_CHECKING:
    from .types import Callable, Context, Number, Operand, Tensor


def _check(op: str, x: Spec, dim: int, index: Spec, src: Spec | Number) -> Spec:
    check_index(op, index)
    if isinstance(src, Spec):
        check_same(op, x, src)
    if index.numel:
        have, want = filled(x.shape), filled(index.shape)
        given = filled(src.shape) if isinstance(src, Spec) else want
        if len(have) != len(want) or len(given) != len(want):
            fail(
                ShapeError,
                op,
                f"index must have as many dimensions as input and src, got {index.ndim} for input "
                f"{x.shape}" + (f" and src {src.shape}." if isinstance(src, Spec) else "."),
            )
        fits = all(d == dim or n <= m for d, (n, m) in enumerate(zip(want, have, strict=True)))
        if not fits or any(n > m for n, m in zip(want, given, strict=True)):
            fail(
                ShapeError,
                op,
                f"index {index.shape} must be no larger than input {x.shape} apart from dimension "
                f"{dim}" + (f", and no larger than src {src.shape}." if isinstance(src, Spec) else "."),
            )
    return x.like(x.shape)


def _canon(op: str) -> Callable[..., Any]:
    return lambda x, dim, *rest: (x, wrap_dim(op, dim, x.ndim, x.shape), *rest)


def _read_back(g: Tensor, dim: int, index: Tensor, shape: Shape) -> Tensor:
    """The gradient of a source of `shape` of which the part under `index` was written."""
    part = F.gather(g, dim, index)
    if part._spec.shape == shape:
        return part
    whole = blank(shape, g)
    if part._spec.numel:
        corner = whole
        for d, n in enumerate(part._spec.shape):
            corner = F._slice(corner, d, 0, n, 1)
        corner.copy_(part)
    return whole


structured(
    "_scatter(Tensor input, int dim, Tensor index, Operand src)",
    placement="along dim",
    batch="dims",
    skips_elements=True,
    canon=_canon("scatter"),
    infer=lambda x, dim, index, src: _check("scatter", x, dim, index, src),
    grad={
        "input": lambda c, g: F._scatter(g, c.dim, c.index, 0),
        "src": lambda c, g: _read_back(g, c.dim, c.index, c.shape("src")),
    },
    doc="Write a tensor's values, or one number, at the positions that `index` names.",
)

structured(
    "scatter_add(Tensor input, int dim, Tensor index, Tensor src)",
    placement="along dim",
    batch="dims",
    canon=_canon("scatter_add"),
    infer=lambda x, dim, index, src: _check("scatter_add", x, dim, index, src),
    grad={"input": lambda c, g: g, "src": lambda c, g: _read_back(g, c.dim, c.index, c.shape("src"))},
    inplace=True,
    doc="""Add values at positions along `dim`: `out[index[i][j]][j] += src[i][j]` for dim=0.

    >>> votive.scatter_add(votive.zeros(3), 0, votive.tensor([0, 2, 2]), votive.ones(3))
    tensor([1., 0., 2.])
    """,
    autocast={"cuda": "widest"},
)


def _source(op: str, input: Tensor, index: Tensor, src: Operand | None, value: Operand | None) -> Any:
    """The one of `src` and `value` that was given; a number may stand in either's place."""
    if (src is None) == (value is None):
        raise TypeError(f"{op}: give either src or value.")
    if value is not None:
        return value.item() if is_tensor(value) else value
    return src


def _reducible(op: str, input: Tensor, index: Tensor, src: Operand, reduce: str) -> Tensor:
    if reduce not in ("add", "multiply"):
        fail(RuntimeError, op, f"reduce must be either add or multiply, got {reduce!r}.")
    if is_tensor(src):
        warnings.warn(f"{op}: reduce= with a tensor src is deprecated; use scatter_reduce.", stacklevel=4)
        return src
    one = F.empty((), dtype=input.dtype, device=input.device).fill_(src)
    return F.expand(one, index.shape)


@composite(out=True, autocast={"cuda": "off"})
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Operand | None = None,
    *,
    value: Number | None = None,
    reduce: str | None = None,
) -> Tensor:
    """Write values at positions along `dim`: `out[index[i][j]][j] = src[i][j]` for dim=0.

    `src` is a tensor or a number; with `reduce` "add" or "multiply" it is combined instead.

    >>> votive.scatter(votive.zeros(2, 3), 1, votive.tensor([[0], [2]]), 5.0)
    tensor([[5., 0., 0.],
            [0., 0., 5.]])
    """
    src = _source("scatter", input, index, src, value)
    if reduce is None:
        return F._scatter(input, dim, index, src)
    combined = _reducible("scatter", input, index, src, reduce)
    if reduce == "add":
        return F.scatter_add(input, dim, index, combined)
    return F._scatter_prod(input, dim, index, combined, True)


@composite(name="scatter_", namespaces=())
def scatter_(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Operand | None = None,
    *,
    value: Number | None = None,
    reduce: str | None = None,
) -> Tensor:
    """In-place form of `scatter`.

    >>> votive.zeros(3).scatter_(0, votive.tensor([1]), 5.0)
    tensor([0., 5., 0.])
    """
    src = _source("scatter_", input, index, src, value)
    if reduce is None:
        return Op.write(OPS["_scatter"], (input, dim, index, src))
    combined = _reducible("scatter_", input, index, src, reduce)
    if reduce == "add":
        return input.scatter_add_(dim, index, combined)
    return Op.write(OPS["_scatter_prod"], (input, dim, index, combined, True))


structured(
    "_first_order(Tensor input)",
    infer=lambda x: x.like(x.shape),
    doc="A copy whose own derivative is refused: what follows it is right to first order only.",
)


def _grad_prod(c: Context, g: Tensor) -> tuple[Any, None, Any]:
    """Each factor's gradient is the product of the others, also where one of them is zero."""
    x, src, y, dim, index, own = c.input, c.src, c.out, c.dim, c.index, c.include_self
    by_x = by_src = None
    if c.needs("input"):
        safe = F.where(x == 0, 1, x)
        by_x = g * F._scatter_prod(safe, dim, index, src, own) / safe
        if not own:
            by_x = F._scatter(by_x, dim, index, 0)
    if c.needs("src"):
        zero = src == 0
        safe = F.where(zero, 1, src)
        zeros = F.scatter_add(F.zeros_like(x), dim, index, zero.to(x.dtype))
        many = F.gather(zeros, dim, index) > 1
        alone = zero & ~many
        others = F._scatter_prod(x, dim, index, safe, own)
        by_src = F.where(alone, F.gather(g * others, dim, index), F.gather(g * y, dim, index) / safe)
        # Two zeros in one product: the gradient is zero there, its derivative is not.
        if mode.grad and bool(many.any()):
            by_src = F._first_order(by_src)
    return by_x, None, by_src


def _grad_extremum(c: Context, g: Tensor) -> tuple[Any, None, Any]:
    """The gradient is shared evenly among all that attain the extremum."""
    y, dim, index = c.out, c.dim, c.index
    x_is = (c.input == y).to(g.dtype)
    if not c.include_self:
        x_is = F._scatter(x_is, dim, index, 0)
    src_is = (c.src == F.gather(y, dim, index)).to(g.dtype)
    each = g / F.scatter_add(x_is, dim, index, src_is)
    return x_is * each, None, src_is * F.gather(each, dim, index)


structured(
    "_scatter_prod(Tensor input, int dim, Tensor index, Tensor src, bool include_self)",
    batch="dims",
    canon=_canon("scatter_reduce"),
    infer=lambda x, dim, index, src, own: _check("scatter_reduce", x, dim, index, src),
    grad=_grad_prod,
    doc="Multiply values into the positions that `index` names.",
)

structured(
    "_scatter_extremum(Tensor input, int dim, Tensor index, Tensor src, str reduce, bool include_self)",
    batch="dims",
    canon=_canon("scatter_reduce"),
    infer=lambda x, dim, index, src, reduce, own: _check("scatter_reduce", x, dim, index, src),
    grad=_grad_extremum,
    doc="Keep the largest or smallest value at the positions that `index` names.",
)


def _mean(input: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool) -> Tensor:
    base = input if include_self else F._scatter(input, dim, index, 0)
    total = F.scatter_add(base, dim, index, src)
    real = input.dtype.is_inexact
    # Half types cannot count far; integers are counted and divided as such, rounding down.
    unit = dt.compute_type(input.dtype.to_real()) if real else dt.int64
    one = F.expand(F.ones((), dtype=unit, device=input.device), index.shape)
    count = F.zeros(input.shape, dtype=unit, device=input.device).scatter_add_(dim, index, one)
    count = count + 1 if include_self else F.clamp(count, min=1)
    mean = total / count if real else F.div(total, count, rounding_mode="floor")
    return mean.to(input.dtype)


@composite(inplace=True, out=True, autocast={"cuda": "off"})
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Combine values into positions along `dim`; without `include_self` the old ones do not count.

    `reduce` is "sum", "prod", "mean", "amax" or "amin".

    >>> index = votive.tensor([0, 1, 1])
    >>> votive.scatter_reduce(votive.zeros(2), 0, index, votive.tensor([1.0, 2.0, 3.0]), "amax")
    tensor([1., 3.])
    """
    op = "scatter_reduce"
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        fail(RuntimeError, op, f"reduce must be sum, prod, mean, amax or amin, got {reduce!r}.")
    x = input._spec
    dim = wrap_dim(op, dim, x.ndim, x.shape)
    _check(op, x, dim, index._spec, src._spec)
    bad = {"mean": dt.BOOL, "amax": dt.COMPLEX, "amin": dt.COMPLEX}
    if bad.get(reduce) == x.dtype.category:
        raise UnsupportedError(f"{op}: {reduce} is not implemented for {x.dtype} tensors.")
    if index._spec.numel == 0:
        return F.clone(input)
    if src._spec.shape != index._spec.shape:
        if src.ndim == index.ndim:
            for d, n in enumerate(index._spec.shape):
                src = F._slice(src, d, 0, n, 1)
        else:
            src = F.reshape(src, index.shape)
    if reduce == "mean":
        return _mean(input, dim, index, src, include_self)
    if reduce == "sum":
        base = input if include_self else F._scatter(input, dim, index, 0)
        return F.scatter_add(base, dim, index, src)
    if reduce == "prod":
        return F._scatter_prod(input, dim, index, src, include_self)
    return F._scatter_extremum(input, dim, index, src, reduce, include_self)
