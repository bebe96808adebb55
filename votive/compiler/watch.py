"""The calls of a traced program. Runs the functions that `source.py` has rewritten.

What is called is an operator, a function of the package that depends on its arguments, a function whose source is
rewritten in turn, or something that nobody knows, which ends the trace at that line: the program goes on as it is.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from ..core.words import words
from ..dispatch import state
from ..ops.operator import Operator
from .guards import Place
from .reads import PACKAGE, PURE_BUILTINS, REFUSED, Break, Frame, Reads, Stop, hashable, trusted
from .rewrite import NoSource
from .source import closure_of, inner_codes, tree_of, watched

_PURE_MODULES = {
    "math",
    "operator",
    "_operator",
    "itertools",
    "cmath",
    "functools",
    "_functools",
    "copy",
    "_collections",
}
_READERS = set(
    words(
        "get items keys values index count copy __getitem__ __len__ __contains__ __iter__ difference "
        "symmetric_difference union intersection issubset issuperset isdisjoint"
    )
)
_CHANGERS = set(
    words(
        "append extend insert pop remove clear sort reverse update setdefault add discard popitem __setitem__ "
        "appendleft popleft __delitem__"
    )
)
# Parts of the package whose functions do more than compute.
_DOING = (
    "optim",
    "io",
    "serialization",
    "data",
    "glass",
    "studio",
    "train",
    "cli",
    "core.rng",
    "random",
    "autograd.engine",
    "autograd.checkpoint",
)
CALLS: dict[Callable[..., Any], Callable[..., Any]] = {}  # `type(x).__call__` -> how such objects are traced
# Functions and methods that leave something behind, as `(watch, fn, args, kwargs)`; see `effects.py`.
FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {}
# The same for all methods of some classes; NotImplemented where a method is like any other.
METHODS: dict[type, Callable[..., Any]] = {}
_NUMBERS = (int, float, bool, complex, str, bytes, type(None))
ANSWERS: dict[Callable[..., Any], Any] = {}  # functions of the package whose answer is known while a program is traced
# What gives the elements of containers, or calls a function on them.
_LOOPING = (list, tuple, enumerate, zip, reversed, sorted, iter, sum, min, max, any, all, set, map, filter)
_CALLING = (map, filter, sorted, min, max)
_CHANGING = ("setitem", "delitem", "iadd", "imul", "ior", "iconcat", "__setitem__", "__delitem__")


_CACHED = type(functools.lru_cache(len))


class Watch(Reads):
    """One run of a program while it is traced."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.inner: dict[types.CodeType, Frame] = {}  # functions that rewritten ones define, and where

    def call(self, line: int, fn: Any, *args: Any, **kwargs: Any) -> Any:
        self.line = line
        if self.tracer.broken:
            return fn(*args, **kwargs)
        kind = type(fn)
        self.is_outer(fn)
        handler = CALLS.get(kind.__call__)
        if handler is not None:
            return handler(self, fn, args, kwargs)
        if isinstance(fn, Operator):
            return self._trust(fn, args, kwargs)
        if kind is types.FunctionType or kind is types.MethodType:
            found = self._effective(fn, args, kwargs)
            if found is not NotImplemented:
                return found
        if kind is functools.partial:
            return self.call(line, fn.func, *fn.args, *args, **{**fn.keywords, **kwargs})
        if kind is types.MethodType:
            if isinstance(fn.__func__, Operator) or trusted(fn.__func__):
                if isinstance(fn.__self__, (dict, list, set)) and self.was_there(fn.__self__):
                    self.stop(f"it changes a {type(fn.__self__).__name__} that was there before")
                return self._trust(fn, args, kwargs)
            if isinstance(fn.__func__, types.FunctionType):
                return self.enter(fn.__func__, (fn.__self__, *args), kwargs)
            return self.call(line, fn.__func__, fn.__self__, *args, **kwargs)
        if kind is _CACHED:
            # What is remembered was computed by the function itself, from the same arguments.
            return self.call(line, fn.__wrapped__, *args, **kwargs)
        if disabled := getattr(fn, "_votive_disabled", False):
            why = f" ({disabled})" if isinstance(disabled, str) else ""
            self.stop(f"it calls {_name(fn)}, which compile.disable keeps as it is{why}")
            return fn(*args, **kwargs)
        if kind is types.FunctionType and fn in ANSWERS:
            return ANSWERS[fn]
        if kind is types.FunctionType:
            fn = inspect.unwrap(fn) if hasattr(fn, "__wrapped__") and trusted(fn.__wrapped__) else fn
            if trusted(fn):
                return self._trust(fn, args, kwargs)
            return self.enter(fn, args, kwargs)
        if isinstance(fn, type):
            return self._make(fn, args, kwargs)
        if self._harmless(fn, args, kwargs):
            if fn in _CALLING or getattr(fn, "__module__", None) in ("itertools", "_functools"):
                args = tuple([self._guarded(a) for a in args])
                kwargs = {k: self._guarded(v) for k, v in kwargs.items()}
            elif getattr(fn, "__name__", "") == "sort":
                kwargs = {k: self._guarded(v) for k, v in kwargs.items()}
            return fn(*args, **kwargs)
        own = getattr(kind, "__call__", None)  # noqa: B004
        if isinstance(own, types.FunctionType) and not trusted(own):
            self._method(kind, "__call__")
            return self.enter(own, (fn, *args), kwargs)
        if isinstance(own, types.FunctionType):
            return fn(*args, **kwargs)
        self.stop(f"it calls {_name(fn)}, which may do anything")
        return fn(*args, **kwargs)

    def _effective(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call what leaves something behind, where somebody knows what; else NotImplemented."""
        inner = getattr(fn, "__func__", fn)
        handler = FUNCTIONS.get(inner)
        if handler is not None:
            return handler(self, inner, args if inner is fn else (fn.__self__, *args), kwargs)
        if inner is not fn:
            for kind in type(fn.__self__).__mro__ if METHODS else ():
                if kind in METHODS:
                    return METHODS[kind](self, fn, args, kwargs)
        return NotImplemented

    def _guarded(self, value: Any) -> Any:
        """A program that a function of Python itself will call, such that it is watched there, too."""
        programs = types.FunctionType, types.MethodType, functools.partial
        if isinstance(value, programs) or (callable(value) and type(value).__call__ in CALLS):
            return functools.partial(self.call, self.line, value)
        return value

    def _trust(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of the package: it depends on its arguments, unless these are programs themselves."""
        for a in (*args, *kwargs.values()):
            if type(a).__call__ in CALLS if callable(a) else False:
                self.stop(f"{_name(fn)} is given a {type(a).__name__} to call")
            elif isinstance(a, (types.FunctionType, types.MethodType)) and not trusted(a):
                self.stop(f"{_name(fn)} is given a function to call")
        if not isinstance(fn, Operator):
            inner = getattr(fn, "__func__", fn)
            name, module = getattr(inner, "__name__", ""), getattr(inner, "__module__", "") or ""
            part = module[len(PACKAGE) + 1 :]
            if name in REFUSED or part.startswith(_DOING) or (name == "apply" and part == "autograd.function"):
                self.stop(f"it calls {_name(inner)}()")
        self._contents(args, kwargs)
        return fn(*args, **kwargs)

    def _make(self, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A new object."""
        if kind in PURE_BUILTINS:
            if not self._harmless(kind, args, kwargs):
                self.stop(f"it gives {kind.__name__} what may do anything")
            return kind(*args, **kwargs)
        if kind.__module__.split(".")[0] == PACKAGE or kind.__module__ in _PURE_MODULES:
            self._contents(args, kwargs)
            return kind(*args, **kwargs)
        if issubclass(kind, (BaseException, tuple)) or kind.__module__ in ("collections", "enum"):
            self._contents(args, kwargs)
            return kind(*args, **kwargs)
        plain = type(kind) is type and kind.__new__ is object.__new__
        init = kind.__init__
        if plain and isinstance(init, types.FunctionType):
            if dataclasses.is_dataclass(kind) and not hasattr(kind, "__post_init__"):
                return kind(*args, **kwargs)
            made = kind.__new__(kind)
            self._method(kind, "__init__")
            self.enter(init, (made, *args), kwargs)
            return made
        self.stop(f"it makes a {kind.__name__}, which may do anything")
        return kind(*args, **kwargs)

    def _contents(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """What is given to a function that looks into its arguments."""
        for a in (*args, *kwargs.values()):
            self._looked_into(a)

    def _looked_into(self, value: Any) -> None:
        kind = value.__class__
        if kind in (list, tuple, dict, set):
            self.whole(value)
            for v in value.values() if kind is dict else value:
                if v.__class__ not in _NUMBERS:
                    self._looked_into(v)
        elif kind not in _NUMBERS:
            self.is_outer(value)
            if not isinstance(value, (state.tensor, type)) and _holds_data(value):
                self.stop(f"it reads the numbers of a {kind.__name__}")

    def _harmless(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a function that is not written in Python does nothing but give a value."""
        on = getattr(fn, "__self__", None)
        name = getattr(fn, "__name__", "")
        if isinstance(on, state.tensor) or (isinstance(on, type) and issubclass(on, state.tensor)):
            return True
        if on is not None and not isinstance(on, types.ModuleType):
            if isinstance(on, (str, int, float, complex, bytes, range, tuple)) and not self.is_outer(on):
                self._contents(args, kwargs)
                return True
            if isinstance(on, (list, dict, set, tuple, frozenset)):
                if self.is_outer(on):
                    if name in _READERS:
                        self.whole(on)
                        return True
                    return False
                if id(on) in self.given and name not in _READERS:
                    return False
                return name in _READERS or name in _CHANGERS or isinstance(on, tuple)
            return False
        if isinstance(fn, types.MethodDescriptorType):  # str.isalpha(x), set.union(a, b)
            if fn.__objclass__ in (str, bytes) or (fn.__objclass__ in (set, frozenset) and name in _READERS):
                self._contents(args, kwargs)
                return True
        if hashable(fn) and fn in PURE_BUILTINS:
            return self._built_in(fn, args, kwargs)
        module = getattr(fn, "__module__", None) or ""
        if module in _PURE_MODULES or module.split(".")[0] == PACKAGE:
            if name in _CHANGING and any(self.was_there(a) for a in args):
                return False
            self._contents(args, kwargs)
            return True
        return False

    def _built_in(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether what a function of Python itself reads can be guarded."""
        if fn in (getattr, hasattr):
            if isinstance(args[0], state.tensor):
                if args[1] in ("grad", "_grad", "data"):
                    self._of_tensor(*args[:2])
            elif self.is_outer(args[0]):
                self._asked(*args[:2])
        elif fn is next:
            return not self.was_there(args[0])
        elif fn is len and self.is_outer(args[0]) and not isinstance(args[0], (list, tuple, dict)):
            self.guards.equal(Place("length", args[0], "len", args[0], by="len"), len(args[0]))
            return True
        self._contents(args, kwargs)
        for a in args:
            if fn in _LOOPING and self.is_outer(a) and not isinstance(a, (list, tuple, dict, set, frozenset)):
                if callable(a) and fn in (map, filter):
                    continue
                if not isinstance(getattr(type(a), "__iter__", None), types.FunctionType) or not self._iterated(a):
                    return False
        return True

    def _iterated(self, obj: Any) -> bool:
        """Whether a container of the package's own kind was looked through with guards."""
        modules = getattr(obj, "__dict__", {}).get("_modules")
        if not isinstance(modules, dict):
            return False
        self.outer[id(modules)] = modules
        self.whole(modules)
        return True

    def _asked(self, obj: Any, name: str) -> None:
        """`hasattr` and `getattr` outside."""
        own = getattr(obj, "__dict__", None)
        if not hasattr(obj, name):
            if own is not None:
                self.guards.absent(Place("attribute", own, name, obj))
            return
        self.attr(obj, name)

    def enter(self, fn: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a Python function with its source rewritten."""
        frame = self.inner.get(fn.__code__)
        if frame is not None:  # defined by a function of this trace: rewritten with it
            return self._run(fn, frame, args, kwargs)
        self.guards.code(fn)
        try:
            tree = tree_of(fn)
            closure = closure_of(fn)
            made = watched(tree, fn.__code__.co_filename, fn.__globals__, closure, self)
        except NoSource as e:
            self.stop(str(e))
            return fn(*args, **kwargs)
        for c in closure.values():
            self.outer[id(c)] = c
        try:
            bound = inspect.signature(fn, follow_wrapped=False).bind(*args, **kwargs)
        except TypeError:
            return fn(*args, **kwargs)  # says what is wrong
        bound.apply_defaults()
        defaults = (*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values())
        for value in bound.arguments.values():
            if value.__class__ in (list, dict, set) and any(value is d for d in defaults):
                self.outer[id(value)] = value
        frame = Frame(fn, made.__code__, closure)
        for code in inner_codes(made.__code__):
            self.inner[code] = frame
        return self._run(made, frame, bound.args, bound.kwargs)

    def _run(self, made: types.FunctionType, frame: Frame, args: Any, kwargs: Any) -> Any:
        """Call a rewritten function."""
        self.frames.append(frame)
        line = self.line
        try:
            return made(*args, **kwargs)
        finally:
            self.frames.pop()
            self.line = line


def _holds_data(value: Any) -> bool:
    """Whether an object has memory of its own that anybody may write to: an array, a buffer."""
    kind = type(value)
    return isinstance(value, (bytearray, memoryview)) or any(
        hasattr(kind, n) for n in ("__array__", "__array_interface__", "__dlpack__", "__buffer__")
    )


def _name(fn: Any) -> str:
    return getattr(fn, "__qualname__", None) or getattr(fn, "__name__", None) or type(fn).__name__


__all__ = ["CALLS", "Break", "Stop", "Watch"]
