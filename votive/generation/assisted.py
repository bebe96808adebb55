"""Speculative decoding: a small model drafts tokens, the large one checks them in one run.

Leviathan et al. 2023, arXiv:2211.17192, algorithm 1. A draft is kept with probability
min(1, p/q); the first one that is not is drawn anew from what p has more than q, so the text has
the distribution of the large model alone. Greedy search keeps drafts that are its own choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import votive
from votive.nn import functional as F

from ..tensor import Tensor
from .drawing import Stream, best, drawn, picked
from .loop import History, Step
from .output import Acceptance
from .preparing import Task
from .stepping import DecoderStepper, Model, StepOutput, cache_for


def assisted(task: Task, assistant: Model, acceptance: Acceptance) -> Iterator[Step]:
    """Steps as `search` gives them; `acceptance` counts how the drafts did."""
    _check(task, assistant)
    return _rounds(task, assistant, acceptance)


def _check(task: Task, assistant: Model) -> None:
    config, model = task.config, task.stepper.model
    if task.encoder is not None or getattr(assistant.config, "is_encoder_decoder", False):
        raise ValueError("generate: assistant_model goes with decoders only.")
    if task.ids.shape[0] != 1 or config.beams > 1:
        raise ValueError(f"generate: assistant_model takes one text without beams, got {task.ids.shape[0]} rows.")
    if config.use_cache and config.cache_implementation == "sliding":
        raise ValueError(
            "generate: assistant_model takes drafts back, which a sliding cache cannot; use "
            "cache_implementation='dynamic'."
        )
    ours, theirs = model.config.vocab_size, assistant.config.vocab_size
    if ours != theirs:
        raise ValueError(f"generate: assistant_model must have the model's vocabulary of {ours} tokens, got {theirs}.")


def _rounds(task: Task, assistant: Model, acceptance: Acceptance) -> Iterator[Step]:
    history = History(task)
    drafts = _Drafts(task, assistant, history)
    try:
        while not history.done:
            with votive.no_grad():
                steps = list(_round(task, history, drafts, acceptance))
            yield from steps
    finally:
        history.close()


class _Drafts:
    """What the small model proposes next, written behind the history."""

    def __init__(self, task: Task, assistant: Model, history: History) -> None:
        self.task, self.history = task, history
        config = task.config
        cache = cache_for(assistant, "dynamic", task.max_length) if config.use_cache else None
        self.stepper = DecoderStepper(
            assistant, cache=cache, mask=task.mask, max_length=task.max_length, chunk=config.prefill_chunk_size
        )
        self.numbers: Stream | None = task.streams()[0] if config.do_sample else None
        self.count: int = config.num_assistant_tokens or 1
        self.tokens: list[int] = []
        self.odds: list[Any] = []  # q of each draft, (1, vocabulary); only for sampling

    def make(self) -> None:
        """Draft until there are enough, the text ends, or the small model is unsure."""
        start, config = self.history.length, self.task.config
        self.stepper.crop(start - 1)
        self.tokens, self.odds = [], []
        # One place is left for the token that the large model adds.
        for i in range(min(self.count, self.task.max_length - start - 1)):
            ids = self.history.up_to(start + i)
            scores = self.task.processors(ids, self.stepper.feed(ids).logits[:, -1])
            q = F.softmax(scores, -1)
            if self.numbers is None:
                token = int(best(scores).item())
            else:
                token = int(drawn(scores, [self.numbers.next()]).item())
                self.odds.append(q)
            self.tokens.append(token)
            self.history.note(start + i, token)
            unsure = q[0, token].item() < (config.assistant_confidence_threshold or 0.0)
            if unsure or token in self.task.ending.eos:
                return

    def learn(self, accepted: int) -> None:
        """Draft more after a round in which all were accepted, fewer after any other."""
        if self.task.config.num_assistant_tokens_schedule == "heuristic":
            all_ = accepted == len(self.tokens)
            self.count = self.count + 2 if all_ else max(1, self.count - 1)


def _round(task: Task, history: History, drafts: _Drafts, acceptance: Acceptance) -> Iterator[Step]:
    start = history.length
    drafts.make()
    # A draft that makes the text outgrow its angles would change what is thought of those before.
    count = task.stepper.together(start, len(drafts.tokens))
    del drafts.tokens[count:]
    seen = 0 if task.stepper.outgrown(start + count) else task.stepper.seen()
    fed = task.stepper.feed(history.up_to(start + count), keep=count + 1)
    accepted = 0
    for i in range(count + 1):
        logits = fed.logits[:, i]
        scores = task.processors(history.ids, logits)
        token, kept = _checked(scores, drafts, i)
        chosen, texts = history.add(votive.tensor([token], device=logits.device), scores)
        part = _position(fed, seen, start + i, first=i == 0)
        yield Step(chosen, logits, scores, list(history.reasons), texts, part)
        accepted += kept
        if not kept or history.done:
            break
    task.stepper.crop(history.length - 1)
    drafts.learn(accepted)
    acceptance.rounds += 1
    acceptance.drafted += count
    acceptance.accepted += accepted


def _checked(scores: Tensor, drafts: _Drafts, i: int) -> tuple[int, bool]:
    """The token of a position, and whether it is the draft."""
    draft = drafts.tokens[i] if i < len(drafts.tokens) else None
    if drafts.numbers is None:
        token = int(best(scores).item())
        return token, token == draft
    if draft is None:
        return int(drawn(scores, [drafts.numbers.next()]).item()), False
    p, q = F.softmax(scores, -1), drafts.odds[i]
    if drafts.numbers.next() * q[0, draft].item() < p[0, draft].item():
        return draft, True
    more = (p - q).clamp(min=0)
    # Where both agree to rounding nothing is left over.
    more = more if more.sum().item() > 0 else p
    return int(picked(more, [drafts.numbers.next()]).item()), False


def _position(fed: StepOutput, seen: int, length: int, *, first: bool) -> StepOutput:
    """What a run gave for the token at the end of `length`; the first takes all before it too."""
    last = length - seen
    rows = slice(0 if first else last - 1, last)
    states, weights = fed.hidden_states, fed.attentions
    if states is not None:
        states = tuple(s[:, rows] for s in states)
    if weights is not None:
        weights = tuple(w[:, :, rows, :length] for w in weights)
    return StepOutput(fed.logits, weights, states)
