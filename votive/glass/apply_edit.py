"""What an edit makes of a value, in which part of it, at which positions. Knows no model."""

from __future__ import annotations

from typing import Any

import votive

from ..core.dtype import bool_
from ..core.mode import mode
from ..tensor import Tensor
from .axes import Axes, Place
from .edits import Edit
from .probe import unobserved

Index = list[list[int] | None]  # by dimension; None means all


def apply_edit(edit: Edit, x: Tensor, place: Place) -> tuple[Any, Any]:
    """The value at a place after an edit; the value itself where the edit is not made.

    With it comes an array that says which elements were edited, or None for all.
    """
    if not _looks(edit, x, place):
        return _fitted(edit, _new(edit, x, edit.value), x), None
    axes = place.axes(x)
    whole = x.reshape(axes.shape)
    index = _index(edit, axes, place)
    if any(i is not None and not i for i in index):
        return x, None  # its positions are not in this run
    window = _window(whole, index)
    part = whole if window is None else whole[window]
    if edit.do == "mean" and edit.value is not None:
        new = _given_mean(edit, axes, index, x, place)
    elif edit.do in ("mean", "resample") and edit.value is None:
        new = _of_samples(edit, whole, axes)
        new = new if window is None else new.expand(whole.shape)[window]
    else:
        new = _new(edit, part, _rows(edit, axes, place))
    new = _fitted(edit, new, part)
    if window is not None:
        changed = whole.clone()
        changed[window] = new
        if mode.tracing is not None:  # nobody follows values there
            return changed if changed.shape == x.shape else changed.reshape(x.shape), None
        here = votive.zeros(whole.shape, dtype=bool_, device=x.device)
        here[window] = True
        return changed.reshape(x.shape), here.reshape(x.shape).cpu().numpy()
    return new.reshape(x.shape), None


def _looks(edit: Edit, x: Tensor, place: Place) -> bool:
    """Whether it matters what the dimensions of the value are."""
    parts = (edit.positions, edit.features, edit.samples, edit.heads)
    if edit.do in ("mean", "resample") or any(p is not None for p in parts):
        return True
    if not isinstance(edit.value, votive.Tensor) or edit.value.dim() < 2:
        return False
    return place.cached or edit.value.dim() > x.dim()


def _new(edit: Edit, part: Tensor, value: Any) -> Any:
    if edit.do == "zero":
        return votive.zeros_like(part)
    if edit.do in ("scale", "add"):
        # Small whole numbers would wrap around, and truth values would stay such.
        counted = not (part.is_floating_point() or part.is_complex())
        if counted:
            part = part.to(votive.float64 if isinstance(value, float) else votive.int64)
        return part * value if edit.do == "scale" else part + value
    if edit.do == "call":
        return value(part) if mode.tracing is None else mode.tracing.call(value, part)
    return value


def _of_samples(edit: Edit, x: Tensor, axes: Axes) -> Tensor:
    """The mean over samples at each position, or the values of other samples there."""
    says = "averages over" if edit.do == "mean" else "takes values of other"
    if axes.samples is None or x.shape[axes.samples] < 2:
        many = "there is only one" if axes.samples is not None else _unknown("samples", axes)
        raise ValueError(
            f"Edit: {edit.do!r} at {edit.at!r} {says} samples, but {many}. Give a batch, or "
            "value=; for the mean over a data set use ablate(..., data=batches) or glass.means."
        )
    if edit.do == "mean":
        return x.mean(axes.samples, keepdim=True)
    generator = votive.Generator().manual_seed(edit.seed)
    by = votive.randint(1, x.shape[axes.samples], (), generator=generator)
    return x.roll(int(by), axes.samples)


# --- which part ---------------------------------------------------------------------------------


def _index(edit: Edit, axes: Axes, place: Place) -> Index:
    """Which indices of each dimension change."""
    index: Index = [None] * len(axes.shape)
    for name in ("samples", "heads", "features", "positions"):
        given, dim = getattr(edit, name), getattr(axes, name)
        if given is None:
            continue
        if dim is None:
            raise ValueError(f"Edit: at {edit.at!r} {_unknown(name, axes)}.")
        if name == "positions":
            index[dim] = [p - axes.start for p in _positions(edit, axes, place) if p is not None]
            continue
        size = axes.shape[dim]
        bad = [i for i in given if not -size <= i < size]
        if bad:
            raise IndexError(f"Edit: {name} {bad} at {edit.at!r} are outside 0..{size - 1}.")
        index[dim] = [i % size for i in given]
    return index


def _positions(edit: Edit, axes: Axes, place: Place) -> list[int | None]:
    """An edit's positions, counted from the beginning of the text; None for those elsewhere."""
    out: list[int | None] = []
    place.check_padding()
    for given in edit.positions or ():
        if given < 0 and place.past:
            raise ValueError(
                f"Edit: position {given} at {edit.at!r} counts from an end that moves while a cache"
                " is filled; count from the beginning of the text."
            )
        at = given if given >= 0 else axes.stop + given
        if at < 0:
            raise IndexError(
                f"Edit: position {given} at {edit.at!r} is outside a text of {axes.stop} "
                f"positions; use {-axes.stop}..{axes.stop - 1}."
            )
        if axes.start <= at < axes.stop:
            place.met.add(given)
            out.append(at)
        else:
            out.append(None)
    return out


def _window(x: Tensor, index: Index) -> Any:
    """An index for all combinations of these indices; None for everything."""
    lists = sum(i is not None for i in index)
    if not lists:
        return None
    if lists == 1:
        return tuple(slice(None) if i is None else votive.tensor(i, device=x.device) for i in index)
    # All dimensions by lists, or those with lists would come first in what is taken.
    whole = [range(n) if i is None else i for i, n in zip(index, x.shape, strict=True)]
    return tuple(
        votive.tensor(list(w), device=x.device).reshape((-1,) + (1,) * (x.dim() - d - 1)) for d, w in enumerate(whole)
    )


# --- values that differ by position -------------------------------------------------------------


def _by_position(value: object, axes: Axes) -> int | None:
    """The dimension of a value in which it has rows for positions; None if it holds at all."""
    if not isinstance(value, votive.Tensor) or axes.positions is None:
        return None
    dim = axes.positions - len(axes.shape)  # a value may lack the first dimensions
    return dim if value.dim() >= -dim and value.shape[dim] > 1 else None


def _rows(edit: Edit, axes: Axes, place: Place) -> Any:
    """An edit's value, of which the rows that belong to positions of this run are taken."""
    value, dim = edit.value, _by_position(edit.value, axes)
    if dim is None:
        return value
    if edit.positions is not None:
        if value.shape[dim] != len(edit.positions):
            return value
        here = [i for i, p in enumerate(_positions(edit, axes, place)) if p is not None]
        return value.index_select(dim, votive.tensor(here, device=value.device))
    place.check_padding()
    if not place.cached:
        return value
    _check_rows(edit, value.shape[dim], axes.stop)
    return value.narrow(dim, axes.start, axes.stop - axes.start)


def _given_mean(edit: Edit, axes: Axes, index: Index, x: Tensor, place: Place) -> Tensor:
    """The part of a given mean that belongs to the part of the value which changes."""
    mean = votive.as_tensor(edit.value).to(x.device)
    dim, shape = _by_position(mean, axes), list(axes.shape)
    if dim is not None:
        place.check_padding()
        here = index[dim]
        wanted = [i + axes.start for i in (range(shape[dim]) if here is None else here)]
        _check_rows(edit, mean.shape[dim], max(wanted) + 1)
        index, shape[dim] = list(index), mean.shape[dim]
        index[dim] = wanted
    try:
        mean = mean.expand(shape)
    except RuntimeError:
        raise ValueError(_misfit(edit, mean, x)) from None
    window = _window(mean, index)
    return mean if window is None else mean[window]


def _check_rows(edit: Edit, rows: int, needed: int) -> None:
    if rows < needed:
        raise ValueError(
            f"Edit: the value for {edit.at!r} is for {rows} positions, but position {needed - 1} "
            "is changed too; choose positions=, or give a value without positions"
            + (" (glass.means with over='positions')." if edit.do == "mean" else ".")
        )


def _fitted(edit: Edit, new: object, old: Tensor) -> Tensor:
    """A new value in the shape, type and place of the old one."""
    if isinstance(new, Tensor):
        fitted = new
    elif mode.tracing is None:
        fitted = _number(edit, new, old.dtype)
    else:
        with unobserved():
            found = _number(edit, new, old.dtype).tolist()
        if isinstance(found, list):
            fitted = votive.tensor(found, dtype=old.dtype)
        else:
            fitted = votive.full((), found, dtype=old.dtype, device=old.device)
    if fitted.dtype != old.dtype:
        fitted = _cast(edit, fitted, old.dtype)
    fitted = fitted.to(device=old.device)
    try:
        return fitted if fitted.shape == old.shape else fitted.expand(old.shape)
    except RuntimeError:
        raise ValueError(_misfit(edit, fitted, old)) from None


def _number(edit: Edit, new: object, dtype: votive.dtype) -> Tensor:
    """A Python number, which has all its digits, or several."""
    wide = {float: votive.float64, complex: votive.complex128}.get(type(new))
    fitted = votive.as_tensor(new) if wide is None else votive.tensor(new, dtype=wide)
    return fitted if fitted.dtype == dtype else _cast(edit, fitted, dtype)


def _cast(edit: Edit, new: Tensor, dtype: votive.dtype) -> Tensor:
    """A new value in the type of the old one, which may round it but not lose it."""
    real = new
    if new.is_complex() and not dtype.is_complex:
        if bool((new.detach().imag != 0).any()):
            raise TypeError(_lossy(edit, new, new.detach().imag != 0, dtype))
        real = new.real
    cast = real.to(dtype=dtype)
    before, after = real.detach(), cast.detach()
    if dtype.is_floating_point or dtype.is_complex:
        lost = before.isfinite() & ~after.isfinite()
    else:
        lost = after.to(before.dtype) != before
        if not real.is_floating_point() and dtype != bool_:
            # A whole number that wraps around may come back as it was.
            lost = lost | ((after < 0) != (before < 0))
    if bool(lost.any()):
        raise ValueError(_lossy(edit, before, lost, dtype))
    return cast


def _lossy(edit: Edit, new: Tensor, lost: Tensor, dtype: votive.dtype) -> str:
    return (
        f"Edit: the value {new[lost].flatten()[0].item()} for {edit.at!r} does not fit there: the "
        f"tensor is {dtype}. Give a value of that type, or edit where the type holds it."
    )


def _misfit(edit: Edit, new: Tensor, old: Tensor) -> str:
    return f"Edit: the value for {edit.at!r} has shape {tuple(new.shape)}, which does not fit into {tuple(old.shape)}."


def _unknown(what: str, axes: Axes) -> str:
    return (
        f"no dimension of {axes.shape} is known to be that of {what}; known are those of modules' "
        "(batch, positions, features), of attention's (batch, heads, positions, features) and of "
        "values with the sizes of the text"
    )
