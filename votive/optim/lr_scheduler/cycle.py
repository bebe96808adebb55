"""Schedules that cycle between two rates, and the momentum against them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, check_optimizer, per_group, write_value
from .function import saved_function


def _takes_momentum(optimizer: Optimizer) -> bool:
    """Whether the momentum is the first beta; an error if there is none."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in optimizer.defaults


def _write_momentum(group: dict[str, Any], value: float, use_beta1: bool) -> None:
    if use_beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def _start_momentum(optimizer: Optimizer, largest: list[float], smallest: list[float], use_beta1: bool) -> None:
    for group, top, bottom in zip(optimizer.param_groups, largest, smallest, strict=True):
        _write_momentum(group, top, use_beta1)
        group["max_momentum"] = top
        group["base_momentum"] = bottom


class CyclicLR(LRScheduler):
    """Up from `base_lr` to `max_lr` and down again, over and over (Smith 2015).

    "triangular2" halves the height each cycle, "exp_range" scales it by gamma each step; `scale_fn`
    replaces both. The momentum moves the other way.

    >>> opt = votive.optim.SGD([votive.zeros(1)], lr=1.0, momentum=0.9)
    >>> schedule = votive.optim.lr_scheduler.CyclicLR(opt, base_lr=0.1, max_lr=0.5, step_size_up=2)
    >>> opt.step()
    >>> schedule.step()
    >>> round(schedule.get_last_lr()[0], 3), round(opt.param_groups[0]["momentum"], 3)
    (0.3, 0.85)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                write_value(group, "lr", lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _takes_momentum(optimizer)
            self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                _start_momentum(optimizer, self.max_momentums, self.base_momentums, self.use_beta1)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The factor of the height in cycle or step x."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / 2.0 ** (x - 1)
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[Any]:
        self._warn_unless_stepping()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            limits = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, limits, strict=True):
                _write_momentum(group, high - (high - low) * height * scale, self.use_beta1)
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * height * scale for low, high in pairs]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of a scale function only a callable object is kept."""
        state = super().state_dict()
        fn = self._scale_fn_custom
        state["_scale_fn_custom"] = None if fn is None else saved_function(fn)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave; a plain scale function stays that of this object."""
        fn = state_dict.get("_scale_fn_custom")
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if fn is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(fn)


class OneCycleLR(LRScheduler):
    """One rise to `max_lr` and one fall far below the start, in `total_steps` steps (Smith 2017).

    The rate starts at max_lr / div_factor and ends at that / final_div_factor; `pct_start` is the
    part of the cycle that rises. Call `step()` after each batch.

    >>> opt = votive.optim.SGD([votive.zeros(1)], lr=1.0, momentum=0.9)
    >>> schedule = votive.optim.lr_scheduler.OneCycleLR(opt, max_lr=1.0, total_steps=10)
    >>> for _ in range(9):
    ...     opt.step()
    ...     schedule.step()
    >>> round(schedule.get_last_lr()[0], 8)
    4e-06
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        max_lrs = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for lr, group in zip(max_lrs, optimizer.param_groups, strict=True):
                group["initial_lr"] = lr / div_factor
                group["max_lr"] = lr
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _takes_momentum(optimizer)
            largest = per_group("max_momentum", optimizer, max_momentum)
            smallest = per_group("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                _start_momentum(optimizer, largest, smallest, self.use_beta1)
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: float, end: float, part: float) -> Any:
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)
        return (end - start) * part + start

    def get_lr(self) -> list[Any]:
        self._warn_unless_stepping()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        begin = 0.0
        for phase in self._schedule_phases[:-1]:
            if step <= phase["end_step"]:
                break
            begin = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        part = (step - begin) / (phase["end_step"] - begin)
        lrs = []
        for group in self.optimizer.param_groups:
            lrs.append(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                _write_momentum(group, self._anneal(*ends, part), self.use_beta1)
        return lrs


def _total_steps(total: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    def check(name: str, value: object) -> int:
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
        return value

    if total is not None:
        return check("total_steps", total)
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    return check("epochs", epochs) * check("steps_per_epoch", steps_per_epoch)


def _phases(total: int, pct_start: float, three: bool) -> list[dict[str, Any]]:
    """Where each phase ends, and between which rates and momenta it goes."""

    def phase(end: float, lrs: str, momenta: str) -> dict[str, Any]:
        (lr0, lr1), (m0, m1) = lrs.split(), momenta.split()
        return {
            "end_step": end,
            "start_lr": f"{lr0}_lr",
            "end_lr": f"{lr1}_lr",
            "start_momentum": f"{m0}_momentum",
            "end_momentum": f"{m1}_momentum",
        }

    rise = phase(float(pct_start * total) - 1, "initial max", "max base")
    if not three:
        return [rise, phase(total - 1, "max min", "base max")]
    fall = phase(float(2 * pct_start * total) - 2, "max initial", "base max")
    return [rise, fall, phase(total - 1, "initial min", "max max")]
