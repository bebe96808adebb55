"""What any search does to scores: penalties for repeating, tokens that are banned or forced.

Built like those in `warpers.py`. Where a history is read, ids that are no token of the vocabulary
count for nothing; a prompt's padding is left out the same way when its mask is given.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import votive
from votive.core import dtype as dt
from votive.nn import functional as F

from ..tensor import Tensor
from .warpers import LogitsProcessor


class _Tokens:
    """A set of tokens as an index on the device of the scores, made once."""

    def __init__(self, tokens: int | Iterable[int]) -> None:
        self.ids = [tokens] if isinstance(tokens, int) else [int(t) for t in tokens]
        if any(t < 0 for t in self.ids):
            raise ValueError(f"token ids must not be negative, got {self.ids}.")
        self._index: Any = None

    def filled(self, scores: Tensor, value: float) -> Tensor:
        """Scores with a value at these tokens."""
        size = scores.shape[-1]
        if self._index is None or self._index.device != scores.device:
            inside = [t for t in self.ids if t < size]
            self._index = votive.tensor(inside, dtype=votive.int64, device=scores.device)
        return scores.index_fill(-1, self._index, value)


def _unpadded(input_ids: Tensor, mask: Tensor | None, vocabulary: int) -> Any:
    """Ids with the vocabulary's size, which is no token, where the prompt is padding."""
    if mask is None:
        return input_ids.clamp(max=vocabulary)
    length = mask.shape[1]
    prompt = input_ids[:, :length].masked_fill(~mask.bool(), vocabulary)
    return votive.cat([prompt, input_ids[:, length:]], 1).clamp(max=vocabulary)


class _Counted(LogitsProcessor):
    """What depends on how often tokens came: counted anew from the ids, or followed as they come.

    Following costs the same for each token of a long text. It needs to be told every token, so it
    is for a search whose rows only ever grow.
    """

    _counts: Any = None

    def count(self, input_ids: Tensor, size: int) -> Tensor:
        """How often each token came, (batch, size); what is no token is left out."""
        ids = self.counted(input_ids, size)
        wide = votive.zeros((ids.shape[0], size + 1), device=ids.device)
        return wide.scatter_add(1, ids, votive.ones_like(ids, dtype=wide.dtype))[:, :size]

    def counted(self, input_ids: Tensor, size: int) -> Tensor:
        """The ids that count."""
        raise NotImplementedError

    def follow(self, input_ids: Tensor, size: int) -> None:
        """Count the prompt; from now on `add` tells the tokens, and ids are not read."""
        self._counts, self.reads = self.count(input_ids, size).clone(), False

    def add(self, tokens: Tensor) -> None:
        """Count one more token for each row."""
        inside = (tokens < self._counts.shape[1]).unsqueeze(1).to(self._counts.dtype)
        place = tokens.clamp(max=self._counts.shape[1] - 1).unsqueeze(1)
        self._counts.scatter_add_(1, place, inside)

    def counts(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """How often each token came by now."""
        if self._counts is not None:
            return self._counts
        return self.count(input_ids, scores.shape[-1])


class RepetitionPenaltyLogitsProcessor(_Counted):
    """Tokens that came before: positive scores divided by the penalty, negative ones times it.

    Keskar et al. 2019, arXiv:1909.05858.

    >>> penalty = votive.generation.RepetitionPenaltyLogitsProcessor(2.0)
    >>> penalty(votive.tensor([[0, 1]]), votive.tensor([[1.0, -1.0, 1.0]]))
    tensor([[ 0.5000, -2.0000,  1.0000]])
    """

    def __init__(
        self, penalty: float, prompt_ignore_length: int | None = None, prompt_mask: Tensor | None = None
    ) -> None:
        if not penalty > 0:
            raise ValueError(f"repetition_penalty must be above 0, got {penalty}.")
        self.penalty, self.ignored = float(penalty), prompt_ignore_length or 0
        self.mask = prompt_mask

    def counted(self, input_ids: Tensor, size: int) -> Tensor:
        return _unpadded(input_ids, self.mask, size)[:, self.ignored :]

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        changed = votive.where(scores < 0, scores * self.penalty, scores / self.penalty)
        return votive.where(self.counts(input_ids, scores) > 0, changed, scores)


class _CountPenalty(_Counted):
    """What depends on how often a token was generated."""

    def __init__(self, penalty: float, prompt_length: int = 0) -> None:
        if not math.isfinite(penalty):
            raise ValueError(f"{type(self).__name__}: the penalty must be finite, got {penalty}.")
        self.penalty, self.prompt_length = float(penalty), prompt_length

    def counted(self, input_ids: Tensor, size: int) -> Tensor:
        return input_ids[:, self.prompt_length :].clamp(max=size)


class PresencePenaltyLogitsProcessor(_CountPenalty):
    """Less, by the penalty, for each token that was generated before.

    >>> penalty = votive.generation.PresencePenaltyLogitsProcessor(0.5)
    >>> penalty(votive.tensor([[1, 1]]), votive.zeros(1, 2))
    tensor([[ 0.0000, -0.5000]])
    """

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        return scores - self.penalty * (self.counts(input_ids, scores) > 0).to(scores.dtype)


class FrequencyPenaltyLogitsProcessor(_CountPenalty):
    """Less, by the penalty, for each time that a token was generated before.

    >>> penalty = votive.generation.FrequencyPenaltyLogitsProcessor(0.5)
    >>> penalty(votive.tensor([[1, 1]]), votive.zeros(1, 2))
    tensor([[ 0., -1.]])
    """

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        return scores - self.penalty * self.counts(input_ids, scores)


class NoRepeatNGramLogitsProcessor(LogitsProcessor):
    """No sequence of `ngram_size` tokens comes twice.

    >>> once = votive.generation.NoRepeatNGramLogitsProcessor(2)
    >>> once(votive.tensor([[0, 1, 0]]), votive.zeros(1, 3))
    tensor([[0., -inf, 0.]])
    """

    def __init__(self, ngram_size: int, prompt_mask: Tensor | None = None) -> None:
        if not isinstance(ngram_size, int) or ngram_size <= 0:
            raise ValueError(f"no_repeat_ngram_size must be a positive integer, got {ngram_size}.")
        self.size, self.mask = ngram_size, prompt_mask

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        n, length, size = self.size, input_ids.shape[1], scores.shape[-1]
        if length < n:
            return scores
        ids = _unpadded(input_ids, self.mask, size)
        last = ids[:, n - 1 :]  # what followed each run of n - 1 tokens
        same = last == last
        for k in range(n - 1):
            now = ids[:, length - n + 1 + k : length - n + 2 + k]
            same = same & (ids[:, k : length - n + 1 + k] == now)
        banned = votive.where(same, last, size)
        mask = votive.zeros((scores.shape[0], size + 1), dtype=dt.bool_, device=scores.device)
        return scores.masked_fill(mask.scatter(1, banned, True)[:, :size], -math.inf)


class SequenceBiasLogitsProcessor(LogitsProcessor):
    """A number added to the last token of each sequence whose other tokens have just come.

    >>> bias = votive.generation.SequenceBiasLogitsProcessor({(0, 1): 5.0, (2,): -1.0})
    >>> bias(votive.tensor([[0]]), votive.zeros(1, 3))
    tensor([[ 0.,  5., -1.]])
    """

    def __init__(self, sequence_bias: Any) -> None:
        pairs = sequence_bias.items() if isinstance(sequence_bias, dict) else sequence_bias
        self.bias = {tuple(map(int, ids)): float(value) for ids, value in pairs}
        if not self.bias or any(not ids or min(ids) < 0 for ids in self.bias):
            raise ValueError(f"sequence_bias must map sequences of token ids to numbers, got {sequence_bias!r}.")
        self._single: Any = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if self._single is None:
            self._single = self._of_one(scores)
        bias = self._single.expand(scores.shape)
        longer = [ids for ids in self.bias if 1 < len(ids) <= input_ids.shape[1] + 1]
        if longer:
            # Few tokens decide, so rows are compared as numbers rather than as tensors.
            reach = max(map(len, longer)) - 1
            ends = input_ids[:, -reach:].tolist()
            bias = bias.clone()
            for ids in longer:
                for row, end in enumerate(ends):
                    if end[len(end) - len(ids) + 1 :] == list(ids[:-1]):
                        bias[row, ids[-1]] += self.bias[ids]
        return scores + bias

    def _of_one(self, scores: Tensor) -> Any:
        size = scores.shape[-1]
        outside = sorted({t for ids in self.bias for t in ids if t >= size})
        if outside:
            raise ValueError(f"the vocabulary has {size} tokens; there are no {outside}.")
        single = [0.0] * size
        for ids, value in self.bias.items():
            if len(ids) == 1:
                single[ids[0]] = value
        return votive.tensor(single, dtype=scores.dtype, device=scores.device)


class NoBadWordsLogitsProcessor(SequenceBiasLogitsProcessor):
    """Sequences of tokens that never come; a single token that ends the text is not banned.

    >>> banned = votive.generation.NoBadWordsLogitsProcessor([[0, 1], [2]])
    >>> banned(votive.tensor([[0]]), votive.zeros(1, 3))
    tensor([[0., -inf, -inf]])
    """

    def __init__(self, bad_words_ids: list[list[int]], eos_token_id: int | Iterable[int] | None = None) -> None:
        wrong = not isinstance(bad_words_ids, list) or not bad_words_ids
        if wrong or any(not isinstance(ids, list) or not ids for ids in bad_words_ids):
            raise ValueError(f"bad_words_ids must be a list of lists of token ids, got {bad_words_ids!r}.")
        eos = [] if eos_token_id is None else _Tokens(eos_token_id).ids
        kept = [ids for ids in bad_words_ids if not (len(ids) == 1 and ids[0] in eos)]
        self.bias = {}
        self._single = None
        if kept:
            super().__init__({tuple(ids): -math.inf for ids in kept})

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        return super().__call__(input_ids, scores) if self.bias else scores


class MinLengthLogitsProcessor(LogitsProcessor):
    """No end before `min_length` tokens, the prompt included.

    >>> votive.generation.MinLengthLogitsProcessor(3, 1)(votive.tensor([[0]]), votive.zeros(1, 2))
    tensor([[0., -inf]])
    """

    def __init__(self, min_length: int, eos_token_id: int | Iterable[int]) -> None:
        if not isinstance(min_length, int) or min_length < 0:
            raise ValueError(f"min_length must be an integer of at least 0, got {min_length!r}.")
        self.min_length, self.eos = min_length, _Tokens(eos_token_id)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if input_ids.shape[1] >= self.min_length:
            return scores
        return self.eos.filled(scores, -math.inf)


class MinNewTokensLengthLogitsProcessor(MinLengthLogitsProcessor):
    """No end before `min_new_tokens` tokens after the prompt.

    >>> least = votive.generation.MinNewTokensLengthLogitsProcessor(1, 1, 1)
    >>> least(votive.tensor([[0]]), votive.zeros(1, 2))
    tensor([[0., -inf]])
    """

    def __init__(self, prompt_length_to_skip: int, min_new_tokens: int, eos_token_id: int | Iterable[int]) -> None:
        super().__init__(prompt_length_to_skip + min_new_tokens, eos_token_id)


class SuppressTokensLogitsProcessor(LogitsProcessor):
    """Tokens that never come.

    >>> votive.generation.SuppressTokensLogitsProcessor([0])(None, votive.zeros(1, 2))
    tensor([[-inf, 0.]])
    """

    reads = False

    def __init__(self, suppress_tokens: Iterable[int]) -> None:
        self.tokens = _Tokens(suppress_tokens)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        return self.tokens.filled(scores, -math.inf)


class SuppressTokensAtBeginLogitsProcessor(SuppressTokensLogitsProcessor):
    """Tokens that do not come first.

    >>> first = votive.generation.SuppressTokensAtBeginLogitsProcessor([0], 1)
    >>> first(votive.tensor([[1]]), votive.zeros(1, 2))
    tensor([[-inf, 0.]])
    """

    reads = True

    def __init__(self, begin_suppress_tokens: Iterable[int], begin_index: int) -> None:
        super().__init__(begin_suppress_tokens)
        self.begin_index = begin_index

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if input_ids.shape[1] != self.begin_index:
            return scores
        return super().__call__(input_ids, scores)


class ForcedBOSTokenLogitsProcessor(LogitsProcessor):
    """The token that comes after a single one.

    >>> forced = votive.generation.ForcedBOSTokenLogitsProcessor(1)
    >>> forced(votive.tensor([[0]]), votive.zeros(1, 2))
    tensor([[-inf, 0.]])
    """

    def __init__(self, bos_token_id: int) -> None:
        self.length, self.tokens = 1, _Tokens(bos_token_id)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if input_ids.shape[1] != self.length:
            return scores
        return self.tokens.filled(votive.full_like(scores, -math.inf), 0.0)


class ForcedEOSTokenLogitsProcessor(ForcedBOSTokenLogitsProcessor):
    """The token that comes last, where the longest text ends.

    >>> forced = votive.generation.ForcedEOSTokenLogitsProcessor(2, 1)
    >>> forced(votive.tensor([[0]]), votive.zeros(1, 2))
    tensor([[-inf, 0.]])
    """

    def __init__(self, max_length: int, eos_token_id: int | Iterable[int]) -> None:
        self.length, self.tokens = max_length - 1, _Tokens(eos_token_id)


class InfNanRemoveLogitsProcessor(LogitsProcessor):
    """Zero for NaN, the largest and smallest finite numbers for infinities.

    >>> removed = votive.generation.InfNanRemoveLogitsProcessor()
    >>> removed(None, votive.tensor([[votive.nan, 1.0]]))
    tensor([[0., 1.]])
    """

    reads = False

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        return votive.nan_to_num(scores)


class ExponentialDecayLengthPenalty(LogitsProcessor):
    """An end that becomes likelier with each token past a number of them, by powers of a factor.

    >>> sooner = votive.generation.ExponentialDecayLengthPenalty((0, 2.0), 0, 0)
    >>> sooner(votive.tensor([[1]]), votive.tensor([[-1.0, 1.0]]))
    tensor([[0., 1.]])
    """

    def __init__(
        self, exponential_decay_length_penalty: Any, eos_token_id: int | Iterable[int], input_ids_seq_length: int
    ) -> None:
        start, self.factor = exponential_decay_length_penalty
        self.start, self.eos = start + input_ids_seq_length, _Tokens(eos_token_id)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        past = input_ids.shape[1] - self.start
        if past <= 0:
            return scores
        raised = scores + scores.abs() * (self.factor**past - 1)
        raised = votive.where(scores.isfinite(), raised, scores)
        ends = self.eos.filled(votive.zeros_like(scores), 1.0)
        return votive.where(ends > 0, raised, scores)


class LogitNormalization(LogitsProcessor):
    """Scores made logarithms of probabilities.

    >>> votive.generation.LogitNormalization()(None, votive.zeros(1, 1))
    tensor([[0.]])
    """

    reads = False

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        return F.log_softmax(scores, -1)
