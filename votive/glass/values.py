"""Tensors inside nested values: tuples, lists, dicts and records. Knows no modules."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import votive

from ..tensor import Tensor

Path = tuple[Any, ...]


def children(value: object) -> Iterator[tuple[Any, Any]]:
    """Keys and parts of a container; nothing of anything else."""
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, (tuple, list)):
        yield from enumerate(value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for f in dataclasses.fields(value):
            yield f.name, getattr(value, f.name)


def tensors(value: object, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """All tensors in a value with the way to each, in order.

    >>> from votive.glass.values import tensors
    >>> [path for path, _ in tensors((votive.ones(1), {"a": [votive.ones(2), 3]}))]
    [(0,), (1, 'a', 0)]
    """
    if isinstance(value, votive.Tensor):
        yield path, value
        return
    for key, part in children(value):
        yield from tensors(part, (*path, key))


def first(value: object) -> Tensor | None:
    """The first tensor in a value, which is what a module's output mostly is; None without one.

    >>> from votive.glass.values import first
    >>> first((None, votive.ones(1)))
    tensor([1.])
    """
    return next((t for _, t in tensors(value)), None)


def first_path(value: object) -> Path | None:
    """The way to the first tensor."""
    return next((p for p, _ in tensors(value)), None)


def get(value: object, path: Path) -> Any:
    """The part of a value at the end of a way; keys are as `children` gives them, or as text."""
    for key in path:
        parts = dict(children(value))
        if key not in parts:
            parts = {str(k): v for k, v in parts.items()}
        if str(key) not in parts and key not in parts:
            raise LookupError(f"there is no {key!r} in a {type(value).__name__}.")
        value = parts[key] if key in parts else parts[str(key)]
    return value


def put(value: object, path: Path, new: object) -> Any:
    """The value with another part at the end of a way; containers on the way are made anew.

    >>> from votive.glass.values import put
    >>> put((1, {"a": 2}), (1, "a"), 3)
    (1, {'a': 3})
    """
    if not path:
        return new
    key, rest = path[0], path[1:]
    old = get(value, (key,))
    inner = put(old, rest, new)
    if isinstance(value, dict):
        match = next(k for k in value if k == key or str(k) == str(key))
        return type(value)({**value, match: inner}) if type(value) is dict else _copied(value, match, inner)
    if isinstance(value, (tuple, list)):
        parts = [inner if str(i) == str(key) else v for i, v in enumerate(value)]
        if hasattr(value, "_fields"):
            return type(value)(*parts)
        return type(value)(parts)
    changed: Any = value
    return dataclasses.replace(changed, **{str(key): inner})


def _copied(value: Any, key: Any, new: object) -> Any:
    out = value.copy()
    out[key] = new
    return out


def mapped(value: object, fn: Callable[[Any], Any]) -> Any:
    """The value with each tensor replaced by what `fn` makes of it."""
    for path, tensor in list(tensors(value)):
        value = put(value, path, fn(tensor))
    return value


def describe(value: object) -> str:
    """Shape and type of the tensors in a value, on one line.

    >>> from votive.glass.values import describe
    >>> describe((votive.ones(2, 3), None))
    'float32 (2, 3)'
    """
    found = [f"{str(t.dtype).removeprefix('votive.')} {tuple(t.shape)}" for _, t in tensors(value)]
    if not found:
        return type(value).__name__
    return ", ".join(found[:3]) + (f", … {len(found) - 3} more" if len(found) > 3 else "")


def nbytes(value: object) -> int:
    """Bytes of all tensors in a value."""
    return sum(t.numel() * t.element_size() for _, t in tensors(value))
