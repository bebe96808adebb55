"""Reading and writing elements by NumPy's indices: also reversed slices, which votive's views do not have."""

from __future__ import annotations

import operator
from typing import Any

import numpy

from ..core import dtype as dt
from ..ops.registry import F
from ..tensor import Tensor


def _plain(item: Any, t: Tensor) -> Any:
    """One part of an index: an int, a slice, None, Ellipsis or an index tensor."""
    if item is None or item is Ellipsis or isinstance(item, slice) or type(item) is int:
        return item
    if isinstance(item, (bool, numpy.bool_)):
        return F.tensor(bool(item), device=t.device)
    if isinstance(item, (list, tuple, numpy.ndarray)) or hasattr(item, "dtype"):
        from .convert import to_tensor

        if isinstance(item, (list, tuple)) and not len(item):
            return F.empty((0,), dtype=dt.int64, device=t.device)
        if isinstance(item, numpy.integer):
            return int(item)
        index = to_tensor(item, device=t.device)
        if index.dtype is dt.bool_:
            return index
        if index.dtype.category != dt.INT:
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        return index.to(dt.int64)
    try:
        return operator.index(item)
    except TypeError:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are "
            "valid indices"
        ) from None


def _consumed(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, Tensor) and item.dtype is dt.bool_:
        return item.ndim
    return 1


def _expanded(t: Tensor, key: Any) -> list[Any]:
    """The index as a list of plain parts for all dimensions, without an ellipsis."""
    items = [_plain(k, t) for k in (key if isinstance(key, tuple) else (key,))]
    used = sum(_consumed(i) for i in items)
    if used > t.ndim:
        raise IndexError(f"too many indices for array: array is {t.ndim}-dimensional, but {used} were indexed")
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    at = dots[0] if dots else len(items)
    rest = [slice(None)] * (t.ndim - used)
    items = items[:at] + rest + items[at + 1 :]
    dim = 0
    for item in items:
        if isinstance(item, int) and not -t.shape[dim] <= item < t.shape[dim]:
            raise IndexError(f"index {item} is out of bounds for axis {dim} with size {t.shape[dim]}")
        if isinstance(item, Tensor):
            _check_bounds(item, t, dim)
        dim += _consumed(item)
    return items


def _check_bounds(index: Tensor, t: Tensor, dim: int) -> None:
    if index.dtype is dt.bool_:
        for k in range(index.ndim):
            if index.shape[k] != t.shape[dim + k]:
                raise IndexError(
                    f"boolean index did not match indexed array along axis {dim + k}; size of axis is "
                    f"{t.shape[dim + k]} but size of corresponding boolean axis is {index.shape[k]}"
                )
    elif index.numel() and index.device.type == "cpu":
        low, high = int(index.min().item()), int(index.max().item())
        size = int(t.shape[dim])
        if low < -size or high >= size:
            bad = low if low < -size else high
            raise IndexError(f"index {bad} is out of bounds for axis {dim} with size {size}")


def _forward(s: slice, size: int) -> tuple[slice, bool]:
    """A slice with a positive step over the same elements, and whether they come in reverse."""
    try:
        start, stop, step = s.indices(size)
    except TypeError:
        raise TypeError("slice indices must be integers or None or have an __index__ method") from None
    if step > 0:
        return slice(start, max(stop, start), step), False
    count = len(range(start, stop, step))
    if not count:
        return slice(0, 0, 1), False
    last = start + (count - 1) * step
    return slice(last, start + 1, -step), True


def _slices(t: Tensor, items: list[Any]) -> tuple[list[Any], list[int]]:
    """Index parts with forward slices, and the dimensions of `t` that are read in reverse."""
    dim, out, backwards = 0, [], []
    for item in items:
        if isinstance(item, slice):
            item, reverse = _forward(item, int(t.shape[dim]))
            if reverse:
                backwards.append(dim)
        out.append(item)
        dim += _consumed(item)
    return out, backwards


def get(t: Tensor, key: Any) -> tuple[Tensor, bool]:
    """The elements at an index, and whether they are one scalar in NumPy's eyes."""
    if type(key) is int and t.ndim > 1:
        if not -t.shape[0] <= key < t.shape[0]:
            raise IndexError(f"index {key} is out of bounds for axis 0 with size {t.shape[0]}")
        return t[key], False
    items = _expanded(t, key)
    if items and all(isinstance(i, int) for i in items):
        keys = key if isinstance(key, tuple) else (key,)
        if any(k is Ellipsis for k in keys):
            return t[tuple(items)], False
        # A scalar of NumPy does not change when the array does: `a, b = x[0], x[1]; x[0] = b; x[1] = a` swaps.
        return t[tuple(items)].clone(), True
    items, backwards = _slices(t, items)
    if backwards:
        whole = [slice(None)] * t.ndim
        dim = 0
        for i, item in enumerate(items):
            if dim in backwards and isinstance(item, slice):
                whole[dim], items[i] = item, slice(None)
            dim += _consumed(item)
        t = F.flip(t[tuple(whole)], backwards)
    if not items:
        return (t.clone(), True) if isinstance(key, tuple) and not key else (t[...], False)
    scalar = False
    if any(isinstance(i, Tensor) for i in items):
        return _picked(t, items), scalar
    return t[tuple(items)], scalar


def _picked(t: Tensor, items: list[Any]) -> Tensor:
    """Elements chosen by index tensors; single numbers beside them are index tensors of no dimension, as in NumPy."""
    parts = list(items)
    if any(isinstance(p, Tensor) and p.ndim for p in parts):
        # One element broadcasts as none would, but is not taken for a plain integer.
        parts = [F.tensor([p], device=t.device) if isinstance(p, int) else p for p in parts]
        parts = [
            p.reshape(1) if isinstance(p, Tensor) and p.ndim == 0 and p.dtype is not dt.bool_ else p for p in parts
        ]
    if any(isinstance(p, Tensor) and p.dtype is dt.bool_ and p.ndim == 0 for p in parts):
        parts, t = _without_truths(parts, t)
    shapes = [tuple(p.shape) for p in parts if isinstance(p, Tensor) and p.dtype is not dt.bool_]
    try:
        numpy.broadcast_shapes(*shapes)
    except ValueError:
        raise IndexError(f"shape mismatch: indexing arrays could not be broadcast together: {shapes}") from None
    out: Tensor = t[tuple(parts)]
    return out


def _without_truths(parts: list[Any], t: Tensor) -> tuple[list[Any], Tensor]:
    """True and False among indices add a dimension of one or no element."""
    out: list[Any] = []
    dim = 0
    for p in parts:
        if isinstance(p, Tensor) and p.dtype is dt.bool_ and p.ndim == 0:
            t = t.unsqueeze(dim)
            out.append(F.zeros((1 if p.item() else 0,), dtype=dt.int64, device=t.device))
            dim += 1
            continue
        out.append(p)
        dim += _consumed(p)
    return out, t


def put(t: Tensor, key: Any, value: Any) -> None:
    """Write values to the elements at an index, cast to the array's dtype."""
    from .convert import cast, to_tensor

    if isinstance(value, complex) and not t.dtype.is_complex:
        raise TypeError(f"a complex number cannot be stored in an array of {t.dtype.name}; take its real part.")
    if isinstance(value, (bool, int, float, complex)) and not isinstance(value, numpy.generic):
        value = numpy.asarray(value).astype(t.dtype.np) if _fits(value, t) else numpy.asarray(value, t.dtype.np)
    new = cast(to_tensor(value, device=t.device), t.dtype)
    items, backwards = _slices(t, _expanded(t, key))
    fancy = any(isinstance(i, Tensor) for i in items)
    if fancy:
        where, _ = get(F.arange(t.numel(), device=t.device).reshape(t.shape), key)
        new = _fit(new, tuple(where.shape))
        places = _unravel(where.reshape(-1), tuple(t.shape))
        if t.ndim:
            t[places] = new.reshape(-1)
        elif where.numel():
            t.copy_(new.reshape(-1)[-1])
        return
    target = t[tuple(items)] if items else t
    new = _fit(new, tuple(target.shape))
    if backwards:
        new = F.flip(new, _result_dims(items, backwards))
    target.copy_(new)


def _fits(value: Any, t: Tensor) -> bool:
    """Floats go into integer arrays by truncation; integers that do not fit are an error."""
    return not (t.dtype.category == dt.INT and isinstance(value, int) and not isinstance(value, bool))


def _unravel(flat: Tensor, shape: tuple[int, ...]) -> tuple[Tensor, ...]:
    out: list[Tensor] = []
    for n in reversed(shape):
        out.append(F.remainder(flat, max(n, 1)))
        flat = F.div(flat, max(n, 1), rounding_mode="floor")
    return tuple(reversed(out))


def _result_dims(items: list[Any], dims: list[int]) -> list[int]:
    source, target, out = 0, 0, []
    for item in items:
        if isinstance(item, slice):
            if source in dims:
                out.append(target)
            target += 1
        elif item is None:
            target += 1
        source += _consumed(item)
    return out


def _fit(new: Tensor, shape: tuple[int, ...]) -> Tensor:
    while new.ndim > len(shape) and new.shape[0] == 1:
        new = new[0]
    try:
        out: Tensor = new.expand(shape)
    except RuntimeError:
        raise ValueError(f"could not broadcast input array from shape {tuple(new.shape)} into shape {shape}") from None
    return out
