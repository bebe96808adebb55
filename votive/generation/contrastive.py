"""Contrastive search: of the likeliest tokens the one whose state is least like those before it.

Su et al. 2022, arXiv:2202.06417, equation 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import votive
from votive import nn
from votive.nn import functional as F

from ..tensor import Tensor
from .loop import History, Step
from .preparing import Task
from .stepping import StepOutput, keeps_states


def contrastive(task: Task) -> Iterator[Step]:
    """Steps as `search` gives them."""
    stepper = task.stepper
    fixed = isinstance(stepper.cache, nn.SlidingWindowCache) or keeps_states(stepper.model)
    if fixed and task.config.low_memory:
        raise ValueError(
            "generate: low_memory takes tokens back, which sliding caches and layers with a state cannot; leave it out."
        )
    return _steps(task)


def _steps(task: Task) -> Iterator[Step]:
    history = History(task)
    ahead: _Ahead | None = None
    try:
        while not history.done:
            with votive.no_grad():
                if ahead is None or task.stepper.outgrown(history.length):
                    ahead = _Ahead.begun(task, history)
                step = ahead.step(task, history)
            yield step
    finally:
        history.close()


class _Ahead:
    """What is known behind the newest token: its logits, and the states of all positions."""

    def __init__(self, fed: StepOutput, states: Tensor, mask: Tensor | None) -> None:
        self.fed, self.states, self.mask = fed, states, mask

    @classmethod
    def begun(cls, task: Task, history: History) -> _Ahead:
        """After the text so far, with all of its states."""
        stepper = task.stepper
        if stepper.cache is not None and stepper.seen():
            # States of what a cache has seen are not kept with it.
            stepper.cache.reset()
        fed = stepper.feed(history.ids)
        return cls(fed, fed.hidden_states[-1], None if stepper.mask is None else stepper.mask)

    def step(self, task: Task, history: History) -> Step:
        """Choose a token; afterwards this stands behind it."""
        config = task.config
        alpha, count = float(config.penalty_alpha or 0.0), int(config.top_k or 1)
        logits = self.fed.logits[:, -1]
        scores = task.processors(history.ids, logits)
        odds, tokens = votive.topk(F.softmax(scores, -1), min(count, scores.shape[-1]))
        tried = self._tried_in_turn if config.low_memory else self._tried
        fed = tried(task, tokens)
        rows, k = tokens.shape
        states = fed.hidden_states[-1][:, -1].view(rows, k, -1)
        chosen = self._best(odds, states, alpha)  # (rows,)
        at = votive.arange(rows, device=tokens.device)
        picked = tokens[at, chosen]
        before = self.fed
        self._go_on(task, fed, at * k + chosen, picked)
        self.states = votive.cat([self.states, states[at, chosen].unsqueeze(1)], 1)
        found, texts = history.add(picked, scores)
        return Step(found, logits, scores, list(history.reasons), texts, before)

    def _best(self, odds: Tensor, states: Tensor, alpha: float) -> Tensor:
        """Of each row's candidates the one with the best of (1 - alpha) p - alpha (likeness)."""
        seen = self.states / self.states.norm(dim=2, keepdim=True)
        new = states / states.norm(dim=2, keepdim=True)
        alike = votive.matmul(new, seen.transpose(1, 2))  # (rows, candidates, positions)
        if self.mask is not None:
            padding = ~self.mask[:, : alike.shape[2]].bool()
            alike = alike.masked_fill(padding[:, None, :], -votive.inf)
        return ((1.0 - alpha) * odds - alpha * alike.amax(-1)).argmax(-1)

    def _tried(self, task: Task, tokens: Tensor) -> StepOutput:
        """Run all candidates side by side."""
        rows, k = tokens.shape
        task.stepper.expand(votive.arange(rows, device=tokens.device).repeat_interleave(k, 0))
        return task.stepper.advance(tokens.reshape(-1, 1))

    def _tried_in_turn(self, task: Task, tokens: Tensor) -> StepOutput:
        """Run one candidate after the other; the cache stays as it was."""
        stepper, parts = task.stepper, []
        start = stepper.seen()
        for k in range(tokens.shape[1]):
            parts.append(stepper.advance(tokens[:, k : k + 1]))
            stepper.cache.crop(start)
        return _side_by_side(parts)

    def _go_on(self, task: Task, fed: StepOutput, index: Tensor, picked: Tensor) -> None:
        """Keep what belongs to the chosen candidates."""
        if task.config.low_memory:
            task.stepper.advance(picked.unsqueeze(1))
        else:
            task.stepper.expand(index)

        def kept(values: Any) -> Any:
            return None if values is None else tuple(v.index_select(0, index) for v in values)

        self.fed = StepOutput(fed.logits.index_select(0, index), kept(fed.attentions), kept(fed.hidden_states))


def _side_by_side(parts: list[StepOutput]) -> StepOutput:
    """Candidates that ran in turn, as if they were rows: those of a text are neighbours."""

    def stacked(values: list[Tensor]) -> Tensor:
        return votive.stack(values, 1).flatten(0, 1)

    def layers(values: list[Any]) -> Any:
        return None if values[0] is None else tuple(stacked(list(layer)) for layer in zip(*values, strict=True))

    return StepOutput(
        stacked([p.logits for p in parts]),
        layers([p.attentions for p in parts]),
        layers([p.hidden_states for p in parts]),
    )
