"""Nodes of the graph: what a recorded call keeps, and how it turns gradients back. Knows no
devices.

A gradient rule gets the node itself and reads `c.input`, `c.dim`, `c.out`: arguments by their
schema names, the result as `out` (`out0`, `out1` … for several). It saves what it names: the
recorder looks at the names a rule reads and keeps just those values, and only for inputs that need
a gradient.
"""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable
from typing import Any

from ..core.errors import AutogradError, MissingGradientError
from ..core.layout import Spec
from ..core.mode import Ever, mode
from ..dispatch import Plan, make
from ..formula import NotDifferentiable
from ..ops.registry import F, Op, formula_op

_sequence = itertools.count()
_new = object.__new__


class Edge:
    """An output of a node other than its first; the first is the node itself."""

    __slots__ = ("node", "nr")

    def __init__(self, node: Any, nr: int) -> None:
        self.node, self.nr = node, nr


class Saved:
    """A value kept for backward, with the version it had."""

    is_out = -1
    hooks: Any = None
    tensor: Any
    version: int


def save(tensor: Any, is_out: int = -1) -> Saved:
    """Keep a value; `is_out` is the position of a result among the node's outputs."""
    s = _new(Saved)
    s.version = tensor._storage.version
    if is_out >= 0:
        # The result itself would make a cycle result -> node -> result; keep a bare alias.
        s.is_out = is_out
        tensor = make(tensor._storage, tensor._data, tensor._spec, tensor._offset)
    if mode.saved_hooks:
        s.hooks = mode.saved_hooks[-1]
        tensor = s.hooks[0](tensor)
    s.tensor = tensor
    return s


def save_plainly(tensor: Any) -> Saved:
    """`save` for an input when no hooks are set."""
    s = _new(Saved)
    s.version = tensor._storage.version
    s.tensor = tensor
    return s


class BaseNode:
    """What every node has: edges to inputs, hooks, and a place in creation order."""

    # Defaults live on the class, so that recording sets as little as possible.
    edges: tuple[Any, ...]
    grad_specs: tuple[Spec | None, ...]
    seq: int
    tensor_hooks: dict[int, dict[int, Any]] | None = None
    pre_hooks: dict[int, Any] | None = None
    post_hooks: dict[int, Any] | None = None
    retained: dict[int, Any] | None = None
    materialize: bool = True  # whether zeros stand in for a gradient that never came
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

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        out: list[tuple[Any, int]] = []
        for e in self.edges:
            if e is None:
                out.append((None, 0))
            elif isinstance(e, (BaseNode, Edge)):
                out.append((e.node, e.nr))
            else:
                out.append((AccumulateGrad(e), 0))
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


def _add_hook(owner: Any, slot: str, fn: Callable[..., Any]) -> Handle:
    hooks = getattr(owner, slot, None)
    if hooks is None:
        hooks = {}
        setattr(owner, slot, hooks)
    key = next(_hook_ids)
    hooks[key] = fn
    return Handle(hooks, key)


class AccumulateGrad(BaseNode):
    """Stands for a leaf in `next_functions`."""

    def __init__(self, variable: Any) -> None:
        self.variable = variable
        self.edges = ()
        self.seq = -1


class _OfRecipe:
    """An attribute read from the node's recipe unless the node has its own: recording sets less."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, node: Any, owner: Any = None) -> Any:
        return getattr(node.recipe, self.name)


class Node(BaseNode):
    """A recorded operator call."""

    plan: Any = _OfRecipe("plan")
    grad_specs: Any = _OfRecipe("outs")
    recipe: Any
    kept: dict[Any, Saved] | None = {}
    numbers: tuple[Any, ...] = ()

    def name(self) -> str:
        text = "".join(p.capitalize() for p in self.plan.op.name.split("_") if p)
        return f"{text}Backward0"

    def saved(self, key: Any) -> Any:
        """A kept value, checked against later in-place writes."""
        if self.kept is None:
            raise AutogradError(
                f"{self.plan.op.name}: trying to backward through the graph a second time, but its "
                "saved values have already been freed; pass retain_graph=True the first time."
            )
        s = self.kept[key]
        t = s.hooks[1](s.tensor) if s.hooks else s.tensor
        if not s.hooks and t._storage.version != s.version:
            raise AutogradError(
                f"{self.plan.op.name}: one of the variables needed for gradient computation has "
                f"been modified by an inplace operation: {_key_name(self.plan.op, key)} of shape "
                f"{tuple(t._spec.shape)} is at version {t._storage.version}, expected version "
                f"{s.version}.{_where(self)}"
            )
        if s.is_out >= 0:
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
        schema = self.plan.op.schema
        if name == "out":
            return self.saved(("out", 0))
        if name[:3] == "out" and name[3:].isdigit():
            return self.saved(("out", int(name[3:])))
        for i, a in enumerate(schema.args):
            if a.name == name:
                if a.is_tensor:
                    spec = self.plan.static[i]
                    if a.is_list:
                        return [self.saved((name, k)) for k in range(len(spec))]
                    if isinstance(spec, Spec):
                        return self.saved(name)
                    return spec if spec is None else self.numbers[self._runtime_index(name)]
                if a.is_runtime:
                    return self.numbers[self._runtime_index(name)]
                return self.plan.static[i]
        raise AttributeError(f"{self.plan.op.name} has no argument {name!r}")

    def _runtime_index(self, name: str) -> int:
        return self.plan.op.schema.runtime_names.index(name)

    def spec(self, name: str) -> Any:
        """Shape and dtype of an argument, whether or not its value was kept."""
        return self.plan.static[self.plan.op.schema.names.index(name)]

    def shape(self, name: str) -> tuple[int, ...]:
        return self.spec(name).shape

    def needs(self, name: str) -> bool:
        """Whether this argument's gradient is wanted."""
        return any(
            n == name and m for n, m in zip(_flat_names(self.plan), self.recipe.mask, strict=True)
        )

    def apply(self, grads: list[Any]) -> tuple[Any, ...]:
        if self.kept is None:
            self.saved(None)
        return self.recipe.run(self, grads)

    def release(self) -> None:
        # A node that kept nothing has nothing to miss: branches that share it may each run back.
        if self.kept:
            self.kept = None


def _where(node: Any) -> str:
    text = f" In module {node.module_path!r}." if node.module_path else ""
    if node.trace:
        text += "\nThe forward call that recorded it:\n" + "".join(node.trace)
    return text


def _key_name(op: Op, key: Any) -> str:
    if isinstance(key, tuple):
        return "its output" if key[0] == "out" else f"argument {key[0]!r}[{key[1]}]"
    return f"argument {key!r}"


# --- recipes: what to keep and how to run, decided once per plan and set of needed inputs ---------


def _flat_names(plan: Plan) -> list[str]:
    """The names of tensor inputs, a list argument's name once per element."""
    names: list[str] = []
    for a, v in zip(plan.op.schema.args, plan.static, strict=True):
        if a.is_tensor or a.type == "Scalar":
            if a.is_list:
                names.extend([a.name] * len(v))
            else:
                names.append(a.name)
    return names


class FormulaRecipe:
    """Backward of a formula: one derived formula per needed input."""

    plan: Plan
    outs: tuple[Spec, ...] | None
    inexact: bool  # whether the result can carry a gradient at all

    def __init__(self, plan: Plan, mask: tuple[bool, ...]) -> None:
        formula = plan.formula
        self.mask = mask
        self.zero: list[Spec | None] = []  # needed inputs whose gradient is zero everywhere
        self.steps: list[Any] = []
        keep: list[Any] = []
        for name, needed in zip(_flat_names(plan), mask, strict=True):
            step = None
            if needed:
                try:
                    step = _backward_op(plan, name)
                except NotDifferentiable as e:
                    step = MissingGradientError(
                        f"{plan.op.name}: the derivative by {name!r} is not implemented (via {e})."
                    )
            self.steps.append(step)
            self.zero.append(plan.specs[len(self.zero)] if needed and step is None else None)
            if isinstance(step, tuple):
                for source in step[1]:
                    key = ("out", 0) if source == formula.result else source
                    if source != formula.incoming and key not in keep:
                        keep.append(key)
        specs = dict(zip(formula.params, plan.specs, strict=True))
        self.numbers = {
            n: i for i, n in enumerate(formula.params) if not isinstance(specs[n], Spec)
        }
        self.keep = [k for k in keep if k not in self.numbers]
        self.incoming = formula.incoming
        self.result = formula.result

    def run(self, node: Node, grads: list[Any]) -> tuple[Any, ...]:
        (g,) = grads
        out = []
        for step, zero in zip(self.steps, self.zero, strict=True):
            if step is None:
                out.append(None if zero is None else zeros(zero))
                continue
            if isinstance(step, Exception):
                raise step
            op, sources = step
            values = []
            for s in sources:
                if s == self.incoming:
                    values.append(g)
                elif s == self.result:
                    values.append(node.saved(("out", 0)))
                elif s in self.numbers:
                    values.append(node.numbers[self.numbers[s]])
                else:
                    values.append(node.saved(s))
            if op is None:  # the gradient is g itself
                out.append(g)
            elif any(hasattr(v, "_spec") for v in values):
                out.append(Op.call(op, tuple(values)))
            else:
                out.append(None)
        return tuple(out)


def zeros(spec: Spec) -> Any:
    """A gradient of zeros; torch gives one wherever an input was used, also if it has no effect."""
    return F.zeros(spec.shape, dtype=spec.dtype, device=spec.device)


def _backward_op(plan: Plan, name: str) -> Any:
    """(operator, argument sources) of the gradient by one input, or None when it is zero."""
    formula = plan.formula
    grad = formula.gradient(name, plan.is_complex)
    if grad is None:
        return None
    if grad.body.op == "var" and grad.params == (formula.incoming,):
        return (None, grad.params)
    cache = plan.op.__dict__.setdefault("backward_ops", {})
    key = id(grad)
    if key not in cache:
        cache[key] = (formula_op(grad), grad)
    return (cache[key][0], grad.params)


def _read_names(fn: Any) -> set[str]:
    """Every attribute name a rule's code reads, nested functions included."""
    names: set[str] = set()
    codes = [fn.__code__] if hasattr(fn, "__code__") else []
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes.extend(c for c in code.co_consts if hasattr(c, "co_names"))
    return names


class RuleRecipe:
    """Backward by hand-written rules: a dict of rules per input, or one rule for all."""

    plan: Plan
    outs: tuple[Spec, ...] | None
    inexact: bool

    def __init__(self, plan: Plan, mask: tuple[bool, ...]) -> None:
        op = plan.op
        self.names = _flat_names(plan)
        self.mask = mask
        self.wanted = [
            n
            for n in dict.fromkeys(self.names)
            if any(m for k, m in zip(self.names, mask, strict=True) if k == n)
        ]
        rules = op.grad
        self.missing: str | None = None
        read: set[str] = set(getattr(op, "saves", ()))
        if rules is None:
            self.missing = self.wanted[0]
        elif isinstance(rules, dict):
            for n in self.wanted:
                if n in rules:
                    if rules[n] is not None:
                        read |= _read_names(rules[n])
                else:
                    self.missing = n
        else:
            read |= _read_names(rules)
        self.rules = rules
        self.keep: list[Any] = []
        for a, v in zip(op.schema.args, plan.static, strict=True):
            if a.is_tensor and a.name in read and v is not None:
                if a.is_list:
                    self.keep.extend((a.name, k) for k in range(len(v)))
                elif isinstance(v, Spec):
                    self.keep.append(a.name)
        if "out" in read:
            self.keep.append(("out", 0))
        for k in range(op.n_out):
            if f"out{k}" in read:
                self.keep.append(("out", k))

    def run(self, node: Node, grads: list[Any]) -> tuple[Any, ...]:
        if self.missing is not None:
            raise MissingGradientError(
                f"{node.plan.op.name}: the derivative by {self.missing!r} is not implemented."
            )
        given: dict[str, Any] = {}
        rules = self.rules
        if isinstance(rules, dict):
            for n in self.wanted:
                given[n] = zeros(node.spec(n)) if rules[n] is None else rules[n](node, *grads)
        else:
            assert rules is not None  # `missing` says so otherwise
            result = rules(node, *grads)
            tensors = [a.name for a in node.plan.op.schema.args if a.is_tensor]
            if not isinstance(result, tuple):
                result = (result,)
            given = dict(zip(tensors, result, strict=True))
        out: list[Any] = []
        counts: dict[str, int] = {}
        for n in self.names:
            value = given.get(n)
            if isinstance(value, (list, tuple)):
                k = counts.get(n, 0)
                counts[n] = k + 1
                value = value[k]
            out.append(value)
        return tuple(out)


def recipe_for(plan: Plan, mask: tuple[bool, ...]) -> Any:
    recipe = plan.recipes.get(mask)
    if recipe is None:
        derived = plan.formula is not None and plan.op.grad is None
        recipe = (FormulaRecipe if derived else RuleRecipe)(plan, mask)
        recipe.plan, recipe.outs = plan, plan.outs
        recipe.inexact = plan.out is not None and plan.out.dtype.is_inexact
        plan.recipes[mask] = recipe
    return recipe


# --- recording ------------------------------------------------------------------------------------


def edge_of(t: Any) -> Any:
    """Where a gradient for `t` goes: a node output, the leaf itself, or nowhere."""
    if not t._rg:
        return None
    if t._base is not None:
        refresh_view(t)
    return t._edge or t


def _inputs(values: tuple[Any, ...]) -> list[Any]:
    flat: list[Any] = []
    for v in values:
        if v.__class__ in (tuple, list):
            flat.extend(v)
        else:
            flat.append(v)
    return flat


def _note_context(node: BaseNode) -> None:
    """What is only known when something unusual is on: the module, and in anomaly mode the line."""
    node.module_path = mode.module_path
    if mode.anomaly:
        node.trace = traceback.format_stack()[:-4]


def _node(plan: Plan, values: tuple[Any, ...], kept: tuple[Any, ...]) -> Node:
    flat = _inputs(values)
    mask = tuple([getattr(v, "_rg", False) for v in flat])
    recipe = recipe_for(plan, mask)
    node = _new(Node)
    node.recipe = recipe
    node.edges = tuple([edge_of(v) if m else None for v, m in zip(flat, mask, strict=True)])
    node.seq = next(_sequence)
    if recipe.keep:
        node.kept = {}
        names = plan.op.schema.runtime_names
        for key in recipe.keep:
            if key.__class__ is tuple:
                if key[0] == "out":
                    continue
                node.kept[key] = save(kept[names.index(key[0])][key[1]])
            else:
                node.kept[key] = save(kept[names.index(key)])
    if not all(hasattr(v, "_spec") for v in values):
        node.numbers = tuple(
            [None if hasattr(v, "_spec") or v.__class__ in (tuple, list) else v for v in values]
        )
    if Ever.noted and mode.noted:
        _note_context(node)
    return node


def record(plan: Plan, values: tuple[Any, ...], out: Any) -> None:
    """Attach a node to the result of a call."""
    node = _node(plan, values, values)
    outs = out if out.__class__ is tuple else (out,)
    if plan.outs is None:
        node.grad_specs = tuple([o._spec for o in outs])
    for i, o in enumerate(outs):
        if o._spec.dtype.category >= 2:
            o._rg = True
            o._edge = node if i == 0 else Edge(node, i)
            if o._base is not None:
                o._seen = o._base._rebased
    for key in node.recipe.keep:
        if key.__class__ is tuple and key[0] == "out":
            node.kept[key] = save(outs[key[1]], key[1])  # type: ignore[index]


def record_pair(plan: Plan, a: Any, b: Any, out: Any) -> None:
    """`record` for two tensors and an elementwise operator, spelled out because it is so
    frequent.
    """
    ra, rb = a._rg, b._rg
    try:
        recipe = plan.recipes[ra, rb]
    except KeyError:
        recipe = recipe_for(plan, (ra, rb))
    node = _new(Node)
    node.recipe = recipe
    node.edges = (
        None if not ra else a._edge or a if a._base is None else edge_of(a),
        None if not rb else b._edge or b if b._base is None else edge_of(b),
    )
    node.seq = next(_sequence)
    if recipe.inexact:
        out._rg = True
        out._edge = node
    special = Ever.noted and mode.noted
    if recipe.keep:
        node.kept = kept = {}
        keep = save if special else save_plainly
        first = plan.formula.params[0]
        for key in recipe.keep:
            if key.__class__ is tuple:
                kept[key] = save(out, 0)
            else:
                kept[key] = keep(a if key == first else b)
    if special:
        _note_context(node)


def record_one(plan: Plan, x: Any, out: Any) -> None:
    """`record` for one tensor and an elementwise operator."""
    try:
        recipe = plan.recipes[True,]
    except KeyError:
        recipe = recipe_for(plan, (True,))
    node = _new(Node)
    node.recipe = recipe
    node.edges = (x._edge or x if x._base is None else edge_of(x),)
    node.seq = next(_sequence)
    if recipe.inexact:
        out._rg = True
        out._edge = node
    if recipe.keep:
        node.kept = kept = {}
        for key in recipe.keep:
            kept[key] = save(out, 0) if key.__class__ is tuple else save(x)
    if Ever.noted and mode.noted:
        _note_context(node)


def needs_self(plan: Plan, values: tuple[Any, ...]) -> bool:
    """Whether backward of an in-place call reads the old value of its first argument."""
    flat = _inputs(values)
    mask = tuple([getattr(v, "_rg", False) for v in flat])
    if not any(mask):
        return False
    return plan.op.schema.args[0].name in recipe_for(plan, mask).keep


def record_inplace(plan: Plan, values: tuple[Any, ...], kept: tuple[Any, ...], x: Any) -> None:
    """Make `x`, just overwritten, the result of a node; through a view, its base too."""
    node = _node(plan, values, kept)
    node.grad_specs = (x._spec,)
    rebase(x, node)
    for key in node.recipe.keep:
        if key.__class__ is tuple and key[0] == "out":
            node.kept[key] = save(x, 0)  # type: ignore[index]


record_inplace.needs_self = needs_self  # type: ignore[attr-defined]


# --- in place through views -----------------------------------------------------------------------


class CopySlices(BaseNode):
    """Backward of an in-place write through a view, seen from the base."""

    def __init__(self, base: Any, chain: tuple[Plan, ...], inner: BaseNode, base_edge: Any) -> None:
        self.chain, self.inner = chain, inner
        # The first edge of `inner` led to the view's old value; here it leads to the old base.
        self.edges = (base_edge, *inner.edges[1:])
        self.base_spec = base._spec
        self.grad_specs = (base._spec,)
        self.seq = next(_sequence)

    def name(self) -> str:
        return "CopySlices"

    def apply(self, grads: list[Any]) -> tuple[Any, ...]:
        (g,) = grads
        base = F.empty_strided(
            self.base_spec.shape,
            self.base_spec.dense_like().strides,
            dtype=g.dtype,
            device=g.device,
        )
        base = F.copy_(base, g)
        part = replay(self.chain, base)
        inner = self.inner.apply([part.clone()])
        first = inner[0]
        if first is None:
            part.zero_()
        else:
            part.copy_(F._reduce_to(first, part.shape))
        return (base if self.edges[0] is not None else None, *inner[1:])

    def release(self) -> None:
        self.inner.release()


def replay(chain: tuple[Plan, ...], x: Any) -> Any:
    """Apply the same view operators to another tensor of the base's shape."""
    for plan in chain:
        args = list(plan.static)
        args[0] = x
        x = Op.call(plan.op, tuple(args))
    return x


def rebase(x: Any, node: BaseNode) -> None:
    """Let `x` (and its base, if it is a view) come from `node` from now on."""
    base = x._base
    if base is None:
        _keep_retaining(x, node)
        x._rg, x._edge = True, node
        _tell_views(x)
        return
    slices = CopySlices(base, x._chain, node, edge_of(base))
    base._rg, base._edge = True, slices
    _tell_views(base)


def _keep_retaining(x: Any, node: BaseNode) -> None:
    """`retain_grad` asks for the gradient of the newest value, so it moves to the new node."""
    edge = x._edge
    retained = edge.node.retained if edge is not None else None
    if retained and edge.nr in retained and retained[edge.nr]() is x:
        node.retained = {**(node.retained or {}), 0: retained.pop(edge.nr)}


def _tell_views(base: Any) -> None:
    """Views of a base that now requires grad require it too; their edges are renewed when used."""
    base._rebased += 1
    for view in base._live_views():
        view._rg = True


def refresh_view(x: Any) -> None:
    """After its base was written in place, a view's history is the view operators on the base."""
    base = x._base
    if x._seen == base._rebased or not base._rg:
        return
    grad, mode.grad = mode.grad, True
    try:
        again = replay(x._chain, base)
    finally:
        mode.grad = grad
    x._rg, x._edge = again._rg, again._edge
    x._seen = base._rebased
