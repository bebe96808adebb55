"""Binary functions along dimensions: reduce, accumulate, and their application at indices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from ..core import dtype as dt
from ..ops.registry import F
from .convert import Tensor, cast, host, ndarray, to_tensor, truth
from .element_types import BOOL, INT64, NARROW_UNSIGNED, UINT64, WEAK, as_dtype
from .layout import axes_of, axis_of

ORDERED = {"maximum": "amax", "minimum": "amin"}


def wide_dtype(d: numpy.dtype[Any]) -> numpy.dtype[Any]:
    """The dtype of sums and products: small integers become 64 bits wide."""
    if d.kind in "bi" and d.itemsize < 8:
        return INT64
    return UINT64 if d.kind == "u" else d


def _reduced_shape(t: Tensor, axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    return tuple(1 if i in axes else n for i, n in enumerate(t.shape) if keepdims or i not in axes)


def reduce_by(fn: Any, t: Tensor, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Tensor:
    """Reduce a tensor by a binary ufunc, with NumPy's dtypes, initial values and masks."""
    name = fn.__name__
    axes = axes_of(axis, t.ndim)
    if dtype is not None:
        t = cast(t, dtype)
    elif name in ("add", "multiply"):
        t = cast(t, wide_dtype(t.dtype.np))
    elif name in _LOGICAL:
        t = truth(t)
    empty = any(t.shape[i] == 0 for i in axes)
    unit = identity(name, t.dtype) if initial is None else initial
    if where is not True:
        if unit is None:
            raise ValueError(
                f"reduction operation '{name}' does not have an identity, so to use a where mask one has to "
                "specify 'initial'"
            )
        mask = to_tensor(where, BOOL, t.device)
        t = F.where(mask, t, _number(identity(name, t.dtype, wide=True) if initial is None else unit, t))
    if empty and unit is None:
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    out = _plain_reduce(fn, t, axes, bool(keepdims), unit)
    if initial is not None:
        out = fn._compute((_number(initial, out), out), None)[0]
        out = cast(out, t.dtype) if out.dtype is not t.dtype and name not in _COMPARED else out
    return out


_LOGICAL = ("logical_and", "logical_or", "logical_xor")
_COMPARED = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", *_LOGICAL)


def identity(name: str, d: dt.dtype, wide: bool = False) -> Any:
    """What a reduction of nothing gives; `wide` also names the neutral value of extrema, which NumPy does not use."""
    if name in ORDERED:
        if not wide:
            return None
        if d.is_floating_point:
            return -math.inf if name == "maximum" else math.inf
        info = numpy.iinfo(d.np) if d is not dt.bool_ else None
        if info is None:
            return name == "minimum"
        return int(info.min if name == "maximum" else info.max)
    return getattr(numpy, name).identity


def _number(value: Any, like: Tensor) -> Tensor:
    return cast(to_tensor(value, device=like.device), like.dtype)


def _plain_reduce(fn: Any, t: Tensor, axes: tuple[int, ...], keep: bool, unit: Any) -> Tensor:
    name = fn.__name__
    if not axes:
        return t.clone()
    if any(t.shape[i] == 0 for i in axes):
        return _number(unit, t).expand(_reduced_shape(t, axes, keep)).clone()
    run = _DIRECT.get(name)
    if run is not None:
        return run(t, axes, keep)
    return _folded(fn, t, axes, keep)


def _sum(t: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    return F.sum(t, list(axes), keepdim=keep, dtype=t.dtype)


def _prod(t: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    if t.dtype is dt.bool_:
        return F.all(t, list(axes), keepdim=keep)
    for a in sorted(axes, reverse=True):
        t = F.prod(t, a, keepdim=keep, dtype=t.dtype)
    return t


def _extremum(name: str) -> Callable[..., Tensor]:
    def run(t: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
        d = t.dtype
        if d.np == UINT64:
            pick = numpy.max if name == "amax" else numpy.min
            return host(name, lambda a: pick(a, axis=axes, keepdims=keep), t)
        if d.is_complex:
            from .ufunc_table import UFUNCS

            return _folded(UFUNCS["maximum" if name == "amax" else "minimum"], t, axes, keep)
        if d.np in NARROW_UNSIGNED:
            t = t.to(dt.int64)
        return cast(getattr(F, name)(t, list(axes), keepdim=keep), d)

    return run


def _truth(name: str) -> Callable[..., Tensor]:
    def run(t: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
        return getattr(F, name)(t, list(axes), keepdim=keep)

    return run


_DIRECT: dict[str, Callable[..., Tensor]] = {
    "add": _sum,
    "multiply": _prod,
    "maximum": _extremum("amax"),
    "minimum": _extremum("amin"),
    "logical_and": _truth("all"),
    "logical_or": _truth("any"),
}


def _folded(fn: Any, t: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    """Element after element: the order matters for what is not associative."""
    if len(axes) > 1 and not getattr(numpy, fn.__name__).identity and fn.__name__ in ("subtract", "divide"):
        raise ValueError(
            f"reduction operation '{fn.__name__}' is not reorderable, so at most one axis may be specified"
        )
    for a in sorted(axes, reverse=True):
        parts = F.unbind(t, a)
        total = parts[0]
        for p in parts[1:]:
            total = fn._compute((total, p), None)[0]
        t = total.unsqueeze(a) if keep else total
    return t


def accumulate_by(fn: Any, t: Tensor, axis: Any, dtype: Any) -> Tensor:
    """Partial results along a dimension."""
    if t.ndim == 0:
        raise TypeError("cannot accumulate on a scalar")
    name, dim = fn.__name__, axis_of(axis, t.ndim)
    if dtype is not None:
        t = cast(t, dtype)
    elif name in ("add", "multiply"):
        t = cast(t, wide_dtype(t.dtype.np))
    if name == "add" and t.dtype is not dt.bool_:
        return F.cumsum(t, dim, dtype=t.dtype)
    if name == "multiply" and t.dtype is not dt.bool_:
        return F.cumprod(t, dim, dtype=t.dtype)
    if t.shape[dim] == 0:
        return t.clone()
    if name in _LOGICAL:
        t = truth(t)
    parts = list(F.unbind(t, dim))
    for i in range(1, len(parts)):
        parts[i] = fn._compute((parts[i - 1], parts[i]), None)[0]
    return F.stack([cast(p, parts[-1].dtype) for p in parts], dim)


def apply_at(fn: Any, a: ndarray, indices: Any, b: Any) -> None:
    """`a[indices] = fn(a[indices], b)`, where an index that occurs again finds the value written before."""
    t = a.tensor
    value = to_tensor(b, device=t.device)
    sample = b if type(b) in WEAK else value.reshape(-1)[:1]
    loop = fn._compute((F.ones((), dtype=t.dtype, device=t.device), sample), None)[0]
    if not numpy.can_cast(loop.dtype.np, t.dtype.np, "same_kind"):
        raise TypeError(f"Cannot cast ufunc '{fn.__name__}' output from {loop.dtype.np} to {t.dtype.np}")
    from .indexing import _unravel, get

    positions, _ = get(F.arange(t.numel(), device=t.device).reshape(t.shape), indices)
    new = cast(value, t.dtype).expand(tuple(positions.shape)).reshape(-1)
    flat = positions.reshape(-1)
    if fn.__name__ in ("add", "subtract") and t.dtype is not dt.bool_ and t.dtype.np not in (*NARROW_UNSIGNED, UINT64):
        new = new if fn.__name__ == "add" else F.neg(new)
        if t.ndim:
            t.index_put_(_unravel(flat, tuple(t.shape)), new, accumulate=True)
        else:
            t.add_(new.sum())
        return

    def run(old: Any, where: Any, values: Any) -> Any:
        line = old.reshape(-1).copy()
        getattr(numpy, fn.__name__).at(line, where, values)
        return line.reshape(old.shape)

    t.copy_(host(f"{fn.__name__}.at", run, t, flat, new))


def as_np(d: Any) -> numpy.dtype[Any]:
    """NumPy's dtype of a votive dtype."""
    return as_dtype(d)
