"""One step of a trainer, as it is or compiled: forward, backward, clipping, the optimizer. Knows no schedule."""

from __future__ import annotations

from typing import Any

from ..nn.utils import clip_grad_norm_
from .feed import moved
from .objective import run_as_graph
from .programs import gradients, update, whole_step

Found = tuple[Any, dict[str, Any], Any]  # the mean loss, values beside it, the norm of the gradients


class PlainStep:
    """Steps as the words of `Trainer` say. What belongs to the trainer is read from it each time."""

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer

    def __call__(self, batches: list[Any]) -> Found:
        trainer = self.trainer
        optimizer, scaler = trainer.optimizer, trainer.scaler
        optimizer.zero_grad()
        total: Any = None
        means: dict[str, Any] = {}
        for i, batch in enumerate(batches):
            if trainer._ranks is not None:
                trainer._ranks.sends(trainer.model, i == len(batches) - 1)
            loss, values = self._gradients(moved(batch, trainer.device), len(batches))
            total = loss if total is None else total + loss
            for name, value in values.items():
                means[name] = means.get(name, 0) + value / len(batches)
        if scaler is not None:
            norm = self._clip(scaler)
            scaler.step(optimizer)
            scaler.update()
            return total, means, norm
        return total, means, self._update(optimizer, trainer.clip_grad_norm)

    def _gradients(self, batch: Any, parts: int) -> tuple[Any, dict[str, Any]]:
        trainer = self.trainer
        loss, values = trainer._objective.loss(trainer.model, batch)
        loss = loss / parts if parts > 1 else loss
        (loss if trainer.scaler is None else trainer.scaler.scale(loss)).backward()
        return loss.detach(), values

    def _clip(self, scaler: Any) -> Any:
        optimizer, clip = self.trainer.optimizer, self.trainer.clip_grad_norm
        if clip is None:
            return None
        scaler.unscale_(optimizer)
        return clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], clip)

    def _update(self, optimizer: Any, clip: float | None) -> Any:
        return update(optimizer, clip)


class WholeStep(PlainStep):
    """The same as one graph; of several batches to a step, each is one, as it would grow with their number."""

    def __init__(self, trainer: Any, amp: Any) -> None:
        super().__init__(trainer)
        self.amp = (trainer.device.type, None if amp is True else amp) if amp else None
        self.program, self.gradients = run_as_graph(whole_step), run_as_graph(gradients)
        self._update = run_as_graph(update)  # type: ignore[method-assign]

    def __call__(self, batches: list[Any]) -> Found:
        if len(batches) > 1:
            return super().__call__(batches)
        trainer, objective = self.trainer, self.trainer._objective
        (batch,) = batches
        objective.check(batch)
        found: Found = self.program(
            trainer.model,
            trainer.optimizer,
            objective.loss_fn,
            objective.plain_step,
            self.amp,
            trainer.clip_grad_norm,
            moved(batch, trainer.device),
        )
        return found

    def _gradients(self, batch: Any, parts: int) -> tuple[Any, dict[str, Any]]:
        objective = self.trainer._objective
        objective.check(batch)
        found: tuple[Any, dict[str, Any]] = self.gradients(
            self.trainer.model, objective.loss_fn, objective.plain_step, self.amp, parts, batch
        )
        return found
