"""Nested tuples, lists and dicts as flat lists, and back. Everything else is a leaf."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any


class Structure:
    """How a nest of containers looks: equal ones hold their leaves at the same places."""

    def __init__(self, kind: Any, keys: tuple[Any, ...], children: tuple[Structure, ...], extra: Any) -> None:
        self.kind, self.keys, self.children, self.extra = kind, keys, children, extra
        self.leaves: int = 1 if kind is None else sum(c.leaves for c in children)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Structure) or self.kind is not other.kind or len(self.children) != len(other.children):
            return False
        return set(self.keys) == set(other.keys) and self.children == other.children

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        inner = ", ".join(map(repr, self.children))
        keys = repr(list(self.keys)) if issubclass(self.kind, dict) else "None"
        return f"TreeSpec({self.kind.__name__}, {keys}, [{inner}])"


_LEAF = Structure(None, (), (), None)


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves, and the structure that puts them together again."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: Any, leaves: list[Any]) -> Structure:
    kind: Any = tree.__class__
    if kind in (dict, OrderedDict, defaultdict):
        children = tuple(_flatten(v, leaves) for v in tree.values())
        return Structure(kind, tuple(tree), children, getattr(tree, "default_factory", None))
    if kind in (tuple, list) or (isinstance(tree, tuple) and hasattr(tree, "_fields")):
        return Structure(kind, (), tuple(_flatten(v, leaves) for v in tree), None)
    leaves.append(tree)
    return _LEAF


def unflatten(leaves: list[Any], structure: Structure) -> Any:
    """The nest of containers around these leaves."""
    return _build(iter(leaves), structure)


def _build(leaves: Any, s: Structure) -> Any:
    if s.kind is None:
        return next(leaves)
    parts = [_build(leaves, c) for c in s.children]
    if issubclass(s.kind, dict):
        pairs = zip(s.keys, parts, strict=True)
        return defaultdict(s.extra, pairs) if s.kind is defaultdict else s.kind(pairs)
    return s.kind(*parts) if hasattr(s.kind, "_fields") else s.kind(parts)


def tree_map(fn: Callable[[Any], Any], tree: Any) -> Any:
    """The same nest with a function of each leaf."""
    leaves, structure = flatten(tree)
    return unflatten([fn(x) for x in leaves], structure)


def broadcast(prefix: Any, structure: Structure) -> list[Any] | None:
    """A value for each leaf from a nest that may end earlier; None where the two do not fit."""
    kind = prefix.__class__
    if structure.kind is None:
        return None if kind in (tuple, list, dict, OrderedDict) else [prefix]
    if kind not in (tuple, list, dict, OrderedDict):
        return [prefix] * structure.leaves
    if kind in (dict, OrderedDict):
        if not issubclass(structure.kind, dict) or set(prefix) != set(structure.keys):
            return None
        inner = [prefix[k] for k in structure.keys]
    else:
        if issubclass(structure.kind, dict) or len(prefix) != len(structure.children):
            return None
        if kind is not structure.kind and not hasattr(structure.kind, "_fields"):
            return None
        inner = list(prefix)
    found: list[Any] = []
    for p, child in zip(inner, structure.children, strict=True):
        part = broadcast(p, child)
        if part is None:
            return None
        found += part
    return found
