"""Equality of torch's result and the subject's: structure, dtype, shape, values. Runs no op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.testing._comparison import default_tolerances

from .subject import Subject, torch_to_numpy


class Mismatch(AssertionError):
    """The subject's result is not torch's."""


@dataclass(frozen=True)
class Rules:
    """What counts as equal."""

    values: bool = True
    strides: bool = False
    float32: tuple[float, float] | None = None  # (atol, rtol), where torch's own tests allow more


EXACT = Rules()
SHAPE_ONLY = Rules(values=False)


def same(subject: Subject, want: Any, got: Any, rules: Rules = EXACT, also: Any = None, at: str = "output") -> None:
    """Raise `Mismatch` unless `got` equals `want`, element by element, or equals `also` there."""
    if isinstance(want, torch.Tensor):
        return _same_tensor(subject, want, got, rules, also, at)
    if isinstance(want, (list, tuple)):
        return _same_sequence(subject, want, got, rules, also, at)
    if isinstance(want, dict):
        if not isinstance(got, dict) or list(want) != list(got):
            raise Mismatch(f"{at} is {_kind(got)}, torch's a dict with {list(want)}")
        for key, item in want.items():
            same(subject, item, got[key], rules, None, f"{at}[{key!r}]")
        return None
    if isinstance(want, (torch.dtype, torch.device, torch.layout, torch.memory_format)):
        if _name(want) != _name(got):
            raise Mismatch(f"{at} is {got}, torch's {want}")
        return None
    return _same_scalar(want, got, rules, at)


def _same_sequence(subject: Subject, want: Any, got: Any, rules: Rules, also: Any, at: str) -> None:
    kind = list if isinstance(want, list) else tuple
    if not isinstance(got, kind):
        raise Mismatch(f"{at} is {_kind(got)}, torch's a {kind.__name__} of {len(want)}")
    if len(got) != len(want):
        raise Mismatch(f"{at} has {len(got)} items, torch's {len(want)}")
    fields = _fields(want)
    for index, (item, other) in enumerate(zip(want, got, strict=True)):
        if fields and getattr(got, fields[index], None) is not other:
            raise Mismatch(f"{at} has no field {fields[index]!r}, torch's has {fields}")
        name = f"{at}.{fields[index]}" if fields else f"{at}[{index}]"
        same(subject, item, other, rules, also[index] if also is not None else None, name)


def _same_tensor(subject: Subject, want: torch.Tensor, got: Any, rules: Rules, also: Any, at: str) -> None:
    if not subject.is_tensor(got):
        raise Mismatch(f"{at} is {_kind(got)}, torch's a tensor")
    if _name(got.dtype) != _name(want.dtype):
        raise Mismatch(f"{at} has dtype {_name(got.dtype)}, torch's {_name(want.dtype)}")
    if tuple(got.shape) != tuple(want.shape):
        raise Mismatch(f"{at} has shape {tuple(got.shape)}, torch's {tuple(want.shape)}")
    if rules.strides and want.numel() and tuple(got.stride()) != want.stride():
        raise Mismatch(f"{at} has strides {tuple(got.stride())}, torch's {want.stride()}")
    if not rules.values or want.numel() == 0:
        return
    theirs, ours = torch_to_numpy(want), subject.to_numpy(got)
    if ours.shape != theirs.shape:
        raise Mismatch(f"{at}.numpy() has shape {ours.shape}, the tensor {theirs.shape}")
    rtol, atol = default_tolerances(want.dtype)
    if rules.float32 is not None and want.dtype == torch.float32:
        atol, rtol = rules.float32
    good = close(ours, theirs, rtol, atol)
    if also is not None and not good.all():
        good |= close(ours, torch_to_numpy(also.to(want.dtype)), rtol, atol)
    if not good.all():
        raise Mismatch(f"{at} {_differences(ours, theirs, good)} (rtol {rtol:g}, atol {atol:g})")


def close(ours: np.ndarray, theirs: np.ndarray, rtol: float, atol: float) -> np.ndarray:
    """Elementwise |ours - theirs| <= atol + rtol |theirs|; NaN and infinities equal themselves."""
    if theirs.dtype.kind in "biu":
        return np.asarray(ours == theirs)
    wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
    a, b = ours.astype(wide), theirs.astype(wide)
    with np.errstate(all="ignore"):
        near = np.isfinite(b) & (np.abs(a - b) <= atol + rtol * np.abs(b))
    return near | (a == b) | (np.isnan(a) & np.isnan(b))


def _differences(ours: np.ndarray, theirs: np.ndarray, good: np.ndarray) -> str:
    bad = ~good
    gap = np.zeros(bad.shape)
    with np.errstate(all="ignore"):
        gap[bad] = np.abs(ours[bad].astype(complex) - theirs[bad].astype(complex))
    gap[bad & np.isnan(gap)] = np.inf
    worst = np.unravel_index(gap.argmax(), gap.shape)
    place = f" at {tuple(int(i) for i in worst)}" if worst else ""
    count = f"differs in {int(bad.sum())} of {bad.size} values"
    return f"{count}; worst{place}: {ours[worst]} instead of {theirs[worst]}"


def _same_scalar(want: Any, got: Any, rules: Rules, at: str) -> None:
    if type(want) is not type(got) and not (want is None and got is None):
        raise Mismatch(f"{at} is {_kind(got)} {got!r}, torch's {_kind(want)} {want!r}")
    if not rules.values:
        return
    if isinstance(want, (float, complex)):
        equal = bool(close(np.array(got), np.array(want), 1e-7, 1e-7))
    else:
        equal = want == got
    if not equal:
        raise Mismatch(f"{at} is {got!r}, torch's {want!r}")


def _fields(value: Any) -> tuple[str, ...]:
    if hasattr(value, "_fields"):
        return value._fields
    # torch.return_types.* are C struct sequences: their names stand in __match_args__.
    return type(value).__match_args__ if hasattr(value, "n_sequence_fields") else ()


def _name(value: Any) -> str:
    return str(value).rsplit(".", 1)[-1]


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__
