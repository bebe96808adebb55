"""Objects that answer calls themselves: `__torch_function__` of tensor subclasses, of tensor-likes and of modes.

Ordinary calls never come here. A tensor whose class overrides keeps its spec outside the slot that native code reads,
so that its calls lead to no plan and take the general way; there this is asked first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from ..core import spelled
from ..core.device import device
from ..core.dtype import dtype
from ..core.mode import mode
from ..ops.operator import Form, Operator
from .observe import refresh
from .state import state

_PLAIN = frozenset([int, float, bool, complex, str, bytes, type(None), type(...), slice, dtype, device, type])
NOTHING: Any = object()  # no object overrides the call
# Python's operators whose reflected form is the function itself.
COMMUTATIVE = frozenset(("add", "mul", "and", "or", "xor"))


def _run_plainly(func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
    """The `__torch_function__` of a class that wants plain results: the function runs as if nobody overrode it."""
    before, mode.subclass_functions = mode.subclass_functions, False
    try:
        return func(*args, **(kwargs or {}))
    finally:
        mode.subclass_functions = before


disabled: Any = _run_plainly


def overrides(cls: type) -> bool:
    """Whether instances of a class answer calls themselves."""
    found = getattr(cls, "__torch_function__", None)
    if found is None or found is disabled or cls is state.tensor:
        return False
    # A tensor of torch itself is a foreign array here: it knows nothing of votive's functions.
    return not any(base.__name__ == "Tensor" and base.__module__ == "torch" for base in cls.__mro__)


def _add(found: list[Any], v: object) -> None:
    """Once per class; a subclass goes before the classes that it derives from."""
    cls = type(v)
    if any(type(other) is cls for other in found):
        return
    at = next((i for i, other in enumerate(found) if issubclass(cls, type(other))), len(found))
    found.insert(at, v)


def overloaded(values: Iterable[Any], nested: bool = True) -> list[Any]:
    """The arguments that answer calls themselves, one per class, in the order in which they are asked."""
    found: list[Any] = []
    plain = state.tensor
    for v in values:
        c = v.__class__
        if c is plain or c in _PLAIN:
            continue
        if c is tuple or c is list:
            if nested:
                for x in overloaded(v, False):
                    _add(found, x)
        elif overrides(c):
            _add(found, v)
    return found


def ask(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What modes or arguments make of a call; NOTHING when none of them overrides it."""
    found: list[Any] = []
    if mode.subclass_functions:
        found = overloaded((*args, *kwargs.values()) if kwargs else args)
    if not found and not mode.functions:
        return NOTHING
    return handle(func, found, args, kwargs)


def handle(func: Callable[..., Any], found: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Let the innermost mode, then one argument after the other answer a call."""
    types = tuple(type(v) for v in found)
    stack = mode.functions
    if stack:
        mode.functions = stack[:-1]
        try:
            result = stack[-1].__torch_function__(func, types, args, kwargs)
        finally:
            mode.functions = stack
        if result is not NotImplemented:
            return result
    for v in found:
        result = v.__torch_function__(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    asked = [f"mode object {stack[-1]!r}"] if stack else []
    asked += [f"tensor subclass {t!r}" for t in types]
    raise TypeError(
        f"Multiple dispatch failed for {_public_name(func)!r}; all __torch_function__ handlers returned "
        "NotImplemented:\n\n" + "".join(f"  - {text}\n" for text in asked)
    )


def _public_name(func: Callable[..., Any]) -> str:
    module = getattr(func, "__module__", None) or "votive"
    return f"{module.replace('votive', spelled.package, 1)}.{getattr(func, '__name__', func)}"


def ask_form(form: Form, args: tuple[Any, ...]) -> Any:
    """`ask` for Python's operators: a handler sees the function, and Python may ask the other side."""
    func: Any = form
    if (form.kind == "operator" and form.__name__ == form.name) or (
        form.kind == "reflected" and form.of.operator in COMMUTATIVE
    ):
        func = form.of
    elif form.kind == "operator in place":
        func = form.of.inplace_form
    try:
        return ask(func, args, {})
    except TypeError as e:
        if str(e).startswith("Multiple dispatch failed"):
            return NotImplemented
        raise


def watch() -> None:
    """From now on the general way of calls asks for overrides."""
    Operator.overriding = True
    if not state.subclasses:
        state.subclasses = True
        refresh()


class _OwnSpec:
    """A tensor's spec outside its slot."""

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        if tensor is None:
            return self
        try:
            return tensor.__dict__["_own_spec"]
        except KeyError:
            raise AttributeError("_spec") from None

    def __set__(self, tensor: Any, spec: Any) -> None:
        tensor.__dict__["_own_spec"] = spec


# What the class itself needs, or what goes through an operator anyway.
_UNTOUCHED = frozenset(
    ["__new__", "__init__", "__init_subclass__", "__torch_function__", "__matmul__", "__rmatmul__", "__invert__"]
    + ["__round__", "__copy__", "__reduce_ex__", "__array_wrap__", "__hash__", "__setattr__", "__getattribute__"]
    + ["__str__", "__format__", "as_subclass"]
)


def _method(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def method(*args: Any, **kwargs: Any) -> Any:
        result = ask(original, args, kwargs)
        return original(*args, **kwargs) if result is NOTHING else result

    return method


def _property(original: property) -> property:
    getter, setter = _method(original.__get__), original.__set__

    def get(self: Any) -> Any:
        return getter(self)

    def put(self: Any, value: object) -> None:
        if ask(setter, (self, value), {}) is NOTHING:
            setter(self, value)

    return property(get, put if original.fset is not None else None, doc=original.__doc__)


def prepare_class(cls: Any) -> None:
    """Let instances of a new subclass of Tensor be asked about every call, unless it wants plain results."""
    if not overrides(cls) or any(isinstance(base.__dict__.get("_spec"), _OwnSpec) for base in cls.__mro__):
        return
    watch()
    cls._spec = _OwnSpec()
    seen = set(_UNTOUCHED)
    for base in cls.__mro__:
        if base in state.tensor.__mro__:
            for name, value in base.__dict__.items():
                if name in seen or (name[:1] == "_" and name[:2] != "__"):
                    continue
                if value.__class__ is FunctionType and not hasattr(value, "__wrapped__"):
                    setattr(cls, name, _method(value))
                elif value.__class__ is property:
                    setattr(cls, name, _property(value))
        seen.update(base.__dict__)


Operator.ask = staticmethod(ask)
Operator.nothing = NOTHING
Form.ask_form = staticmethod(ask_form)
Operator.watch = staticmethod(watch)
