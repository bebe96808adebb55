"""Trainer: the training loop, with accumulation, evaluation, checkpoints and exact resume.

Knows models, optimizers, schedulers and data by what they can do, not by class.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import votive
from votive import nn

from ..core.device import device as Device
from .callbacks import Callback, OnStep
from .checkpoints import Checkpoints
from .evaluation import evaluate
from .feed import Feed, size_of
from .history import History
from .interruption import Deferred
from .objective import Objective, autocast_for
from .progress import Display, Pace, Report, display
from .resuming import Resuming
from .steps import PlainStep, WholeStep

if TYPE_CHECKING:
    from .ranks import Ranks


class Trainer(Resuming):
    """Train a model: `Trainer(model, optimizer, loss_fn, data, max_steps=1000).fit()`.

    A batch is `(input, ..., target)`, and its loss `loss_fn(model(input, ...), target)`; where
    that does not fit, `step(model, batch)` returns the loss, or the loss and a dict of values to
    record. A step of the optimizer takes `accumulate` batches and the mean of their losses.

    With a `folder`, `fit` writes checkpoints and, called again in a new process, goes on from the
    last one as if nothing had happened: the losses are those of an uninterrupted run, bit by bit.

    With `checkpoint_frozen=False` checkpoints hold only the parameters that are trained, and buffers: whoever resumes
    has the others, such as the base of adapters.

    With `distributed="data"`, and under `votive launch`, every rank trains on its share of each epoch and gradients are
    averaged; `"sharded"` also spreads parameters and states. `mesh` says which ranks, in a line or, for shards, in a
    grid. `batch_size` is that of each rank; only rank 0 shows progress; history and metrics are those of all ranks.

    With `compile`, steps run as graphs of fused kernels (`votive.compile`); None means on GPUs.

    >>> votive.manual_seed(0) and None
    >>> model = votive.nn.Linear(1, 1)
    >>> x = votive.linspace(0, 1, 8).unsqueeze(1)
    >>> data = votive.data.DataLoader(votive.data.TensorDataset(x, 3 * x + 1), 4, shuffle=True)
    >>> optimizer = votive.optim.SGD(model.parameters(), lr=0.5)
    >>> trainer = votive.train.Trainer(
    ...     model, optimizer, votive.nn.functional.mse_loss, data, epochs=50, progress=False
    ... )
    >>> history = trainer.fit()
    >>> len(history), history["loss"][-1] < 0.01
    (100, True)
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Any,
        loss_fn: Callable[..., Any] | None = None,
        train_data: Iterable[Any] | None = None,
        eval_data: Iterable[Any] | None = None,
        *,
        step: Callable[[Any, Any], Any] | None = None,
        eval_step: Callable[[Any, Any], dict[str, Any]] | None = None,
        scheduler: Any = None,
        schedule: str = "step",
        max_steps: int | None = None,
        epochs: int | None = None,
        accumulate: int = 1,
        amp: votive.dtype | bool | None = None,
        scaler: Any = None,
        clip_grad_norm: float | None = None,
        eval_every: int | None = None,
        metrics: dict[str, Callable[..., Any]] | None = None,
        log_every: int = 10,
        folder: str | os.PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        keep_last: int | None = 2,
        best: str | None = None,
        best_mode: str = "min",
        seed: int | None = None,
        callbacks: Sequence[Callback | Callable[[Any], Any]] = (),
        progress: bool | Display | None = None,
        unit: str = "items",
        device: votive.device | str | None = None,
        allow_nonfinite: bool = False,
        compile: bool | None = None,
        checkpoint_frozen: bool = True,
        distributed: str | bool | None = None,
        mesh: Any = None,
    ) -> None:
        if train_data is None:
            raise ValueError("Trainer: train_data is missing.")
        if max_steps is None and epochs is None:
            raise ValueError("Trainer: say how long to train, with max_steps= or epochs=.")
        counts = {
            "accumulate": accumulate,
            "log_every": log_every,
            "eval_every": eval_every,
            "checkpoint_every": checkpoint_every,
        }
        for name, count in counts.items():
            if count is not None and count < 1:
                raise ValueError(f"Trainer: {name} must be at least 1, got {count}.")
        if schedule not in ("step", "epoch"):
            raise ValueError(f"Trainer: schedule must be 'step' or 'epoch', got {schedule!r}.")
        if best_mode not in ("min", "max"):
            raise ValueError(f"Trainer: best_mode must be 'min' or 'max', got {best_mode!r}.")
        if best is not None and eval_data is None:
            raise ValueError(f"Trainer: best={best!r} needs eval_data.")
        self._ranks = _ranks(distributed, mesh, model)
        if self._ranks is not None:
            if compile:
                raise NotImplementedError("Trainer: steps on several ranks are not compiled yet; leave compile= out.")
            compile = False
            model = self._ranks.spread(model, optimizer)
            train_data = self._ranks.share(train_data, seed)
            progress = progress if self._ranks.rank == 0 else False
        self.model = model
        self.optimizer = optimizer
        self.eval_data = eval_data
        self.scheduler = scheduler
        self.schedule = schedule
        self.max_steps = max_steps
        self.epochs = epochs
        self.accumulate = accumulate
        self.scaler = scaler
        self.clip_grad_norm = clip_grad_norm
        self.eval_every = eval_every
        self.log_every = log_every
        self.checkpoint_every = checkpoint_every
        self.best = best
        self.best_mode = best_mode
        self.seed = seed
        self.callbacks = [c if isinstance(c, Callback) else OnStep(c) for c in callbacks]
        self.unit = unit
        self.allow_nonfinite = allow_nonfinite
        self.checkpoint_frozen = checkpoint_frozen
        self.history = History()
        self.step = 0
        self.epoch = 0
        self.stopped = False
        self.checkpoints = None if folder is None or self._ranks is not None else Checkpoints(folder, keep_last)
        if self._ranks is not None and folder is not None:
            self._ranks.keep(folder, keep_last)
        self._feed = Feed(train_data)
        self._display = display(progress)
        self._pace = Pace()
        self._pending: list[dict[str, Any]] = []
        self._best_value: float | None = None
        self._saved_at: int | None = None
        first = next(iter(model.parameters()), None)
        self.device = Device(device or (first.device if first is not None else "cpu"))
        autocast = autocast_for(amp, self.device.type)
        compiled = self.device.type == "cuda" if compile is None else compile
        self._objective = Objective(loss_fn, step, eval_step, metrics, autocast, compiled)
        # On GPUs the graphs of forward and backward are replayed by the device, one by one.
        whole = compiled and scaler is None and self.device.type == "cpu"
        self._step = WholeStep(self, amp) if whole else PlainStep(self)
        # ReduceLROnPlateau and its kind step on a metric, after evaluations.
        asks = inspect.signature(scheduler.step).parameters if scheduler is not None else {}
        self._scheduler_wants_metric = "metrics" in asks

    # --- the loop -----------------------------------------------------------------------------

    def fit(self, resume: bool | str | os.PathLike[str] = True) -> History:
        """Train to the end and return the history.

        With `resume`, go on from the latest checkpoint in the folder, if there is one, or from
        the checkpoint file named. Ctrl-C and SIGTERM wait for the end of the step and for a
        checkpoint; a second one does not.
        """
        self._begin(resume)
        with Deferred() as interruption:
            try:
                while self._goes_on(interruption):
                    batches = self._feed.take(self.accumulate)
                    if batches:
                        self._train(batches)
                        self._after_step()
                    else:
                        self._end_epoch()
                if interruption.signal is None:
                    self._end()
                else:
                    self.save()
            finally:
                self._display.stop()
                self._feed.close()
            interruption.deliver()
        return self.history

    def _goes_on(self, interruption: Deferred) -> bool:
        if self._ranks is not None:
            # Whoever stops, all do, behind the same step.
            self.stopped, interruption.signal = self._ranks.agree(self.stopped, interruption.signal)
            self._ranks.begin_epoch(self._feed, self.epoch)
        return not self.done and interruption.signal is None

    @property
    def done(self) -> bool:
        """Whether all steps are made, or somebody called `stop`."""
        if self.stopped or (self.max_steps is not None and self.step >= self.max_steps):
            return True
        return self.epochs is not None and self.epoch >= self.epochs

    def stop(self) -> None:
        """End training after this step."""
        self.stopped = True

    @property
    def loss(self) -> float:
        """The loss of the latest step."""
        if self._pending:
            return float(self._pending[-1]["loss"])
        return self.history["loss"][-1] if len(self.history) else math.nan

    def _train(self, batches: list[Any]) -> None:
        """One step of the optimizer on the mean loss of some batches."""
        self.model.train()
        lr = float(self.optimizer.param_groups[0]["lr"])
        total, means, norm = self._step(batches)
        if self._ranks is not None:
            total, means = self._ranks.mean(total, means)
        for batch in batches:
            self._pace.count(size_of(batch, self.unit))
        if self.schedule == "step":
            self._advance_scheduler()
        self.step += 1
        # Losses stay where they are until they are shown or saved: reading one waits for it.
        row = {"step": self.step, "epoch": self.epoch, "loss": total, "lr": lr, "grad_norm": norm}
        self._pending.append({**row, **means})

    def _advance_scheduler(self) -> None:
        if self.scheduler is not None and not self._scheduler_wants_metric:
            self.scheduler.step()

    def _after_step(self) -> None:
        if self.step % self.log_every == 0:
            self._show()
        if self.eval_every is not None and self.step % self.eval_every == 0:
            self.evaluate()
        self._tell("on_step")
        if self.checkpoint_every is not None and self.step % self.checkpoint_every == 0:
            self.save()

    def _end_epoch(self) -> None:
        self.epoch += 1
        if self.schedule == "epoch":
            self._advance_scheduler()
        if self.eval_every is None:
            self.evaluate()
        self._tell("on_epoch")
        if self.checkpoint_every is None:
            self.save()

    def _end(self) -> None:
        self._flush()
        if not self.history.evals or self.history.evals[-1]["step"] != self.step:
            self.evaluate()
        if self._saved_at != self.step:
            self.save()
        if self._folder is not None:
            self.history.plot(self._folder / "curve.svg")
        self._display.note(f"step {self.step}  loss {self.loss:.4g}  {self.history.sparkline()}")
        self._tell("on_end")

    # --- evaluation ---------------------------------------------------------------------------

    def evaluate(self) -> dict[str, float]:
        """Measure loss and metrics on `eval_data`, record them, and keep the best checkpoint."""
        if self.eval_data is None:
            return {}
        self._flush()
        measured = evaluate if self._ranks is None else self._ranks.evaluate
        found = measured(self.model, self.eval_data, self._objective.measure, self.device)
        self.history.add_eval(self.step, found)
        self._display.note(f"step {self.step}  eval  " + "  ".join(f"{k} {v:.4g}" for k, v in found.items()))
        if self.scheduler is not None and self._scheduler_wants_metric:
            self.scheduler.step(found[self.best or "loss"])
        self._tell("on_eval", found)
        if self.best is not None:
            value = found[self.best] if self.best_mode == "min" else -found[self.best]
            if self._best_value is None or value < self._best_value:
                self._best_value = value
                if self.checkpoints is not None:
                    self.checkpoints.write_best(self.state_dict())
                elif self._ranks is not None and self._ranks.folders is not None:
                    self._ranks.write(self, best=True)
        return found

    # --- showing ------------------------------------------------------------------------------

    @property
    def total_steps(self) -> int | None:
        """How many steps there will be, if that is known."""
        totals = [] if self.max_steps is None else [self.max_steps]
        if self.epochs is not None:
            try:
                batches = len(self._feed.data)
            except TypeError:
                return None if self.max_steps is None else self.max_steps
            totals.append(self.epochs * math.ceil(batches / self.accumulate))
        return min(totals)

    def _show(self) -> None:
        self._flush()
        self._pace.lap()
        total, each = self.total_steps, self._pace.step_seconds
        eta = None if total is None or each is None else each * max(0, total - self.step)
        self._display.update(
            Report(
                self.step,
                total,
                self.epoch,
                self.history["loss"][-1],
                self.history["lr"][-1],
                self._pace.rate,
                self.unit,
                eta,
                self._memory(),
                self.history.beside(),
            )
        )

    def _memory(self) -> int | None:
        space = import_module(f"..{self.device.type}", __package__)
        return int(space.memory_allocated()) if hasattr(space, "memory_allocated") else None

    def _flush(self) -> None:
        """Move what was measured into the history, as plain numbers."""
        for row in self._pending:
            numbers: dict[str, Any] = {k: v if v is None or isinstance(v, int) else float(v) for k, v in row.items()}
            self.history.add(**numbers)
            if not math.isfinite(numbers["loss"]) and not self.allow_nonfinite:
                self._pending.clear()
                raise FloatingPointError(
                    f"Trainer: the loss is {numbers['loss']} at step {numbers['step']}; lower the "
                    "learning rate or clip gradients, or pass allow_nonfinite=True to go on."
                )
        self._pending.clear()

    def _tell(self, event: str, *args: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(self, *args)


def _ranks(distributed: str | bool | None, mesh: Any, model: nn.Module) -> Ranks | None:
    """The other ranks, None in one process, which loads nothing of them."""
    if distributed is None and mesh is None and "votive.distributed" not in sys.modules:
        return None
    from .ranks import ranks_for

    return ranks_for(distributed, mesh, model)
