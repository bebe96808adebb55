"""How the compiler goes through optimizers and schedules: a step is its operator on what is found in the groups then.

Parameters, gradients and states are inputs of the graph, found where the optimizer keeps them; learning rates and other
numbers of groups are read before each run. States that do not exist yet are made while the program is traced.
"""

from __future__ import annotations

from typing import Any

from ..amp.grad_scaler import GradScaler
from ..autograd import no_grad
from ..compiler.guards import Place
from ..compiler.places import Below, Live
from ..compiler.watch import METHODS, Watch
from ..core.mode import mode
from ..tensor import Tensor
from .group_step import GroupOptimizer, _runs
from .lr_scheduler import LRScheduler
from .optimizer import Optimizer
from .step_hooks import _global_post_hooks, _global_pre_hooks


class _Options(dict[str, Any]):
    """The options of a group, which knows what was read. Numbers are objects of their own, to be known again."""

    def __init__(self, watch: Watch, group: dict[str, Any], place: Place) -> None:
        super().__init__(group)
        self.watch, self.place = watch, place
        self.read: set[str] = set()
        self.numbers: dict[int, tuple[Place, float]] = {}
        self.alive: list[float] = []

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if name != "params" and name not in self.read:
            self.read.add(name)
            value = self._option(name, value)
            super().__setitem__(name, value)
        return value

    def get(self, name: str, default: Any = None) -> Any:
        if name in self:
            return self[name]
        self.watch.guards.equal(Below(self.place, "of", _Fixed(name)), None)
        return default

    def _option(self, name: str, value: Any) -> Any:
        place = Below(self.place, "item", name, f"{name} of {self.place}")
        if value.__class__ is tuple and all(v.__class__ in (float, int) for v in value):
            self.watch.guards.kind(place, value)
            self.watch.guards.equal(Below(place, "len"), len(value))
            return tuple([self._number(Below(place, "item", i), v) for i, v in enumerate(value)])
        if isinstance(value, Tensor):
            self.watch.guards.form(place, value)
            mode.unobserved += 1
            try:
                number = value.item()
            finally:
                mode.unobserved -= 1
            return self._number(Below(place, "number"), number, signed=name != "lr")
        if value.__class__ is float:
            return self._number(place, value, signed=name != "lr")
        self.watch.reached(value, place)
        return value

    def _number(self, place: Place, value: Any, signed: bool = True) -> Any:
        """A number that the graph may read anew each time; Python may only have asked for its sign, if that."""
        if value.__class__ is not float:
            self.watch.guards.equal(place, value)
            return value
        fresh = float(repr(value))
        self.alive.append(fresh)
        self.numbers[id(fresh)] = place, fresh
        self.watch.guards.kind(place, value)
        if signed:
            self.watch.guards.equal(Below(place, "sign"), (value > 0) - (value < 0))
        return fresh

    def entered(self, nodes: list[Any]) -> None:
        """Let calls read the numbers anew; what none of them got stays what it is."""
        found: set[int] = set()
        live: dict[int, Live] = {}
        for node in nodes:
            args = list(node.args)
            for i, a in enumerate(args):
                if id(a) in self.numbers and a.__class__ is float:
                    found.add(id(a))
                    args[i] = live.setdefault(id(a), Live(*self.numbers[id(a)]))
            node.args = tuple(args)
        for key, (place, value) in self.numbers.items():
            if key not in found:
                self.watch.guards.equal(place, value)


class _Fixed(Place):
    """A key that is always the same."""

    __slots__ = ()

    def __init__(self, value: str) -> None:
        super().__init__("fixed", value, value)

    @property
    def id(self) -> Any:
        return self.where

    def get(self, flat: tuple[Any, ...]) -> Any:
        return self.where

    def code(self, name: Any) -> str:
        return repr(self.where)


def _obstacle(watch: Watch, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Why a step is no part of a graph."""
    name = type(optimizer).__name__
    if not watch.is_outer(optimizer):
        return f"it steps a {name} that was made inside"
    if any(a is not None for a in (*args, *kwargs.values())):
        return f"it gives a closure to {name}.step()"
    if not _is_own(optimizer):
        return f"it calls {name}.step(), which may do anything"
    for hooks in (optimizer._hooks["step_pre"], optimizer._hooks["step_post"], _global_pre_hooks, _global_post_hooks):
        if hooks:
            return f"hooks wait for the steps of a {name}"
        watch.guards.empty(Place("hooks", hooks, f"hooks of {name}", optimizer))
    for left in ("grad_scale", "found_inf"):
        if left in vars(optimizer):
            return f"a GradScaler decides whether {name} steps"
        watch.guards.absent(Place("attribute", vars(optimizer), left, optimizer))
    if watch.effects.calls:
        return "it steps an optimizer after a schedule"
    return ""


def _group_place(watch: Watch, optimizer: Any, i: int) -> Place:
    groups = Place("attribute", vars(optimizer), "param_groups", optimizer)
    watch.guards.equal(Below(groups, "len"), len(optimizer.param_groups))
    return Below(groups, "item", i, f"group {i} of {type(optimizer).__name__}")


def _members(watch: Watch, optimizer: Any, i: int) -> None:
    """Let the parameters of a group be known."""
    params = Below(_group_place(watch, optimizer, i), "item", "params")
    listed = optimizer.param_groups[i]["params"]
    watch.guards.equal(Below(params, "len"), len(listed))
    for j, p in enumerate(listed):
        watch._hold(p, Below(params, "item", j, f"parameter {j} of {type(optimizer).__name__}"))


def traced_step(watch: Watch, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`optimizer.step()` while a program is traced."""
    optimizer = method.__self__
    why = _obstacle(watch, optimizer, args, kwargs)
    if why:
        watch.stop(why)
        return method(*args, **kwargs)
    optimizer._opt_called = True
    with no_grad():
        for i, group in enumerate(optimizer.param_groups):
            _members(watch, optimizer, i)
            for p in group["params"]:
                watch.effects.slot(p)
            options = _Options(watch, group, _group_place(watch, optimizer, i))
            before = len(watch.tracer.graph.nodes)
            for params in _runs(options):
                _run(watch, optimizer, options, group, params)
            options.entered(watch.tracer.graph.nodes[before:])
    return None


def _run(watch: Watch, optimizer: Any, options: _Options, group: dict[str, Any], params: list[Tensor]) -> None:
    """One call of the operator."""
    mode.unobserved += 1
    try:
        states = [optimizer._state_of(p, group) for p in params]
    finally:
        mode.unobserved -= 1
    table = Place("attribute", vars(optimizer), "state", optimizer)
    for p, held in zip(params, states, strict=True):
        if optimizer.state.get(p) is not held:
            continue  # nothing is kept
        place = Below(table, "of", watch.tensors[id(p)][1])
        watch.guards.equal(Below(place, "len"), len(held))
        for key, value in held.items():
            watch.reached(value, Below(place, "item", key))
    before = [dict(s) for s in states]
    optimizer._update(options, params, [p._grad for p in params], states)
    for p, old, new in zip(params, before, states, strict=True):
        for key, value in new.items():
            if old.get(key) is not value:
                if not isinstance(value, Tensor):
                    watch.stop(f"{type(optimizer).__name__} counts steps in Python")
                else:
                    watch.effects.entry(p, lambda: optimizer.state, key, value)


def traced_zero_grad(watch: Watch, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`optimizer.zero_grad()` while a program is traced."""
    optimizer = method.__self__
    if not watch.is_outer(optimizer):
        watch.stop(f"it calls zero_grad() of a {type(optimizer).__name__} that was made inside")
        return method(*args, **kwargs)
    params = []
    for i, group in enumerate(optimizer.param_groups):
        _members(watch, optimizer, i)
        params += group["params"]
    return without_gradients(watch, params, *args, **kwargs)


def without_gradients(watch: Watch, params: list[Any], set_to_none: bool = True) -> None:
    """Forget the gradients of tensors, or fill them with zeros."""
    for p in params:
        watch.effects.slot(p, read=not set_to_none)
        if set_to_none:
            p._grad = None
        elif p._grad is not None:
            if p._grad._rg:
                watch.stop("it fills a gradient that has a gradient itself with zeros")
                p._grad = p._grad.detach()
            p._grad.zero_()


def traced_optimizer(watch: Watch, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of an optimizer."""
    fn = method.__func__
    if fn is GroupOptimizer.step:
        return traced_step(watch, method, args, kwargs)
    if fn is Optimizer.zero_grad:
        return traced_zero_grad(watch, method, args, kwargs)
    return NotImplemented


def _is_own(optimizer: Any) -> bool:
    """Whether what a step does is the package's: of a class derived from one of its, too."""
    parts = ("_start", "_update", "_state_of", "_scaled", "_scaling")
    package = f"{__name__.split('.')[0]}.optim."
    return all((getattr(type(optimizer), p).__module__ or "").startswith(package) for p in parts)


def traced_schedule(watch: Watch, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`scheduler.step()`: numbers of Python, which each run of the graph changes by calling it afterwards."""
    schedule, fn = method.__self__, method.__func__
    package = __name__.split(".")[0]
    if fn.__name__ != "step" or not (fn.__module__ or "").startswith(f"{package}.optim.lr_scheduler"):
        return NotImplemented
    if not watch.is_outer(schedule) or args or kwargs:
        watch.stop(f"it calls {type(schedule).__name__}.step() with a number, or of one that was made inside")
        return method(*args, **kwargs)
    mode.unobserved += 1
    try:
        method()
    finally:
        mode.unobserved -= 1
    optimizer = schedule.optimizer
    watch.effects.call(method, [schedule, vars(schedule), optimizer.param_groups, *optimizer.param_groups])
    return None


def traced_scaler(watch: Watch, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a GradScaler: one that is off does nothing; another decides by the numbers whether to step."""
    scaler, name = method.__self__, method.__func__.__name__
    if not watch.is_outer(scaler) or scaler._enabled:
        watch.stop(f"it calls {name}() of a GradScaler")
        return method(*args, **kwargs)
    watch.guards.equal(Place("attribute", vars(scaler), "_enabled", scaler), False)
    if name == "step":
        optimizer, *rest = args
        return watch.call(watch.line, watch.attr(optimizer, "step"), *rest, **kwargs)
    return method(*args, **kwargs)


METHODS[GradScaler] = traced_scaler
METHODS[Optimizer] = traced_optimizer
METHODS[LRScheduler] = traced_schedule
