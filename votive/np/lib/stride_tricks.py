"""Views by strides: sliding windows, and views of any shape."""

from __future__ import annotations

from typing import Any

from ...ops.registry import F
from ..array import ndarray, wrap
from ..convert import to_tensor
from ..layout import axes_of, shape_of


def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> ndarray:
    """All windows of a shape, along new axes at the end; a view, through which gradients pass.

    >>> votive.np.lib.stride_tricks.sliding_window_view([1, 2, 3], 2)
    array([[1, 2],
           [2, 3]])
    """
    if subok or writeable:
        raise NotImplementedError("sliding_window_view: there are no subclasses, and windows are for reading.")
    t = to_tensor(x)
    sizes = shape_of(window_shape)
    if any(n < 0 for n in sizes):
        raise ValueError("`window_shape` cannot contain negative values")
    if axis is None:
        axes: tuple[int, ...] = tuple(range(t.ndim))
    else:
        given = axis if isinstance(axis, (tuple, list)) else (axis,)
        axes = tuple(axes_of(a, t.ndim)[0] for a in given)
    if len(sizes) != len(axes):
        raise ValueError(f"Must provide matching length window_shape and axis; got {len(sizes)} and {len(axes)}.")
    for n, dim in zip(sizes, axes, strict=True):
        if n > t.shape[dim]:
            raise ValueError("window shape cannot be larger than input array shape")
        t = t.unfold(dim, n, 1)
    return wrap(t)


def as_strided(x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True) -> ndarray:
    """A view with any shape and strides, which are counted in bytes.

    >>> votive.np.lib.stride_tricks.as_strided(votive.np.arange(4), (2, 2), (8, 8))
    array([[0, 1],
           [1, 2]])
    """
    if subok or not writeable:
        raise NotImplementedError("as_strided: there are no subclasses, and arrays are always writable.")
    t = to_tensor(x)
    sizes = tuple(t.shape) if shape is None else shape_of(shape)
    steps = [s * t.dtype.itemsize for s in t.stride()] if strides is None else list(strides)
    if any(s < 0 or s % t.dtype.itemsize for s in steps):
        raise ValueError("as_strided: strides must be whole numbers of elements, and not negative.")
    return wrap(F.as_strided(t, sizes, [s // t.dtype.itemsize for s in steps], t.storage_offset()))
