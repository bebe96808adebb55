"""Beam search: the best few beginnings of each text are continued side by side.

Results are those of transformers: candidates are the best of all beams' continuations; one that
ends counts if it is among the first `num_beams`; its score is the sum of its log probabilities
divided by its length to the power of `length_penalty`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import votive
from votive.nn import functional as F

from ..tensor import Tensor
from .drawing import NONE_LEFT, Stream, several
from .loop import History, Step
from .preparing import Task

if TYPE_CHECKING:
    from .generating import Collector

# So bad that it is chosen only where nothing else is left, and still a number.
WORST = np.float32(-1e9)


class Candidate(NamedTuple):
    """A beam and the token that may follow it."""

    score: np.float32
    beam: int
    token: int
    reason: str | None


class Ended(NamedTuple):
    """A finished text: the position of its last token, and its score."""

    score: np.float32
    step: int
    row: int
    token: int
    reason: str


@dataclass
class _Tried:
    """The candidates as texts, for those who decide where texts end."""

    length: int
    ids: Any = None


@dataclass
class Prompt:
    """The beams of one prompt."""

    width: int
    scores: np.ndarray  # of the running beams, float32
    ended: list[Ended] = field(default_factory=list)  # the best, best first
    improvable: bool = True

    @property
    def full(self) -> bool:
        """Whether as many texts have ended as there are beams."""
        return len(self.ended) == self.width

    def end(self, candidates: list[Candidate], step: int, first: int, task: Task) -> None:
        """Keep those of the first candidates that end here, if they are good enough."""
        config, penalty = task.config, task.config.length_penalty or 0.0
        if not self.improvable or (config.early_stopping is True and self.full):
            return
        length = np.float32((step + 1) ** penalty)
        for c in candidates[: self.width]:
            if c.reason is not None:
                place = Ended(c.score / length, step, first + c.beam, c.token, c.reason)
                self.ended.append(place)
        self.ended.sort(key=lambda e: -e.score)
        del self.ended[self.width :]

    def go_on(self, candidates: list[Candidate]) -> list[Candidate]:
        """The best candidates that have not ended: the beams from now on."""
        rated = [c._replace(score=c.score if c.reason is None else c.score + WORST) for c in candidates]
        rated.sort(key=lambda c: -c.score)
        chosen = rated[: self.width]
        self.scores = np.array([c.score for c in chosen], np.float32)
        return chosen

    def look_ahead(self, done: int, most: int, task: Task) -> None:
        """Whether a running beam can still become better than what has ended."""
        penalty = task.config.length_penalty or 0.0
        longest = task.config.early_stopping == "never" and penalty > 0
        length = np.float32((most if longest else done) ** penalty)
        best = self.scores[0] / length
        worst = self.ended[-1].score if self.full else WORST
        self.improvable = self.improvable and bool(best > worst)


class Beams:
    """All prompts of a batch."""

    def __init__(self, task: Task) -> None:
        self.task, config = task, task.config
        self.width: int = config.beams
        self.history = History(task)
        self.start = self.history.length
        count = task.ids.shape[0] // self.width
        self.prompts = [Prompt(self.width, self._first_scores()) for _ in range(count)]
        # Enough that as many as there are beams go on even if all others end.
        self.candidates = max(2, 1 + len(config.eos_ids())) * self.width
        self.streams: list[Stream] | None = task.streams() if config.do_sample else None
        # Of each step and row: the row it continues, and its token.
        self.rows: list[list[int]] = []
        self.tokens: list[list[int]] = []
        self.finished = False

    def _first_scores(self) -> np.ndarray:
        # All beams begin alike, so only the first may bring forth candidates.
        return np.array([0.0] + [WORST] * (self.width - 1), np.float32)

    def step(self) -> Step:
        """One more token for every beam."""
        task, ids = self.task, self.history.ids
        fed = task.stepper.feed(ids)
        logits = fed.logits[:, -1]
        scores = task.processors(ids, F.log_softmax(logits, -1))
        candidates = self._candidates(scores)
        step = len(self.rows)
        rows: list[int] = []
        tokens: list[int] = []
        for i, (prompt, found) in enumerate(zip(self.prompts, candidates, strict=True)):
            prompt.end(found, step, i * self.width, task)
            chosen = prompt.go_on(found)
            rows += [i * self.width + c.beam for c in chosen]
            tokens += [c.token for c in chosen]
            prompt.look_ahead(step + 1, task.max_length - self.start, task)
        self.rows.append(rows)
        self.tokens.append(tokens)
        self._move(rows, tokens)
        stuck = all(c.reason is not None for found in candidates for c in found)
        settled = task.config.early_stopping is True and all(p.full for p in self.prompts)
        self.finished = stuck or settled or not any(p.improvable for p in self.prompts)
        return Step(tokens, logits, scores, [None] * len(rows), None, fed)

    def _candidates(self, scores: Tensor) -> list[list[Candidate]]:
        count, size = len(self.prompts), scores.shape[-1]
        before = votive.tensor(np.stack([p.scores for p in self.prompts]), device=scores.device)
        total = (scores.view(count, self.width, size) + before.unsqueeze(-1)).view(count, -1)
        if self.streams is None:
            best, places = votive.topk(total, self.candidates)
        else:
            places = votive.stack(
                [several(row, self.candidates, stream) for row, stream in zip(total, self.streams, strict=True)]
            )
            best = total.gather(1, places)
        values = best.numpy(force=True)
        if not (values[:, 0] > -np.inf).all():
            raise ValueError(NONE_LEFT)
        found = places.numpy(force=True)
        beams, tokens = found // size, found % size
        reasons = self._reasons(beams, tokens, scores)
        return [
            [
                Candidate(values[i, j], int(beams[i, j]), int(tokens[i, j]), reasons[i][j])
                for j in range(self.candidates)
            ]
            for i in range(count)
        ]

    def _reasons(self, beams: np.ndarray, tokens: np.ndarray, scores: Tensor) -> list[list[str | None]]:
        ending = self.task.ending
        flat = [int(t) for t in tokens.flatten()]
        tried = _Tried(self.history.length + 1)
        if ending.own:
            first = np.arange(len(beams))[:, None] * self.width
            device = self.task.ids.device
            rows = votive.tensor((first + beams).flatten(), device=device)
            tried.ids = self.history.up_to(tried.length).index_select(0, rows)
            tried.ids[:, -1] = votive.tensor(flat, device=device)
        found = ending.reasons(tried, scores, flat, [True] * len(flat))
        return [found[i : i + self.candidates] for i in range(0, len(flat), self.candidates)]

    def _move(self, rows: list[int], tokens: list[int]) -> None:
        """Let each row be the beam it has become."""
        if rows != list(range(len(rows))):
            index = votive.tensor(rows, device=self.task.ids.device)
            self.task.stepper.reorder(index)
            self.history.reorder(index)
        self.history.push(votive.tensor(tokens, device=self.task.ids.device))


def traced(end: Ended, tokens: list[list[int]], rows: list[list[int]]) -> tuple[list[int], list[int]]:
    """The tokens of a text that has ended, and the row each was chosen in; lists are those of each step and row."""
    found, places = [end.token], [end.row]
    row = end.row
    for step in range(end.step - 1, -1, -1):
        found.append(tokens[step][row])
        row = rows[step][row]
        places.append(row)
    return found[::-1], places[::-1]


@dataclass(frozen=True)
class Found:
    """The best texts of all prompts."""

    sequences: Any
    scores: Any
    rows: Any
    reasons: list[str]


def beam_search(task: Task, kept: Collector) -> Found:
    """Search to the end; `kept` takes what is asked for of each step."""
    beams = Beams(task)
    while not beams.finished:
        with votive.no_grad():
            kept.add(beams.step())
    best = [e for p in beams.prompts for e in p.ended[: task.config.num_return_sequences]]
    return texts_of(task, best, [traced(e, beams.tokens, beams.rows) for e in best], beams.width)


def texts_of(task: Task, best: list[Ended], texts: list[tuple[list[int], list[int]]], beams: int) -> Found:
    """The texts as ids, padded to one length, behind their prompts."""
    width = max(len(tokens) for tokens, _ in texts)
    pad = -1 if task.pad is None else task.pad
    new = [tokens + [pad] * (width - len(tokens)) for tokens, _ in texts]
    rows = [rows + [-1] * (width - len(rows)) for _, rows in texts]
    prompts = task.ids[::beams].repeat_interleave(task.config.num_return_sequences, 0)
    device = task.ids.device
    added = votive.tensor(new, dtype=task.ids.dtype, device=device)
    return Found(
        sequences=votive.cat([prompts, added], 1),
        scores=votive.tensor(np.array([e.score for e in best], np.float32), device=device),
        rows=votive.tensor(rows, device=device),
        reasons=[e.reason for e in best],
    )
