"""LRScheduler: counts steps and writes learning rates into an optimizer. Knows no schedule."""

from __future__ import annotations

import warnings
from typing import Any

from ...tensor import Tensor
from ..optimizer import Optimizer
from ..options import number

EPOCH_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available."
)


def check_optimizer(optimizer: object) -> None:
    """Refuse what is no optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _own(value: float | Tensor) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value for each parameter group, from a list of as many or a single one."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [_own(value) for _ in range(groups)]
    if len(value) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has "
            f"{len(value)} values, param_groups has {groups}."
        )
    return [_own(v) for v in value]


def group_values(optimizer: Optimizer, key: str) -> list[Any]:
    """An option of every group; tensors are copied, so that later changes do not reach them."""
    return [_own(group[key]) for group in optimizer.param_groups]


def write_value(group: dict[str, Any], key: str, value: float) -> None:
    """Set an option; one that is a tensor stays the same object."""
    if isinstance(group[key], Tensor):
        group[key].fill_(number(value))
    else:
        group[key] = value


class LRScheduler:
    """Base of all schedules: `step()` after each epoch (or batch) asks `get_lr` for new rates.

    A subclass defines `get_lr`, from the rates in the groups or from `base_lrs` and `last_epoch`.

    >>> class Halve(votive.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [lr * 0.5**self.last_epoch for lr in self.base_lrs]
    >>> opt = votive.optim.SGD([votive.zeros(1)], lr=1.0)
    >>> schedule = Halve(opt)
    >>> opt.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    _get_lr_called_within_step = False
    _is_initial = False
    _last_lr: list[Any]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _own(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming "
                    "scheduler with last_epoch >= 0; load the optimizer's state first, or leave "
                    "last_epoch out for a fresh run."
                )
        self.base_lrs: list[Any] = group_values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        # To notice later that somebody replaced the method on the object.
        optimizer._scheduled_step = vars(optimizer).get("step")
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_last_lr(self) -> list[Any]:
        """The rates that the last step computed."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """New rates; called by `step` only."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Compute the rates of the next epoch and write them into the optimizer."""
        if self._step_count == 1:
            self._warn_of_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _warn_of_order(self) -> None:
        own = vars(self.optimizer).get("step")
        if own is not getattr(self.optimizer, "_scheduled_step", None):
            warnings.warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
                "initialization. Please, make sure to call `optimizer.step()` before "
                "`lr_scheduler.step()`.",
                UserWarning,
                stacklevel=3,
            )
        elif own is None and not self.optimizer._opt_called:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call "
                "them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`. "
                "Failure to do this will result in skipping the first value of the learning rate "
                "schedule.",
                UserWarning,
                stacklevel=3,
            )

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed_form = getattr(self, "_get_closed_form_lr", self.get_lr)
                values = closed_form()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            write_value(group, "lr", lr)
        self._last_lr = group_values(self.optimizer, "lr")

    def _warn_unless_stepping(self) -> None:
        """`get_lr` from outside would compute the rate after the next one."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def _current(self) -> list[Any]:
        return group_values(self.optimizer, "lr")

    def _times(self, factor: float) -> list[Any]:
        """The current rates, scaled."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.__dict__.update(state_dict)
