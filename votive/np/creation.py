"""Arrays from values and shapes."""

from __future__ import annotations

from typing import Any

import numpy

from ..core.device import device as device_type
from ..core.device import get_default_device, resolve
from ..ops.registry import F
from ..surface.interchange import from_dlpack as tensor_from_dlpack
from .convert import Tensor, cast, ndarray, to_tensor, wrap
from .element_types import as_dtype, can_cast, check_cast, to_votive
from .layout import is_fortran, ordered, shape_of


def resolved(device: Any) -> device_type:
    """The device that an argument names; errors are of NumPy's type."""
    if device is None:
        return get_default_device()
    try:
        return resolve(device)
    except (RuntimeError, TypeError) as problem:
        raise ValueError(f"device {device!r} is not known: {problem}") from None


def no_like(like: Any) -> None:
    if like is not None and not isinstance(like, ndarray):
        raise NotImplementedError("`like` must be a votive.np array; for others call their library's function.")


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like: Any = None,
    device: Any = None,
) -> ndarray:
    """A new array of the values of `object`.

    >>> votive.np.array([1, 2.5])
    array([1. , 2.5])
    """
    no_like(like)
    t = asarray(object, dtype, order, device=device, copy=copy).tensor
    if ndmax and t.ndim > ndmax:
        raise ValueError(f"array: nested lists deeper than ndmax={ndmax} would be objects, which votive.np has not.")
    return wrap(t.reshape((1,) * (ndmin - t.ndim) + tuple(t.shape))) if ndmin > t.ndim else wrap(t)


def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: bool | None = None, like: Any = None
) -> ndarray:
    """The values as an array: the same memory and history where `a` is a tensor or array that needs no change.

    >>> votive.np.asarray(votive.tensor([1, 2]))
    array([1, 2])
    """
    no_like(like)
    where = None if device is None else resolved(device)
    if isinstance(a, ndarray) and dtype is None and where is None and order in (None, "K", "A") and not copy:
        return a
    shared = isinstance(a, (ndarray, Tensor, numpy.ndarray))
    if copy is False and not shared:
        if hasattr(a, "__dlpack__"):
            return from_dlpack(a, device=device, copy=False)
        raise ValueError("Unable to avoid copy while creating an array as requested: numbers and lists are copied.")
    t = to_tensor(a, dtype, where)
    changed = shared and t is not (a.tensor if isinstance(a, ndarray) else a)
    if isinstance(a, numpy.ndarray):
        changed = t.dtype.np != a.dtype or (t.device.type == "cpu" and t.numel() > 0 and not _same_memory(t, a))
    if copy is False and changed:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    if (copy and (not changed or isinstance(a, numpy.ndarray))) or (
        not shared and not isinstance(a, (list, tuple)) and hasattr(a, "__array__") and copy
    ):
        t = t.clone()
    return wrap(ordered(t, order or "K"))


def _same_memory(t: Tensor, a: Any) -> bool:
    return bool(t.data_ptr() == a.__array_interface__["data"][0])


def asanyarray(a: Any, dtype: Any = None, order: Any = None, **options: Any) -> ndarray:
    """`asarray`: there are no subclasses.

    >>> votive.np.asanyarray([1])
    array([1])
    """
    return asarray(a, dtype, order, **options)


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> ndarray:
    """`asarray`, with an error where values are not finite.

    >>> votive.np.asarray_chkfinite([1.0])
    array([1.])
    """
    out = asarray(a, dtype, order)
    if out.dtype.kind in "fcV" and not bool(F.isfinite(out.tensor).all()):
        raise ValueError("array must not contain infs or NaNs")
    return out


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> ndarray:
    """The values with rows first in memory, in at least one dimension.

    >>> votive.np.ascontiguousarray(3)
    array([3])
    """
    out = asarray(a, dtype, "C", like=like)
    return out if out.ndim else wrap(out.tensor.reshape(1))


def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> ndarray:
    """The values with columns first in memory.

    >>> votive.np.asfortranarray([[1, 2], [3, 4]]).strides
    (8, 16)
    """
    return asarray(a, dtype, "F", like=like)


def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> ndarray:
    """An array of a dtype and with the properties asked for.

    >>> votive.np.require([1], requirements="C")
    array([1])
    """
    wanted = {requirements} if isinstance(requirements, str) else set(requirements or ())
    order = "F" if wanted & {"F", "F_CONTIGUOUS", "FORTRAN"} else "C" if wanted & {"C", "C_CONTIGUOUS"} else "K"
    return asarray(a, dtype, order, like=like)


def copy(a: Any, order: str = "K", subok: bool = False) -> ndarray:
    """A copy of the values.

    >>> votive.np.copy([1, 2])
    array([1, 2])
    """
    return wrap(ordered(to_tensor(a).clone(), order))


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> ndarray:
    """An array over the memory of another library's.

    >>> votive.np.from_dlpack(votive.ones(2))
    array([1., 1.], dtype=float32)
    """
    if isinstance(x, ndarray):
        x = x.tensor
    return wrap(tensor_from_dlpack(x, device=None if device is None else resolved(device), copy=copy))


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0, *, like: Any = None) -> ndarray:
    """An array over the memory of a buffer.

    >>> votive.np.frombuffer(bytearray(2), dtype="uint8")
    array([0, 0], dtype=uint8)
    """
    return asarray(numpy.frombuffer(buffer, as_dtype(dtype), count, offset), like=like)


def fromiter(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> ndarray:
    """The values of an iterable.

    >>> votive.np.fromiter(range(3), int)
    array([0, 1, 2])
    """
    return asarray(numpy.fromiter(iter, as_dtype(dtype), count), like=like)


def fromfunction(function: Any, shape: Any, *, dtype: Any = float, like: Any = None, **kwargs: Any) -> Any:
    """A function of the coordinates of each element.

    >>> votive.np.fromfunction(lambda i, j: i + j, (2, 2))
    array([[0., 1.],
           [1., 2.]])
    """
    no_like(like)
    from .ranges import indices

    return function(*indices(shape, dtype), **kwargs)


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str, like: Any = None) -> ndarray:
    """Numbers from text.

    >>> votive.np.fromstring("1 2", sep=" ")
    array([1., 2.])
    """
    return asarray(numpy.fromstring(string, as_dtype(dtype), count, sep=sep), like=like)


def _filled(shape: Any, value: Any, dtype: Any, order: str, device: Any) -> ndarray:
    t = F.full(shape_of(shape), value, dtype=to_votive(dtype), device=resolved(device))
    return wrap(t if order != "F" else ordered(t, "F"))


def empty(shape: Any, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None) -> ndarray:
    """An array whose values are not set.

    >>> votive.np.empty((2, 0)).shape
    (2, 0)
    """
    no_like(like)
    return _filled(shape, 0, float if dtype is None else dtype, order, device)


def zeros(shape: Any, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None) -> ndarray:
    """An array of zeros.

    >>> votive.np.zeros(2)
    array([0., 0.])
    """
    no_like(like)
    return _filled(shape, 0, float if dtype is None else dtype, order, device)


def ones(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> ndarray:
    """An array of ones.

    >>> votive.np.ones(2, dtype=int)
    array([1, 1])
    """
    no_like(like)
    return _filled(shape, 1, float if dtype is None else dtype, order, device)


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> ndarray:
    """An array of one value, or of values that are broadcast.

    >>> votive.np.full(2, 7)
    array([7, 7])
    """
    no_like(like)
    value = to_tensor(fill_value, dtype, None if device is None else resolved(device))
    sizes = shape_of(shape)
    return wrap(ordered(F.broadcast_to(value, sizes).clone(memory_format=_contiguous()), order))


def _contiguous() -> Any:
    from ..core.memory_format import contiguous_format

    return contiguous_format


def _like(a: Any, value: Any, dtype: Any, order: str, shape: Any, device: Any) -> ndarray:
    t = to_tensor(a)
    wanted = t.dtype if dtype is None else to_votive(dtype)
    sizes = tuple(t.shape) if shape is None else shape_of(shape)
    where = t.device if device is None else resolved(device)
    new = cast(to_tensor(value, device=where), wanted)
    out = F.broadcast_to(new, sizes).clone(memory_format=_contiguous())
    return wrap(ordered(out, "F" if order == "F" or (order in "KA" and is_fortran(t)) else "C"))


def empty_like(
    prototype: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> ndarray:
    """An array of the same shape whose values are not set.

    >>> votive.np.empty_like([1, 2]).dtype
    dtype('int64')
    """
    return _like(prototype, 0, dtype, order, shape, device)


def zeros_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> ndarray:
    """Zeros of the same shape.

    >>> votive.np.zeros_like([1, 2])
    array([0, 0])
    """
    return _like(a, 0, dtype, order, shape, device)


def ones_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> ndarray:
    """Ones of the same shape.

    >>> votive.np.ones_like([1.5, 2])
    array([1., 1.])
    """
    return _like(a, 1, dtype, order, shape, device)


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> ndarray:
    """One value in the same shape.

    >>> votive.np.full_like([1, 2], 5)
    array([5, 5])
    """
    return _like(a, fill_value, dtype, order, shape, device)


def copyto(dst: ndarray, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Write values into an array, where a mask says so.

    >>> x = votive.np.zeros(2)
    >>> votive.np.copyto(x, 3)
    """
    target = dst.tensor
    if type(src) in (bool, int, float, complex):
        src = numpy.asarray(src, target.dtype.np if not isinstance(src, complex) else None)
    value = to_tensor(src, device=target.device)
    if not can_cast(value, target.dtype, casting):
        check_cast("copyto", value.dtype.np, target.dtype.np, casting)
    from .indexing import _fit

    new = _fit(cast(value, target.dtype), tuple(target.shape))
    if where is not True:
        new = F.where(to_tensor(where, bool, target.device), new, target)
    target.copy_(new)
