"""Keeping numbers within bounds: clamp, maximum, minimum, nan_to_num. Knows not how they run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, fail
from ..formula import Expr, apply, where
from .inquiry import result_type
from .registry import F, Op, composite, pointwise

if TYPE_CHECKING:
    from .types import Callable, Number, Operand, Tensor


def fits_everywhere(value: Operand) -> bool:
    """Whether a number is small enough for every dtype, which spares most calls the full test."""
    return value.__class__ in (int, float, bool) and -100 <= value <= 100


def refuse_overflow(op: str, value: Number, kind: dt.dtype) -> None:
    """Raise where a number given as a bound or a filling does not fit into a dtype."""
    if fits_everywhere(value):
        return
    if isinstance(value, complex) and not kind.is_complex:
        if value.imag != 0:
            fail(DtypeError, op, f"{value} cannot be converted to {kind}.")
        value = value.real
    if kind.category == dt.INT:
        info = dt.iinfo(kind)
        # Negative numbers wrap around in unsigned types, as long as their size fits.
        low = info.min if kind.is_signed else -info.max
        assert not isinstance(value, complex)
        fits = math.isfinite(value) and low <= value <= info.max
    elif kind.category == dt.FLOAT and isinstance(value, (int, float)):
        fits = not math.isfinite(value) or abs(value) <= dt.finfo(kind).max
    else:
        fits = True
    if not fits:
        fail(DtypeError, op, f"{value} cannot be converted to {kind} without overflow.")


def _gate(keep: Expr, g: Expr) -> Expr:
    # A selection, not a product with 0 or 1: where nothing flows back, inf must not become nan.
    return where(keep, g, 0)


_CLAMP = pointwise(
    "_clamp(Tensor input, Operand min, Operand max)",
    lambda x, low, high: apply("minimum", apply("maximum", x, low), high),
    allow="if",
    grad={
        "input": lambda g, x, low, high, y: _gate((x >= low) & (x <= high), g),
        "min": lambda g, x, low, high, y: _gate((low < high) & (x < low), g),
        "max": lambda g, x, low, high, y: _gate((x > high) | (high < low), g),
    },
    doc="Bounds on both sides.",
)

_CLAMP_MIN = pointwise(
    "_clamp_min(Tensor input, Operand min)",
    lambda x, low: apply("maximum", x, low),
    allow="bif",
    grad={"input": lambda g, x, low, y: _gate(x >= low, g), "min": lambda g, x, low, y: _gate(x < low, g)},
    doc="A lower bound.",
)

_CLAMP_MAX = pointwise(
    "_clamp_max(Tensor input, Operand max)",
    lambda x, high: apply("minimum", x, high),
    allow="bif",
    grad={"input": lambda g, x, high, y: _gate(x <= high, g), "max": lambda g, x, high, y: _gate(x > high, g)},
    doc="An upper bound.",
)


def _bounded(run: Callable[..., Any], op: str, input: Tensor, low: Operand | None, high: Operand | None) -> Tensor:
    bounds = [v for v in (low, high) if v is not None]
    if not bounds:
        fail(RuntimeError, op, "at least one of min and max must not be None.")
    for v in bounds:
        if not (fits_everywhere(v) or hasattr(v, "_spec")):
            refuse_overflow(op, v, result_type(input, v))
    if low is None:
        return run(_CLAMP_MAX, (input, high))
    if high is None:
        return run(_CLAMP_MIN, (input, low))
    return run(_CLAMP, (input, low, high))


@composite(aliases=("clip",), out=True)
def clamp(input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """`input` with every element brought into `min..max`; either bound may be missing.

    >>> votive.clamp(votive.tensor([-2.0, 0.5, 3.0]), min=-1, max=1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    return _bounded(Op.apply, "clamp", input, min, max)


@composite(name="clamp_", aliases=("clip_",))
def clamp_inplace(input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """In-place form of `clamp`.

    >>> votive.tensor([-2, 0, 3]).clamp_(-1, 1)
    tensor([-1,  0,  1])
    """
    return _bounded(Op.write, "clamp_", input, min, max)


@composite(out=True)
def clamp_min(input: Tensor, min: Operand) -> Tensor:
    """`input` with nothing below `min`.

    >>> votive.clamp_min(votive.tensor([-2, 0, 3]), 0)
    tensor([0, 0, 3])
    """
    return _bounded(Op.apply, "clamp_min", input, min, None)


@composite(name="clamp_min_")
def clamp_min_inplace(input: Tensor, min: Operand) -> Tensor:
    """In-place form of `clamp_min`.

    >>> votive.tensor([-2, 0, 3]).clamp_min_(0)
    tensor([0, 0, 3])
    """
    return _bounded(Op.write, "clamp_min_", input, min, None)


@composite(out=True)
def clamp_max(input: Tensor, max: Operand) -> Tensor:
    """`input` with nothing above `max`.

    >>> votive.clamp_max(votive.tensor([-2, 0, 3]), 0)
    tensor([-2,  0,  0])
    """
    return _bounded(Op.apply, "clamp_max", input, None, max)


@composite(name="clamp_max_")
def clamp_max_inplace(input: Tensor, max: Operand) -> Tensor:
    """In-place form of `clamp_max`.

    >>> votive.tensor([-2, 0, 3]).clamp_max_(0)
    tensor([-2,  0,  0])
    """
    return _bounded(Op.write, "clamp_max_", input, None, max)


pointwise(
    "maximum(Tensor input, Tensor other)",
    allow="bif",
    inplace=False,
    doc="""The larger of two, elementwise; NaN if either is NaN.

    >>> votive.maximum(votive.tensor([1, 5]), votive.tensor([3, 4]))
    tensor([3, 5])
    """,
)

pointwise(
    "minimum(Tensor input, Tensor other)",
    allow="bif",
    inplace=False,
    doc="""The smaller of two, elementwise; NaN if either is NaN.

    >>> votive.minimum(votive.tensor([1, 5]), votive.tensor([3, 4]))
    tensor([1, 4])
    """,
)

pointwise(
    "fmax(Tensor input, Tensor other)",
    allow="bif",
    inplace=False,
    doc="""The larger of two, elementwise; a number wins against NaN.

    >>> votive.fmax(votive.tensor([1.0, float("nan")]), votive.tensor([3.0, 4.0]))
    tensor([3., 4.])
    """,
)

pointwise(
    "fmin(Tensor input, Tensor other)",
    allow="bif",
    inplace=False,
    doc="""The smaller of two, elementwise; a number wins against NaN.

    >>> votive.fmin(votive.tensor([1.0, float("nan")]), votive.tensor([3.0, 4.0]))
    tensor([1., 4.])
    """,
)


def _tidy(x: Expr, nan: Expr, high: Expr, low: Expr) -> Expr:
    finite = where(x.eq(math.inf), high, where(x.eq(-math.inf), low, x))
    return where(apply("isnan", x), nan, finite)


_NAN_TO_NUM = pointwise(
    "_nan_to_num(Tensor input, Scalar nan, Scalar posinf, Scalar neginf)",
    _tidy,
    grad={"input": lambda g, x, nan, high, low, y: _gate(apply("isfinite", x), g)},
    allow="f",
    doc="nan_to_num of real numbers.",
)

_NAN_TO_NUM_COMPLEX = pointwise(
    "_nan_to_num_complex(Tensor input, Scalar nan, Scalar posinf, Scalar neginf)",
    lambda x, *to: apply(
        "make_complex",
        _tidy(apply("real", x), *(apply("real", v) for v in to)),
        _tidy(apply("imag", x), *(apply("real", v) for v in to)),
    ),
    grad={"input": lambda g, x, nan, high, low, y: _gate(apply("isfinite", x), g)},
    allow="c",
    doc="nan_to_num of both parts of complex numbers.",
)


def _tidied(
    run: Callable[..., Any], op: str, input: Tensor, nan: Number | None, posinf: Number | None, neginf: Number | None
) -> Tensor:
    for name, v in (("nan", nan), ("posinf", posinf), ("neginf", neginf)):
        if not (v is None or isinstance(v, (int, float))):
            raise TypeError(f"{op}: {name} must be a float or None, got {type(v).__name__}.")
    kind = input.dtype
    if not kind.is_inexact:  # integers are finite
        return input if run is Op.write else F.clone(input)
    most = dt.finfo(kind).max
    chosen = (nan or 0.0, most if posinf is None else posinf, -most if neginf is None else neginf)
    return run(_NAN_TO_NUM_COMPLEX if kind.is_complex else _NAN_TO_NUM, (input, *chosen))


@composite(out=True)
def nan_to_num(
    input: Tensor, nan: Number | None = None, posinf: Number | None = None, neginf: Number | None = None
) -> Tensor:
    """`input` with NaN, +inf and -inf replaced: by 0 and the ends of the type, unless given.

    >>> votive.nan_to_num(votive.tensor([float("nan"), float("inf"), 1.0]), posinf=9.0)
    tensor([0., 9., 1.])
    """
    return _tidied(Op.apply, "nan_to_num", input, nan, posinf, neginf)


@composite(name="nan_to_num_")
def nan_to_num_inplace(
    input: Tensor, nan: Number | None = None, posinf: Number | None = None, neginf: Number | None = None
) -> Tensor:
    """In-place form of `nan_to_num`.

    >>> votive.tensor([float("nan"), 1.0]).nan_to_num_()
    tensor([0., 1.])
    """
    return _tidied(Op.write, "nan_to_num_", input, nan, posinf, neginf)
