"""`__torch_function__`: how classes beside Tensor, and modes, answer calls of votive's functions.

>>> class Logged(votive.Tensor):
...     @classmethod
...     def __torch_function__(cls, func, types, args=(), kwargs=None):
...         seen.append(func.__name__)
...         return super().__torch_function__(func, types, args, kwargs)
>>> seen = []
>>> x = votive.ones(2).as_subclass(Logged)
>>> type(x + 1).__name__, seen
('Logged', ['add'])
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterable
from types import FunctionType, TracebackType
from typing import Any

from .core import spelled
from .core.mode import mode
from .dispatch import disabled as _disabled_torch_function_impl
from .dispatch import overrides as _protocol
from .dispatch import refresh
from .ops.operator import Operator
from .tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]
Fn = Callable[..., Any]


class _Skip(threading.local):
    """Whether the next `has_torch_function` is asked by a function that `redispatch_function` calls."""

    next: bool = False


_skip = _Skip()


class DisableTorchFunctionSubclass:
    """Inside, arguments do not answer calls themselves; modes still do.

    >>> class Sub(votive.Tensor): ...
    >>> x = votive.ones(1).as_subclass(Sub)
    >>> with votive.overrides.DisableTorchFunctionSubclass():
    ...     type(x + 1).__name__
    'Tensor'
    """

    def __enter__(self) -> None:
        self._before = (mode.subclass_functions, mode.functions)
        mode.subclass_functions = False

    def __exit__(self, *exc: object) -> None:
        mode.subclass_functions, mode.functions = self._before


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Inside, neither arguments nor modes answer calls."""

    def __enter__(self) -> None:
        super().__enter__()
        mode.functions = ()


class TorchFunctionMode:
    """A block in which every call of a public function goes to `__torch_function__` of this object.

    >>> class Count(votive.overrides.TorchFunctionMode):
    ...     calls = 0
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         self.calls += 1
    ...         return func(*args, **(kwargs or {}))
    >>> with Count() as counted:
    ...     y = votive.ones(2).exp().sum()
    >>> counted.calls
    3
    """

    inner: TorchFunctionMode

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Fn, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        _protocol.watch()
        mode.functions = (*mode.functions, self)
        refresh(functions=1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        refresh(functions=-1)
        mode.functions = mode.functions[:-1]

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """The mode itself; `with` is what turns it on."""
        warnings.warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2)
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets every call through."""

    def __torch_function__(self, func: Fn, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        return func(*args, **(kwargs or {}))


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments, or a mode, would answer a call with them.

    >>> votive.overrides.has_torch_function((votive.ones(1), 2))
    False
    """
    if _skip.next:
        _skip.next = False
        return False
    return bool(mode.functions) or (mode.subclass_functions and bool(_protocol.overloaded(relevant_args, False)))


def has_torch_function_unary(arg: Any) -> bool:
    """`has_torch_function` of one argument."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function` of several arguments."""
    return has_torch_function(args)


def handle_torch_function(public_api: Fn, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Let the arguments, or a mode, answer a call: for functions written in Python that can be overridden, too.

    >>> def norm(x):
    ...     if votive.overrides.has_torch_function((x,)):
    ...         return votive.overrides.handle_torch_function(norm, (x,), x)
    ...     return (x * x).sum().sqrt()
    >>> norm(votive.tensor([3.0, 4.0]))
    tensor(5.)
    """
    found = _protocol.overloaded(relevant_args, False) if mode.subclass_functions else []
    return _protocol.handle(public_api, found, args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Fn], Fn]:
    """Make a function overridable; `dispatcher` gives, for the same arguments, those that may answer it."""

    def decorate(func: Fn) -> Fn:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether a value is a Tensor or has `__torch_function__`.

    >>> votive.overrides.is_tensor_like(votive.ones(1)), votive.overrides.is_tensor_like(3)
    (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def _spaces() -> dict[str, Any]:
    import votive

    from . import fft, linalg, nn, signal, special

    return {
        "votive": votive,
        "votive.nn.functional": nn.functional,
        "votive.linalg": linalg,
        "votive.fft": fft,
        "votive.special": special,
        "votive.signal": signal,
        "votive.Tensor": Tensor,
    }


@functools.cache
def _names() -> tuple[dict[Any, list[Any]], dict[Any, str], set[Any]]:
    """Overridable functions by namespace, the name of each, and those that belong to Tensor."""
    by_space: dict[Any, list[Any]] = {}
    names: dict[Any, str] = {}
    methods: set[Any] = set()
    for prefix, space in _spaces().items():
        found: list[Any] = []
        for name in dir(space):
            if name.startswith("_") and not (space is Tensor and name.startswith("__")):
                continue
            value = getattr(space, name, None)
            if isinstance(value, property):
                value, name = value.__get__, f"{name}.__get__"
            elif not isinstance(value, Operator) and not (space is Tensor and isinstance(value, FunctionType)):
                continue
            if space is Tensor and name in _protocol._UNTOUCHED and not isinstance(value, Operator):
                continue
            found.append(value)
            names.setdefault(value, f"{prefix}.{name}")
            if space is Tensor:
                methods.add(value)
        by_space[space] = found
    return by_space, names, methods


def get_overridable_functions() -> dict[Any, list[Fn]]:
    """The functions that `__torch_function__` can answer, by the namespace that holds them.

    >>> votive.add in votive.overrides.get_overridable_functions()[votive]
    True
    """
    return {space: list(found) for space, found in _names()[0].items()}


def get_ignored_functions() -> set[Fn]:
    """Public functions that cannot be overridden: those which take no tensor.

    >>> votive.manual_seed in votive.overrides.get_ignored_functions()
    True
    """
    import votive

    functions = {getattr(votive, n) for n in dir(votive) if isinstance(getattr(votive, n, None), FunctionType)}
    return functions | {m for n in _protocol._UNTOUCHED if (m := getattr(Tensor, n, None)) is not None}


def get_testing_overrides() -> dict[Fn, Fn]:
    """For each overridable function one with the same parameters that gives -1."""

    def same(func: Callable[..., Any]) -> Fn:
        return functools.wraps(func)(lambda *args, **kwargs: -1)

    return {f: same(f) for found in _names()[0].values() for f in found}


def resolve_name(f: Fn) -> str | None:
    """The public name of a function.

    >>> votive.overrides.resolve_name(votive.add)
    'votive.add'
    """
    name = _names()[1].get(f)
    if name is None:
        return f if isinstance(f, str) else None
    return name.replace("votive", spelled.package, 1)


def is_tensor_method_or_property(func: Fn) -> bool:
    """Whether a function is a method or a property of Tensor.

    >>> votive.overrides.is_tensor_method_or_property(votive.Tensor.shape.__get__)
    True
    """
    return func in _names()[2] or getattr(func, "__name__", "") == "__get__"


def get_default_nowrap_functions() -> set[Fn]:
    """Functions whose results the default `__torch_function__` leaves as they are."""
    from .tensor import _facts

    return set(_facts())


class enable_reentrant_dispatch:
    """For torch's sake: nothing stands in the way of reentrant dispatch here."""

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: object) -> None: ...


def redispatch_function(func: Fn, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
    """Call a function as if neither its arguments nor modes answered this one call. Calls inside a function written in
    Python are asked again.

    >>> votive.overrides.redispatch_function(votive.add, (), (votive.ones(1), 1))
    tensor([2.])
    """
    if isinstance(func, FunctionType):
        _skip.next = True
        try:
            return func(*args, **(kwargs or {}))
        finally:
            _skip.next = False
    before, mode.functions = mode.functions, ()
    try:
        return _disabled_torch_function_impl(func, types, args, kwargs)
    finally:
        mode.functions = before
