"""Tracing: a program runs once on proxies, and what it calls becomes a graph."""

from __future__ import annotations

import builtins
import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..nn import Module, Parameter, Sequential
from ..tensor import Tensor
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, has_side_effect
from .proxy import GraphAppendingTracer, Proxy, TraceError

# Functions that are recorded as a whole: (globals of a module, name).
_wrapped: dict[tuple[int, str], dict[str, Any]] = {}


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Record calls of a function of this module as they are, instead of looking into it. Call it at module scope.

    >>> votive.fx.wrap("len")
    'len'
    """
    name = fn_or_name if isinstance(fn_or_name, str) else getattr(fn_or_name, "__name__", None)
    if not isinstance(name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    frame = inspect.currentframe()
    scope = frame.f_back if frame is not None else None
    assert scope is not None
    if scope.f_code.co_name != "<module>" and not scope.f_code.co_filename.startswith("<doctest"):
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(scope.f_globals), name] = scope.f_globals
    return fn_or_name


def _any_proxy(args: Any, kwargs: Any) -> Proxy | None:
    for v in (*args, *kwargs.values()):
        if isinstance(v, Proxy):
            return v
        if isinstance(v, (tuple, list)) and (found := _any_proxy(v, {})) is not None:
            return found
    return None


def _recorded(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        proxy = _any_proxy(args, kwargs)
        if proxy is None:
            return fn(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", fn, args, kwargs)

    return call


@has_side_effect
def _check_concrete(value: object, traced_with: Any, name: str) -> None:
    """Refuse a value for which the program was not traced."""
    same = value is traced_with if traced_with is None or isinstance(traced_with, Tensor) else value == traced_with
    if not same:
        raise AssertionError(f"{name} has been specialized to have value {traced_with} but got another value")


class _Patches:
    """Attributes and globals that mean something else while a program is traced."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def method(self, cls: Any, name: str, new: Any) -> None:
        old = cls.__dict__[name]
        setattr(cls, name, new)
        self._undo.append(lambda: setattr(cls, name, old))

    def entry(self, scope: dict[str, Any], name: str, new: Any) -> None:
        there, old = name in scope, scope.get(name)
        scope[name] = new

        def back() -> None:
            if there:
                scope[name] = old
            else:
                del scope[name]

        self._undo.append(back)

    def __enter__(self) -> _Patches:
        return self

    def __exit__(self, *exc: object) -> None:
        while self._undo:
            self._undo.pop()()


class Tracer(GraphAppendingTracer):
    """Turns a module or a function into a graph. Derive to decide what is a leaf, or what conditions mean.

    >>> graph = votive.fx.Tracer().trace(lambda x: x.exp() * 2)
    >>> [node.name for node in graph.nodes]
    ['x', 'exp', 'mul', 'output']
    """

    def __init__(
        self,
        autowrap_modules: tuple[Any, ...] = (),
        autowrap_functions: tuple[Any, ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self._functions = [*autowrap_functions]
        for module in autowrap_modules:
            self._functions += [f for n, f in vars(module).items() if not n.startswith("_") and callable(f)]
        self.param_shapes_constant = param_shapes_constant
        self.tensor_attrs: dict[int, str] = {}
        self._constants: dict[int, str] = {}
        self.root: Any = None

    # --- what may be overridden ---------------------------------------------------------------

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module is one call in the graph: those of `votive.nn`, but for Sequential."""
        return type(m).__module__.startswith("votive.nn") and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """Where a module stands below the one that is traced."""
        for path, m in self.root.named_modules():
            if m is mod:
                return str(path)
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What becomes of the call of a module."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What becomes of an attribute of a module that is a parameter, or a buffer if these are asked for."""
        wanted = isinstance(attr_val, Parameter) or (self.proxy_buffer_attributes and isinstance(attr_val, Tensor))
        if not wanted:
            return attr_val
        path = self.tensor_attrs.get(id(attr_val))
        if path is None:
            return attr_val
        if path not in parameter_proxy_cache:
            parameter_proxy_cache[path] = self.create_proxy("get_attr", path, (), {})
        return parameter_proxy_cache[path]

    def create_arg(self, a: object) -> Any:
        """A value as the graph holds it: parameters and tensors become attributes of the module."""
        if isinstance(a, Tensor):
            path = self.tensor_attrs.get(id(a))
            if path is None:
                path = self._constants.get(id(a)) or self._constant(a, "_tensor_constant")
            return self.create_node("get_attr", path, (), {})
        if isinstance(a, Module):
            try:
                return self.create_node("get_attr", self.path_of_module(a), (), {})
            except NameError:
                raise NotImplementedError(
                    f"argument of type: {type(a)} that is not part of the traced module"
                ) from None
        try:
            return super().create_arg(a)
        except NotImplementedError:
            if isinstance(a, (set, frozenset)) or a.__class__.__hash__ is None:
                raise
            return self.create_node("get_attr", self._constant(a, f"_{type(a).__name__.lower()}_constant"), (), {})

    def _constant(self, a: object, prefix: str) -> str:
        name = self.get_fresh_qualname(prefix)
        if isinstance(a, Tensor) and not isinstance(a, Parameter):
            self.root.register_buffer(name, a, persistent=True)
        else:
            setattr(self.root, name, a)
        self._constants[id(a)] = name
        return name

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name that the module has not."""
        i = 0
        while hasattr(self.root, f"{prefix}{i}"):
            i += 1
        return f"{prefix}{i}"

    # --- running ------------------------------------------------------------------------------

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: dict[str, Any] | None = None
    ) -> tuple[Any, list[Any], dict[str, Any]]:
        """The function, and proxies for its parameters: by position, and by name."""
        args: list[Any] = [self.root] if is_module else []
        kwargs: dict[str, Any] = {}
        parameters = list(inspect.signature(root_fn).parameters.values())[1 if is_module else 0 :]
        given = concrete_args or {}
        for p in sorted(parameters, key=lambda p: p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)):
            if p.name in given:
                value = given[p.name]
                proxy = self.create_proxy("placeholder", p.name, (), {}, name=f"{p.name}_1")
                self.create_proxy("call_function", _check_concrete, (proxy, value, p.name), {})
                if p.kind is p.KEYWORD_ONLY:
                    kwargs[p.name] = value
                else:
                    args.append(value)
                continue
            stars = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
            default = () if p.default is p.empty else (p.default,)
            proxy = self.create_proxy("placeholder", stars + p.name, default, {})
            if p.kind is p.KEYWORD_ONLY:
                kwargs[p.name] = proxy
            elif stars:
                kwargs[stars] = proxy
            else:
                args.append(proxy)
        return root_fn, args, kwargs

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of what a module or function does. `concrete_args` fixes parameters to values."""
        is_module = isinstance(root, Module)
        self.root = root if is_module else Module()
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = {}
        for path, m in self.root.named_modules():
            for table in (m._parameters, m._buffers):
                for name, t in table.items():
                    if t is not None:
                        self.tensor_attrs.setdefault(id(t), f"{path}.{name}" if path else name)
        fn: Any = type(self.root).forward if is_module else root
        fn, args, kwargs = self.create_args_for_root(fn, is_module, concrete_args)
        stars, doubles = kwargs.pop("*", None), kwargs.pop("**", None)
        with _Patches() as patches:
            self._patch(patches, getattr(fn, "__globals__", {}))
            if stars is None and doubles is None:
                result = fn(*args, **kwargs)
            else:
                result = _with_stars(fn, args, kwargs, stars, doubles)
            self.create_node("output", "output", (self.create_arg(result),), {})
        return self.graph

    def _patch(self, patches: _Patches, scope: dict[str, Any]) -> None:
        cache: dict[str, Any] = {}
        call, read = Module.__call__, Module.__getattr__

        def module_call(module: Any, *args: Any, **kwargs: Any) -> Any:
            return self.call_module(module, lambda *a, **k: call(module, *a, **k), args, kwargs)

        def module_getattr(module: Any, name: str) -> Any:
            return self.getattr(name, read(module, name), cache)

        patches.method(Module, "__call__", module_call)
        patches.method(Module, "__getattr__", module_getattr)
        for (_, name), table in _wrapped.items():
            original = table.get(name, getattr(builtins, name, None))
            if original is not None:
                patches.entry(table, name, _recorded(original))
        for f in self._functions:
            for name, value in list(scope.items()):
                if value is f:
                    patches.entry(scope, name, _recorded(f))


def _with_stars(fn: Any, args: list[Any], kwargs: dict[str, Any], stars: Any, doubles: Any) -> Any:
    """Call a function with proxies for `*args` and `**kwargs` as a whole, which no call can pass: its code is run under
    parameters that are ordinary.
    """
    code = fn.__code__
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    extra = (stars is not None) + (doubles is not None)
    plain = code.replace(
        co_flags=flags,
        co_argcount=code.co_argcount + code.co_kwonlyargcount + extra,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
    )
    rebuilt = type(fn)(plain, fn.__globals__, fn.__name__, None, fn.__closure__)
    only = [kwargs[n] for n in code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]]
    return rebuilt(*args, *only, *(v for v in (stars, doubles) if v is not None))


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module that does what another does, call by call, as its graph says.

    >>> votive.fx.symbolic_trace(lambda x: x * 2)(votive.ones(2))
    tensor([2., 2.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


__all__ = ["Node", "TraceError", "Tracer", "symbolic_trace", "wrap"]
