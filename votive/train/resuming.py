"""Where a trainer stops and goes on: what is in a checkpoint, and where training begins. Knows no step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from votive import nn

from ..data.randomness import get_random_state, seed_everything, set_random_state
from ..serialization import load
from .checkpoints import Checkpoints
from .feed import Feed
from .history import History
from .progress import Display, Pace

if TYPE_CHECKING:
    from .ranks import Ranks

_VERSION = 1


class Resuming:
    """The part of a trainer that saves and resumes it."""

    model: nn.Module
    optimizer: Any
    scheduler: Any
    scaler: Any
    seed: int | None
    checkpoint_frozen: bool
    callbacks: Sequence[Any]
    history: History
    step: int
    epoch: int
    checkpoints: Checkpoints | None
    _ranks: Ranks | None
    _feed: Feed
    _display: Display
    _pace: Pace
    _pending: list[dict[str, Any]]
    _best_value: float | None
    _saved_at: int | None

    def _flush(self) -> None:
        raise NotImplementedError

    def _tell(self, event: str, *args: Any) -> None:
        raise NotImplementedError

    @property
    def total_steps(self) -> int | None:
        """How many steps there will be, if that is known."""
        raise NotImplementedError

    def _begin(self, resume: Any) -> None:
        if self._ranks is not None:
            self._begin_ranks(self._ranks, resume)
            return
        state = None
        if isinstance(resume, (str, os.PathLike)):
            state = load(resume)
        elif self.checkpoints is not None and self.step == 0:
            if any(self.checkpoints.folder.glob("step-*/index.json")):
                raise FileExistsError(
                    f"Trainer: {self.checkpoints.folder} holds checkpoints of several ranks; go on with "
                    "distributed='data' or 'sharded', in one process too, or use another folder."
                )
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
        self._start(state is not None)

    def _start(self, resumed: bool) -> None:
        self._display.start(self.total_steps, self.step)
        if resumed:
            self._display.note(f"resumed at step {self.step}")
        self._pace = Pace()
        self._tell("on_start")

    def _begin_ranks(self, ranks: Ranks, resume: Any) -> None:
        path = Path(resume) if isinstance(resume, (str, os.PathLike)) else ranks.latest() if self.step == 0 else None
        if path is not None and not resume:
            raise FileExistsError(f"Trainer: {path} is there; resume from it, or use another folder.")
        if path is not None:
            ranks.resume(self, path)
        elif self.step == 0 and self.seed is not None:
            seed_everything(self.seed + ranks.rank)  # ranks draw numbers of their own
        self._start(path is not None)

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides how training goes on."""
        if self._ranks is not None:
            raise NotImplementedError("Trainer.state_dict: on several ranks, use save() and a folder.")
        return {
            **self._rest_of_state(),
            "model": self._model_state(),
            "optimizer": self.optimizer.state_dict(),
            "data": self._feed.state_dict(),
            "random": get_random_state(),
        }

    def _rest_of_state(self) -> dict[str, Any]:
        """What is the same on all ranks, but for weights and the optimizer."""
        self._flush()
        return {
            "version": _VERSION,
            "step": self.step,
            "epoch": self.epoch,
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "scaler": None if self.scaler is None else self.scaler.state_dict(),
            "callbacks": [c.state_dict() if hasattr(c, "state_dict") else None for c in self.callbacks],
            "history": self.history.state_dict(),
            "best": self._best_value,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go back to where `state_dict` was taken."""
        if state_dict.get("version") != _VERSION:
            raise ValueError("Trainer: this is not a checkpoint that this version can resume.")
        self._load_model(state_dict["model"])
        self.optimizer.load_state_dict(state_dict["optimizer"])
        self._take_rest(state_dict)
        self._feed.load_state_dict(state_dict["data"])
        set_random_state(state_dict["random"])

    def _take_rest(self, state_dict: dict[str, Any]) -> None:
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

    def load_best(self) -> int:
        """Give the model the weights that measured best; returns after which step that was."""
        if self._ranks is not None:
            return self._ranks.load_best(self)
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
        if self._ranks is not None and self._ranks.folders is not None:
            path = self._ranks.write(self)
        elif self.checkpoints is not None:
            path = self.checkpoints.write(self.step, self.state_dict())
        else:
            return None
        self._saved_at = self.step
        if self._folder is not None:
            self.history.save(self._folder / "history.json")
        self._tell("on_checkpoint", path)
        return path

    @property
    def _folder(self) -> Path | None:
        """Where this process writes what there is once, if it does."""
        if self._ranks is not None:
            folders = self._ranks.folders
            return None if folders is None or self._ranks.rank else folders.folder
        return None if self.checkpoints is None else self.checkpoints.folder
