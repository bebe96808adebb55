"""Processors of scores: known cases, and that transformers' give the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive
from votive import generation as g

INF = math.inf
# name: (processor, ids, scores, expected); worked out by hand.
GOLDEN: dict[str, tuple[Callable[[], Any], Any, Any, Any]] = {
    "temperature": (lambda: g.TemperatureLogitsWarper(0.5), [[0]], [[1, -2, 0]], [[2, -4, 0]]),
    "top-k": (lambda: g.TopKLogitsWarper(2), [[0]], [[1, 3, 2, 0]], [[-INF, 3, 2, -INF]]),
    "top-k with ties": (lambda: g.TopKLogitsWarper(2), [[0]], [[1, 3, 1, 0]], [[1, 3, 1, -INF]]),
    "top-k of more than there are": (lambda: g.TopKLogitsWarper(9), [[0]], [[1, 3]], [[1, 3]]),
    # Probabilities 0.5, 0.25, 0.125, 0.125.
    "top-p": (lambda: g.TopPLogitsWarper(0.7), [[0]], [[3, 2, 1, 1]], "log2", [[1, 1, 0, 0]]),
    "top-p of the best alone": (lambda: g.TopPLogitsWarper(0.4), [[0]], [[3, 2, 1, 1]], "log2", [[1, 0, 0, 0]]),
    "top-p keeping two": (
        lambda: g.TopPLogitsWarper(0.4, min_tokens_to_keep=2),
        [[0]],
        [[3, 2, 1, 1]],
        "log2",
        [[1, 1, 0, 0]],
    ),
    "min-p": (lambda: g.MinPLogitsWarper(0.3), [[0]], [[3, 2, 1, 1]], "log2", [[1, 1, 0, 0]]),
    "min-p keeping three": (
        lambda: g.MinPLogitsWarper(0.9, min_tokens_to_keep=2),
        [[0]],
        [[3, 2, 1, 0]],
        "log2",
        [[1, 1, 0, 0]],
    ),
    # The entropy is 1.75 bits: 2 bits of surprise are nearest to it.
    "typical": (lambda: g.TypicalLogitsWarper(0.2), [[0]], [[3, 2, 1, 1]], "log2", [[0, 1, 0, 0]]),
    "epsilon": (lambda: g.EpsilonLogitsWarper(0.2), [[0]], [[3, 2, 1, 1]], "log2", [[1, 1, 0, 0]]),
    "epsilon above all": (lambda: g.EpsilonLogitsWarper(0.9), [[0]], [[3, 2, 1, 1]], "log2", [[1, 0, 0, 0]]),
    # min(0.2, sqrt(0.2) * exp(-1.75 log 2)) = 0.133
    "eta": (lambda: g.EtaLogitsWarper(0.2), [[0]], [[3, 2, 1, 1]], "log2", [[1, 1, 0, 0]]),
    "repetition": (lambda: g.RepetitionPenaltyLogitsProcessor(2.0), [[0, 1, 1]], [[1, -1, 1, -1]], [[0.5, -2, 1, -1]]),
    "repetition without padding": (
        lambda: g.RepetitionPenaltyLogitsProcessor(2.0, prompt_mask=votive.tensor([[0, 1], [1, 1]])),
        [[3, 0, 1], [3, 0, 1]],
        [[1, 1, 1, 1], [1, 1, 1, 1]],
        [[0.5, 0.5, 1, 1], [0.5, 0.5, 1, 0.5]],
    ),
    "repetition of ids outside": (lambda: g.RepetitionPenaltyLogitsProcessor(2.0), [[0, 9]], [[1, 1]], [[0.5, 1]]),
    "presence": (lambda: g.PresencePenaltyLogitsProcessor(0.5, 1), [[0, 1, 1]], [[1, 1, 1]], [[1, 0.5, 1]]),
    "frequency": (lambda: g.FrequencyPenaltyLogitsProcessor(0.5, 1), [[0, 1, 1]], [[1, 1, 1]], [[1, 0, 1]]),
    "frequency before the first token": (
        lambda: g.FrequencyPenaltyLogitsProcessor(0.5, 3),
        [[0, 1, 1]],
        [[1, 1]],
        [[1, 1]],
    ),
    "no pair twice": (
        lambda: g.NoRepeatNGramLogitsProcessor(2),
        [[0, 1, 0, 2, 0], [1, 1, 2, 0, 1]],
        [[1, 1, 1], [1, 1, 1]],
        [[1, -INF, -INF], [1, -INF, -INF]],
    ),
    "no token twice": (lambda: g.NoRepeatNGramLogitsProcessor(1), [[0, 2]], [[1, 1, 1]], [[-INF, 1, -INF]]),
    "no pair twice, padding aside": (
        lambda: g.NoRepeatNGramLogitsProcessor(2, votive.tensor([[0, 0, 1]])),
        [[0, 0, 0]],
        [[1, 1]],
        [[1, 1]],
    ),
    "too short for a triple": (lambda: g.NoRepeatNGramLogitsProcessor(3), [[0, 0]], [[1, 1]], [[1, 1]]),
    "bad words": (
        lambda: g.NoBadWordsLogitsProcessor([[2], [0, 1], [1, 0, 0]], 2),
        [[1, 0], [0, 1]],
        [[1, 1, 1], [1, 1, 1]],
        [[-INF, -INF, 1], [1, 1, 1]],
    ),
    "only an end is bad": (lambda: g.NoBadWordsLogitsProcessor([[1]], [1]), [[0]], [[1, 1]], [[1, 1]]),
    "bias": (
        lambda: g.SequenceBiasLogitsProcessor([[[0, 1], 2.0], [[2], -1.0]]),
        [[0], [1]],
        [[1, 1, 1], [1, 1, 1]],
        [[1, 3, 0], [1, 1, 0]],
    ),
    "minimum length": (lambda: g.MinLengthLogitsProcessor(2, [0, 2]), [[1]], [[1, 1, 1]], [[-INF, 1, -INF]]),
    "minimum length reached": (lambda: g.MinLengthLogitsProcessor(2, 0), [[1, 1]], [[1, 1]], [[1, 1]]),
    "minimum of new tokens": (lambda: g.MinNewTokensLengthLogitsProcessor(2, 1, 0), [[1, 1]], [[1, 1]], [[-INF, 1]]),
    "suppressed": (lambda: g.SuppressTokensLogitsProcessor([0, 9]), [[1]], [[1, 1]], [[-INF, 1]]),
    "suppressed at the beginning": (
        lambda: g.SuppressTokensAtBeginLogitsProcessor([0], 1),
        [[1]],
        [[1, 1]],
        [[-INF, 1]],
    ),
    "no longer at the beginning": (
        lambda: g.SuppressTokensAtBeginLogitsProcessor([0], 1),
        [[1, 1]],
        [[1, 1]],
        [[1, 1]],
    ),
    "forced first": (lambda: g.ForcedBOSTokenLogitsProcessor(1), [[0]], [[5, 1]], [[-INF, 0]]),
    "forced last": (lambda: g.ForcedEOSTokenLogitsProcessor(3, [1]), [[0, 0]], [[5, 1]], [[-INF, 0]]),
    "not last": (lambda: g.ForcedEOSTokenLogitsProcessor(3, 1), [[0]], [[5, 1]], [[5, 1]]),
    "sooner end": (
        lambda: g.ExponentialDecayLengthPenalty((1, 2.0), [0], 1),
        [[1, 1, 1, 1]],
        [[-2, 1]],
        [[-2 + 2 * 3, 1]],
    ),
    "not numbers": (lambda: g.InfNanRemoveLogitsProcessor(), [[0]], [[math.nan, 1]], [[0, 1]]),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_processor_does_what_was_worked_out(name: str) -> None:
    make, ids, values, *expected = GOLDEN[name]
    scores = votive.tensor(values, dtype=votive.float32)
    wanted = votive.tensor(expected[-1], dtype=votive.float32)
    if expected[0] == "log2":  # scores are powers of two, and what is expected who stays
        scores = scores * math.log(2)
        wanted = votive.where(wanted > 0, scores, -INF)
    before = scores.clone()
    found = make()(votive.tensor(ids), scores)
    assert found.tolist() == wanted.tolist()
    assert np.array_equal(scores.numpy(), before.numpy(), equal_nan=True), "the scores it was given"


def test_normalised_scores_are_log_probabilities() -> None:
    found = g.LogitNormalization()(None, votive.tensor([[1.0, 2.0, -INF]]))
    assert found.exp().sum().item() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: g.TemperatureLogitsWarper(0.0), "set do_sample=False"),
        (lambda: g.TopKLogitsWarper(0), "top_k must be a positive integer"),
        (lambda: g.TopPLogitsWarper(1.5), "top_p must be between 0 and 1"),
        (lambda: g.TopPLogitsWarper(0.5, min_tokens_to_keep=0), "min_tokens_to_keep"),
        (lambda: g.MinPLogitsWarper(-0.1), "min_p must be"),
        (lambda: g.TypicalLogitsWarper(1.0), "typical_p must be above 0 and below 1"),
        (lambda: g.RepetitionPenaltyLogitsProcessor(0.0), "above 0"),
        (lambda: g.FrequencyPenaltyLogitsProcessor(INF), "finite"),
        (lambda: g.NoRepeatNGramLogitsProcessor(0), "positive integer"),
        (lambda: g.NoBadWordsLogitsProcessor([]), "list of lists"),
        (lambda: g.NoBadWordsLogitsProcessor([3]), "list of lists"),  # type: ignore[list-item]
        (lambda: g.SequenceBiasLogitsProcessor({(): 1.0}), "sequences of token ids"),
        (lambda: g.SuppressTokensLogitsProcessor([-1]), "must not be negative"),
        (lambda: g.MinLengthLogitsProcessor(-1, 0), "at least 0"),
    ],
)
def test_a_processor_that_makes_no_sense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_bias_for_a_token_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"vocabulary has 2 tokens; there are no \[7\]"):
        g.SequenceBiasLogitsProcessor({(7,): 1.0})(votive.tensor([[0]]), votive.zeros(1, 2))


# The arguments of each class, the same here and there.
SAME: dict[str, list[tuple[Any, ...]]] = {
    "TemperatureLogitsWarper": [(0.7,), (3.0,)],
    "TopKLogitsWarper": [(1,), (5,), (40,)],
    "TopPLogitsWarper": [(0.1,), (0.5,), (0.95,), (0.5, -INF, 3)],
    "MinPLogitsWarper": [(0.0,), (0.05,), (0.6,), (0.99, -INF, 4)],
    "TypicalLogitsWarper": [(0.05,), (0.5,), (0.95,), (0.1, -INF, 3)],
    "EpsilonLogitsWarper": [(0.01,), (0.2,), (0.9, -INF, 2)],
    "EtaLogitsWarper": [(0.01,), (0.2,), (0.9, -INF, 2)],
    "RepetitionPenaltyLogitsProcessor": [(1.3,), (0.6,), (2.0, 4)],
    "NoRepeatNGramLogitsProcessor": [(1,), (2,), (3,), (12,)],
    "NoBadWordsLogitsProcessor": [([[3], [1, 2], [2, 0, 1], [5]], [5])],
    "SequenceBiasLogitsProcessor": [({(3,): 1.5, (1, 2): -2.0, (2, 0, 1): 0.5},)],
    "MinLengthLogitsProcessor": [(30, [4, 5]), (3, 4)],
    "MinNewTokensLengthLogitsProcessor": [(10, 5, [4, 5]), (1, 2, 4)],
    "SuppressTokensLogitsProcessor": [([1, 5, 9],)],
    "SuppressTokensAtBeginLogitsProcessor": [([1, 5], 12), ([1, 5], 11)],
    "ForcedBOSTokenLogitsProcessor": [(3,)],
    "ForcedEOSTokenLogitsProcessor": [(13, [3, 4]), (12, 3)],
    "InfNanRemoveLogitsProcessor": [()],
    "ExponentialDecayLengthPenalty": [((3, 1.2), [4, 5], 5), ((30, 1.2), 4, 5)],
    "LogitNormalization": [()],
}
# What is only compared or moved is equal to the bit.
EXACT = (
    "TopK",
    "TopP",
    "MinP",
    "Typical",
    "Epsilon",
    "Eta",
    "NoRepeat",
    "NoBadWords",
    "MinLength",
    "MinNew",
    "Suppress",
    "Forced",
    "Temperature",
    "Repetition",
)


@pytest.mark.parity
@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("some_forbidden", [False, True])
def test_transformers_processors_give_the_same(name: str, some_forbidden: bool) -> None:
    torch = pytest.importorskip("torch", reason="compares with torch")
    theirs = pytest.importorskip("transformers.generation.logits_process", reason="compares")
    rng = np.random.default_rng(3)
    for arguments in SAME[name]:
        for length in (12, 1):
            ids = rng.integers(0, 6, (4, length))
            scores = (rng.standard_normal((4, 37)) * 3).astype(np.float32)
            if some_forbidden:
                scores[:, ::5] = -np.inf
            expected = getattr(theirs, name)(*arguments)(torch.tensor(ids), torch.tensor(scores)).numpy()
            found = getattr(g, name)(*arguments)(votive.tensor(ids), votive.tensor(scores)).numpy()
            if name.startswith(EXACT):
                assert np.array_equal(found, expected), arguments
            else:
                np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
