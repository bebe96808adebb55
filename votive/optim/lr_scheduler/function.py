"""Schedules given by a function of the epoch."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, check_optimizer

Factor = Callable[[int], float]


def saved_function(fn: Callable[..., float]) -> Any:
    """What a checkpoint keeps of a function: the attributes of a callable object, else nothing."""
    return None if isinstance(fn, types.FunctionType) else dict(fn.__dict__)


class _FunctionLR(LRScheduler):
    """Holds one function per parameter group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Factor | list[Factor], last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        groups = len(optimizer.param_groups)
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != groups:
                raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * groups
        for fn in self.lr_lambdas:
            if not callable(fn):
                raise TypeError(f"lr_lambda should be a function, but got {type(fn).__name__}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of functions only callable objects are kept."""
        state = super().state_dict()
        state["lr_lambdas"] = [saved_function(fn) for fn in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave; plain functions stay those of this object."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for fn, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if saved is not None:
                fn.__dict__.update(saved)


class LambdaLR(_FunctionLR):
    """The initial rate times a function of the epoch.

    >>> opt = votive.optim.SGD([votive.zeros(1)], lr=1.0)
    >>> schedule = votive.optim.lr_scheduler.LambdaLR(opt, lambda epoch: 0.9**epoch)
    >>> opt.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.9]
    """

    def get_lr(self) -> list[Any]:
        self._warn_unless_stepping()
        pairs = zip(self.lr_lambdas, self.base_lrs, strict=True)
        return [base * fn(self.last_epoch) for fn, base in pairs]


class MultiplicativeLR(_FunctionLR):
    """The current rate times a function of the epoch.

    >>> opt = votive.optim.SGD([votive.zeros(1)], lr=1.0)
    >>> schedule = votive.optim.lr_scheduler.MultiplicativeLR(opt, lambda epoch: 0.5)
    >>> opt.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def get_lr(self) -> list[Any]:
        self._warn_unless_stepping()
        if self._is_initial:
            return self._current()
        pairs = zip(self.lr_lambdas, self.optimizer.param_groups, strict=True)
        return [group["lr"] * fn(self.last_epoch) for fn, group in pairs]
