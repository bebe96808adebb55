"""Speculative decoding: tokens are drafted, and the model checks them in one run.

Leviathan et al. 2023, arXiv:2211.17192, algorithm 1. A draft is kept with probability
min(1, p/q); the first one that is not is drawn anew from what p has more than q, so the text has
the distribution of the large model alone. Greedy search keeps drafts that are its own choice. Rows of a batch go on
together, as far as the drafts of all of them are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import votive
from votive.nn import functional as F

from ..tensor import Tensor
from .drafts import Drafts, LookupDrafts, ModelDrafts, TranslatedDrafts, count_of, running
from .drawing import Stream, best, drawn, picked
from .loop import History, Step
from .output import Acceptance
from .preparing import Task
from .stepping import Model, StepOutput, keeps_states

if TYPE_CHECKING:
    from ..text import Tokenizer

_Maker = Callable[[History, list[Stream] | None], Drafts]


def assisted(
    task: Task,
    assistant: Model,
    acceptance: Acceptance,
    tokenizer: Tokenizer | None = None,
    assistant_tokenizer: Tokenizer | None = None,
) -> Iterator[Step]:
    """Steps as `search` gives them, with drafts of a model; `acceptance` counts how they did."""
    if getattr(assistant.config, "is_encoder_decoder", False):
        raise ValueError("generate: assistant_model goes with decoders only.")
    _check(task, "assistant_model")
    if assistant_tokenizer is not None:
        if tokenizer is None:
            raise ValueError("generate: assistant_tokenizer needs the model's own too; pass tokenizer=.")
        ours, theirs = tokenizer, assistant_tokenizer
        return _rounds(task, acceptance, lambda history, _: TranslatedDrafts(task, assistant, history, ours, theirs))
    size, other = task.stepper.model.config.vocab_size, assistant.config.vocab_size
    if size != other:
        raise ValueError(
            f"generate: assistant_model must have the model's vocabulary of {size} tokens, got {other}; of a model "
            "with other tokens give tokenizer= and assistant_tokenizer= too."
        )
    return _rounds(task, acceptance, lambda history, numbers: ModelDrafts(task, assistant, history, numbers))


def from_prompt(task: Task, acceptance: Acceptance) -> Iterator[Step]:
    """Steps as `search` gives them, with drafts from the text itself."""
    _check(task, "prompt_lookup_num_tokens")
    count = task.config.prompt_lookup_num_tokens or 1
    return _rounds(task, acceptance, lambda history, _: LookupDrafts(task, history, count))


def _check(task: Task, name: str) -> None:
    config = task.config
    if task.encoder is not None:
        raise ValueError(f"generate: {name} goes with decoders only.")
    if config.beams > 1:
        raise ValueError(f"generate: {name} does not go with beams.")
    if config.use_cache and config.cache_implementation == "sliding":
        raise ValueError(
            f"generate: {name} takes drafts back, which a sliding cache cannot; use cache_implementation='dynamic'."
        )
    if config.use_cache and keeps_states(task.stepper.model):
        raise ValueError(
            f"generate: {name} takes drafts back, which layers that sum up a text in a state cannot; leave it out."
        )
    others = {
        "guidance_scale": config.guidance_scale not in (None, 1),
        "penalty_alpha": bool(config.penalty_alpha),
        "dola_layers": config.dola_layers is not None,
        "inputs_embeds": task.stepper.embeds is not None,
    }
    for other, on in others.items():
        if on:
            raise ValueError(f"generate: {name} does not go with {other}; leave out one of them.")


def _rounds(task: Task, acceptance: Acceptance, made: _Maker) -> Iterator[Step]:
    history = History(task)
    numbers = task.streams() if task.config.do_sample else None
    drafts = made(history, numbers)
    try:
        while not history.done:
            with votive.no_grad():
                steps = list(_round(task, history, drafts, numbers, acceptance))
            yield from steps
    finally:
        history.close()


def _round(
    task: Task, history: History, drafts: Drafts, numbers: list[Stream] | None, acceptance: Acceptance
) -> Iterator[Step]:
    start = history.length
    drafts.make()
    # A draft that makes the text outgrow its angles would change what is thought of those before.
    count = task.stepper.together(start, count_of(drafts))
    seen = 0 if task.stepper.outgrown(start + count) else task.stepper.seen()
    fed = task.stepper.feed(history.up_to(start + count), keep=count + 1)
    accepted, on = 0, running(history)
    acceptance.rounds += 1
    acceptance.drafted += count * sum(on)
    for i in range(count + 1):
        logits = fed.logits[:, i]
        scores = task.processors(history.ids, logits)
        tokens, kept = _checked(scores, drafts, i if i < count else None, numbers)
        chosen, texts = history.add(tokens, scores)
        part = _position(fed, seen, start + i, first=i == 0)
        yield Step(chosen, logits, scores, list(history.reasons), texts, part)
        acceptance.accepted += sum(k for k, runs in zip(kept, on, strict=True) if runs)
        all_kept = all(k for k, runs in zip(kept, on, strict=True) if runs)
        accepted += all_kept
        on = running(history)
        if not all_kept or history.done:
            break
    task.stepper.crop(history.length - 1)
    drafts.learn(accepted)


def _checked(scores: Tensor, drafts: Drafts, i: int | None, numbers: list[Stream] | None) -> tuple[Tensor, list[bool]]:
    """The token of a position in each row, and whether it is the draft's."""
    draft = [None] * scores.shape[0] if i is None else [tokens[i] for tokens in drafts.tokens]
    if numbers is None:
        tokens = best(scores)
        return tokens, [t == d for t, d in zip(tokens.tolist(), draft, strict=True)]
    if i is None:
        return drawn(scores, [n.next() for n in numbers]), [False] * len(draft)
    p = F.softmax(scores, -1)
    q = None if drafts.odds is None else drafts.odds[i]
    found = [
        _row(p[r], None if q is None else q[r], token, numbers[r]) for r, token in enumerate(draft) if token is not None
    ]
    return votive.tensor([t for t, _ in found], device=scores.device), [k for _, k in found]


def _row(p: Tensor, q: Tensor | None, draft: int, numbers: Stream) -> tuple[int, bool]:
    """The draft, or a token drawn instead of it; without `q` the draft was certain."""
    if q is None:
        if numbers.next() < p[draft].item():
            return draft, True
        more = p.clone()
        more[draft] = 0.0
    else:
        if numbers.next() * q[draft].item() < p[draft].item():
            return draft, True
        more = (p - q).clamp(min=0)
    # Where both agree to rounding nothing is left over.
    more = more if more.sum().item() > 0 else p
    return int(picked(more.unsqueeze(0), [numbers.next()]).item()), False


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
