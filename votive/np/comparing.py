"""Tests of arrays: closeness, equality, kinds of values, and shared memory."""

from __future__ import annotations

from typing import Any

import numpy

from ..core import dtype as dt
from ..ops.registry import F
from .array import ndarray, wrap
from .convert import Tensor, cast, host, result, tensors, to_tensor
from .element_types import FLOAT64, kind_of
from .layout import is_fortran
from .ufunc_table import UFUNCS


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether values differ by no more than `atol + rtol * |b|`.

    >>> votive.np.isclose([1.0, 2.0], [1.0, 2.1])
    array([ True, False])
    """
    x, y = tensors(a, b)
    if not y.dtype.is_inexact:
        x, y = cast(x, FLOAT64), cast(y, FLOAT64)
    x, y = F.broadcast_tensors(x, y)
    r, t = (to_tensor(v, y.dtype.to_real().np, y.device) for v in (rtol, atol))
    near = F.le(F.abs(x - y), t + r * F.abs(y)) & F.isfinite(y)
    found = near | F.eq(x, y)
    if equal_nan:
        found = found | (F.isnan(x) & F.isnan(y))
    return result(found)


def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all values are close.

    >>> votive.np.allclose([1.0], [1.0 + 1e-9])
    True
    """
    return bool(isclose(a, b, rtol, atol, equal_nan).all())


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether arrays have the same shape and values.

    >>> votive.np.array_equal([1, 2], [1, 2])
    True
    """
    x, y = to_tensor(a1), to_tensor(a2)
    if tuple(x.shape) != tuple(y.shape):
        return False
    same = UFUNCS["equal"](x, y).tensor
    if equal_nan and x.dtype.is_inexact and y.dtype.is_inexact:
        same = same | (F.isnan(x) & F.isnan(y))
    return bool(same.all())


def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether arrays have the same values after broadcasting."""
    try:
        return bool(UFUNCS["equal"](to_tensor(a1), to_tensor(a2)).all())
    except ValueError:
        return False


def isreal(x: Any) -> ndarray:
    """Whether the imaginary part is zero."""
    t = to_tensor(x)
    return wrap(F.eq(F.imag(t), 0) if t.dtype.is_complex else F.ones_like(t, dtype=dt.bool_))


def iscomplex(x: Any) -> ndarray:
    """Whether the imaginary part is not zero."""
    t = to_tensor(x)
    return wrap(F.ne(F.imag(t), 0) if t.dtype.is_complex else F.zeros_like(t, dtype=dt.bool_))


def iscomplexobj(x: Any) -> bool:
    """Whether values have a complex dtype."""
    return kind_of(x) is complex or getattr(kind_of(x), "kind", "") == "c"


def isrealobj(x: Any) -> bool:
    """Whether values have a dtype that is not complex."""
    return not iscomplexobj(x)


def isscalar(element: Any) -> bool:
    """Whether something is a number, or a result without dimensions."""
    return element._scalar if isinstance(element, ndarray) else bool(numpy.isscalar(element))


def isfortran(a: Any) -> bool:
    """Whether columns come first in memory."""
    return is_fortran(to_tensor(a))


def isposinf(x: Any, out: Any = None) -> Any:
    """Whether values are positive infinity."""
    x = _ordered("isposinf", x)
    return UFUNCS["logical_and"](UFUNCS["isinf"](x), UFUNCS["logical_not"](_negative(x)), out=out)


def isneginf(x: Any, out: Any = None) -> Any:
    """Whether values are negative infinity."""
    x = _ordered("isneginf", x)
    return UFUNCS["logical_and"](UFUNCS["isinf"](x), _negative(x), out=out)


def _ordered(name: str, x: Any) -> ndarray:
    out = wrap(to_tensor(x))
    if out.dtype.kind == "c":
        raise TypeError(f"This operation is not supported for {out.dtype} values because it would be ambiguous.")
    return out


def _negative(x: ndarray) -> Any:
    return UFUNCS["less"](x, 0)


def real_if_close(a: Any, tol: float = 100) -> ndarray:
    """The real part where imaginary parts are negligible."""
    x = wrap(to_tensor(a))
    if x.dtype.kind != "c":
        return x
    limit = tol * numpy.finfo(x.dtype).eps if tol > 1 else tol
    return x.real if bool((UFUNCS["absolute"](x.imag) < limit).all()) else x


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Numbers in place of NaN and infinity.

    >>> votive.np.nan_to_num([float("nan"), 1.0])
    array([0., 1.])
    """
    t = to_tensor(x)
    if not t.dtype.is_inexact:
        return wrap(t.clone() if copy else t)
    if t.dtype.is_complex:
        value = F.complex(*(_replaced(p, nan, posinf, neginf) for p in (F.real(t), F.imag(t))))
    else:
        value = _replaced(t, nan, posinf, neginf)
    if not copy:
        t.copy_(value)
        return x
    return wrap(value)


def _replaced(t: Tensor, nan: Any, posinf: Any, neginf: Any) -> Tensor:
    info = numpy.finfo(t.dtype.np)
    high = float(info.max) if posinf is None else posinf
    low = float(info.min) if neginf is None else neginf
    value = [to_tensor(v, t.dtype.np, t.device) for v in (nan, high, low)]
    out = F.where(F.isnan(t), value[0], t)
    out = F.where(F.isposinf(t), value[1], out)
    return F.where(F.isneginf(t), value[2], out)


def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether two arrays have an element in common."""
    one, two = to_tensor(a), to_tensor(b)
    if one.device is not two.device:
        return False
    if one.device.type != "cpu":
        return one.untyped_storage().data_ptr() == two.untyped_storage().data_ptr()
    return bool(numpy.shares_memory(one.detach().numpy(), two.detach().numpy()))


def may_share_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether the memory of two arrays lies in one range."""
    one, two = to_tensor(a), to_tensor(b)
    if one.device.type != "cpu" or two.device.type != "cpu":
        return shares_memory(a, b)
    return bool(numpy.may_share_memory(one.detach().numpy(), two.detach().numpy()))


def iterable(y: Any) -> bool:
    """Whether something can be iterated over."""
    try:
        iter(y)
    except TypeError:
        return False
    return True


def angle(z: Any, deg: bool = False) -> Any:
    """The angle of complex numbers."""
    t = to_tensor(z)
    t = t if t.dtype.is_inexact else cast(t, FLOAT64)
    found = F.atan2(F.imag(t), F.real(t)) if t.dtype.is_complex else F.atan2(F.zeros_like(t), t)
    return result(F.rad2deg(found) if deg else found)


def sinc(x: Any) -> Any:
    """sin(pi x) / (pi x)."""
    t = to_tensor(x)
    t = t if t.dtype.is_inexact else cast(t, FLOAT64)
    if t.dtype.is_complex:
        y = t * numpy.pi
        return result(F.where(F.eq(t, 0), F.ones_like(t), F.sin(y) / F.where(F.eq(t, 0), F.ones_like(y), y)))
    return result(F.sinc(t))


def i0(x: Any) -> Any:
    """The modified Bessel function of order 0."""
    t = to_tensor(x)
    if t.dtype.is_complex:
        raise TypeError("i0 not supported for complex values")
    return result(F.i0(t if t.dtype.is_inexact else cast(t, FLOAT64)))


def fix(x: Any, out: Any = None) -> Any:
    """Values rounded toward zero."""
    return UFUNCS["trunc"](x, out=out)


def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 6.283185307179586) -> ndarray:
    """Angles without jumps by a period."""
    return wrap(host("unwrap", lambda a: numpy.unwrap(a, discont, axis, period=period), to_tensor(p)))
