"""Schedules made of schedules: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, group_values, write_value
from .plateau import ReduceLROnPlateau


def _check(name: str, optimizer: Optimizer, schedulers: Sequence[Any]) -> None:
    for i, s in enumerate(schedulers):
        if not hasattr(s, "optimizer"):
            raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
        if isinstance(s, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional "
                f"kwargs to be specified when calling `step`, but got one at index {i} in the "
                "given schedulers sequence."
            )
        if optimizer is not s.optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(s).__name__} at index {i} has {s.optimizer}, which is different from "
                f"{type(optimizer).__name__}."
            )


class _Composed(LRScheduler):
    """Keeps its parts' states in its own."""

    _schedulers: Sequence[Any]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the states of the parts."""
        state = super().state_dict()
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave, part by part."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for s, saved in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            s.load_state_dict(saved)


class SequentialLR(_Composed):
    """One schedule after the other; `milestones` are the epochs at which the next begins.

    >>> opt = votive.optim.SGD([votive.zeros(1)], lr=1.0)
    >>> lr = votive.optim.lr_scheduler
    >>> parts = [lr.ConstantLR(opt, 0.5, total_iters=2), lr.ExponentialLR(opt, 0.5)]
    >>> schedule = lr.SequentialLR(opt, parts, milestones=[2])
    >>> for _ in range(3):
    ...     opt.step()
    ...     schedule.step()
    ...     print(schedule.get_last_lr())
    [0.5]
    [1.0]
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
        _check(name, optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each part has set the rate when it was made; go back, and let only the first one speak.
        for group in optimizer.param_groups:
            write_value(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: LRScheduler | None = None) -> None:
        """Take back the step that making a schedule counts, in all the parts."""
        this = self if sched is None else sched
        if hasattr(this, "_schedulers"):
            for s in this._schedulers:
                self.recursive_undo(s)
        elif hasattr(this, "last_epoch"):
            this.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Step the schedule whose turn it is."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Composed):
    """Several schedules that all act at each step.

    >>> opt = votive.optim.SGD([votive.zeros(1)], lr=1.0)
    >>> lr = votive.optim.lr_scheduler
    >>> schedule = lr.ChainedScheduler([lr.ExponentialLR(opt, 0.5), lr.ExponentialLR(opt, 0.5)])
    >>> opt.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        _check(name, optimizer, schedulers)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = group_values(optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Step every schedule."""
        for s in self._schedulers:
            s.step()
        self._last_lr = group_values(self.optimizer, "lr")
