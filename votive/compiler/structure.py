"""Arguments and results as flat lists of leaves, and back. Knows containers, not tensors' contents."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

from ..dispatch import state


def flatten(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """(structure, leaves): tensors, numbers and objects in order; lists, tuples and tables are looked into."""
    if not kwargs:
        for a in args:
            if a.__class__ in _CONTAINERS:
                break
        else:
            return len(args), args
    leaves: list[Any] = []
    shape = (*[_flat(a, leaves) for a in args], *[(k, _flat(v, leaves)) for k, v in kwargs.items()])
    return (shape, len(args)), tuple(leaves)


_CONTAINERS = (tuple, list, dict)


def _flat(value: Any, leaves: list[Any]) -> Any:
    kind = value.__class__
    if kind is tuple or kind is list:
        return kind, *[_flat(v, leaves) for v in value]
    if kind is dict:
        return dict, *[(k, _flat(v, leaves)) for k, v in value.items()]
    leaves.append(value)
    return None


def labels(names: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """How each leaf is called in messages."""
    found: list[str] = []

    def walk(value: Any, label: str) -> None:
        if value.__class__ is tuple or value.__class__ is list:
            for i, v in enumerate(value):
                walk(v, f"{label}[{i}]")
        elif value.__class__ is dict:
            for k, v in value.items():
                walk(v, f"{label}[{k!r}]")
        else:
            found.append(label)

    for i, a in enumerate(args):
        walk(a, names[i] if i < len(names) else f"argument {i}")
    for k, v in kwargs.items():
        walk(v, k)
    return found


class Unknown(Exception):
    """A result that cannot be taken apart."""


def template(result: Any, tensors: list[Any], is_outer: Callable[[Any], bool]) -> Callable[[tuple[Any, ...]], Any]:
    """A function that builds such a result again from tensors; those of this one are appended to `tensors`."""
    if isinstance(result, state.tensor):
        for i, t in enumerate(tensors):
            if t is result:
                return lambda found: found[i]
        tensors.append(result)
        n = len(tensors) - 1
        return lambda found: found[n]
    if result is None or isinstance(result, (int, float, bool, complex, str, bytes, type)) or is_outer(result):
        return lambda found: result
    kind = type(result)
    if isinstance(result, tuple):
        parts = [template(v, tensors, is_outer) for v in result]
        if kind is tuple:
            return lambda found: tuple([p(found) for p in parts])
        if hasattr(kind, "_fields"):
            return lambda found: kind(*[p(found) for p in parts])
        return lambda found: kind([p(found) for p in parts])
    if kind is list:
        parts = [template(v, tensors, is_outer) for v in result]
        return lambda found: [p(found) for p in parts]
    if isinstance(result, dict):
        table = {k: template(v, tensors, is_outer) for k, v in result.items()}
        if kind is dict:
            return lambda found: {k: p(found) for k, p in table.items()}
    if dataclasses.is_dataclass(result) or hasattr(result, "__dict__"):
        return _object(result, tensors, is_outer)
    raise Unknown(f"it returns a {kind.__name__}")


def _object(result: Any, tensors: list[Any], is_outer: Callable[[Any], bool]) -> Callable[[tuple[Any, ...]], Any]:
    """An object with attributes, and elements if it is a table: a copy of it with new tensors."""
    own = {k: template(v, tensors, is_outer) for k, v in vars(result).items()}
    items = {k: template(v, tensors, is_outer) for k, v in result.items()} if isinstance(result, dict) else {}
    plain = copy.copy(result)

    def build(found: tuple[Any, ...]) -> Any:
        made = copy.copy(plain)
        made.__dict__.update({k: p(found) for k, p in own.items()})
        for k, p in items.items():
            dict.__setitem__(made, k, p(found))
        return made

    return build
