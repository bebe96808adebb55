"""Nodes of the graph: what a recorded call keeps, and how it turns gradients back. Knows no
devices.

A gradient rule gets the node itself and reads `c.input`, `c.dim`, `c.out`: arguments by their
schema names, the result as `out` (`out0`, `out1` … for several). It saves what it names: the
recorder looks at the names a rule reads and keeps just those values, and only for inputs that need
a gradient.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from ..core.errors import AutogradError
from ..core.layout import Spec
from ..core.mode import mode
from ..dispatch import Plan, make
from ..ops.registry import Op

if TYPE_CHECKING:
    from ..tensor import Tensor

sequence = itertools.count()
_new = object.__new__


class Edge:
    """An output of a node other than its first; the first is the node itself."""

    __slots__ = ("node", "nr")

    def __init__(self, node: BaseNode, nr: int) -> None:
        self.node, self.nr = node, nr


class Saved:
    """A value kept for backward, with the version it had."""

    __slots__ = ("__dict__", "tensor", "version")
    is_out = -1
    hooks: Any = None
    inexact = False  # known where there are hooks
    tensor: Any
    version: int


def save(tensor: Tensor, is_out: int = -1) -> Saved:
    """Keep a value; `is_out` is the position of a result among the node's outputs."""
    if tensor._inference:
        _refuse_inference()
    s = _new(Saved)
    s.version = tensor._storage.version
    if is_out >= 0:
        # The result itself would make a cycle result -> node -> result; keep a bare alias.
        s.is_out = is_out
        tensor = make(tensor._storage, tensor._data, tensor._spec, tensor._offset)
    if mode.saved_hooks:
        s.hooks, s.inexact = mode.saved_hooks[-1], tensor._spec.dtype.is_inexact
        packed = s.hooks[0](tensor)
        if tensor._storage.version != s.version:
            raise AutogradError(
                "saved_tensors_hooks: the pack hook has changed its tensor in place, and with it "
                "the value of the forward pass; let it return a changed copy instead."
            )
        tensor = packed
    s.tensor = tensor
    return s


def unpacked(s: Saved) -> Any:
    """What the unpack hook makes of a kept value."""
    t = s.hooks[1](s.tensor)
    if not hasattr(t, "_spec"):
        raise TypeError(
            f"saved_tensors_hooks: the unpack hook must return the Tensor that was packed, got {type(t).__name__}."
        )
    if s.inexact and not t._spec.dtype.is_inexact:
        raise AutogradError(
            f"saved_tensors_hooks: the unpack hook returned {t.dtype} for a value that was packed "
            "as floating point or complex."
        )
    return t


def _refuse_inference() -> NoReturn:
    raise AutogradError("an inference tensor cannot be saved for backward; clone() it to make a normal tensor.")


class BaseNode:
    """What every node has: edges to inputs, hooks, and a place in creation order."""

    # Defaults of what few nodes have live on the class, so that recording sets as little as possible.
    __slots__ = ("__dict__", "__weakref__", "edges", "seq")
    edges: tuple[Any, ...]
    grad_specs: tuple[Spec | None, ...]
    seq: int
    tensor_hooks: dict[int, dict[int, Any]] | None = None
    pre_hooks: dict[int, Any] | None = None
    post_hooks: dict[int, Any] | None = None
    retained: dict[int, Any] | None = None
    materialize: bool = True  # whether zeros stand in for a gradient that never came
    first_only: bool = False  # whether only the gradient of the first result is looked at
    metadata_: dict[str, Any] | None = None
    module_path: str = ""
    trace: list[str] | None = None

    @property
    def node(self) -> BaseNode:
        return self

    @property
    def nr(self) -> int:
        return 0

    def name(self) -> str:
        return type(self).__name__

    def _sequence_nr(self) -> int:
        return self.seq

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        out: list[tuple[Any, int]] = []
        for e in self.edges:
            if e is None:
                out.append((None, 0))
            elif isinstance(e, (BaseNode, Edge)):
                out.append((e.node, e.nr))
            else:
                out.append((accumulator(e), 0))
        return tuple(out)

    @property
    def metadata(self) -> dict[str, Any]:
        if self.metadata_ is None:
            self.metadata_ = {}
        return self.metadata_

    def register_hook(self, fn: Callable[..., Any]) -> Any:
        """`fn(grad_inputs, grad_outputs)` runs after this node; its result replaces grad_inputs."""
        return _add_hook(self, "post_hooks", fn)

    def register_prehook(self, fn: Callable[..., Any]) -> Any:
        """`fn(grad_outputs)` runs before this node; its result replaces grad_outputs."""
        return _add_hook(self, "pre_hooks", fn)

    def apply(self, grads: list[Any]) -> tuple[Any, ...]:
        raise NotImplementedError

    def release(self) -> None:
        """Drop saved values; the node cannot run again."""

    def __repr__(self) -> str:
        return f"<{self.name()}>"


class Handle:
    """Removes a hook again, by `remove()` or at the end of a `with` block."""

    def __init__(self, hooks: dict[int, Any], key: int) -> None:
        self._hooks, self._key = hooks, key

    def remove(self) -> None:
        self._hooks.pop(self._key, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


_hook_ids = itertools.count()


def _add_hook(owner: object, slot: str, fn: Callable[..., Any]) -> Handle:
    hooks = getattr(owner, slot, None)
    if hooks is None:
        hooks = {}
        setattr(owner, slot, hooks)
    key = next(_hook_ids)
    hooks[key] = fn
    return Handle(hooks, key)


class AccumulateGrad(BaseNode):
    """Stands for a leaf in `next_functions`; its hooks are those of the leaf."""

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable
        self.edges = ()
        self.seq = -1
        self.grad_specs = (variable._spec,)

    def register_hook(self, fn: Callable[..., Any]) -> Any:
        """`fn((), (grad,))` runs after the leaf's `.grad` was updated."""

        def run(leaf: Any) -> None:
            fn((), (leaf._grad,))

        return _add_hook(self.variable, "_post_hooks", run)

    def register_prehook(self, fn: Callable[..., Any]) -> Any:
        """`fn((grad,))` runs before the gradient is added; its result replaces it."""

        def run(grad: Tensor) -> Any:
            made = fn((grad,))
            return made[0] if isinstance(made, tuple) else made

        return _add_hook(self.variable, "_hooks", run)


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """The one node that stands for a leaf, as long as somebody has it."""
    known = leaf.__dict__.get("_accumulator")
    found: AccumulateGrad | None = None if known is None else known()
    if found is None or found.variable is not leaf:
        found = AccumulateGrad(leaf)
        leaf.__dict__["_accumulator"] = weakref.ref(found)
    return found


class _OfRecipe:
    """An attribute read from the node's recipe unless the node has its own: recording sets less."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, node: Any, owner: object | None = None) -> Any:
        return getattr(node.recipe, self.name)


class _AnyNode(type):
    """Lets every node of the graph count as a Node, as in torch."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, BaseNode)


class Node(BaseNode, metaclass=_AnyNode):
    """A recorded operator call."""

    __slots__ = ("recipe",)
    plan: Any = _OfRecipe("plan")
    grad_specs: Any = _OfRecipe("outs")
    first_only: Any = _OfRecipe("first_only")
    materialize: Any = _OfRecipe("materialize")
    recipe: Any
    kept: dict[Any, Saved] | None = {}
    numbers: tuple[Any, ...] = ()

    def name(self) -> str:
        text = "".join(p.capitalize() for p in self.plan.op.name.split("_") if p)
        return f"{text}Backward0"

    def saved(self, key: object) -> Any:
        """A kept value, checked against later in-place writes."""
        if self.kept is None:
            raise AutogradError(
                f"{self.plan.op.name}: trying to backward through the graph a second time, but its "
                "saved values have already been freed; pass retain_graph=True the first time."
            )
        s = self.kept[key]
        t = unpacked(s) if s.hooks else s.tensor
        if not s.hooks and t._storage.version != s.version:
            raise AutogradError(
                f"{self.plan.op.name}: one of the variables needed for gradient computation has "
                f"been modified by an inplace operation: {_key_name(self.plan.op, key)} of shape "
                f"{tuple(t._spec.shape)} is at version {t._storage.version}, expected version "
                f"{s.version}.{where_recorded(self)}"
            )
        if s.is_out >= 0 and mode.grad:  # without a graph of gradients nobody asks where it is from
            alias = make(t._storage, t._data, t._spec, t._offset)
            if t._spec.dtype.is_inexact:  # indices among the outputs carry no gradient
                alias._rg = True
                alias._edge = self if s.is_out == 0 else Edge(self, s.is_out)
            return alias
        return t

    def __getattr__(self, name: str) -> Any:
        # Only reached for names that are no attributes: the arguments of the operator.
        if name[:1] == "_":
            raise AttributeError(name)
        how = self.recipe.sources.get(name)
        if how is None:
            raise AttributeError(f"{self.plan.op.name} has no argument {name!r}")
        kind, what = how
        if kind == "static":
            return what
        if kind == "saved":
            return self.saved(what)
        if kind == "number":
            return self.numbers[what]
        return [self.saved(key) for key in what]

    def spec(self, name: str) -> Any:
        """Shape and dtype of an argument, whether or not its value was kept."""
        return self.plan.static[self.plan.op.schema.names.index(name)]

    def shape(self, name: str) -> tuple[int, ...]:
        return self.spec(name).shape

    def needs(self, name: str) -> bool:
        """Whether this argument's gradient is wanted."""
        return name in self.recipe.wanted

    def apply(self, grads: list[Any]) -> tuple[Any, ...]:
        if self.kept is None:
            self.saved(None)
        return self.recipe.run(self, grads)

    def release(self) -> None:
        # A node that kept nothing has nothing to miss: branches that share it may each run back.
        if self.kept:
            self.kept = None


def where_recorded(node: BaseNode) -> str:
    text = f" In module {node.module_path!r}." if node.module_path else ""
    if node.trace:
        text += "\nThe forward call that recorded it:\n" + "".join(node.trace)
    return text


def _key_name(op: Op, key: object) -> str:
    if isinstance(key, tuple):
        return "its output" if key[0] == "out" else f"argument {key[0]!r}[{key[1]}]"
    return f"argument {key!r}"


def sources(plan: Plan) -> dict[str, tuple[str, Any]]:
    """How a rule's `c.name` is answered, by name: a static value, kept values, or a number."""
    found: dict[str, tuple[str, Any]] = {"out": ("saved", ("out", 0))}
    for k in range(max(plan.op.n_out, len(plan.outs or ()))):
        found[f"out{k}"] = ("saved", ("out", k))
    runtime = list(plan.op.schema.runtime_names)
    for a, value in zip(plan.op.schema.args, plan.static, strict=True):
        if a.is_tensor and a.is_list:
            found[a.name] = ("list", [(a.name, k) for k in range(len(value))])
        elif a.is_tensor and isinstance(value, Spec):
            found[a.name] = ("saved", a.name)
        elif a.is_tensor and value is None:
            found[a.name] = ("static", None)
        elif a.is_runtime:
            found[a.name] = ("number", runtime.index(a.name))
        else:
            found[a.name] = ("static", value)
    return found


def flat_names(plan: Plan) -> list[str]:
    """The names of tensor inputs, a list argument's name once per element."""
    names: list[str] = []
    for a, v in zip(plan.op.schema.args, plan.static, strict=True):
        if a.is_tensor or a.type == "Scalar":
            if a.is_list:
                names.extend([a.name] * len(v))
            else:
                names.append(a.name)
    return names
