"""Beam search in groups: beams that were chosen before make their tokens worse for those of the groups after them.

Vijayakumar et al. 2016, arXiv:1610.02424, with the Hamming distance. Each group keeps texts of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

import votive
from votive.nn import functional as F

from ..tensor import Tensor
from .beams import WORST, Ended, Found, texts_of, traced
from .diversity import HammingDiversityLogitsProcessor
from .drawing import NONE_LEFT
from .loop import History, Step
from .preparing import Task
from .stopping import EOS, LENGTH, OWN, TIME

if TYPE_CHECKING:
    from .generating import Collector


@dataclass
class _Group:
    """Some beams of a text: the running ones' scores, and the best that have ended."""

    first: int  # row of the first beam
    width: int
    scores: np.ndarray
    ended: list[Ended] = field(default_factory=list)
    done: bool = False

    def add(self, new: Ended) -> None:
        """Keep a text that has ended if it is among the best."""
        self.ended.append(new)
        self.ended.sort(key=lambda e: -e.score)
        del self.ended[self.width :]

    def settle(self, best: float, length: int, most: int, task: Task) -> None:
        """Be done if no running beam can become better than what has ended."""
        if self.done or len(self.ended) < self.width:
            return
        config, penalty = task.config, task.config.length_penalty or 0.0
        if config.early_stopping is True:
            self.done = True
            return
        reach = most if config.early_stopping == "never" and penalty > 0 else length
        self.done = bool(self.ended[-1].score >= np.float32(best) / np.float32(reach**penalty))


class _Groups:
    """All groups of all texts of a batch."""

    def __init__(self, task: Task, apart: HammingDiversityLogitsProcessor) -> None:
        self.task, self.apart, config = task, apart, task.config
        self.history = History(task)
        self.start, self.width = self.history.length, config.beams
        self.count = int(config.num_beam_groups or 1)
        self.size = self.width // self.count
        self.texts = task.ids.shape[0] // self.width
        self.groups = [
            [_Group(t * self.width + g * self.size, self.size, self._first()) for g in range(self.count)]
            for t in range(self.texts)
        ]
        self.keep = max(2, 1 + len(config.eos_ids())) * self.size
        self.rows: list[list[int]] = []
        self.tokens: list[list[int]] = []
        self.finished = False

    def _first(self) -> np.ndarray:
        return np.array([0.0] + [WORST] * (self.size - 1), np.float32)

    def step(self) -> Step:
        """One more token for every beam, group after group."""
        task, ids = self.task, self.history.ids
        fed = task.stepper.feed(ids)
        logits = fed.logits[:, -1]
        logs = F.log_softmax(logits, -1)
        rows, tokens = list(range(len(ids))), [0] * len(ids)
        kept: list[Tensor] = []
        self.apart.chosen = [[] for _ in range(self.texts)]
        for g in range(self.count):
            scores = task.processors(ids, logs)
            kept.append(scores.view(self.texts, self.count, self.size, -1)[:, g])
            for t in range(self.texts):
                group = self.groups[t][g]
                self._choose(group, kept[-1][t], rows, tokens)
                self.apart.chosen[t] += tokens[group.first : group.first + self.size]
        self.rows.append(rows)
        self.tokens.append(tokens)
        self._move(rows, tokens)
        reason = self._over(logs)
        everything = [g for groups in self.groups for g in groups]
        self.finished = reason is not None or all(g.done for g in everything)
        if self.finished:
            self._close(everything, reason or LENGTH)
        return Step(tokens, logits, votive.stack(kept, 1).flatten(0, 2), [None] * len(rows), None, fed)

    def _choose(self, group: _Group, scores: Tensor, rows: list[int], tokens: list[int]) -> None:
        """The tokens that a group goes on with, and its texts that end."""
        place = slice(group.first, group.first + group.width)
        if group.done:
            rows[place] = [group.first] * group.width
            tokens[place] = [self.task.pad or 0] * group.width
            return
        vocabulary, step, config = scores.shape[-1], len(self.rows), self.task.config
        total = scores + votive.tensor(group.scores, device=scores.device).unsqueeze(1)
        best, places = votive.topk(total.flatten(), min(self.keep, total.numel()))
        values, found = best.numpy(force=True), places.numpy(force=True)
        if not values[0] > -np.inf:
            if not group.ended:
                raise ValueError(NONE_LEFT)
            group.done = True  # nothing can follow, and texts of it have ended
            return self._choose(group, scores, rows, tokens)
        length = np.float32((step + 1) ** (config.length_penalty or 0.0))
        going: list[tuple[float, int, int]] = []
        for rank, (score, at) in enumerate(zip(values, found, strict=True)):
            row, token = group.first + int(at) // vocabulary, int(at) % vocabulary
            if token in self.task.ending.eos:
                if rank < group.width:
                    group.add(Ended(score / length, step, row, token, EOS))
            elif len(going) < group.width:
                going.append((float(score), row, token))
        while len(going) < group.width:  # a vocabulary of little more than ends
            going.append((float(WORST), group.first, self.task.pad or 0))
        group.scores = np.array([s for s, _, _ in going], np.float32)
        rows[place], tokens[place] = [r for _, r, _ in going], [t for _, _, t in going]
        group.settle(float(values[0]), step + 1, self.task.max_length - self.start, self.task)

    def _over(self, scores: Tensor) -> str | None:
        """Why all texts end here, if they do."""
        ending = self.task.ending
        found = ending.reasons(self.history, scores, [-1] * len(scores), [True] * len(scores))
        for reason in (LENGTH, TIME):
            if reason in found:
                return reason
        return OWN if all(r == OWN for r in found) else None

    def _close(self, groups: list[_Group], reason: str) -> None:
        """Count the running beams of groups that are not done as texts that have ended."""
        step = len(self.rows) - 1
        length = np.float32((step + 1) ** (self.task.config.length_penalty or 0.0))
        for group in groups:
            if group.done:
                continue
            for i, score in enumerate(group.scores):
                row = group.first + i
                group.add(Ended(score / length, step, self.rows[step][row], self.tokens[step][row], reason))

    def _move(self, rows: list[int], tokens: list[int]) -> None:
        index = votive.tensor(rows, device=self.task.ids.device)
        self.task.stepper.reorder(index)
        self.history.reorder(index)
        self.history.push(votive.tensor(tokens, device=self.task.ids.device))


def group_beam_search(task: Task, kept: Collector) -> Found:
    """Search to the end; `kept` takes what is asked for of each step."""
    apart = next(p for p in task.processors if isinstance(p, HammingDiversityLogitsProcessor))
    groups = _Groups(task, apart)
    while not groups.finished:
        with votive.no_grad():
            kept.add(groups.step())
    wanted = task.config.num_return_sequences or 1
    best = [
        e
        for parts in groups.groups
        for e in sorted((e for g in parts for e in g.ended), key=lambda e: -e.score)[:wanted]
    ]
    return texts_of(task, best, [traced(e, groups.tokens, groups.rows) for e in best], groups.width)
