"""What a split program calls, each compiled on its own: modules, functions, methods. Kept as long as the program is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any

from .reads import Break, trusted
from .rewrite import NoSource
from .split import Splitter

_MOST = 512  # units of one program
_TWINS = 8  # functions of the same code, as those that are defined anew in each call
# `type(x).__call__` -> how such an object is called with a compiled function in place of its own.
SPLITS: dict[Any, Callable[[Any, Units], Callable[..., Any]]] = {}


class Units:
    """Compiled parts of a program. `make(fn)` compiles one."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self.make = make
        self.known: dict[Any, tuple[Any, Any]] = {}  # identity -> (what is called, its compiled form)
        self.twins: dict[CodeType, int] = {}

    def call(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        """Call what a program calls."""
        return self.unit(fn)(*args, **kwargs)

    def unit(self, fn: Any) -> Any:
        """The compiled form of a callable; itself where there is nothing to compile."""
        kind = type(fn)
        if kind is MethodType:
            return self._method(fn)
        if kind is FunctionType:
            return self._function(fn)
        if kind.__call__ in SPLITS:
            return self._kept(id(fn), fn)
        return fn

    def _function(self, fn: FunctionType) -> Any:
        if _plain(fn):
            return fn
        if id(fn) not in self.known:
            seen = self.twins[fn.__code__] = self.twins.get(fn.__code__, 0) + 1
            if seen > _TWINS:
                return fn
        return self._kept(id(fn), fn)

    def _method(self, fn: MethodType) -> Any:
        inner, owner = fn.__func__, fn.__self__
        if not isinstance(inner, FunctionType) or _plain(inner):
            return fn
        if type(owner).__call__ in SPLITS:
            return self._kept((id(inner), id(owner)), fn)
        return MethodType(self._kept(id(inner), inner), owner)

    def _kept(self, key: Any, fn: Any) -> Any:
        found = self.known.get(key)
        if found is None:
            if len(self.known) >= _MOST:
                return fn
            found = self.known[key] = fn, self.make(fn)
        return found[1]


def _plain(fn: FunctionType) -> bool:
    """Whether a function is not worth compiling or cannot be."""
    if trusted(fn) or getattr(fn, "_votive_disabled", False):
        return True
    return inspect.isgeneratorfunction(fn) or inspect.iscoroutinefunction(fn)


def _gradients_of_gradients(code: CodeType) -> bool:
    """Whether a function asks for gradients that have gradients, which do not go through pieces that were compiled."""
    names = [c for c in code.co_consts if isinstance(c, tuple)]
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return any("create_graph" in c for c in names) or any(_gradients_of_gradients(c) for c in inner)


class SplitFunction:
    """A function as pieces, made again when the function is written anew."""

    def __init__(self, fn: FunctionType, line: int, units: Units) -> None:
        self.fn, self.line, self.units = fn, line, units
        self.code: CodeType | None = None
        self.made: FunctionType = fn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        fn = self.fn
        if fn.__code__ is not self.code:
            line = self.line if self.code is None else 0
            self.code = fn.__code__
            try:
                self.made = Splitter(fn, line, self.units.make, self.units).function()
            except NoSource:
                self.made = fn
        made = self.made
        if made is not fn and (
            made.__defaults__ is not fn.__defaults__ or made.__kwdefaults__ is not fn.__kwdefaults__
        ):
            made.__defaults__, made.__kwdefaults__ = fn.__defaults__, fn.__kwdefaults__
        return made(*args, **kwargs)


def split(fn: Any, at: Break, units: Units) -> Callable[..., Any]:
    """A program that is not one graph, in a form that runs graphs where it can."""
    handler = SPLITS.get(type(fn).__call__)
    if handler is not None:
        return handler(fn, units)
    inner = fn.__func__ if isinstance(fn, MethodType) else fn
    if not isinstance(inner, FunctionType) or trusted(inner) or at.fn not in (None, inner):
        return fn
    if _gradients_of_gradients(inner.__code__):
        return fn
    made = SplitFunction(inner, at.line, units)
    return MethodType(made, fn.__self__) if isinstance(fn, MethodType) else made
