"""Arguments and results as flat lists of leaves, and back. Knows containers, not tensors' contents."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from types import FunctionType, GeneratorType, MethodType
from typing import Any

from ..core import device as devices
from ..core import dtype as dt
from ..dispatch import state
from .symbols import is_symbolic


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


def containers(value: Any) -> list[Any]:
    """The lists and tables that `flatten` looks into."""
    if value.__class__ is dict:
        return [value, *(c for v in value.values() for c in containers(v))]
    if value.__class__ is list or value.__class__ is tuple:
        return [value, *(c for v in value for c in containers(v))]
    return []


class Unknown(Exception):
    """A result that cannot be taken apart."""


_PLAIN = (int, float, bool, complex, str, bytes, type, range, type(None), type(Ellipsis), dt.dtype, devices.device)
_REFUSED = (FunctionType, MethodType, BaseException, GeneratorType)
Maker = Callable[[tuple[Any, ...], dict[int, Any]], Any]  # of tensors, and of what was made already


class Template:
    """How a result is built again from other tensors. What was one object in it is one object again."""

    def __init__(self, result: Any, is_outer: Callable[[Any], bool], tensors: list[Any] | None = None) -> None:
        self.tensors: list[Any] = [] if tensors is None else tensors
        self.known: dict[int, Maker | None] = {}
        self.leaves: list[Any] = []  # whatever else is in it
        self.is_outer = is_outer
        self.maker = self._part(result)

    def __call__(self, tensors: tuple[Any, ...]) -> Any:
        return self.maker(tensors, {})

    def released(self) -> Callable[[tuple[Any, ...]], Any]:
        """The same, without this result: only how others are built."""
        maker = self.maker
        return lambda tensors: maker(tensors, {})

    def _part(self, value: Any) -> Maker:
        if isinstance(value, state.tensor):
            return self._tensor(value)
        if is_symbolic(value) and value.__class__ is not tuple and value.__class__ is not list:
            self.leaves.append(value)
            return self.sized(value)
        if isinstance(value, _PLAIN) or self.is_outer(value):
            self.leaves.append(value)
            return lambda tensors, made: value
        key = id(value)
        if key in self.known:
            maker = self.known[key]
            if maker is None:
                raise Unknown("it returns an object that contains itself")
            return maker
        self.known[key] = None
        plain = self._object(value)

        def once(tensors: tuple[Any, ...], made: dict[int, Any]) -> Any:
            if key not in made:
                made[key] = plain(tensors, made)
            return made[key]

        self.known[key] = once
        return once

    @staticmethod
    def sized(value: Any) -> Maker:
        """A number that comes from sizes, and how to compute it from those of a run."""
        known: list[Callable[..., Any]] = []

        def make(tensors: Any, made: dict[int, Any]) -> Any:
            if not known:
                known.append(tensors.of.function(value))
            return known[0](*tensors.sizes)

        return make

    def _tensor(self, value: Any) -> Maker:
        for i, t in enumerate(self.tensors):
            if t is value:
                return lambda tensors, made: tensors[i]
        self.tensors.append(value)
        n = len(self.tensors) - 1
        return lambda tensors, made: tensors[n]

    def _object(self, value: Any) -> Maker:
        kind = type(value)
        if isinstance(value, tuple):
            parts = [self._part(v) for v in value]
            if kind is tuple:
                return lambda tensors, made: tuple([p(tensors, made) for p in parts])
            if hasattr(kind, "_fields"):
                return lambda tensors, made: kind(*[p(tensors, made) for p in parts])
            return lambda tensors, made: kind([p(tensors, made) for p in parts])
        if kind is list:
            parts = [self._part(v) for v in value]
            return lambda tensors, made: [p(tensors, made) for p in parts]
        if kind is dict:
            table = {k: self._part(v) for k, v in value.items()}
            return lambda tensors, made: {k: p(tensors, made) for k, p in table.items()}
        calls = any("__call__" in vars(c) for c in kind.__mro__)  # a module, or the like
        if isinstance(value, _REFUSED) or calls or not hasattr(value, "__dict__"):
            raise Unknown(f"it returns a {kind.__name__}")
        return self._instance(value)

    def _instance(self, value: Any) -> Maker:
        """An object with attributes, and elements if it is a table: a copy of it with new tensors."""
        own = {k: self._part(v) for k, v in vars(value).items()}
        items = {k: self._part(v) for k, v in value.items()} if isinstance(value, dict) else {}
        if not isinstance(value, dict) and isinstance(value, (list, set, Iterator)):
            raise Unknown(f"it returns a {type(value).__name__}")
        plain = copy.copy(value)
        for k in own:
            plain.__dict__[k] = None
        for k in items:
            dict.__setitem__(plain, k, None)

        def build(tensors: tuple[Any, ...], made: dict[int, Any]) -> Any:
            found = copy.copy(plain)
            found.__dict__.update({k: p(tensors, made) for k, p in own.items()})
            for k, p in items.items():
                dict.__setitem__(found, k, p(tensors, made))
            return found

        return build
