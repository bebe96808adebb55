"""The plain search: a token for every row, again and again. Greedy, or drawn.

It is a generator of steps, so that `generate` can collect and `stream` can pass on. Nothing is
computed, and no mode is switched, while it waits.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import votive

from ..tensor import Tensor
from .drawing import best, drawn
from .preparing import Task
from .stepping import StepOutput


@dataclass(frozen=True)
class Step:
    """One more token for every row."""

    tokens: list[int]
    logits: Any  # (batch, vocabulary), as the model gave them
    scores: Any  # the same, or what is searched instead, processed
    reasons: list[str | None]  # why a row has ended with this token, or before
    texts: list[str] | None = None  # what can be shown of each row's text by now
    fed: StepOutput | None = None  # attention weights and hidden states


class History:
    """All ids so far, in memory that is taken once, and which rows still run.

    Tokens are written there when somebody reads them: a view of each length would cost more than
    the rest of a step, and most searches look at the newest token only.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        rows, self.length = task.ids.shape
        self._memory = task.ids.new_zeros((rows, task.max_length))
        self._memory[:, : self.length] = task.ids
        self._late: list[Any] = []  # tokens not yet written, (rows,) each
        self.last: Any = None  # the newest of them
        self.reasons: list[str | None] = [None] * rows

    @property
    def ids(self) -> Tensor:
        """(batch, positions)."""
        return self.up_to(self.length)

    @property
    def newest(self) -> Any:
        """The last token of each row, (batch, 1); None before the first."""
        return None if self.last is None else self.last.unsqueeze(1)

    def up_to(self, length: int) -> Tensor:
        """The first ids, with what was noted behind them."""
        if self._late:
            start = self.length - len(self._late)
            self._memory[:, start : self.length] = votive.stack(self._late, 1)
            self._late.clear()
        return self._memory[:, :length]

    def note(self, position: int, token: int | Tensor) -> None:
        """Write a token, or one for each row, behind the ids, for a run that tries it."""
        self._memory[:, position] = token

    def push(self, tokens: Tensor) -> None:
        """Append a token (rows,) to each row, whatever it is."""
        self.last = tokens.to(self._memory.dtype)
        self._late.append(self.last)
        self.length += 1

    def reorder(self, index: Tensor) -> None:
        """Let the rows be those at `index`."""
        self.ids.copy_(self.ids.index_select(0, index))

    @property
    def done(self) -> bool:
        """Whether all rows have ended."""
        return all(r is not None for r in self.reasons)

    def add(self, tokens: Tensor, scores: Tensor) -> tuple[list[int], list[str] | None]:
        """Append a token to each row that runs, padding to the others; gives tokens and texts."""
        task = self.task
        chosen: list[int] = tokens.tolist()
        running = [r is None for r in self.reasons]
        if not all(running):
            pad = task.pad
            assert pad is not None, "rows end at different lengths only where padding is known"
            chosen = [t if on else pad for t, on in zip(chosen, running, strict=True)]
            tokens = votive.tensor(chosen, dtype=tokens.dtype, device=tokens.device)
        self.push(tokens)
        if task.limit is not None and self.length == task.limit + 1:
            warnings.warn(
                f"generate: the text has become longer than the {task.limit} positions that the "
                "model was made for; its quality may drop.",
                stacklevel=5,
            )
        texts = self._read(chosen, running)
        found = task.ending.reasons(self, scores, chosen, running)
        for row, on in enumerate(running):
            if on and found[row] is not None:
                self.reasons[row] = found[row]
                if texts is not None:
                    assert task.ending.readers is not None
                    texts[row] += task.ending.readers[row].finish()
        return chosen, texts

    def _read(self, chosen: list[int], running: list[bool]) -> list[str] | None:
        readers = self.task.ending.readers
        if readers is None:
            return None
        return [r.add(t) if on else "" for r, t, on in zip(readers, chosen, running, strict=True)]

    def close(self) -> None:
        """Tell a prefix cache what it holds."""
        if self.task.prefix is not None:
            self.task.prefix.end(self.ids[0].tolist())


def search(task: Task) -> Iterator[Step]:
    """Steps until all rows have ended."""
    history = History(task)
    # The caller's own processors may serve other searches too, so they are left as they are.
    followers = [p for p in task.processors if hasattr(p, "follow") and p not in task.own]
    numbers = task.streams() if task.config.do_sample else None
    try:
        while not history.done:
            with votive.no_grad():
                step = _next(task, history, numbers, followers)
            yield step
    finally:
        history.close()


def _next(task: Task, history: History, numbers: Any, followers: list[Any]) -> Step:
    newest = history.newest
    stepper = task.stepper
    if newest is None or stepper.cache is None or stepper.outgrown(history.length):
        fed = stepper.feed(history.ids)
    else:
        fed = stepper.advance(newest)
    logits = fed.logits[:, -1]
    searched = logits if task.contrast is None else task.contrast(fed)
    for processor in followers:
        if newest is None:
            processor.follow(history.ids, logits.shape[-1])
        else:
            processor.add(history.last)
    scores = task.processors(history.ids if task.processors.read else None, searched)
    if numbers is None:
        # Only processors forbid; without them the scores need not be looked at.
        tokens = best(scores) if len(task.processors) else scores.argmax(-1)
    else:
        tokens = drawn(scores, [n.next() for n in numbers])
    chosen, texts = history.add(tokens, scores)
    return Step(chosen, logits, scores, list(history.reasons), texts, fed)
