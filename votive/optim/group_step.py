"""Stepping a whole parameter group with one fused operator. Knows no update rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd import no_grad
from ..ops.registry import F
from ..tensor import Tensor
from .optimizer import Optimizer, Params, scalar_dtype

State = dict[str, Any]


class GroupOptimizer(Optimizer):
    """An optimizer whose rule is one multi-tensor operator.

    A subclass says what it keeps of a parameter (`_start`) and calls its operator (`_update`) on
    parameters of one device and dtype. With `foreach=False` it is called for one at a time.
    """

    _absent = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _numbers: tuple[str, ...] = ("step",)
    _scales = False  # whether its operator divides gradients and leaves steps out by itself

    def __init__(self, params: Params, options: dict[str, Any], **common: bool | None) -> None:
        super().__init__(params, {**options, **common})

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """Whether a GradScaler may leave scaling and skipping to the step, which asks nobody."""
        return self._scales and all(group.get("fused") for group in self.param_groups)

    def _scaling(self, p: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """What a GradScaler has left for this step: the scale, and whether a gradient was bad."""
        if p.is_cpu:
            return None, None  # see _scaled
        left = (getattr(self, "grad_scale", None), getattr(self, "found_inf", None))
        scale, found = (t if t is None or t.device == p.device else F.to(t, p.device, non_blocking=True) for t in left)
        return scale, found

    def _scaled(self, params: list[Tensor], grads: list[Tensor]) -> bool:
        """Whether to step, with gradients scaled if need be. Where nobody has to be waited for that
        is known here, and the plain operator serves.
        """
        scale, found = getattr(self, "grad_scale", None), getattr(self, "found_inf", None)
        if not params or not params[0].is_cpu or found is None:
            return True
        if found.item():
            return False
        for g in grads if scale is not None else ():
            g /= F.to(scale, g.device)
        return True

    def _start(self, p: Tensor, group: dict[str, Any]) -> State:
        """What is kept of a parameter before its first step."""
        raise NotImplementedError

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]) -> None:
        """Write the step into parameters and states."""
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; gives the closure's loss, if there is one."""
        loss = self._evaluate(closure)
        with no_grad():
            for group in self.param_groups:
                for params in _runs(group):
                    states = [self._state_of(p, group) for p in params]
                    grads = [p._grad for p in params]
                    if any(g.is_sparse for g in grads):
                        params, grads, states = self._without_sparse(group, params, grads, states)
                    if not params or not self._scaled(params, grads):
                        continue
                    self._update(group, params, grads, states)
                    if getattr(self, "grad_scale", None) is not None:
                        for g in grads:
                            g._storage.version += 1
        return loss

    def _without_sparse(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]
    ) -> tuple[list[Tensor], list[Tensor], list[State]]:
        """Step the parameters whose gradients are sparse, one at a time, and give back the others."""
        left: list[tuple[Tensor, Tensor, State]] = []
        if getattr(self, "found_inf", None) is not None:
            raise RuntimeError(f"{type(self).__name__}: fused=True does not take sparse gradients.")
        for p, g, s in zip(params, grads, states, strict=True):
            if g.is_sparse:
                self._update_sparse(group, p, g, s)
            else:
                left.append((p, g, s))
        return [p for p, _, _ in left], [g for _, g, _ in left], [s for _, _, s in left]

    def _update_sparse(self, group: dict[str, Any], p: Tensor, grad: Tensor, state: State) -> None:
        """The step of one parameter with a sparse gradient, where there is one."""
        raise RuntimeError(
            f"{type(self).__name__} does not support sparse gradients, please consider SparseAdam, SGD or Adagrad "
            "instead"
        )

    def _state_of(self, p: Tensor, group: dict[str, Any]) -> State:
        state: State = self.state[p]
        if not state:
            state.update(self._start(p, group))
        return state


def _runs(group: dict[str, Any]) -> list[list[Tensor]]:
    """The parameters with gradients, in lists that one operator call may take."""
    params = [p for p in group["params"] if p._grad is not None]
    if group.get("fused"):
        for p in params:
            if not p.is_floating_point():
                raise RuntimeError(
                    "`fused=True` requires all the params to be floating point Tensors, "
                    f"but one is {p.dtype} on {p.device}."
                )
    elif group.get("foreach") is False:
        return [[p] for p in params]
    kinds = {(s.device, s.dtype) for s in {p._spec for p in params}}
    if len(kinds) == 1:
        return [params]
    lists: dict[Any, list[Tensor]] = {}
    for p in params:
        lists.setdefault((p.device, p.dtype), []).append(p)
    return list(lists.values())


def count(group: dict[str, Any], p: Tensor) -> Tensor:
    """A step count of zero. It stays on the CPU, where reading it costs nothing, unless fused, or the kernel that
    counts is on another machine, which would have to be waited for.
    """
    fused = group.get("fused")
    return F.zeros((), dtype=scalar_dtype(fused), device=p.device if fused or p.device.type == "remote" else "cpu")


def blank(p: Tensor) -> Tensor:
    """Zeros in the shape, dtype and memory order of a parameter."""
    return F.zeros_like(p)


def column(states: list[State], name: str) -> list[Tensor]:
    """One entry of every state."""
    return [s[name] for s in states]


def columns(states: list[State], *names: str) -> list[list[Tensor]]:
    """Several entries, each of every state."""
    return [column(states, name) for name in names]


def values(group: dict[str, Any], *names: str) -> list[Any]:
    """Several options of a group."""
    return [group[name] for name in names]
