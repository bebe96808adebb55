"""Complex numbers: parts, polar form, conjugate, views as pairs of reals. Knows no memory."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, UnsupportedError, fail
from ..core.layout import Spec
from ..formula import apply
from ..formula import conj as conjugate
from .registry import F, Op, composite, pointwise, view
from .shape import PROPERTIES

if TYPE_CHECKING:
    from .types import Callable, Tensor


def _pair_types(op: str) -> Callable[..., Any]:
    def rule(promoted: dt.dtype, a: Spec, b: Spec) -> tuple[dt.dtype, dt.dtype]:
        if a.dtype is not b.dtype:
            fail(DtypeError, op, f"both parts must have one dtype, got {a.dtype} and {b.dtype}.")
        if promoted is dt.float16:
            fail(UnsupportedError, op, "complex numbers of halves are not there; use float32.")
        if promoted not in (dt.float32, dt.float64):
            fail(DtypeError, op, f"takes float32 or float64 tensors, got {promoted}.")
        return promoted, promoted.to_complex()

    return rule


pointwise(
    "complex(Tensor real, Tensor imag)",
    lambda a, b: apply("make_complex", a, b),
    dtypes=_pair_types("complex"),
    method=False,
    inplace=False,
    doc="""The complex number with a given real and imaginary part.

    >>> votive.complex(votive.tensor([1.0]), votive.tensor([2.0]))
    tensor([1.+2.j])
    """,
    out_exact_dtype=True,
).grad = {"real": lambda c, g: F.real(g), "imag": lambda c, g: F.imag(g)}

pointwise(
    "polar(Tensor abs, Tensor angle)",
    lambda r, t: apply("make_complex", r * apply("cos", t), r * apply("sin", t)),
    dtypes=_pair_types("polar"),
    method=False,
    inplace=False,
    doc="""The complex number with a given modulus and angle, `abs * e^(i angle)`.

    >>> votive.polar(votive.tensor([2.0]), votive.tensor([0.0]))
    tensor([2.+0.j])
    """,
    autocast={"cpu": "float32"},
).grad = {
    "abs": lambda c, g: F.real(g) * c.angle.cos() + F.imag(g) * c.angle.sin(),
    "angle": lambda c, g: F.imag(g) * F.real(c.out) - F.real(g) * F.imag(c.out),
}


def _angle_types(promoted: dt.dtype, x: Spec) -> tuple[dt.dtype, dt.dtype]:
    kind = promoted if promoted.is_inexact else dt.get_default_dtype()
    return kind, kind.to_real()


pointwise(
    "angle(Tensor input)",
    dtypes=_angle_types,
    inplace=False,
    doc="""The angle of a complex number in -pi..pi; of a real one, 0 or pi.

    >>> votive.angle(votive.tensor([1.0, -1.0]))
    tensor([0.0000, 3.1416])
    """,
)

pointwise(
    "sgn(Tensor input)",
    doc="""`input / |input|`, and 0 at 0; for real numbers the sign.

    >>> votive.sgn(votive.tensor([3 + 4j, 0j]))
    tensor([0.6000+0.8000j, 0.0000+0.0000j])
    """,
)

_CONJ = pointwise("_conj(Tensor input)", conjugate, allow="c", doc="The conjugate of complex numbers.")


@composite(out=True)
def conj_physical(input: Tensor) -> Tensor:
    """The conjugate: the imaginary part changes its sign.

    >>> votive.conj_physical(votive.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return F._conj(input) if input.dtype.is_complex else input


@composite(name="conj_physical_")
def conj_physical_inplace(input: Tensor) -> Tensor:
    """In-place form of `conj_physical`.

    >>> votive.tensor([1 + 2j]).conj_physical_()
    tensor([1.-2.j])
    """
    return Op.write(_CONJ, (input,)) if input.dtype.is_complex else input


@cache
def _pending() -> Any:
    """The module of lazy views: above this layer, and needed by few."""
    return import_module("votive.surface.pending")


@composite
def conj(input: Tensor) -> Tensor:
    """The conjugate as a view of the same memory, computed when it is used; real tensors are returned as they are.

    >>> x = votive.tensor([1 + 2j])
    >>> x.conj(), x.conj().is_conj()
    (tensor([1.-2.j]), True)
    """
    if not input.dtype.is_complex:
        return input
    return _pending().conjugated(input)


@composite(method=False)
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor with a pending conjugation carried out; others are returned as they are.

    >>> votive.resolve_conj(votive.tensor([1 + 2j]).conj()).is_conj()
    False
    """
    return input


@composite(method=False)
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor with a pending negation carried out; others are returned as they are.

    >>> part = votive.tensor([1 + 2j]).conj().imag
    >>> part.is_neg(), votive.resolve_neg(part)
    (True, tensor([-2.]))
    """
    return input


def _part(x: Spec) -> Spec:
    """One real number out of each pair: every second one in memory."""
    return x.like(x.shape, x.dtype.to_real(), tuple(2 * s for s in x.strides))


view(
    "_real(Tensor input)",
    placement="linear map",
    batch="same",
    infer=lambda x: (_part(x), 0),
    grad={"input": lambda c, g: g},
    doc="The real parts of a complex tensor, in its own memory.",
)

view(
    "_imag(Tensor input)",
    placement="linear map",
    batch="same",
    infer=lambda x: (_part(x), 1),
    grad={"input": lambda c, g: g * 1j},
    doc="The imaginary parts of a complex tensor, in its own memory.",
)


@composite(method=False)
def real(input: Tensor) -> Tensor:
    """The real part, as a view; a real tensor is returned as it is.

    >>> votive.real(votive.tensor([1 + 2j]))
    tensor([1.])
    """
    return F._real(input) if input.dtype.is_complex else input


@composite(method=False)
def imag(input: Tensor) -> Tensor:
    """The imaginary part of a complex tensor, as a view.

    >>> votive.imag(votive.tensor([1 + 2j]))
    tensor([2.])
    """
    if not input.dtype.is_complex:
        fail(DtypeError, "imag", f"takes complex tensors, got {input.dtype}.")
    return F._imag(input)


PROPERTIES["real"] = real
PROPERTIES["imag"] = imag


def _infer_as_real(x: Spec) -> tuple[Spec, int]:
    if not x.dtype.is_complex:
        fail(DtypeError, "view_as_real", f"takes complex tensors, got {x.dtype}.")
    return x.like((*x.shape, 2), x.dtype.to_real(), (*(2 * s for s in x.strides), 1)), 0


view(
    "view_as_real(Tensor input)",
    batch="same",
    infer=_infer_as_real,
    grad={"input": lambda c, g: F.view_as_complex(F.contiguous(g))},
    method=False,
    doc="""A complex tensor as pairs of real numbers in a new last dimension, in the same memory.

    >>> votive.view_as_real(votive.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """,
)


def _infer_as_complex(x: Spec) -> tuple[Spec, int]:
    name = "view_as_complex"
    if x.dtype is dt.float16:
        fail(UnsupportedError, name, "complex numbers of halves are not there; use float32.")
    if x.dtype not in (dt.float32, dt.float64):
        fail(DtypeError, name, f"takes float32 or float64 tensors, got {x.dtype}.")
    if x.ndim == 0 or x.shape[-1] != 2:
        fail(ShapeError, name, f"the last dimension must have size 2, got shape {x.shape}.")
    if x.strides[-1] != 1 or any(s % 2 for s in x.strides[:-1]):
        fail(RuntimeError, name, f"the last stride must be 1 and the others even, got {x.strides}; use .contiguous().")
    return x.like(x.shape[:-1], x.dtype.to_complex(), tuple(s // 2 for s in x.strides[:-1])), 0


view(
    "_view_as_complex(Tensor input)",
    batch="same",
    infer=_infer_as_complex,
    grad={"input": lambda c, g: F.view_as_real(g)},
    doc="Pairs of reals as complex numbers.",
)


@composite(method=False, autocast={"cpu": "float32"})
def view_as_complex(input: Tensor) -> Tensor:
    """Pairs of real numbers in the last dimension as complex numbers, in the same memory.

    >>> votive.view_as_complex(votive.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    if input.storage_offset() % 2:
        fail(
            RuntimeError,
            "view_as_complex",
            f"the storage offset must be even, got {input.storage_offset()}; use .clone().",
        )
    if input.dtype is dt.float16:
        return import_module("votive.surface.complex_half").from_pairs(input)  # above this layer, and needed by few
    return F._view_as_complex(input)
