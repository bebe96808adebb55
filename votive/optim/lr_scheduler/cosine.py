"""Schedules along a cosine: annealing, with restarts, with a warm-up."""

from __future__ import annotations

import math
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, group_values, write_value


class CosineAnnealingLR(LRScheduler):
    """From the initial rate down to `eta_min` along half a cosine of `T_max` epochs, and back up.

    eta = eta_min + (lr - eta_min) (1 + cos(π epoch / T_max)) / 2 (Loshchilov and Hutter 2016).

    >>> opt = votive.optim.SGD([votive.zeros(1)], lr=1.0)
    >>> schedule = votive.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=2)
    >>> opt.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        # The recursion starts from the current rates, so that other schedules may scale them too.
        self._warn_unless_stepping()
        low = self.eta_min
        if self._is_initial:
            return self._current()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The previous rate was eta_min, from where a quotient leads nowhere.
            up = (1 - math.cos(math.pi / self.T_max)) / 2
            pairs = zip(self.base_lrs, self.optimizer.param_groups, strict=True)
            return [group["lr"] + (base - low) * up for base, group in pairs]
        now = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        before = 1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        return [now / before * (g["lr"] - low) + low for g in self.optimizer.param_groups]

    def _get_closed_form_lr(self) -> list[Any]:
        part = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (base - self.eta_min) * part / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine of `T_0` epochs down to `eta_min`, then again, each `T_mult` times as long.

    `step(epoch)` may be called with fractions of an epoch.

    >>> opt = votive.optim.SGD([votive.zeros(1)], lr=1.0)
    >>> schedule = votive.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=2)
    >>> for _ in range(2):
    ...     opt.step()
    ...     schedule.step()
    ...     print(schedule.get_last_lr())
    [0.5]
    [1.0]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_unless_stepping()
        part = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * part / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go on by one epoch, or to a given one, which may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            self._jump(epoch)
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            values = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            write_value(group, "lr", lr)
        self._last_lr = group_values(self.optimizer, "lr")

    def _jump(self, epoch: float) -> None:
        """Find the cycle in which `epoch` lies; cycle n has T_0 * T_mult^n epochs."""
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n


class CosineWithWarmup(LRScheduler):
    """A line from 0 to the initial rate in `warmup_steps`, then a cosine down to `min_lr`.

    `cycles` counts full cosine waves: 0.5 ends at the bottom. After `total_steps` the rate stays.

    >>> opt = votive.optim.SGD([votive.zeros(1)], lr=1.0)
    >>> schedule = votive.optim.lr_scheduler.CosineWithWarmup(opt, warmup_steps=2, total_steps=6)
    >>> for _ in range(6):
    ...     opt.step()
    ...     schedule.step()
    ...     print(round(schedule.get_last_lr()[0], 3))
    0.5
    1.0
    0.854
    0.5
    0.146
    0.0
    """

    def __init__(
        self,
        optimizer: Optimizer,
        warmup_steps: int,
        total_steps: int,
        min_lr: float = 0.0,
        cycles: float = 0.5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= warmup_steps <= total_steps:
            raise ValueError(f"Expected 0 <= warmup_steps <= total_steps, but got {warmup_steps} and {total_steps}")
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps
        self.min_lr = min_lr
        self.cycles = cycles
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_unless_stepping()
        if self.last_epoch < self.warmup_steps:
            return [base * (self.last_epoch / self.warmup_steps) for base in self.base_lrs]
        length = max(1, self.total_steps - self.warmup_steps)
        done = min(1.0, (self.last_epoch - self.warmup_steps) / length)
        part = 0.5 * (1.0 + math.cos(2 * math.pi * self.cycles * done))
        return [self.min_lr + (base - self.min_lr) * part for base in self.base_lrs]


def get_cosine_schedule_with_warmup(
    optimizer: Optimizer, num_warmup_steps: int, num_training_steps: int, num_cycles: float = 0.5, last_epoch: int = -1
) -> CosineWithWarmup:
    """`CosineWithWarmup` under the name and with the arguments that transformers gave it.

    >>> opt = votive.optim.SGD([votive.zeros(1)], lr=1.0)
    >>> schedule = votive.optim.lr_scheduler.get_cosine_schedule_with_warmup(opt, 2, 6)
    >>> schedule.get_last_lr()
    [0.0]
    """
    return CosineWithWarmup(optimizer, num_warmup_steps, num_training_steps, 0.0, num_cycles, last_epoch)
