"""Functions applied along axes, piece by piece, or element by element."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy

from ..core import dtype as dt
from ..ops.registry import F
from .array import ndarray, wrap
from .convert import cast, place_of, to_tensor
from .element_types import as_dtype, promoted
from .joining import stack
from .layout import axes_of, axis_of


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> ndarray:
    """A function of each line along an axis.

    >>> votive.np.apply_along_axis(lambda v: v.sum(), 0, [[1, 2], [3, 4]])
    array([4, 6])
    """
    t = to_tensor(arr)
    dim = axis_of(axis, t.ndim)
    lines = F.movedim(t, dim, -1)
    outer = tuple(lines.shape[:-1])
    if any(n == 0 for n in outer):
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    found = [func1d(wrap(v), *args, **kwargs) for v in F.unbind(lines.reshape(-1, lines.shape[-1]), 0)]
    value = stack(found).tensor
    value = value.reshape(outer + tuple(value.shape[1:]))
    extra = value.ndim - len(outer)
    order = list(range(dim)) + list(range(len(outer), len(outer) + extra)) + list(range(dim, len(outer)))
    return wrap(value.permute(*order) if order else value)


def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> ndarray:
    """A function applied along one axis after the other, keeping their number."""
    x = wrap(to_tensor(a))
    n = x.ndim
    for axis in axes_of(axes, n):
        found = func(x, axis)
        if found.ndim != n:
            found = wrap(to_tensor(found).unsqueeze(axis))
        if found.ndim != n:
            raise ValueError("function is not returning an array of the correct shape")
        x = found
    return x


class vectorize:
    """A Python function of numbers as a function of arrays; it is called for each element.

    >>> votive.np.vectorize(lambda a, b: a + b)([1, 2], 10)
    array([11, 12])
    """

    def __init__(
        self,
        pyfunc: Any = None,
        otypes: Any = None,
        doc: str | None = None,
        excluded: Any = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        if signature is not None:
            raise NotImplementedError("vectorize: `signature` is not supported; use apply_along_axis or votive.vmap.")
        self.pyfunc, self.otypes, self.excluded = pyfunc, otypes, set(excluded or ())
        self.__doc__ = doc or getattr(pyfunc, "__doc__", None)
        if pyfunc is not None:
            functools.update_wrapper(self, pyfunc)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.pyfunc is None:  # used as a decorator with options
            return vectorize(args[0], self.otypes, None, self.excluded)
        names: list[Any] = [i for i in range(len(args)) if i not in self.excluded]
        names += [k for k in kwargs if k not in self.excluded]
        every: dict[Any, Any] = dict(enumerate(args))
        every.update(kwargs)
        place = place_of(*[every[n] for n in names])
        arrays = [to_tensor(every[n], device=place) for n in names]
        shape = numpy.broadcast_shapes(*[tuple(a.shape) for a in arrays]) if arrays else ()
        lines = [wrap(a.expand(shape).reshape(-1)) for a in arrays]
        count = int(numpy.prod(shape, dtype=int))
        if not count and self.otypes is None:
            raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
        found = []
        for i in range(count):
            given: dict[Any, Any] = {**every, **{n: line[i] for n, line in zip(names, lines, strict=True)}}
            found.append(self.pyfunc(*[given[k] for k in range(len(args))], **{k: given[k] for k in kwargs}))
        several = bool(found) and isinstance(found[0], tuple)
        columns = list(zip(*found, strict=True)) if several else [found]
        types = [None] * len(columns) if self.otypes is None else [as_dtype(o) for o in self.otypes]
        out = tuple(wrap(to_tensor(list(c), d, place).reshape(shape)) for c, d in zip(columns, types, strict=True))
        return out if several else out[0]


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> Callable[..., Any]:
    """A Python function of `nin` numbers as a function of arrays; dtypes come from the results, since there are no
    objects.
    """
    if identity is not None:
        raise NotImplementedError("frompyfunc: `identity` is for reductions, which such functions do not have here.")
    each = vectorize(func)

    def run(*args: Any) -> Any:
        if len(args) != nin:
            raise TypeError(f"{func.__name__}() takes {nin} positional arguments but {len(args)} were given")
        found = each(*args)
        if (len(found) if isinstance(found, tuple) else 1) != nout:
            raise ValueError(f"{func.__name__}: {nout} results were announced.")
        return found

    return run


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> ndarray:
    """Functions, or numbers, chosen by conditions.

    >>> votive.np.piecewise([-1.0, 2.0], [[True, False], [False, True]], [0, 7])
    array([0., 7.])
    """
    t = to_tensor(x)
    given = condlist if isinstance(condlist, (list, tuple)) and not isinstance(condlist[0], bool) else [condlist]
    masks = [to_tensor(c, bool, t.device) for c in given]
    n = len(funclist)
    if n == len(masks) + 1:
        rest = masks[0]
        for m in masks[1:]:
            rest = rest | m
        masks.append(~rest)
    elif n != len(masks):
        raise ValueError(
            f"with {len(masks)} condition(s), either {len(masks)} or {len(masks) + 1} functions are expected"
        )
    out = F.zeros_like(t)
    for mask, item in zip(masks, funclist, strict=True):
        mask = mask.expand(tuple(t.shape))
        if not callable(item):
            out = F.where(mask, cast(to_tensor(item, device=t.device), t.dtype.np), out)
            continue
        values = t[mask] if t.ndim else t.reshape(-1)[mask.reshape(-1)]
        if values.numel():
            new = cast(to_tensor(item(wrap(values), *args, **kw), device=t.device), t.dtype.np).expand(
                tuple(values.shape)
            )
            out = F.masked_scatter(out, mask, new)
    return wrap(out)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> ndarray:
    """For each element the choice of the first condition that holds.

    >>> votive.np.select([[True, False], [True, True]], [[1, 2], [3, 4]])
    array([1, 4])
    """
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not condlist:
        raise ValueError("select with an empty condition list is not possible")
    place = place_of(*condlist, *choicelist, default)
    masks = [to_tensor(c, device=place) for c in condlist]
    if any(m.dtype is not dt.bool_ for m in masks):
        raise TypeError("invalid entry in condlist: should be boolean ndarray")
    choices = [c if type(c) in (int, float, complex) else to_tensor(c, device=place) for c in choicelist]
    meet = promoted(*choices, default)
    out = to_tensor(default, meet, place)
    shape = numpy.broadcast_shapes(*[tuple(m.shape) for m in masks], *[tuple(to_tensor(c).shape) for c in choices])
    out = out.expand(numpy.broadcast_shapes(shape, tuple(out.shape)))
    for mask, choice in zip(reversed(masks), reversed(choices), strict=True):
        out = F.where(mask, to_tensor(choice, meet, place), out)
    return wrap(out)
