"""Nodes: one call in a graph, what it takes, and who uses its result."""

from __future__ import annotations

import builtins
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core import spelled
from ..ops.operator import Operator

if TYPE_CHECKING:
    from .graph import Graph

Target = Any
Argument = Any
OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
_impure: set[Any] = set()


class ArgsKwargs(NamedTuple):
    """Arguments by position and by name."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Say that calls of a function must stay even if nobody uses their result."""
    _impure.add(fn)
    return fn


def map_aggregate(a: Argument, fn: Callable[[Any], Any]) -> Any:
    """The same nest of tuples, lists, dicts and slices with a function of each leaf."""
    if isinstance(a, tuple):
        parts = [map_aggregate(v, fn) for v in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return [map_aggregate(v, fn) for v in a]
    if isinstance(a, dict):
        return {k: map_aggregate(v, fn) for k, v in a.items()}
    if isinstance(a, slice):
        return slice(*(map_aggregate(v, fn) for v in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Any]) -> Any:
    """The same nest with a function of each node in it."""
    assert callable(fn), "map_arg(a, fn): fn must be a callable"
    return map_aggregate(a, lambda v: fn(v) if isinstance(v, Node) else v)


def qualified_name(func: Any) -> str:
    """How a function is called in text."""
    name = getattr(func, "__name__", type(func).__name__)
    if getattr(builtins, name, None) is func:
        return str(name)
    module = getattr(func, "__module__", None) or ""
    if module.partition(".")[0] == "votive":
        module = module.replace("votive", spelled.package, 1)
    return f"{module.replace('_operator', 'operator')}.{name}"


def type_text(o: Any) -> str:
    """A type as an annotation."""
    return o.__name__ if isinstance(o, type) and o.__module__ == "builtins" else repr(o).replace("typing.", "")


class Node:
    """One step of a graph: `op` says of which kind, `target` what is called, `args` and `kwargs` with what.

    >>> graph = votive.fx.symbolic_trace(lambda x: x + 1).graph
    >>> [node.op for node in graph.nodes]
    ['placeholder', 'call_function', 'output']
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        assert op in OPS, f"a node is one of {OPS}, got {op!r}"
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a Callable "
                    "is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a str is expected"
            )
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self._inputs: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._prev: Node = self
        self._next: Node = self
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self.meta: dict[str, Any] = {}
        self._take(args, kwargs)

    @property
    def next(self) -> Node:
        return self._next

    @property
    def prev(self) -> Node:
        return self._prev

    @property
    def args(self) -> tuple[Argument, ...]:
        return self._args

    @args.setter
    def args(self, a: tuple[Argument, ...]) -> None:
        self._take(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Argument]) -> None:
        self._take(self._args, k)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._inputs)

    @property
    def stack_trace(self) -> str | None:
        """Where the call stood in the program that was traced, where that was recorded."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def _take(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for node in self._inputs:
            node.users.pop(self, None)
        self._inputs = {}

        def use(n: Node) -> Node:
            self._inputs.setdefault(n)
            n.users.setdefault(self)
            return n

        self._args = tuple(map_arg(tuple(args), use))
        self._kwargs = dict(map_arg(dict(kwargs), use))

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, x: Node) -> None:
        """Move another node of the graph to the place before this one."""
        assert self.graph is x.graph, "Attempting to move a Node into a different Graph"
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Move another node of the graph to the place behind this one."""
        if x is not self._next:
            self._next.prepend(x)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Put an argument by position before the one at `idx`."""
        assert 0 <= idx <= len(self.args), "insert_args index must be between 0 and len(self.args)"
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace an argument by position."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replace an argument by name."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let those who use this result use another; `delete_user_cb` says which of them. Gives those that do."""
        if propagate_meta:
            assert not replace_with.meta, (
                "replace_all_uses_with: propagate_meta=True, but the new node has meta already"
            )
            replace_with.meta.update(self.meta)
        changed = []
        for user in list(self.users):
            if delete_user_cb(user):
                user.replace_input_with(self, replace_with)
                changed.append(user)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Take another node's result where an input was one."""
        swap = lambda n: new_input if n is old_input else n
        self._take(map_arg(self.args, swap), map_arg(self.kwargs, swap))

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the call does more than give a result."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            drawn = impure_random and isinstance(self.target, Operator) and "generator" in _parameters(self.target)
            name = getattr(self.target, "__name__", "")
            return (
                self.target in _impure
                or self.target is setattr
                or self.target is operator.setitem
                or drawn
                or (name.endswith("_") and not name.startswith("_"))
            )
        if self.op == "call_method":
            return str(self.target).endswith("_") and not str(self.target).endswith("__")
        if self.op == "call_module":
            owner = self.graph.owning_module
            assert owner is not None, "self.graph.owning_module not set for purity check"
            return bool(getattr(owner.get_submodule(self.target), "_is_impure", False))
        return False

    def normalized_arguments(
        self, root: Any, arg_types: Any = None, kwarg_types: Any = None, normalize_to_only_use_kwargs: bool = False
    ) -> ArgsKwargs | None:
        """Arguments as the called function's signature has them, None where it has none that fits."""
        if self.op == "call_function":
            fn = self.target
        elif self.op == "call_module":
            fn = root.get_submodule(self.target).forward
        else:
            return None
        try:
            bound = inspect.signature(fn).bind(*self.args, **self.kwargs)
        except (TypeError, ValueError):
            return None
        if not normalize_to_only_use_kwargs:
            return ArgsKwargs(bound.args, bound.kwargs)
        return ArgsKwargs((), dict(bound.arguments))

    def _pretty_target(self) -> str:
        return qualified_name(self.target) if self.op == "call_function" else str(self.target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """One line of text; parameters and the result's type go into the lists where these are given."""
        typed = f" : {type_text(self.type)}" if self.type else ""
        if self.op == "placeholder":
            default = f" = {self.args[0]}" if self.args else ""
            if placeholder_names is not None:
                placeholder_names.append(f"{self.target}{typed}{default}")
                return None
            shown = f"(default={self.args[0]!r})" if self.args else ""
            return f"%{self.name}{typed} : [num_users={len(self.users)}] = placeholder[target={self.target}]{shown}"
        if self.op == "output":
            if self.type and maybe_return_typename is not None:
                maybe_return_typename[0] = f" -> {type_text(self.type)}"
            return f"return {self.args[0]}"
        head = f"%{self.name}{typed} : [num_users={len(self.users)}] = {self.op}[target={self._pretty_target()}]"
        if include_tensor_metadata and "tensor_meta" in self.meta:
            head += f" <{self.meta['tensor_meta']}>"
        if self.op == "get_attr":
            return head
        return f"{head}(args = {_shown(self.args)}, kwargs = {_shown(self.kwargs)})"

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    def __lt__(self, other: Node) -> bool:
        return _before(self, other)

    def __gt__(self, other: Node) -> bool:
        return _before(other, self)

    def __le__(self, other: Node) -> bool:
        return self is other or _before(self, other)

    def __ge__(self, other: Node) -> bool:
        return self is other or _before(other, self)


def _before(a: Node, b: Node) -> bool:
    return any(node is b for node in following(a))


def following(node: Node) -> Iterator[Node]:
    """The nodes behind one, to the end of its graph."""
    at = node.next
    while at.op != "root":
        yield at
        at = at.next


def _parameters(op: Operator) -> list[str]:
    return [p.name for p in op.parameters()]


def _shown(v: object) -> str:
    if isinstance(v, list):
        return f"[{', '.join(_shown(x) for x in v)}]"
    if isinstance(v, tuple):
        return f"({', '.join(_shown(x) for x in v)}{',' if len(v) == 1 else ''})"
    if isinstance(v, dict):
        return "{" + ", ".join(f"{k}: {_shown(x)}" for k, x in v.items()) + "}"
    return f"%{v}" if isinstance(v, Node) else str(v)
