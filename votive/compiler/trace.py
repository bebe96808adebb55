"""Tracing: an observer of every call writes them down as a graph while they are computed as always."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from ..autograd.graph import sequence
from ..core import rng
from ..core.mode import mode
from ..dispatch import Call, Observer, attach, detach, state
from ..ops.operator import Op
from .graph import Draw, Graph, Node, Value
from .symbols import key_of


class Untraceable(Exception):
    """Why a call cannot be part of a graph."""


def draw_arguments(op: Op) -> tuple[int, ...]:
    """The places of the arguments that say which random numbers an operator draws: key and counter."""
    names = [a.name if a.type == "Scalar" else "" for a in op.schema.args]
    if "counter" not in names:
        return ()
    return names.index("key" if "key" in names else "seed"), names.index("counter")


def _draws_nothing(op: Op, args: tuple[Any, ...]) -> bool:
    """Whether a call that could draw has nothing to drop."""
    names = op.schema.names
    return "dropout_p" in names and not args[names.index("dropout_p")]


class Running(threading.local):
    """The trace that is being made in this thread."""

    tracer: Tracer | None = None


running = Running()


def place_of(t: Any) -> Any:
    """The window on memory that a tensor is."""
    try:
        offset = t._offset
        return t._storage.root, offset if offset.__class__ is int else key_of(offset), t._spec
    except ValueError as e:  # a parameter that has no shape yet
        raise Untraceable("it uses a tensor without a shape") from e


class Tracer(Observer):
    """Writes calls into `graph`. Tensors are known by themselves, those that Python made of others by their memory.

    What is not known yet was made or reached by Python: `unknown(tensor)` says what it is, or raises Untraceable.
    """

    follows_copies = True
    opens_fused = False

    def __init__(self) -> None:
        self.graph = Graph()
        self.known: dict[Any, Value] = {}
        # Tensors have values of their own, also where they share memory, since autograd tells them apart.
        self.named: dict[int, Value] = {}  # by identity
        self.outside: dict[int, Any] = {}  # those that Python has reached
        self.given: list[tuple[Any, Any]] = []  # those that are inputs, and the windows on memory that they were
        self.owners: dict[Any, Value] = {}  # storage -> the first that shows it
        self.alive: list[Any] = []  # storages must keep their identity while they are compared
        self.broken: str = ""  # why the graph is not all of the program; what follows is not written down
        self.thread = threading.get_ident()
        self.draws: list[Draw] = []
        self.where: Any = lambda: ""  # the line of the program
        self.backward = False
        self.start = 0
        self.differentiable: set[Value] = set()  # values that autograd follows
        self.pending: dict[int, tuple[tuple[Value, ...], bool, bool]] = {}  # of calls that run: what `_followed` says
        self.unobserved = 0  # how deep in what others do not see it goes on writing: in edits
        self.on_break: Any = lambda: None
        self.computing: Any = contextlib.nullcontext  # around what must be computed although only sizes are traced

    # --- values ----------------------------------------------------------------------------------

    def name(self, tensor: Any, kind: str, label: str) -> Value:
        """Make a tensor from outside known."""
        found = self.named.get(id(tensor))
        if found is None:
            root = tensor._storage.root
            found = self.graph.value(tensor._spec, kind=kind, label=label, base=self.owners.get(root))
            self.owners.setdefault(root, found)
            self.named[id(tensor)] = found
            found.leaf = bool(tensor._rg)
            if tensor._rg:
                self.differentiable.add(found)
            place = place_of(tensor)
            self.known.setdefault(place, found)
            self.alive.append((tensor, tensor._storage))
            self.given.append((tensor, place))
            self.graph.inputs.append(found)
        return found

    def constant(self, tensor: Any) -> Value:
        """A tensor that Python made of numbers: the same in each call."""
        value = self.graph.value(tensor._spec, kind="constant")
        self.known[place_of(tensor)] = self.named[id(tensor)] = value
        self.alive.append((tensor, tensor._storage))
        # A copy: the program may write over its own, and whoever gets it may, too.
        mode.unobserved += 1
        try:
            with self.computing():
                self.graph.constants[value] = tensor.detach().clone()
        finally:
            mode.unobserved -= 1
        return value

    def value_of(self, tensor: Any) -> Value:
        found = self.named.get(id(tensor))
        if found is None and id(tensor) not in self.outside:
            found = self.known.get(place_of(tensor))
        return self.unknown(tensor) if found is None else found

    def unknown(self, tensor: Any) -> Value:
        """What to make of a tensor that no call of the trace has given."""
        raise Untraceable("it uses a tensor that was not made by an operator")

    def _arg(self, v: object) -> Any:
        if isinstance(v, state.tensor):
            return self.value_of(v)
        if v.__class__ is tuple or v.__class__ is list:
            return tuple([self._arg(x) for x in v])
        return v

    # --- calls -----------------------------------------------------------------------------------

    def give_up(self, why: str) -> None:
        """The program goes on, but its calls are no longer written down."""
        if not self.broken:
            self.broken = why
            self.on_break()

    def before(self, call: Call) -> Any:
        if self.broken or threading.get_ident() != self.thread or mode.unobserved > self.unobserved:
            return
        try:
            # Looked at before the call: it may write over its arguments.
            for v in call.op.values(call.args):
                self._arg(v)
            if call.into is not None:
                self.value_of(call.into)
            self.pending[id(call)] = self._followed(call)
        except Untraceable as e:
            self.give_up(str(e))

    def _followed(self, call: Call) -> tuple[tuple[Value, ...], bool, bool]:
        """What a call gets without its gradients, whether it gets others with theirs, and whether autograd is on."""
        cut: list[Value] = []
        follows = False
        for v in call.op.values(call.args):
            for t in v if v.__class__ in (tuple, list) else (v,):
                if isinstance(t, state.tensor):
                    follows = follows or t._rg
                    if not t._rg and (value := self.value_of(t)) in self.differentiable:
                        cut.append(value)
        return tuple(cut), follows, mode.grad

    def after(self, call: Call) -> Any:
        if self.broken or threading.get_ident() != self.thread or mode.unobserved > self.unobserved:
            return
        try:
            self._write(call)
        except Untraceable as e:
            self.give_up(str(e))

    def _write(self, call: Call) -> None:
        op, args = call.op, tuple([self._arg(a) for a in call.args])
        node = Node(op, args, path=mode.module_path, line=self.where(), plan=call.plan, backward=self.backward)
        node.cut, follows, node.grad = self.pending.pop(id(call), ((), False, mode.grad))
        if call.plan.outs is None and not op.mutates:
            raise Untraceable(f"the shape of what {op.name} gives depends on the numbers")
        if call.into is not None:
            node.into = self.value_of(call.into)
            node.form = "write" if args and args[0] is node.into else "out"
            if call.into._spec is not node.into.spec:
                raise Untraceable(f"{op.name} changes the shape of a tensor")
        where = draw_arguments(op)
        if where and not _draws_nothing(op, args):
            node.draw = self._draw(*[args[i] for i in where])
        if call.into is None and call.result is not None:
            node.single = call.result.__class__ is not tuple
            outs = (call.result,) if node.single else call.result
            node.outs = tuple([self._result(node, i, t) for i, t in enumerate(outs)])
        self.graph.nodes.append(node)
        if follows and node.grad and op.differentiable:
            self.differentiable.update(v for v in (*node.outs, *node.writes) if v.spec.dtype.is_inexact)

    def _result(self, node: Node, index: int, t: Any) -> Value:
        place = place_of(t)
        if node.op.mutates and place in self.known:
            return self.known[place]
        base = None
        if node.is_view:
            base = next(node.reads()).root
            if place in self.known:  # the view shows just what its base does
                base = self.known[place].root
        value = self.graph.value(t._spec, node=node, index=index, base=base)
        self.known[place] = self.named[id(t)] = value
        self.alive.append((t, t._storage))
        return value

    def _draw(self, key: object, counter: Any) -> Draw:
        for d in reversed(self.draws):
            if d.taken == (key, counter):
                return d
        raise Untraceable("random numbers come from a generator that is not known")

    def refused(self, op: Any, args: tuple[Any, ...], error: Exception) -> None:
        self.give_up("an operator refused its arguments")

    def failed(self, call: Call, error: Exception) -> None:
        self.give_up("an operator failed")

    def read(self, tensor: Any) -> None:
        if threading.get_ident() == self.thread and mode.unobserved <= self.unobserved:
            self.give_up("Python looks at the numbers of a tensor")

    def made(self, tensor: Any) -> None:
        if not self.broken and threading.get_ident() == self.thread and mode.unobserved <= self.unobserved:
            self.constant(tensor)

    # --- around ----------------------------------------------------------------------------------

    def check_draws(self) -> None:
        """Generators must stand where the draws of the trace have left them: nobody has seeded them."""
        for generator, (seed, offset) in self.generators.items():
            for d in self.draws:
                if d.generator is generator:
                    if d.taken != (seed, offset):
                        raise Untraceable("it seeds a random generator")
                    offset = (offset + d.count) % (1 << 64)
            if (generator._seed, generator._offset) != (seed, offset):
                raise Untraceable("it seeds a random generator")

    def check_windows(self) -> None:
        """Inputs must still show what they did: a graph writes numbers, never another shape into a tensor."""
        if any(place_of(tensor) != place for tensor, place in self.given):
            raise Untraceable("it changes the shape of a tensor that existed before the call")

    def __enter__(self) -> Tracer:
        self.start = self.start or next(sequence)  # nodes of autograd that come later are the trace's
        default = rng.default_generators()
        self.generators = {g: (g._seed, g._offset) for g in default}
        self.outer, running.tracer = running.tracer, self
        attach(self)
        rng.watchers.append(self._reserved)
        return self

    def __exit__(self, *exc: object) -> None:
        rng.watchers.remove(self._reserved)
        detach(self)
        running.tracer = self.outer

    def _reserved(self, generator: Any, count: int, taken: tuple[int, int]) -> None:
        if threading.get_ident() == self.thread:
            self.generators.setdefault(generator, taken)
            self.draws.append(Draw(generator, count, taken))
