"""Methods of `ndarray`: functions whose first argument is the array, and those that only methods are."""

from __future__ import annotations

from typing import Any

import numpy

from . import joining, manipulation, products, reductions, scans, searching
from .array import detached_array, ndarray, wrap
from .convert import cast, to_tensor
from .element_types import as_dtype, to_votive
from .layout import ordered
from .ufunc_table import UFUNCS

_SAME = {
    reductions: "sum prod max min all any mean var std ptp",
    scans: "argmax argmin cumsum cumprod clip",
    searching: "argsort argpartition nonzero searchsorted take choose",
    manipulation: "ravel swapaxes squeeze repeat round",
    products: "dot trace diagonal",
}


def _method(fn: Any) -> Any:
    def method(self: ndarray, *args: Any, **kwargs: Any) -> Any:
        return fn(self, *args, **kwargs)

    method.__name__, method.__doc__ = fn.__name__, fn.__doc__
    return method


def _sizes(args: tuple[Any, ...]) -> Any:
    return args[0] if len(args) == 1 else args


def _reshape(self: ndarray, *shape: Any, order: str = "C", copy: bool | None = None) -> ndarray:
    """The same elements in another shape."""
    return manipulation.reshape(self, _sizes(shape), order, copy=copy)


def _transpose(self: ndarray, *axes: Any) -> ndarray:
    """Axes in another order; reversed by default."""
    return manipulation.transpose(self, _sizes(axes) if axes else None)


def _astype(
    self: ndarray,
    dtype: Any,
    order: str = "K",
    casting: Any = "unsafe",
    subok: bool = True,
    copy: bool = True,
    device: Any = None,
) -> ndarray:
    """The values in another dtype, where the casting rule allows it."""
    wanted = as_dtype(dtype)
    if not numpy.can_cast(self.dtype, wanted, casting):
        raise TypeError(f"Cannot cast array data from {self.dtype!r} to {wanted!r} according to the rule '{casting}'")
    t = ordered(cast(self.tensor, wanted), order)
    if device is not None:
        t = t.to(device)
    return wrap(t.clone() if copy and t is self.tensor else t) if copy or t is not self.tensor else self


def _copy(self: ndarray, order: str = "C") -> ndarray:
    """A copy."""
    return wrap(ordered(self.tensor.clone(), order))


def _flatten(self: ndarray, order: str = "C") -> ndarray:
    """A copy of all elements in one dimension."""
    flat = manipulation.ravel(self, order).tensor
    return wrap(flat.clone())


def _item(self: ndarray, *args: Any) -> Any:
    """One element as a Python number."""
    if not args:
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self.tensor.item()
    return detached_array(self).item(*args)


def _tolist(self: ndarray) -> Any:
    """Nested lists of Python numbers."""
    return self.tensor.tolist()


def _fill(self: ndarray, value: Any) -> None:
    """Set all elements to one value."""
    self[...] = value


def _sort(self: ndarray, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
    """Sort in place."""
    self.tensor.copy_(searching.sort(self, axis, kind, order).tensor)


def _partition(self: ndarray, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> None:
    """Partition in place."""
    self.tensor.copy_(searching.partition(self, kth, axis).tensor)


def _view(self: ndarray, dtype: Any = None, type: Any = None) -> ndarray:
    """The same memory, read as another dtype."""
    if dtype is None or dtype is ndarray:
        return wrap(self.tensor[...] if self.ndim else self.tensor.view(()))
    return wrap(self.tensor.view(to_votive(dtype)))


def _put(self: ndarray, indices: Any, values: Any, mode: str = "raise") -> None:
    """Write values at indices counted through all dimensions."""
    from .index_tricks import put

    put(self, indices, values, mode)


def _compress(self: ndarray, condition: Any, axis: Any = None, out: Any = None) -> Any:
    """The slices along an axis where a condition holds."""
    return searching.compress(condition, self, axis, out)


def _conj(self: ndarray) -> Any:
    """The conjugated values."""
    return UFUNCS["conjugate"](self)


def _resize(self: ndarray, *new_shape: Any, refcheck: bool = True) -> None:
    """Another shape in place; elements are dropped, or zeros added."""
    flat = self.tensor.reshape(-1)
    sizes = _sizes(new_shape)
    sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    n = int(numpy.prod(sizes, dtype=int))
    flat = flat[:n] if n <= flat.numel() else joining.pad(flat, (0, n - flat.numel())).tensor
    self.tensor = flat.reshape(sizes)


def _tobytes(self: ndarray, order: Any = "C") -> bytes:
    """The bytes of all elements."""
    return detached_array(self).tobytes(order)


def _tofile(self: ndarray, fid: Any, sep: str = "", format: str = "%s") -> None:
    """Write the elements to a file."""
    detached_array(self).tofile(fid, sep, format)


def _byteswap(self: ndarray, inplace: bool = False) -> ndarray:
    """The values with the order of their bytes reversed."""
    swapped = wrap(to_tensor(detached_array(self).byteswap(), device=self.device))
    if not inplace:
        return swapped
    self[...] = swapped
    return self


def _setflags(self: ndarray, write: Any = None, align: Any = None, uic: Any = None) -> None:
    """Refused: tensors are always writable."""
    if write is False:
        raise NotImplementedError("setflags: arrays of votive cannot be made read-only.")


def _refused(name: str, why: str) -> Any:
    def method(self: ndarray, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"ndarray.{name}: {why}")

    method.__name__, method.__doc__ = name, why
    return method


def install() -> None:
    """Put the methods on the class."""
    for module, names in _SAME.items():
        for name in names.split():
            setattr(ndarray, name, _method(getattr(module, name)))
    own = (_reshape, _transpose, _astype, _copy, _flatten, _item, _tolist, _fill, _sort, _partition, _view, _put)
    more = (_compress, _conj, _resize, _tobytes, _tofile, _byteswap, _setflags)
    for fn in own + more:
        setattr(ndarray, fn.__name__[1:], fn)
    setattr(ndarray, "conjugate", _conj)  # noqa: B010
    for name in ("dump", "dumps"):
        setattr(ndarray, name, _refused(name, "use pickle, or votive.np.save."))
    for name in ("getfield", "setfield"):
        setattr(ndarray, name, _refused(name, "there are no records; use view(dtype)."))
