"""Trainer: the training loop, with accumulation, evaluation, checkpoints and exact resume.

Knows models, optimizers, schedulers and data by what they can do, not by class.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import votive
from votive import nn

from ..core.device import device as Device
from ..data.randomness import get_random_state, seed_everything, set_random_state
from ..serialization import load
from .callbacks import Callback, OnStep
from .checkpoints import Checkpoints
from .evaluation import evaluate
from .feed import Feed, size_of
from .history import History
from .interruption import Deferred
from .objective import Objective, autocast_for
from .progress import Display, Pace, Report, display
from .steps import PlainStep, WholeStep

_VERSION = 1


class Trainer:
    """Train a model: `Trainer(model, optimizer, loss_fn, data, max_steps=1000).fit()`.

    A batch is `(input, ..., target)`, and its loss `loss_fn(model(input, ...), target)`; where
    that does not fit, `step(model, batch)` returns the loss, or the loss and a dict of values to
    record. A step of the optimizer takes `accumulate` batches and the mean of their losses.

    With a `folder`, `fit` writes checkpoints and, called again in a new process, goes on from the
    last one as if nothing had happened: the losses are those of an uninterrupted run, bit by bit.

    With `checkpoint_frozen=False` checkpoints hold only the parameters that are trained, and buffers: whoever resumes
    has the others, such as the base of adapters.

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
        self.checkpoints = None if folder is None else Checkpoints(folder, keep_last)
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
                while not self.done and interruption.signal is None:
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

    def _begin(self, resume: Any) -> None:
        state = None
        if isinstance(resume, (str, os.PathLike)):
            state = load(resume)
        elif self.checkpoints is not None and self.step == 0:
            found = self.checkpoints.steps()
            if found and not resume:
                raise FileExistsError(
                    f"Trainer: {self.checkpoints.folder} holds checkpoints up to step "
                    f"{found[-1]}; resume from them, or use another folder."
                )
            state = self.checkpoints.latest()
        if state is not None:
            self.load_state_dict(state)
        elif self.step == 0 and self.seed is not None:
            seed_everything(self.seed)
        self._display.start(self.total_steps, self.step)
        if state is not None:
            self._display.note(f"resumed at step {self.step}")
        self._pace = Pace()
        self._tell("on_start")

    def _train(self, batches: list[Any]) -> None:
        """One step of the optimizer on the mean loss of some batches."""
        self.model.train()
        lr = float(self.optimizer.param_groups[0]["lr"])
        total, means, norm = self._step(batches)
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
        if self.checkpoints is not None:
            self.history.plot(self.checkpoints.folder / "curve.svg")
        self._display.note(f"step {self.step}  loss {self.loss:.4g}  {self.history.sparkline()}")
        self._tell("on_end")

    # --- evaluation ---------------------------------------------------------------------------

    def evaluate(self) -> dict[str, float]:
        """Measure loss and metrics on `eval_data`, record them, and keep the best checkpoint."""
        if self.eval_data is None:
            return {}
        self._flush()
        found = evaluate(self.model, self.eval_data, self._objective.measure, self.device)
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
        return found

    # --- stopping and resuming ----------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides how training goes on."""
        self._flush()
        return {
            "version": _VERSION,
            "step": self.step,
            "epoch": self.epoch,
            "model": self._model_state(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "scaler": None if self.scaler is None else self.scaler.state_dict(),
            "callbacks": [c.state_dict() if hasattr(c, "state_dict") else None for c in self.callbacks],
            "history": self.history.state_dict(),
            "best": self._best_value,
            "data": self._feed.state_dict(),
            "random": get_random_state(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go back to where `state_dict` was taken."""
        if state_dict.get("version") != _VERSION:
            raise ValueError("Trainer: this is not a checkpoint that this version can resume.")
        self._load_model(state_dict["model"])
        self.optimizer.load_state_dict(state_dict["optimizer"])
        for part, state in [
            (self.scheduler, state_dict["scheduler"]),
            (self.scaler, state_dict["scaler"]),
            *zip(self.callbacks, state_dict["callbacks"]),
        ]:
            if part is not None and state is not None:
                part.load_state_dict(state)
        self.history.load_state_dict(state_dict["history"])
        self.step, self.epoch = state_dict["step"], state_dict["epoch"]
        self._best_value = state_dict["best"]
        self._pending.clear()
        self._saved_at = self.step
        self._feed.load_state_dict(state_dict["data"])
        set_random_state(state_dict["random"])

    def load_best(self) -> int:
        """Give the model the weights that measured best; returns after which step that was."""
        if self.checkpoints is None or not self.checkpoints.best_path.is_file():
            raise FileNotFoundError("Trainer: there is no best checkpoint; give folder= and best=, and train.")
        state = load(self.checkpoints.best_path)
        self._load_model(state["model"])
        return int(state["step"])

    def _model_state(self) -> dict[str, Any]:
        found: dict[str, Any] = self.model.state_dict()
        if self.checkpoint_frozen:
            return found
        frozen = {n for n, p in self.model.named_parameters(remove_duplicate=False) if not p.requires_grad}
        return {n: v for n, v in found.items() if n not in frozen}

    def _load_model(self, state: dict[str, Any]) -> None:
        if not self.checkpoint_frozen:
            wanted = set(self._model_state())
            if wanted != set(state):
                some = ", ".join(sorted(wanted ^ set(state))[:3])
                raise ValueError(f"Trainer: the checkpoint is of other trained parameters: {some}.")
        self.model.load_state_dict(state, strict=self.checkpoint_frozen)

    def save(self) -> Path | None:
        """Write a checkpoint and the history into the folder, if there is one."""
        if self.checkpoints is None:
            return None
        path = self.checkpoints.write(self.step, self.state_dict())
        self._saved_at = self.step
        self.history.save(self.checkpoints.folder / "history.json")
        self._tell("on_checkpoint", path)
        return path

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
