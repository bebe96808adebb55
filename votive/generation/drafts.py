"""Where drafts come from: a small model, the text itself, or a small model with other tokens. Checks none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import votive
from votive.nn import functional as F

from ..tensor import Tensor
from .drawing import Stream, best, drawn
from .loop import History
from .prefix import PrefixCache
from .preparing import Task
from .stepping import DecoderStepper, Model, cache_for, keeps_states

if TYPE_CHECKING:
    from ..text import Tokenizer


class Drafts(Protocol):
    """Tokens that may come next, as many for each row, written behind the history.

    `odds` are those that each token was drawn by, (rows, vocabulary); None where it was simply proposed.
    """

    tokens: list[list[int]]  # of each row
    odds: list[Tensor] | None

    def make(self) -> None: ...
    def learn(self, accepted: int) -> None: ...


def count_of(drafts: Drafts) -> int:
    """How many tokens each row has."""
    return len(drafts.tokens[0])


def running(history: History) -> list[bool]:
    """Which rows have not ended."""
    return [r is None for r in history.reasons]


class ModelDrafts:
    """What a small model with the same vocabulary proposes."""

    def __init__(self, task: Task, assistant: Model, history: History, numbers: list[Stream] | None) -> None:
        self.task, self.history, self.numbers = task, history, numbers
        config = task.config
        kept = config.use_cache and not keeps_states(assistant)  # a state cannot take drafts back
        cache = cache_for(assistant, "dynamic", task.max_length) if kept else None
        self.stepper = DecoderStepper(
            assistant, cache=cache, mask=task.mask, max_length=task.max_length, chunk=config.prefill_chunk_size
        )
        self.count: int = config.num_assistant_tokens or 1
        self.tokens: list[list[int]] = []
        self.odds: list[Tensor] | None = None

    def make(self) -> None:
        """Draft until there are enough, a text ends, or the small model is unsure of one."""
        start, config = self.history.length, self.task.config
        self.stepper.crop(start - 1)
        on = running(self.history)
        self.tokens, self.odds = [[] for _ in on], None if self.numbers is None else []
        # One place is left for the token that the large model adds.
        for i in range(min(self.count, self.task.max_length - start - 1)):
            ids = self.history.up_to(start + i)
            scores = self.task.processors(ids, self.stepper.feed(ids).logits[:, -1])
            q = F.softmax(scores, -1)
            if self.numbers is None:
                tokens = best(scores)
            else:
                tokens = drawn(scores, [n.next() for n in self.numbers])
                assert self.odds is not None
                self.odds.append(q)
            sure = q.gather(1, tokens.unsqueeze(1)).flatten().tolist()
            self.history.note(start + i, tokens)
            ends = False
            for row, token in enumerate(tokens.tolist()):
                self.tokens[row].append(token)
                unsure = sure[row] < (config.assistant_confidence_threshold or 0.0)
                ends = ends or (on[row] and (unsure or token in self.task.ending.eos))
            if ends:
                return

    def learn(self, accepted: int) -> None:
        """Draft more after a round in which all were accepted, fewer after any other."""
        if self.task.config.num_assistant_tokens_schedule == "heuristic":
            all_ = accepted == count_of(self)
            self.count = self.count + 2 if all_ else max(1, self.count - 1)


class _Proposed:
    """Drafts that are lists of tokens, found for each row by itself."""

    def __init__(self, task: Task, history: History, count: int) -> None:
        self.task, self.history, self.count = task, history, count
        self.tokens: list[list[int]] = []
        self.odds: list[Tensor] | None = None

    def propose(self, row: int, ids: list[int], count: int) -> list[int]:
        """Up to `count` tokens that may follow these."""
        raise NotImplementedError

    def make(self) -> None:
        start = self.history.length
        room = min(self.count, self.task.max_length - start - 1)
        on = running(self.history)
        found: list[list[int]] = [[] for _ in on]
        if room > 0:
            for row, ids in enumerate(self.history.ids.tolist()):
                if on[row]:
                    found[row] = self._until_end(self.propose(row, ids, room)[:room])
        count = min((len(tokens) for tokens, runs in zip(found, on, strict=True) if runs), default=0)
        self.tokens = [(tokens + [0] * count)[:count] for tokens in found]
        for i in range(count):
            self.history.note(start + i, votive.tensor([t[i] for t in self.tokens], device=self.task.ids.device))

    def _until_end(self, tokens: list[int]) -> list[int]:
        ends = [i for i, token in enumerate(tokens) if token in self.task.ending.eos]
        return tokens[: ends[0]] if ends else tokens

    def learn(self, accepted: int) -> None:
        """As many are proposed after each round."""


class LookupDrafts(_Proposed):
    """What followed in the text itself when its last tokens came before.

    Saxena 2023, prompt lookup decoding; the longest match counts, and the first of several.
    """

    def propose(self, row: int, ids: list[int], count: int) -> list[int]:
        first = 0
        if self.task.mask is not None:
            mask = self.task.mask[row].tolist()
            first = mask.index(1)
        ids = ids[first:]
        for size in range(min(self.task.config.max_matching_ngram_size or 1, len(ids) - 1), 0, -1):
            end = ids[-size:]
            for at in range(len(ids) - size):
                if ids[at : at + size] == end:
                    return ids[at + size : at + size + count]
        return []


class TranslatedDrafts(_Proposed):
    """What a small model with another tokenizer would write, as tokens of the large one.

    Timor et al. 2025, arXiv:2502.05202, algorithm 2: texts are exchanged instead of ids.
    """

    def __init__(
        self, task: Task, assistant: Model, history: History, tokenizer: Tokenizer, assistant_tokenizer: Tokenizer
    ) -> None:
        super().__init__(task, history, task.config.num_assistant_tokens or 1)
        self.assistant, self.ours, self.theirs = assistant, tokenizer, assistant_tokenizer
        self.kept = [PrefixCache() for _ in range(task.ids.shape[0])]

    def propose(self, row: int, ids: list[int], count: int) -> list[int]:
        from .generating import generate

        mask = None if self.task.mask is None else self.task.mask[row].tolist()
        real = ids if mask is None else ids[mask.index(1) :]
        text = self.ours.decode(real, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        prompt = list(self.theirs.encode(text))
        if not prompt:
            return []
        config: Any = self.task.config
        least = config.assistant_confidence_threshold or 0.0
        found = generate(
            self.assistant,
            [prompt],
            max_new_tokens=count,
            do_sample=False,
            num_beams=1,
            num_return_sequences=1,
            past_key_values=self.kept[row] if config.use_cache else None,
            use_cache=config.use_cache,
            eos_token_id=self.theirs.eos_token_ids or None,
            stopping_criteria=lambda so_far, scores: F.softmax(scores, -1).amax(-1) < least,
        )
        new = self.theirs.decode(found[0].tolist(), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        # Where the text ends in the midst of a character both sides differ, and nothing can be proposed.
        if not new.startswith(text):
            return []
        before = list(self.ours.encode(text, add_special_tokens=False))
        whole = list(self.ours.encode(new, add_special_tokens=False))
        if whole[: len(before)] != before:
            return list(self.ours.encode(new[len(text) :], add_special_tokens=False))
        return whole[len(before) :]
