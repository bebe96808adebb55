"""Proxies: values that a traced program computes with, each the result of a node; what is done to them is recorded."""

from __future__ import annotations

import dis
import inspect
import operator
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from ..core.device import device
from ..core.dtype import dtype
from ..core.layout import Size
from ..core.memory_format import layout, memory_format
from ..ops.operator import Form, Operator
from ..overrides import is_tensor_method_or_property
from .codegen import INFIX, PREFIX
from .graph import Graph
from .node import Node, map_aggregate

_PLAIN = (str, int, float, bool, complex, dtype, device, memory_format, layout, type(None), type(...), range)
_CONTROL = "symbolically traced variables cannot be used as inputs to control flow"


class TraceError(ValueError):
    """A program does what a trace cannot record."""


class GraphAppendingTracer:
    """Makes nodes and proxies in a graph."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def create_node(
        self,
        kind: str,
        target: object,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: object = None,
    ) -> Node:
        """A node for values that are no proxies any more."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """The value that stands for a node's result."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: object,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: object = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """A node for these arguments, and the value that stands for its result."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        if self.record_stack_traces and "stack_trace" not in node.meta:
            node.stack_trace = "".join(traceback.format_list(traceback.extract_stack()[:-2]))
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a: object) -> Any:
        """A value as a graph holds it: proxies as their nodes, in any nest of containers."""
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, Size):
            return tuple(self.create_arg(v) for v in a)
        if isinstance(a, tuple):
            parts = [self.create_arg(v) for v in a]
            return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
        if isinstance(a, list):
            return [self.create_arg(v) for v in a]
        if isinstance(a, dict):
            for k in a:
                if isinstance(k, (Proxy, Node)):
                    raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {k}")
            return {k: self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(*(self.create_arg(v) for v in (a.start, a.stop, a.step)))
        if isinstance(a, (Node, *_PLAIN)) or callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        """What a condition on a proxy is; derive to allow some."""
        raise TraceError(_CONTROL)

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """The items of a proxy; derive to allow some."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the docs of votive.fx for what types of control flow can be traced."
        )

    def keys(self, obj: Proxy) -> Any:
        """The keys of a proxy, for `**x`."""
        return Attribute(obj, "keys")()


TracerBase = GraphAppendingTracer


class Proxy:
    """A value that is known by the node which gives it. Operators, methods and functions of it become nodes.

    >>> graph = votive.fx.Graph()
    >>> x = votive.fx.Proxy(graph.placeholder("x"))
    >>> (votive.relu(x) + 1).node
    add
    """

    def __init__(self, node: Node, tracer: Any = None) -> None:
        Operator.watch()  # calls ask for objects that answer them from now on
        self.node = node
        self.tracer = tracer if tracer is not None else GraphAppendingTracer(node.graph)

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        if k.startswith("__") and k.endswith("__") and k not in ("__name__",):
            raise AttributeError(k)
        return Attribute(self, k)

    def __deepcopy__(self, memo: Any) -> Proxy:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame = inspect.currentframe()
        caller = frame.f_back if frame is not None else None
        count = _unpacked(caller)
        if count is not None:
            return (operator.getitem(self, i) for i in range(count))
        found: Iterator[Any] = self.tracer.iter(self)
        return found

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        return bool(self.tracer.to_bool(self))

    def keys(self) -> Any:
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "votive.fx.wrap('len') at module scope"
        )

    def __contains__(self, item: object) -> bool:
        raise TraceError(_CONTROL)

    def __setitem__(self, key: object, value: object) -> None:
        self.tracer.create_proxy("call_function", operator.setitem, (self, key, value), {})

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        tracers: dict[Any, None] = {}
        map_aggregate((args, kwargs), lambda a: tracers.setdefault(a.tracer) if isinstance(a, cls) else None)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {func}"
            )
        (tracer,) = tracers
        if isinstance(func, Form) or (
            not isinstance(func, Operator) and is_tensor_method_or_property(func) and hasattr(func, "__name__")
        ):
            return tracer.create_proxy("call_method", func.__name__, args, kwargs)
        return tracer.create_proxy("call_function", func, args, kwargs)


def _unpacked(frame: Any) -> int | None:
    """How many names a statement `a, b = x` has; None where the caller iterates in another way."""
    if frame is None:
        return None
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti and instruction.opname == "UNPACK_SEQUENCE":
            return int(instruction.argval)
    return None


class Attribute(Proxy):
    """`x.name`: a node of its own only if it is not called at once."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _install(target: Callable[..., Any], reflected: bool) -> None:
    plain = target.__name__.strip("_")

    def method(self: Proxy, *rest: Any) -> Any:
        args = (rest[0], self) if reflected else (self, *rest)
        return self.tracer.create_proxy("call_function", target, args, {})

    method.__name__ = method.__qualname__ = f"__{'r' if reflected else ''}{plain}__"
    setattr(Proxy, method.__name__, method)


for _target in (*INFIX, *PREFIX, operator.getitem):
    _install(_target, False)
    if hasattr(int, f"__r{_target.__name__.strip('_')}__") or _target is operator.matmul:
        _install(_target, True)
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]  # `==` is recorded
