"""Averages of a model's weights over training: SWA and EMA. Knows modules, no update rule."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

from ..autograd import no_grad
from ..core import dtype as dt
from ..core.device import DeviceLike
from ..nn.module import Module
from ..ops.registry import F
from ..tensor import Tensor
from .lr_scheduler.base import LRScheduler, per_group
from .optimizer import Optimizer
from .options import number

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """An exponential moving average: decay * average + (1 - decay) * value.

    >>> ema = votive.optim.swa_utils.get_ema_avg_fn(0.5)
    >>> ema(votive.tensor(0.0), votive.tensor(1.0), 3)
    tensor(0.5000)
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Tensor | int) -> Any:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[..., Any]:
    """The mean of all values so far.

    >>> mean = votive.optim.swa_utils.get_swa_avg_fn()
    >>> mean(votive.tensor(0.0), votive.tensor(1.0), 3)
    tensor(0.2500)
    """

    @no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Tensor | int) -> Any:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """`get_ema_avg_fn` for lists, in place and in one call.

    >>> averages, values = [votive.tensor(0.0)], [votive.tensor(1.0)]
    >>> votive.optim.swa_utils.get_ema_multi_avg_fn(0.5)(averages, values, 3)
    >>> averages
    [tensor(0.5000)]
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_params: Sequence[Tensor], current_params: Sequence[Tensor], num_averaged: Tensor | int) -> None:
        if ema_params[0].dtype.is_inexact:
            F._average_step(list(ema_params), list(current_params), 1 - decay)
            return
        for average, value in zip(ema_params, current_params, strict=True):
            average.copy_(average * decay + value * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., Any]:
    """`get_swa_avg_fn` for lists, in place and in one call.

    >>> averages, values = [votive.tensor(0.0)], [votive.tensor(1.0)]
    >>> votive.optim.swa_utils.get_swa_multi_avg_fn()(averages, values, 3)
    >>> averages
    [tensor(0.2500)]
    """

    @no_grad()
    def swa_update(
        averaged_params: Sequence[Tensor], current_params: Sequence[Tensor], num_averaged: Tensor | int
    ) -> None:
        weight = 1 / (number(num_averaged) + 1)
        if averaged_params[0].dtype.is_inexact:
            F._average_step(list(averaged_params), list(current_params), weight)
            return
        for average, value in zip(averaged_params, current_params, strict=True):
            average.copy_(average + (value - average) * weight)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages over the updates; the mean by default.

    `avg_fn(average, value, n)` or `multi_avg_fn(averages, values, n)` gives another average; with
    `use_buffers` buffers are averaged too, else they are copied.

    >>> model = votive.nn.Linear(1, 1, bias=False)
    >>> ema = votive.optim.swa_utils.AveragedModel(
    ...     model, multi_avg_fn=votive.optim.swa_utils.get_ema_multi_avg_fn(0.5)
    ... )
    >>> for value in [0.0, 1.0]:
    ...     _ = votive.nn.init.constant_(model.weight, value)
    ...     ema.update_parameters(model)
    >>> ema.module.weight.item()
    0.5
    """

    n_averaged: Any

    def __init__(
        self,
        model: Module,
        device: DeviceLike | None = None,
        avg_fn: Callable[..., Any] | None = None,
        multi_avg_fn: Callable[..., Any] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", F.tensor(0, dtype=dt.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the present parameters of `model` into the average."""
        averages = [t.detach() for t in _averaged(self.module, self.use_buffers)]
        values = [t.detach() for t in _averaged(model, self.use_buffers)]
        values = [v.to(a.device) for v, a in zip(values, averages, strict=True)]
        if int(self.n_averaged) == 0:
            for average, value in zip(averages, values, strict=True):
                F.copy_(average, value)
        elif self.avg_fn is not None:
            for average, value in zip(averages, values, strict=True):
                F.copy_(average, self.avg_fn(average, value, self.n_averaged))
        else:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            for some_averages, some_values in _by_kind(averages, values):
                update(some_averages, some_values, self.n_averaged)
        if not self.use_buffers:
            for average, value in zip(self.module.buffers(), model.buffers(), strict=True):
                F.copy_(average.detach(), value.detach())
        self.n_averaged += 1


def _averaged(model: Module, use_buffers: bool) -> Iterable[Tensor]:
    if use_buffers:
        return itertools.chain(model.parameters(), model.buffers())
    return model.parameters()


def _by_kind(averages: list[Tensor], values: list[Tensor]) -> Iterable[tuple[Any, Any]]:
    """The pairs in lists of one device and dtype."""
    lists: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
    for average, value in zip(averages, values, strict=True):
        pair = lists.setdefault((average.device, average.dtype), ([], []))
        pair[0].append(average)
        pair[1].append(value)
    return lists.values()


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: DeviceLike | None = None) -> None:
    """Compute the running statistics of all batch norms anew, as means over the batches of loader.

    >>> model = votive.nn.BatchNorm1d(1)
    >>> votive.optim.swa_utils.update_bn([votive.tensor([[1.0], [3.0]])], model)
    >>> model.running_mean
    tensor([2.])
    """
    from ..nn.layers.batchnorm import _BatchNorm

    momenta = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    for norm in momenta:
        norm.reset_running_stats()
        norm.momentum = None  # which means: the mean over all batches
    for batch in loader:
        x = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(x if device is None else x.to(device))
    for norm, momentum in momenta.items():
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneal to `swa_lr` in `anneal_epochs` and stay there.

    >>> opt = votive.optim.SGD([votive.zeros(1)], lr=1.0)
    >>> schedule = votive.optim.swa_utils.SWALR(
    ...     opt, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear"
    ... )
    >>> for _ in range(2):
    ...     opt.step()
    ...     schedule.step()
    ...     print(schedule.get_last_lr())
    [0.75]
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = per_group("swa_lr", optimizer, swa_lr)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t: float) -> float:
        """How far the rate has come at the part t of the way."""
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[Any]:
        self._warn_unless_stepping()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        length = max(1, self.anneal_epochs)
        before = self.anneal_func(max(0, min(1, (step - 1) / length)))
        now = self.anneal_func(max(0, min(1, step / length)))
        out = []
        for group in self.optimizer.param_groups:
            # Where annealing began, computed from the present rate.
            goal = group["swa_lr"]
            start = goal if before == 1 else (group["lr"] - before * goal) / (1 - before)
            out.append(goal * now + start * (1 - now))
        return out
