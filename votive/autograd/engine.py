"""The backward pass: an iterative walk from newest node to oldest. Knows nodes, not operators.

Nodes are numbered as they are made and edges only lead to older nodes, so taking the newest
pending node first visits every node after all its users: no recursion, no counting of dependencies.
"""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..core.errors import AutogradError, ShapeError, received
from ..core.layout import Spec
from ..core.mode import mode
from ..dispatch import state
from ..ops.registry import F
from .accumulate import accumulate, fit
from .early import asked, uses_of
from .edges import GradientEdge, stand_in
from .grad_hooks import run_hooks, run_node_hooks
from .graph import BaseNode, Edge, where_recorded
from .views import edge_of

if TYPE_CHECKING:
    from ..tensor import Tensor

# Where gradients begin: an edge, and the gradient there.
Roots = list[tuple[Any, "Tensor"]]


class Task:
    """One backward pass."""

    def __init__(self, keep_graph: bool, create_graph: bool, captures: dict[Any, Any]) -> None:
        self.keep_graph = keep_graph
        self.create_graph = create_graph
        self.captures = captures  # (id of node or leaf, nr) -> gradient, when inputs were asked for
        self.buffers: dict[BaseNode, list[Any]] = {}
        self.heap: list[tuple[int, int, BaseNode]] = []
        self.owned: set[int] = set()
        self.alive: list[Any] = []
        self.wanted: set[int] | None = None
        self.leaves: dict[int, Any] = {}
        self.leaf_grads: dict[int, Any] = {}
        self.uses: dict[int, int] = {}  # gradients that are still to come to leaves which are finished early
        self.complete: list[int] = []
        self.at_end: list[Callable[[], None]] = []  # what is called behind the pass
        self.outer: Task | None = None  # the pass within which this one runs

    def send(self, edge: Any, grad: Tensor) -> None:
        """Add a gradient to what waits at an edge, in the shape and dtype that belong there."""
        if edge.__class__ is Edge:
            node, nr = edge.node, edge.nr
        elif isinstance(edge, BaseNode):
            node, nr = edge, 0
        else:
            spec = edge._spec
            if grad._spec is not spec:
                grad = fit(grad, spec)
            key = id(edge)
            if key in self.leaves:
                self.leaf_grads[key] = self.add(self.leaf_grads[key], grad)
            else:
                self.leaves[key], self.leaf_grads[key] = edge, grad
            if key in self.uses:
                self.arrived(key)
            return
        if self.wanted is not None and id(node) not in self.wanted:
            return
        specs: tuple[Any, ...] = node.grad_specs
        spec = specs[nr]
        if grad._spec is not spec:
            grad = fit(grad, spec)
        slots = self.buffers.get(node)
        if slots is None:
            self.buffers[node] = slots = [None] * len(specs)
            slots[nr] = grad
            heapq.heappush(self.heap, (-node.seq, id(node), node))
        else:
            slots[nr] = self.add(slots[nr], grad)

    def add(self, old: Tensor | None, new: Tensor) -> Any:
        if old is None:
            return new
        if old._spec.__class__ is not Spec:  # sparse, masked or nested: in that order it may become dense
            return new + old
        if not self.create_graph and id(old) in self.owned and old._spec.dtype is new._spec.dtype and not new._level:
            old.add_(new)
            return old
        total = old + new
        if not self.create_graph:
            self.owned.add(id(total))
            self.alive.append(total)  # ids must stay unique while they are compared
        return total

    def arrived(self, key: int) -> None:
        """One of the gradients of a leaf that is finished early is there, or will never come."""
        self.uses[key] -= 1
        if not self.uses[key]:
            del self.uses[key]
            if key in self.leaves:
                self.complete.append(key)

    def finish_complete(self) -> None:
        # Not within `send`, whose callers hold the gradient and so would have it copied.
        while self.complete:
            key = self.complete.pop(0)
            self.finish_leaf(self.leaves.pop(key), self.leaf_grads.pop(key))

    def run(self) -> None:
        step = self.step if state.watcher is None else self.step_watched
        if self.complete:
            self.finish_complete()
        while self.heap:
            _, _, node = heapq.heappop(self.heap)
            step(node, self.buffers.pop(node))
            if self.complete:
                self.finish_complete()
        self.owned.clear()
        self.alive.clear()
        for key, leaf in self.leaves.items():
            self.finish_leaf(leaf, self.leaf_grads.pop(key))

    def step(self, node: BaseNode, grads: list[Any]) -> None:
        # From here on a gradient may be handed to several edges: nobody owns it any more.
        if self.owned:
            self.owned.difference_update([id(g) for g in grads])
        hooks = node.tensor_hooks
        if hooks:
            for nr, table in hooks.items():
                if grads[nr] is not None:
                    grads[nr] = run_hooks(table, grads[nr])
        retained = node.retained
        if retained:
            for nr, ref in retained.items():
                t = ref()
                if t is not None and grads[nr] is not None:
                    t._grad = grads[nr].clone() if t._grad is None else t._grad + grads[nr]
        if self.captures:
            for nr, g in enumerate(grads):
                key = (id(node), nr)
                if key in self.captures:
                    self.captures[key] = g
        if self.wanted is not None and id(node) not in self.through:
            return
        pre = node.pre_hooks
        if pre:
            grads = list(run_node_hooks(pre, tuple(grads)))
            if all(g is None for g in grads):  # taken away: nothing comes from nothing
                if not self.keep_graph:
                    node.release()
                return
        # The only one is there, or nobody would be here.
        if node.materialize and len(grads) > 1 and (grads[0] is None or not node.first_only):
            specs = node.grad_specs
            grads = [_zeros(s) if g is None else g for g, s in zip(grads, specs, strict=True)]
        results = node.apply(grads)
        post = node.post_hooks
        if post:
            pairs = zip(node.edges, results, strict=True)
            given = tuple([g if g is None or e is None else fit(g, _spec_at(e)) for e, g in pairs])
            results = run_node_hooks(post, given, tuple(grads))
        if mode.anomaly and mode.anomaly_nan:
            _check_nan(node, results)
        if not self.keep_graph:
            node.release()
        for edge, g in zip(node.edges, results, strict=True):
            if edge is not None and g is not None:
                self.send(edge, g)
            elif self.uses and id(edge) in self.uses:
                self.arrived(id(edge))

    def step_watched(self, node: BaseNode, grads: list[Any]) -> None:
        """`step` while somebody looks at, and may change, what goes into a node and comes out."""
        watcher = state.watcher
        before, after = node.pre_hooks, node.post_hooks
        # First in, last out: the watcher sees what hooks made of the results.
        node.pre_hooks = {-1: lambda g: watcher.before(node, g), **(before or {})}
        node.post_hooks = {**(after or {}), -1: lambda r, g: watcher.after(node, r, g)}
        try:
            self.step(node, grads)
        finally:
            node.pre_hooks, node.post_hooks = before, after

    through: set[int] = set()
    roots: Roots = []

    def finish_leaf(self, leaf: Tensor, grad: Any) -> None:
        key = (id(leaf), 0)
        if self.wanted is not None and key not in self.captures:
            return  # nobody asked for it
        if leaf._hooks:
            grad = run_hooks(leaf._hooks, grad)
        if self.wanted is not None:
            self.captures[key] = grad
            return
        accumulate(leaf, grad, self.create_graph)


def _spec_at(edge: Any) -> Any:
    """What a gradient must be that is sent along an edge."""
    if edge.__class__ is Edge or isinstance(edge, BaseNode):
        return edge.node.grad_specs[edge.nr]
    return edge._spec


def _zeros(spec: Spec | None) -> Any:
    if spec is None or not spec.dtype.is_inexact:
        return None
    return F.zeros(spec.shape, dtype=spec.dtype, device=spec.device)


def _check_nan(node: BaseNode, results: tuple[Any, ...]) -> None:
    for i, g in enumerate(results):
        if g is not None and g._spec.dtype.is_inexact and bool(F.isnan(g).any()):
            raise RuntimeError(
                f"Function '{node.name()}' returned nan values in its {i}th output.{where_recorded(node)}"
            )


def mark(roots: list[Any], targets: set[int]) -> tuple[set[int], set[int]]:
    """Nodes on a path to a target, and those whose inputs must be computed."""
    order: list[BaseNode] = []
    seen: set[int] = set()
    stack = [e.node for e in roots if isinstance(e, (BaseNode, Edge))]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        order.append(node)
        stack.extend(e.node for e in node.edges if isinstance(e, (BaseNode, Edge)))
    through: set[int] = set()
    wanted: set[int] = set()
    for node in sorted(order, key=lambda n: n.seq):
        for e in node.edges:
            if e is None:
                continue
            key = id(e.node) if isinstance(e, (BaseNode, Edge)) else id(e)
            if key in targets or key in wanted:
                through.add(id(node))
                break
        if id(node) in through or id(node) in targets:
            wanted.add(id(node))
    return wanted, through


def _start(name: str, tensors: Sequence[Any], grads: Tensor | Sequence[Tensor | None] | None) -> Roots:
    if grads is None:
        grads = [None] * len(tensors)
    elif isinstance(grads, state.tensor):
        grads = [grads]
    elif not isinstance(grads, Sequence):
        raise TypeError(f"{name}: gradients must be Tensors or None, got {type(grads).__name__}.")
    if len(grads) != len(tensors):
        raise AutogradError(f"{name}: got {len(tensors)} tensors and {len(grads)} gradients.")
    roots = []
    for t, g in zip(tensors, grads, strict=True):
        if not t._rg:
            raise AutogradError(f"{name}: element 0 of tensors does not require grad and does not have a grad_fn.")
        if g is None:
            if t._spec.numel != 1:
                raise AutogradError(
                    f"{name}: grad can be implicitly created only for scalar outputs, got shape "
                    f"{tuple(t.shape)}; pass a gradient."
                )
            if t._spec.dtype.is_complex:
                raise AutogradError(
                    f"{name}: grad can be implicitly created only for real scalar outputs, got {t._spec.dtype}."
                )
            spec = t._spec
            g = F._full(spec.shape, spec.layout.strides, 1, spec.dtype, spec.device)
        else:
            if not isinstance(g, state.tensor):
                raise TypeError(f"{name}: gradients must be Tensors or None, got {received(g)}.")
            if tuple(g.shape) != tuple(t.shape):
                raise ShapeError(f"{name}: the gradient has shape {tuple(g.shape)}, its output {tuple(t.shape)}.")
            if g._spec.dtype.is_complex != t._spec.dtype.is_complex:
                raise AutogradError(
                    f"{name}: the gradient is {g.dtype}, its output {t.dtype}; either both must be complex or neither."
                )
            if g._spec.device != t._spec.device:
                raise AutogradError(
                    f"{name}: the gradient is on {g.device}, its output on {t.device}; move it there with .to()."
                )
        roots.append((edge_of(t), g))
    return roots


def _listed(tensors: Tensor | Sequence[Tensor]) -> Sequence[Tensor]:
    if isinstance(tensors, state.tensor):
        return (tensors,)
    if isinstance(tensors, GradientEdge):
        return (stand_in(tensors),)
    return [stand_in(t) if isinstance(t, GradientEdge) else t for t in tensors]


def walk(task: Task, roots: Roots, create_graph: bool) -> None:
    """Run a pass from where gradients begin."""
    grad, mode.grad = mode.grad, create_graph
    freeing, mode.freeing = mode.freeing, not task.keep_graph
    outer, mode.walk = mode.walk, task
    task.roots = roots
    task.outer = outer
    if asked() and task.wanted is None:
        task.uses = uses_of(roots)
    try:
        for edge, g in roots:
            task.send(edge, g)
        task.run()
    finally:
        mode.grad, mode.freeing, mode.walk = grad, freeing, outer


def end(task: Task) -> None:
    """Call what waits for the end of a pass, unless another is around it."""
    if mode.walk is None:
        for call in task.at_end:
            call()


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Sum of gradients of `tensors` by the graph's leaves, accumulated into `.grad`.

    >>> x = votive.tensor([1.0, 2.0], requires_grad=True)
    >>> votive.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    roots = _start("backward", _listed(tensors), grad_tensors)
    keep = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        task = Task(keep, create_graph, {})
        walk(task, roots, create_graph)
        end(task)
        return
    leaves = _listed(inputs)
    if not leaves:
        raise AutogradError("backward: inputs must not be empty.")
    grads, task = _gradients(roots, leaves, keep, create_graph)
    # Hooks of leaves belong to the pass.
    outer, mode.walk = mode.walk, task
    grad, mode.grad = mode.grad, create_graph
    try:
        for x, g in zip(leaves, grads, strict=True):
            if g is not None:
                accumulate(x, g, create_graph)
    finally:
        mode.walk, mode.grad = outer, grad
    end(task)


def _gradients(roots: Roots, inputs: Sequence[Any], keep: bool, create_graph: bool) -> tuple[list[Any], Task]:
    keys = []
    for x in inputs:
        if not x._rg:
            raise AutogradError("grad: one of the differentiated tensors does not require grad.")
        e = edge_of(x)
        keys.append((id(e.node), e.nr) if isinstance(e, (BaseNode, Edge)) else (id(e), 0))
    task = Task(keep, create_graph, dict.fromkeys(keys))
    task.wanted, task.through = mark([e for e, _ in roots], {k[0] for k in keys})
    task.wanted |= {k[0] for k in keys}
    walk(task, roots, create_graph)
    return [task.captures[k] for k in keys], task


def _batched(ys: Any, xs: Any, grad_outputs: Any, keep: Any, create_graph: bool, *options: Any) -> tuple[Any, ...]:
    """Gradients for every row of `grad_outputs`, in one pass."""
    given = [None] if grad_outputs is None else _listed(grad_outputs)
    if any(g is None for g in given):
        raise AutogradError("grad: is_grads_batched=True needs grad_outputs with a dimension of rows in front.")
    vmap = import_module("..func", __package__).vmap
    missing: list[bool] = []

    def one(*gs: Any) -> Any:
        unused, zeros = options
        found = grad(ys, xs, gs, keep, create_graph, allow_unused=unused, materialize_grads=zeros)
        missing[:] = [g is None for g in found]
        return tuple(g for g in found if g is not None)

    rows = iter(vmap(one)(*given))
    return tuple(None if m else next(rows) for m in missing)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Gradients of `outputs` by `inputs`, returned instead of accumulated.

    >>> x = votive.tensor(3.0, requires_grad=True)
    >>> votive.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    xs = _listed(inputs)
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use votive.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    elif allow_unused is False and materialize_grads:
        raise ValueError("grad: allow_unused=False cannot be combined with materialize_grads=True.")
    if is_grads_batched:
        return _batched(outputs, xs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads)
    keep = create_graph if retain_graph is None else retain_graph
    ys = _listed(outputs)
    if state.pull is not None and any(t._level for t in (*ys, *xs)):
        given = [None] * len(ys) if grad_outputs is None else _listed(grad_outputs)  # type: ignore[arg-type]
        vs = [F.ones_like(y) if v is None else v for y, v in zip(ys, given, strict=True)]
        grads = state.pull(ys, xs, vs, create_graph, keep)
    else:
        roots = _start("grad", ys, grad_outputs)
        grads, task = _gradients(roots, xs, keep, create_graph)
        end(task)
    for i, (x, g) in enumerate(zip(xs, grads, strict=True)):
        if g is None:
            if materialize_grads:
                grads[i] = F.zeros_like(x)
            elif not allow_unused:
                raise AutogradError(
                    "grad: one of the differentiated tensors appears to not have been used in the "
                    "graph; set allow_unused=True if this is the desired behavior."
                )
    return tuple(grads)
