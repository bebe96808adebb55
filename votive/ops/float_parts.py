"""What floats are made of: sign, mantissa, exponent, neighbours. Knows not how it is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, UnsupportedError, fail
from ..core.layout import Layout, Spec, broadcast_shapes, elementwise_strides
from ..core.promotion import result_type_of
from ..formula import where
from .registry import F, composite, pointwise, structured
from .results import results

if TYPE_CHECKING:
    from .types import Tensor

pointwise(
    "copysign(Tensor input, Operand other)",
    dtypes="float",
    allow="bif",
    doc="""The size of `input` with the sign of `other`.

    >>> votive.copysign(votive.tensor([1.0, -2.0]), -1)
    tensor([-1., -2.])
    """,
)


def _heaviside_types(promoted: dt.dtype, x: Spec, values: Spec) -> tuple[dt.dtype, dt.dtype]:
    if x.dtype is not values.dtype:
        fail(DtypeError, "heaviside", f"input and values must have one dtype, got {x.dtype} and {values.dtype}.")
    return promoted, promoted


pointwise(
    "heaviside(Tensor input, Tensor values)",
    lambda x, v: where(x.eq(0), v, where(x > 0, 1, 0)),
    dtypes=_heaviside_types,
    allow="bif",
    doc="""The step function: 0 below zero, 1 above, `values` at zero.

    >>> votive.heaviside(votive.tensor([-1.0, 0.0, 2.0]), votive.tensor(0.5))
    tensor([0.0000, 0.5000, 1.0000])
    """,
).grad = {}  # as in torch, nothing flows back through a step


pointwise(
    "ldexp(Tensor input, Tensor other)",
    dtypes="float",
    doc="""`input * 2^other`.

    >>> votive.ldexp(votive.tensor([1.0, 3.0]), votive.tensor([2, -1]))
    tensor([4.0000, 1.5000])
    """,
    inplace_function=True,
    autocast={"cuda": "float32"},
)


def _infer_frexp(x: Spec) -> tuple[Spec, Spec]:
    if not x.dtype.is_floating_point:
        fail(DtypeError, "frexp", f"takes floating-point tensors, got {x.dtype}.")
    return x.dense_like(), x.dense_like(dt.int32)


structured(
    "_frexp(Tensor input)",
    placement="elementwise",
    batch="same",
    infer=_infer_frexp,
    grad={"input": lambda c, g, _: g / F.exp2(c.out1)},
    n_out=2,
    doc="Mantissa and exponent.",
)


@composite(out=True)
def frexp(input: Tensor) -> Any:
    """Mantissa in 0.5..1 and exponent with `input = mantissa * 2^exponent`.

    >>> votive.frexp(votive.tensor([8.0])).exponent
    tensor([4], dtype=votive.int32)
    """
    return results("frexp", "mantissa", "exponent")(*F._frexp(input))


def _infer_nextafter(a: Spec, b: Spec) -> Spec:
    dims = [s.dtype for s in (a, b) if s.ndim]
    kind = result_type_of(dims, [s.dtype for s in (a, b) if not s.ndim], [])
    if not kind.is_floating_point:
        fail(UnsupportedError, "nextafter", f"takes floating-point tensors, got {kind}.")
    shape = broadcast_shapes("nextafter", a.shape, b.shape)
    # A single number of the CPU joins the other's device.
    place = a.device if a.ndim or a.device.type != "cpu" else b.device
    return Spec(Layout(shape, elementwise_strides(shape, [a, b])), kind, place)


structured(
    "nextafter(Tensor input, Tensor other)",
    placement="elementwise",
    batch="align",
    infer=_infer_nextafter,
    grad={"input": lambda c, g: F.where(F.ne(c.input, c.other), g, 0), "other": None},
    inplace=True,
    doc="""The next number that the type can hold after `input`, on the way to `other`.

    >>> votive.nextafter(votive.tensor([1.0]), votive.tensor([2.0])) > 1
    tensor([True])
    """,
)
