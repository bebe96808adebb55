"""From a batch to a loss, and to metrics: what the user's functions mean to the trainer.

Knows models by what they can do; knows no optimizer.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import votive
from votive import nn

from .programs import loss_and_output

Values = dict[str, Any]


class Objective:
    """Either `loss_fn(model(input, ...), target)`, or whatever `step(model, batch)` computes.

    >>> from votive.train.objective import Objective
    >>> objective = Objective(loss_fn=votive.nn.functional.l1_loss)
    >>> objective.loss(votive.nn.Identity(), (votive.zeros(2), votive.ones(2)))
    (tensor(1.), {})
    """

    def __init__(
        self,
        loss_fn: Callable[..., Any] | None = None,
        step: Callable[[Any, Any], Any] | None = None,
        eval_step: Callable[[Any, Any], Values] | None = None,
        metrics: dict[str, Callable[..., Any]] | None = None,
        autocast: Callable[[], AbstractContextManager[Any]] = nullcontext,
        compiled: bool = False,
    ) -> None:
        if (loss_fn is None) == (step is None):
            raise ValueError("Trainer: give either loss_fn or step=.")
        if metrics and step is not None:
            raise ValueError("Trainer: with step=, evaluate with eval_step= instead of metrics=.")
        self.loss_fn, self.plain_step = loss_fn, step
        self.step = run_as_graph(step) if compiled and step is not None else step
        self._program = run_as_graph(loss_and_output) if compiled else loss_and_output
        self.eval_step = eval_step
        self.metrics = dict(metrics or {})
        self.autocast = autocast

    def loss(self, model: nn.Module, batch: Any) -> tuple[Any, Values]:
        """The loss of a batch, and values to record beside it."""
        with self.autocast():
            if self.step is not None:
                result = self.step(model, batch)
                return result if isinstance(result, tuple) else (result, {})
            loss, _, _ = self._forward(model, batch)
            return loss, {}

    def measure(self, model: nn.Module, batch: Any) -> Values:
        """What an evaluation averages."""
        with self.autocast():
            if self.eval_step is not None:
                return self.eval_step(model, batch)
            if self.step is not None:
                loss, values = self.loss(model, batch)
                return {"loss": loss, **values}
            loss, output, target = self._forward(model, batch)
            found = {name: fn(output, target) for name, fn in self.metrics.items()}
            return {"loss": loss, **found}

    def check(self, batch: Any) -> None:
        """Refuse a batch that is not what `loss_fn` needs."""
        if self.loss_fn is not None and (not isinstance(batch, (list, tuple)) or len(batch) < 2):
            raise TypeError(
                "Trainer: loss_fn needs batches of (input, ..., target), got "
                f"{type(batch).__name__}; use step= for others."
            )

    def _forward(self, model: nn.Module, batch: Any) -> tuple[Any, Any, Any]:
        self.check(batch)
        assert self.loss_fn is not None
        loss, output = self._program(model, self.loss_fn, *batch)
        return loss, output, batch[-1]


def run_as_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function run as a graph, from the first call on: training that is resumed rounds as if it had gone on."""
    from ..compiler.api import Compiled, Options

    return Compiled(fn, Options(first=True))


def autocast_for(amp: votive.dtype | bool | None, device_type: str) -> Callable[[], AbstractContextManager[Any]]:
    """What `amp=` asks for: False or None for nothing, True for the default type, or a dtype."""
    if not amp:
        return nullcontext
    from ..amp import autocast

    dtype = None if amp is True else amp
    return lambda: autocast(device_type, dtype=dtype)
