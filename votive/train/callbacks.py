"""Code of the user's that runs along with training. Knows the trainer's public face only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .trainer import Trainer


class Callback:
    """Override what you need; `state_dict` and `load_state_dict` make it part of checkpoints.

    >>> class Print(votive.train.Callback):
    ...     def on_step(self, trainer):
    ...         print(trainer.step)
    """

    def on_start(self, trainer: Trainer) -> None:
        """Training begins or resumes."""

    def on_step(self, trainer: Trainer) -> None:
        """An optimizer step was made; `trainer.loss` is its loss."""

    def on_eval(self, trainer: Trainer, metrics: dict[str, float]) -> None:
        """An evaluation was made."""

    def on_epoch(self, trainer: Trainer) -> None:
        """An epoch has ended."""

    def on_checkpoint(self, trainer: Trainer, path: Path) -> None:
        """A checkpoint was written."""

    def on_end(self, trainer: Trainer) -> None:
        """Training is over."""


class OnStep(Callback):
    """A plain function of the trainer, called after each step.

    >>> steps = []
    >>> callback = votive.train.callbacks.OnStep(lambda trainer: steps.append(trainer.step))
    """

    def __init__(self, fn: Callable[[Trainer], object]) -> None:
        self.fn = fn

    def on_step(self, trainer: Trainer) -> None:
        self.fn(trainer)


class EarlyStopping(Callback):
    """Stop when a metric of the evaluation has not improved `patience` times in a row.

    >>> stop = votive.train.EarlyStopping("accuracy", patience=3, mode="max")
    >>> stop.state_dict()
    {'best': None, 'waited': 0}
    """

    def __init__(self, metric: str = "loss", patience: int = 3, mode: str = "min", min_delta: float = 0.0) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"EarlyStopping: mode must be 'min' or 'max', got {mode!r}.")
        self.metric = metric
        self.patience = patience
        self.sign = 1 if mode == "min" else -1
        self.min_delta = min_delta
        self.best: float | None = None
        self.waited = 0

    def on_eval(self, trainer: Trainer, metrics: dict[str, float]) -> None:
        value = self.sign * metrics[self.metric]
        if self.best is None or value < self.best - self.min_delta:
            self.best, self.waited = value, 0
            return
        self.waited += 1
        if self.waited >= self.patience:
            trainer.stop()

    def state_dict(self) -> dict[str, Any]:
        """What it remembers."""
        return {"best": self.best, "waited": self.waited}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Remember it again."""
        self.best, self.waited = state_dict["best"], state_dict["waited"]
