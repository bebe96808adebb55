"""Shapes: reshaping, axes, and the order of elements."""

from __future__ import annotations

import operator
from typing import Any

import numpy

from ..core import dtype as dt
from ..ops.registry import F
from .convert import Tensor, cast, detached, ndarray, place_of, tensors, to_tensor, truth, wrap
from .layout import axes_of, axis_of, is_fortran, reversed_dims, shape_of
from .ufunc import store


def shape(a: Any) -> tuple[int, ...]:
    """The sizes of an array's dimensions."""
    return tuple(to_tensor(a).shape)


def ndim(a: Any) -> int:
    """The number of dimensions."""
    return to_tensor(a).ndim


def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or those along axes."""
    t = to_tensor(a)
    n = 1
    for i in axes_of(axis, t.ndim):
        n *= int(t.shape[i])
    return n


def reshape(
    a: Any, /, shape: Any = None, order: Any = "C", *, newshape: Any = None, copy: bool | None = None
) -> ndarray:
    """The same elements in another shape.

    >>> votive.np.reshape([1, 2, 3, 4], (2, 2), order="F")
    array([[1, 3],
           [2, 4]])
    """
    if shape is None:
        shape = newshape
    if shape is None:
        raise TypeError("reshape() missing 1 required positional argument: 'shape'")
    t = to_tensor(a)
    sizes = _sizes(shape, t.numel())
    if order == "F" or (order == "A" and is_fortran(t)):
        source = reversed_dims(t)
        if copy is False and not _viewable(source, sizes[::-1]):
            raise ValueError("Unable to avoid creating a copy while reshaping.")
        return wrap(reversed_dims((source.clone() if copy else source).reshape(sizes[::-1])))
    if order not in ("C", "A"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', got {order!r}")
    if copy is False and not _viewable(t, sizes):
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return wrap((t.clone() if copy else t).reshape(sizes))


def _viewable(t: Tensor, sizes: tuple[int, ...]) -> bool:
    try:
        t.view(*sizes) if sizes else t.view(())
    except RuntimeError:
        return False
    return True


def _sizes(shape: Any, count: int) -> tuple[int, ...]:
    given = (shape,) if hasattr(shape, "__index__") and not getattr(shape, "ndim", 0) else tuple(shape)
    sizes = [operator.index(n) for n in given]
    if sizes.count(-1) > 1:
        raise ValueError("can only specify one unknown dimension")
    known = 1
    for n in sizes:
        known *= n if n != -1 else 1
    if -1 in sizes and known and count % known == 0:
        sizes[sizes.index(-1)] = count // known
        known = count
    if known != count or -1 in sizes or any(n < 0 for n in sizes):
        raise ValueError(f"cannot reshape array of size {count} into shape {tuple(given)}")
    return tuple(sizes)


def ravel(a: Any, order: str = "C") -> ndarray:
    """All elements in one dimension, without a copy where that is possible."""
    t = to_tensor(a)
    return wrap(_in_order(t, order).reshape(-1))


def _in_order(t: Tensor, order: str) -> Tensor:
    if order == "F" or (order in ("A", "K") and is_fortran(t)):
        return reversed_dims(t)
    if order not in ("C", "A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return t


def transpose(a: Any, axes: Any = None) -> ndarray:
    """Axes in another order; reversed by default."""
    t = to_tensor(a)
    if axes is None:
        return wrap(reversed_dims(t))
    given = (axes,) if hasattr(axes, "__index__") else tuple(axes)
    if len(given) != t.ndim:
        raise ValueError("axes don't match array")
    found = tuple(axis_of(i, t.ndim) for i in given)
    if len(set(found)) != len(found):
        raise ValueError("repeated axis in transpose")
    return wrap(t.permute(*found) if found else t)


permute_dims = transpose


def matrix_transpose(x: Any, /) -> ndarray:
    """The last two axes swapped."""
    t = to_tensor(x)
    if t.ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {t.ndim}")
    return wrap(t.transpose(-1, -2))


def swapaxes(a: Any, axis1: int, axis2: int) -> ndarray:
    """Two axes swapped."""
    t = to_tensor(a)
    return wrap(F.transpose(t, axis_of(axis1, t.ndim, "axis1"), axis_of(axis2, t.ndim, "axis2")))


def moveaxis(a: Any, source: Any, destination: Any) -> ndarray:
    """Axes moved to other places."""
    t = to_tensor(a)
    one = axes_of(source if isinstance(source, (tuple, list)) else (source,), t.ndim)
    two = axes_of(destination if isinstance(destination, (tuple, list)) else (destination,), t.ndim)
    if len(one) != len(two):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    return wrap(F.movedim(t, one, two) if one else t)


def rollaxis(a: Any, axis: int, start: int = 0) -> ndarray:
    """An axis moved back until it lies before `start`."""
    t = to_tensor(a)
    i = axis_of(axis, t.ndim)
    if not -t.ndim <= start <= t.ndim:
        raise numpy.exceptions.AxisError(
            f"'start' arg requires {-t.ndim} <= start < {t.ndim + 1}, but {start} was passed"
        )
    at = start + t.ndim if start < 0 else start
    return wrap(F.movedim(t, i, at - 1 if i < at else at))


def expand_dims(a: Any, /, axis: Any = 0) -> ndarray:
    """New axes of one element."""
    t = to_tensor(a)
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    total = t.ndim + len(given)
    for i in sorted(axes_of(tuple(given), total)):
        t = t.unsqueeze(i)
    return wrap(t)


def squeeze(a: Any, /, axis: Any = None) -> ndarray:
    """The array without axes of one element."""
    t = to_tensor(a)
    if axis is None:
        chosen = tuple(i for i, n in enumerate(t.shape) if n == 1)
    else:
        chosen = axes_of(axis if isinstance(axis, (tuple, list)) else (axis,), t.ndim)
    if any(t.shape[i] != 1 for i in chosen):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return wrap(t.reshape(tuple(n for i, n in enumerate(t.shape) if i not in chosen)) if chosen else t)


def _at_least(n: int, arys: tuple[Any, ...]) -> Any:
    out = []
    for a in arys:
        t = to_tensor(a)
        if t.ndim == 0:
            t = t.reshape((1,) * n)
        elif t.ndim == 1 and n > 1:
            t = t.unsqueeze(0) if n == 2 else t.unsqueeze(0).unsqueeze(-1)
        elif t.ndim == 2 and n == 3:
            t = t.unsqueeze(-1)
        out.append(wrap(t))
    return out[0] if len(out) == 1 else tuple(out)


def atleast_1d(*arys: Any) -> Any:
    """Arrays of one dimension or more."""
    return _at_least(1, arys)


def atleast_2d(*arys: Any) -> Any:
    """Arrays of two dimensions or more."""
    return _at_least(2, arys)


def atleast_3d(*arys: Any) -> Any:
    """Arrays of three dimensions or more."""
    return _at_least(3, arys)


def flip(m: Any, /, axis: Any = None) -> ndarray:
    """The elements in reverse along axes."""
    t = to_tensor(m)
    axes = axes_of(axis if axis is None or isinstance(axis, (tuple, list)) else (axis,), t.ndim)
    return wrap(F.flip(t, list(axes)) if axes else t.clone())


def flipud(m: Any) -> ndarray:
    """Rows in reverse."""
    if to_tensor(m).ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return flip(m, 0)


def fliplr(m: Any) -> ndarray:
    """Columns in reverse."""
    if to_tensor(m).ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return flip(m, 1)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> ndarray:
    """The array turned by quarters of a circle."""
    t = to_tensor(m)
    pair = tuple(axes)
    if len(pair) != 2:
        raise ValueError("len(axes) must be 2.")
    a, b = axis_of(pair[0], t.ndim), axis_of(pair[1], t.ndim)
    if a == b:
        raise ValueError(f"Axes={pair} must be different.")
    return wrap(F.rot90(t, int(k) % 4, [a, b]))


def roll(a: Any, /, shift: Any, axis: Any = None) -> ndarray:
    """Elements moved along axes; what leaves at the end comes in at the front."""
    t = to_tensor(a)
    if axis is None:
        total = sum(int(s) for s in (shift if isinstance(shift, (tuple, list)) else (shift,)))
        return wrap(F.roll(t.reshape(-1), total, 0).reshape(t.shape) if t.numel() else t.clone())
    axes = tuple(axis_of(i, t.ndim) for i in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    shifts = tuple(int(s) for s in (shift if isinstance(shift, (tuple, list)) else (shift,)))
    if len(shifts) == 1:
        shifts *= len(axes)
    elif len(axes) == 1:
        axes *= len(shifts)
    if len(axes) != len(shifts):
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    for s, i in zip(shifts, axes, strict=True):
        t = F.roll(t, s, i) if t.numel() else t
    return wrap(t)


def broadcast_to(array: Any, /, shape: Any, subok: bool = False) -> ndarray:
    """The array as it looks in a larger shape."""
    t, sizes = to_tensor(array), shape_of(shape)
    try:
        return wrap(t.expand(sizes))
    except RuntimeError:
        raise ValueError(f"cannot broadcast shape {tuple(t.shape)} to {sizes}") from None


def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[ndarray, ...]:
    """Arrays as they look in their common shape."""
    ts = [to_tensor(a, device=place_of(*args)) for a in args]
    sizes = numpy.broadcast_shapes(*[tuple(t.shape) for t in ts])
    return tuple(wrap(t.expand(sizes)) for t in ts)


def broadcast_shapes(*args: Any) -> tuple[int, ...]:
    """The shape in which shapes meet."""
    return tuple(numpy.broadcast_shapes(*args))


def repeat(a: Any, /, repeats: Any, axis: Any = None) -> ndarray:
    """Each element several times."""
    t = to_tensor(a)
    if axis is None:
        t, axis = t.reshape(-1), 0
    dim = axis_of(axis, t.ndim)
    counts = to_tensor(repeats, device=t.device)
    if counts.dtype.category not in (dt.INT, dt.BOOL):
        raise TypeError(
            f"Cannot cast array data from {counts.dtype.np!r} to dtype('int64') according to the rule 'safe'"
        )
    if counts.numel() and int(counts.min().item() if counts.dtype is not dt.bool_ else 0) < 0:
        raise ValueError("repeats may not contain negative values.")
    n = int(t.shape[dim])
    if counts.ndim == 0 or counts.numel() == 1:
        counts = counts.reshape(()).expand(n)
    if counts.ndim != 1 or counts.shape[0] != n:
        raise ValueError(f"operands could not be broadcast together with shape ({n},) {tuple(counts.shape)}")
    return wrap(F.repeat_interleave(t, counts.to(dt.int64), dim))


def tile(A: Any, reps: Any, /) -> ndarray:
    """The array several times in each direction."""
    t = to_tensor(A)
    counts = (int(reps),) if hasattr(reps, "__index__") else tuple(int(r) for r in reps)
    counts = (1,) * (t.ndim - len(counts)) + counts
    t = t.reshape((1,) * (len(counts) - t.ndim) + tuple(t.shape))
    return wrap(t.repeat(*counts) if counts else t.clone())


def resize(a: Any, new_shape: Any) -> ndarray:
    """The elements, repeated as often as needed, in a new shape."""
    t, sizes = to_tensor(a).reshape(-1), shape_of(new_shape)
    n = int(numpy.prod(sizes, dtype=int))
    if not t.numel():
        return wrap(F.zeros(sizes, dtype=t.dtype, device=t.device))
    return wrap(t.repeat(-(-n // t.numel()))[:n].reshape(sizes) if n else t[:0].reshape(sizes))


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> ndarray:
    """The array without zeros at its ends."""
    found = numpy.argwhere(detached(filt))
    t = to_tensor(filt)
    low, high = (found.min(0), found.max(0)) if len(found) else (numpy.zeros(t.ndim, int), numpy.full(t.ndim, -1))
    axes = axes_of(axis, t.ndim)
    for i in axes:
        start = int(low[i]) if "f" in trim.lower() else 0
        stop = int(high[i]) + 1 if "b" in trim.lower() else int(t.shape[i])
        t = t.narrow(i, start, max(stop - start, 0))
    return wrap(t)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> ndarray:
    """The values in another dtype."""
    t = to_tensor(x)
    out = cast(t if device is None else t.to(device), dtype)
    return wrap(out.clone() if copy and out is t else out)


def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Elements of `x` where a condition holds and of `y` elsewhere; with one argument, `nonzero`."""
    if (x is None) != (y is None):
        raise ValueError("either both or neither of x and y should be given")
    if x is None:
        from .searching import nonzero

        return nonzero(condition)
    place = place_of(condition, x, y)
    mask = to_tensor(condition, device=place)
    mask = truth(mask)
    if type(x) in (int, float, complex) or type(y) in (int, float, complex):
        from .element_types import promoted

        meet = promoted(x, y)
        one, two = to_tensor(x, meet, place), to_tensor(y, meet, place)
    else:
        one, two = tensors(x, y)
    return wrap(F.where(mask, one.to(place), two.to(place)))


def real(val: Any) -> ndarray:
    """The real part."""
    return wrap(to_tensor(val)).real


def imag(val: Any) -> ndarray:
    """The imaginary part."""
    return wrap(to_tensor(val)).imag


def round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """The values rounded to a number of decimals, halves to the even neighbour."""
    t = to_tensor(a)
    value = _rounded(t, int(decimals))
    from .convert import result

    return result(value) if out is None else store("rint", value, out)


def _rounded(t: Tensor, decimals: int) -> Tensor:
    if t.dtype.is_complex:
        return F.complex(_rounded(F.real(t), decimals), _rounded(F.imag(t), decimals))
    if t.dtype is dt.bool_:
        return cast(t, "float16")
    if not t.dtype.is_floating_point:
        if decimals >= 0:
            return t.clone()
        return cast(_rounded(cast(t, "float64"), decimals), t.dtype)
    if not decimals:
        return F.round(t)
    power = 10.0 ** abs(decimals)
    scaled = F.round(t * power if decimals > 0 else t / power)
    back: Tensor = scaled / power if decimals > 0 else scaled * power
    return F.where(F.isfinite(back), back, t) if decimals > 0 else back


around = round
