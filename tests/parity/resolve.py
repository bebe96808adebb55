"""Finds the subject's counterpart of a torch callable, OpInfo's lambdas included. No values."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from types import CellType, CodeType, FunctionType
from typing import Any

import torch

from .subject import Subject, Unsupported

NAMESPACES = ("", "nn.functional", "special", "linalg", "fft", "signal.windows", "masked", "Tensor")


def _slice(s: Subject) -> Callable | None:
    def cut(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
        return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]

    return cut


def _upsample_bilinear2d_aa(s: Subject) -> Callable | None:
    interpolate = s.find("nn.functional.interpolate")

    def upsample(x: Any, output_size: Any, align_corners: bool, scale_factors: Any = None, **scales: Any) -> Any:
        if any(scale is not None for scale in scales.values()):
            raise Unsupported("interpolate takes no size together with scales")
        return interpolate(x, output_size, scale_factors, "bilinear", align_corners, antialias=True)

    return interpolate and upsample


# OpInfos that call torch's internal overloads, which have no path below `torch`.
TABLE: dict[str, Callable[[Subject], Callable | None]] = {
    "slice": _slice,
    "_upsample_bilinear2d_aa": _upsample_bilinear2d_aa,
    "__rdiv__": lambda s: s.find("Tensor.__rtruediv__"),
}


def counterpart(subject: Subject, op: Any) -> Callable | None:
    """The subject's function for an OpInfo; None where the subject lacks the operator."""
    if op.name in TABLE:
        return TABLE[op.name](subject)
    if not exists(subject, op.name):
        return None
    return translate(subject, op.op, op.name)


def exists(subject: Subject, name: str) -> bool:
    """Whether the subject has the operator as a function, a method or an in-place method."""
    name = name.removeprefix("torch.")
    return any(subject.find(path) is not None for path in (name, f"Tensor.{name}", f"Tensor.{name}_"))


def translate(subject: Subject, fn: Any, name: str = "") -> Callable | None:
    """The subject's form of a torch callable: by its path, or a test's lambda, rebound."""
    path = name if name and _torch_at(name) is fn else _paths().get(id(fn))
    if path is not None:
        return subject.find(path)
    if isinstance(fn, partial):
        inner = translate(subject, fn.func)
        return inner and partial(inner, *fn.args, **fn.keywords)
    if getattr(fn, "__module__", "") in ("_operator", "operator"):
        return fn
    if isinstance(fn, FunctionType) and fn.__module__.startswith("torch.testing"):
        return _rebind(subject, fn)
    return None


def _torch_at(path: str) -> Any:
    found = torch
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


@cache
def _paths() -> dict[int, str]:
    paths: dict[int, str] = {}
    for space in NAMESPACES:
        holder = _torch_at(space) if space else torch
        for attribute in dir(holder):
            value = getattr(holder, attribute, None)
            if callable(value):
                paths.setdefault(id(value), f"{space}.{attribute}" if space else attribute)
    return paths


def _unseeded(fn: Callable, *args: Any, **kwargs: Any) -> Any:
    return fn(*args, **kwargs)


def _rebind(subject: Subject, fn: FunctionType, done: dict | None = None) -> FunctionType:
    """The same code, with the subject where it says `torch`, and without fixed seeds."""
    done = {} if done is None else done
    if fn in done:
        return done[fn]
    scope: dict[str, Any] = {"__builtins__": fn.__globals__["__builtins__"]}
    cells = tuple(CellType() for _ in fn.__closure__ or ())
    twin = done[fn] = FunctionType(fn.__code__, scope, fn.__name__, fn.__defaults__, cells)
    twin.__kwdefaults__ = fn.__kwdefaults__
    for cell, original in zip(cells, fn.__closure__ or (), strict=True):
        cell.cell_contents = _rebound(subject, original.cell_contents, done)
    for name in _names(fn.__code__) & fn.__globals__.keys():
        scope[name] = _rebound(subject, fn.__globals__[name], done)
    return twin


def _rebound(subject: Subject, value: Any, done: dict) -> Any:
    if value is torch:
        return subject.root
    if isinstance(value, FunctionType) and value.__module__.startswith("torch.testing"):
        seeded = value.__name__ == "wrapper_set_seed"
        return _unseeded if seeded else _rebind(subject, value, done)
    return value


def _names(code: CodeType) -> set[str]:
    inner = (_names(const) for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*inner)
