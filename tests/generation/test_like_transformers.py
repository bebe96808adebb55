"""Whole searches against transformers' generate, on the same weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.generation import generate

pytestmark = pytest.mark.parity

CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "no cache": {"use_cache": False},
    "penalty": {"repetition_penalty": 1.4},
    "no pair twice": {"no_repeat_ngram_size": 2},
    "banned": {"bad_words_ids": [[3], [4, 5], [9, 9]], "suppress_tokens": [1, 2, 30]},
    "biased": {"sequence_bias": {(7,): 2.0, (8, 9): -3.0}},
    "at the beginning": {"begin_suppress_tokens": [5, 6, 7, 8, 9]},
    "at least": {"eos_token_id": [5, 6, 7, 8, 9, 10], "min_new_tokens": 4},
    "ends": {"eos_token_id": [5, 6, 7, 8, 9, 10, 11]},
    "forced end": {"forced_eos_token_id": 12},
    "sooner end": {"eos_token_id": 12, "exponential_decay_length_penalty": (2, 1.6)},
    "longest": {"max_new_tokens": None, "max_length": 9},
    "normalised": {"renormalize_logits": True},
}


@pytest.mark.parametrize("case", CASES)
def test_greedy_searches_agree_in_tokens_scores_and_logits(case: str) -> None:
    pytest.importorskip("transformers", reason="compares with transformers")
    from .compare import llamas, torch

    reference, ours = llamas(4)
    ask: dict[str, Any] = {
        "max_new_tokens": 12,
        "pad_token_id": 30,
        "return_dict_in_generate": True,
        "output_scores": True,
        "output_logits": True,
        "output_hidden_states": True,
        "output_attentions": True,
        # There, padding in a prompt counts as a repeated token; here it does not.
        "suppress_tokens": [30],
        **CASES[case],
    }
    ids = [[30, 30, 5, 9, 2], [1, 2, 3, 4, 6], [30, 8, 8, 8, 1]]
    mask = [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 1, 1, 1, 1]]
    theirs = reference.generate(torch.tensor(ids), attention_mask=torch.tensor(mask), **ask)
    found = generate(ours, votive.tensor(ids), attention_mask=votive.tensor(mask), **ask)
    assert found.sequences.tolist() == theirs.sequences.tolist()
    # A row that has ended is padded, and its scores mean nothing.
    for step, (a, b) in enumerate(zip(found.logits, theirs.logits, strict=True)):
        for row in range(3):
            ended = 30 in found.sequences[row, 5 : 5 + step].tolist()
            if not ended:
                assert abs(a[row].numpy() - b[row].numpy()).max() < 1e-3
                x, y = found.scores[step][row].numpy(), theirs.scores[step][row].numpy()
                np.testing.assert_allclose(x, y, rtol=0, atol=1e-3)
    for ours_, theirs_ in ((found.attentions, theirs.attentions), (found.hidden_states, theirs.hidden_states)):
        shapes = [[tuple(x.shape) for x in step] for step in ours_]
        assert shapes == [[tuple(x.shape) for x in step] for step in theirs_]
