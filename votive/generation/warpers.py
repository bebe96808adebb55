"""What sampling does to scores: temperature, and the tokens that are left out.

Each is a small class, called with ids (batch, positions) and scores (batch, vocabulary), that
gives new scores; what is left out scores minus infinity. Names, order and results are those of
transformers. None knows a model.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import votive
from votive.core import dtype as dt
from votive.nn import functional as F

from ..tensor import Tensor

Processor = Callable[..., Tensor]  # of ids (batch, positions) and scores (batch, vocabulary)


class LogitsProcessor:
    """Gives new scores for the next token; any callable of ids and scores will do as well.

    >>> class Never(votive.generation.LogitsProcessor):
    ...     def __call__(self, input_ids, scores):
    ...         return scores.index_fill(1, votive.tensor([0]), -votive.inf)
    >>> Never()(None, votive.zeros(1, 2))
    tensor([[-inf, 0.]])
    """

    # Whether the ids are looked at; where nobody does they are not collected, and None comes.
    reads = True

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not say what it does to scores.")


class LogitsProcessorList(list[Processor]):
    """Processors that are applied one after the other.

    >>> half = votive.generation.TemperatureLogitsWarper(2.0)
    >>> votive.generation.LogitsProcessorList([half, half])(None, votive.tensor([[4.0]]))
    tensor([[1.]])
    """

    @property
    def read(self) -> bool:
        """Whether any of them looks at the ids."""
        return any(getattr(processor, "reads", True) for processor in self)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        for processor in self:
            scores = processor(input_ids, scores)
        return scores


class _Warper(LogitsProcessor):
    """Looks at the scores alone."""

    reads = False


def _share(name: str, value: float, *, open_high: bool = False) -> float:
    if not 0 <= value <= 1 or (open_high and not 0 < value < 1):
        rule = "between 0 and 1" if not open_high else "above 0 and below 1"
        raise ValueError(f"{name} must be {rule}, got {value}.")
    return float(value)


def _at_least(count: int) -> int:
    if not isinstance(count, int) or count < 1:
        raise ValueError(f"min_tokens_to_keep must be a positive integer, got {count!r}.")
    return count


def _without(scores: Tensor, order: Tensor, dropped: Tensor, value: float) -> Tensor:
    """Scores with a mask given in sorted order; `order` says which token each place is."""
    return scores.masked_fill(dropped.scatter(1, order, dropped), value)


class TemperatureLogitsWarper(_Warper):
    """Scores divided by the temperature: below 1 sharper, above 1 flatter.

    >>> votive.generation.TemperatureLogitsWarper(0.5)(None, votive.tensor([[1.0, 2.0]]))
    tensor([[2., 4.]])
    """

    def __init__(self, temperature: float) -> None:
        if not temperature > 0:
            raise ValueError(f"temperature must be above 0, got {temperature}; for greedy search, set do_sample=False.")
        self.temperature = float(temperature)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        return scores / self.temperature


class TopKLogitsWarper(_Warper):
    """The `top_k` best tokens; more where several score the same as the last of them.

    >>> votive.generation.TopKLogitsWarper(1)(None, votive.tensor([[1.0, 2.0]]))
    tensor([[-inf, 2.]])
    """

    def __init__(self, top_k: int, filter_value: float = -math.inf, min_tokens_to_keep: int = 1) -> None:
        if not isinstance(top_k, int) or top_k <= 0:
            raise ValueError(f"top_k must be a positive integer, got {top_k!r}.")
        self.top_k = max(top_k, _at_least(min_tokens_to_keep))
        self.filter_value = filter_value

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        best = votive.topk(scores, min(self.top_k, scores.shape[-1]))[0]
        return scores.masked_fill(scores < best[..., -1:], self.filter_value)


class TopPLogitsWarper(_Warper):
    """The fewest best tokens whose probabilities sum up to `top_p`.

    Holtzman et al. 2020, arXiv:1904.09751.

    >>> votive.generation.TopPLogitsWarper(0.5)(None, votive.tensor([[0.0, 1.0]]))
    tensor([[-inf, 1.]])
    """

    def __init__(self, top_p: float, filter_value: float = -math.inf, min_tokens_to_keep: int = 1) -> None:
        self.top_p = _share("top_p", top_p)
        self.filter_value, self.min_tokens_to_keep = filter_value, _at_least(min_tokens_to_keep)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        ordered, order = votive.sort(scores, dim=-1)
        dropped = F.softmax(ordered, -1).cumsum(-1) <= 1 - self.top_p
        dropped[..., -self.min_tokens_to_keep :] = False
        return _without(scores, order, dropped, self.filter_value)


class MinPLogitsWarper(_Warper):
    """The tokens at least `min_p` times as probable as the best.

    Nguyen et al. 2024, arXiv:2407.01082.

    >>> votive.generation.MinPLogitsWarper(0.5)(None, votive.tensor([[0.0, 1.0]]))
    tensor([[-inf, 1.]])
    """

    def __init__(self, min_p: float, filter_value: float = -math.inf, min_tokens_to_keep: int = 1) -> None:
        self.min_p = _share("min_p", min_p)
        self.filter_value, self.min_tokens_to_keep = filter_value, _at_least(min_tokens_to_keep)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        p = F.softmax(scores, -1)
        dropped = p < self.min_p * p.amax(-1, keepdim=True)
        if self.min_tokens_to_keep > 1:  # the best one stays anyway
            best = votive.topk(p, min(self.min_tokens_to_keep, p.shape[-1]))[1]
            dropped = dropped.scatter(1, best, False)
        return scores.masked_fill(dropped, self.filter_value)


class TypicalLogitsWarper(_Warper):
    """The tokens whose surprise is nearest to the expected one, up to a probability of `mass`.

    Meister et al. 2022, arXiv:2202.00666.

    >>> scores = votive.tensor([[0.1, 0.2, 0.7]]).log()
    >>> votive.generation.TypicalLogitsWarper(0.5)(None, scores).isfinite()
    tensor([[False, False,  True]])
    """

    def __init__(self, mass: float = 0.9, filter_value: float = -math.inf, min_tokens_to_keep: int = 1) -> None:
        self.mass = _share("typical_p", mass, open_high=True)
        self.filter_value, self.min_tokens_to_keep = filter_value, _at_least(min_tokens_to_keep)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        logs = F.log_softmax(scores, -1)
        entropy = -(logs * logs.exp()).nansum(-1, keepdim=True)
        away, order = votive.sort((-logs - entropy).abs(), dim=-1)
        total = F.softmax(scores.gather(-1, order), -1).cumsum(-1)
        last = (total < self.mass).sum(1, keepdim=True).clamp(max=scores.shape[-1] - 1)
        dropped = away > away.gather(1, last)
        dropped[..., : self.min_tokens_to_keep] = False
        return _without(scores, order, dropped, self.filter_value)


def _keeping_best(scores: Tensor, dropped: Tensor, count: int, value: float) -> Tensor:
    best = votive.topk(scores, min(count, scores.shape[-1]))[0]
    return scores.masked_fill(dropped & (scores < best[..., -1:]), value)


class EpsilonLogitsWarper(_Warper):
    """The tokens with a probability of at least `epsilon`. Hewitt et al. 2022, arXiv:2210.15191.

    >>> votive.generation.EpsilonLogitsWarper(0.4)(None, votive.tensor([[0.0, 1.0]]))
    tensor([[-inf, 1.]])
    """

    def __init__(self, epsilon: float, filter_value: float = -math.inf, min_tokens_to_keep: int = 1) -> None:
        self.epsilon = _share("epsilon_cutoff", epsilon, open_high=True)
        self.filter_value, self.min_tokens_to_keep = filter_value, _at_least(min_tokens_to_keep)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        dropped = F.softmax(scores, -1) < self.epsilon
        return _keeping_best(scores, dropped, self.min_tokens_to_keep, self.filter_value)


class EtaLogitsWarper(_Warper):
    """The tokens above a threshold that falls with the entropy. Hewitt et al. 2022.

    >>> votive.generation.EtaLogitsWarper(0.9)(None, votive.tensor([[0.0, 3.0]]))
    tensor([[-inf, 3.]])
    """

    def __init__(self, epsilon: float, filter_value: float = -math.inf, min_tokens_to_keep: int = 1) -> None:
        self.epsilon = _share("eta_cutoff", epsilon, open_high=True)
        self.filter_value, self.min_tokens_to_keep = filter_value, _at_least(min_tokens_to_keep)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        p = F.softmax(scores, -1)
        # A forbidden token counts nothing here: 0 log 0 is 0.
        entropy = -(p * F.log_softmax(scores, -1)).nansum(-1, keepdim=True)
        eta = (math.sqrt(self.epsilon) * (-entropy).exp()).clamp(max=self.epsilon)
        return _keeping_best(scores, p < eta, self.min_tokens_to_keep, self.filter_value)


class TopHLogitsWarper(_Warper):
    """The best of the 100 best tokens, up to a share `top_h` of their entropy.

    Potraghloo et al. 2025, arXiv:2509.02510.

    >>> votive.generation.TopHLogitsWarper(0.5)(None, votive.tensor([[0.0, 3.0]]))
    tensor([[-inf, 3.]])
    """

    MOST = 100

    def __init__(self, top_h: float, filter_value: float = -math.inf) -> None:
        if not 0 < top_h <= 1:
            raise ValueError(f"top_h must be above 0 and at most 1, got {top_h}.")
        self.top_h, self.filter_value = float(top_h), filter_value

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        best, places = votive.topk(scores, min(self.MOST, scores.shape[-1]))
        logs = F.log_softmax(best, -1)
        parts = -(logs.exp() * logs)  # of what is forbidden not a number
        budget = self.top_h * parts.nansum(-1, keepdim=True)
        kept = parts.cumsum(-1) <= budget
        kept[:, 0] = True
        keep = votive.zeros_like(scores, dtype=dt.bool_).scatter(1, places, kept)
        return scores.masked_fill(~keep, self.filter_value)
