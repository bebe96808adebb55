"""A nested state as values by name, and back. Knows containers, tensors and JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...tensor import Tensor

PLAIN = (bool, int, float, str, type(None))


def leaves(state: Any, name: str = "") -> dict[str, Any]:
    """Tensors and plain values by their paths; lists and tuples of plain values are one.

    >>> from votive.distributed.checkpoint.leaves import leaves
    >>> leaves({"model": {"0.weight": 1}, "groups": [{"betas": (0.5, 0.9)}]})
    {'model.0.weight': 1, 'groups.0.betas': (0.5, 0.9)}
    """
    found: dict[str, Any] = {}

    def put(value: Any, path: str) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                put(inner, f"{path}.{key}" if path else str(key))
        elif isinstance(value, (list, tuple)) and any(isinstance(v, (dict, list, tuple, Tensor)) for v in value):
            for i, inner in enumerate(value):
                put(inner, f"{path}.{i}" if path else str(i))
        elif path in found:
            raise ValueError(f"two values of the state are at {path!r}; rename one of them.")
        else:
            found[path] = value

    put(state, name)
    return found


def encoded(name: str, value: Any) -> Any:
    """A plain value as JSON has it."""
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(v, PLAIN) for v in value):
        return {type(value).__name__: list(value)}
    raise TypeError(
        f"checkpoint.save: {name} is a {type(value).__name__}; tensors, numbers, truth values, texts, None and lists "
        "of them are saved."
    )


def decoded(value: Any) -> Any:
    """What `encoded` was given."""
    if isinstance(value, dict):
        ((kind, items),) = value.items()
        return tuple(items) if kind == "tuple" else list(items)
    return value


def replace(state: Any, found: Callable[[str, Any], Any], name: str = "") -> Any:
    """The same containers with other values: `found(path, value)`; tuples are made anew."""
    if isinstance(state, dict):
        for key, inner in state.items():
            state[key] = replace(inner, found, f"{name}.{key}" if name else str(key))
        return state
    if isinstance(state, (list, tuple)) and any(isinstance(v, (dict, list, tuple, Tensor)) for v in state):
        inner_values = [replace(v, found, f"{name}.{i}" if name else str(i)) for i, v in enumerate(state)]
        if isinstance(state, tuple):
            return tuple(inner_values)
        state[:] = inner_values
        return state
    return found(name, state)
