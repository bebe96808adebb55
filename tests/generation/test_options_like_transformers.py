"""Options of searches against transformers' generate, on the same weights."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import votive
from votive.generation import WatermarkDetector, generate

pytestmark = pytest.mark.parity

IDS = [[4, 9, 2, 5, 9, 2], [1, 2, 3, 4, 6, 1]]
GREEN = {"bias": 2.5, "greenlist_ratio": 0.4}
CASES: dict[str, dict[str, Any]] = {
    "guided": {"guidance_scale": 1.7},
    "guided without a cache": {"guidance_scale": 1.7, "use_cache": False},
    "guided towards": {"guidance_scale": 0.3},
    "tokens of the prompt": {"encoder_repetition_penalty": 1.8},
    "tokens not of the prompt": {"encoder_repetition_penalty": 0.6},
    "no token of the prompt": {"encoder_no_repeat_ngram_size": 1},
    "green": {"watermarking_config": GREEN},
    "longer memory": {"cache_implementation": "static", "max_cache_len": 40},
    "beams within lists": {"num_beams": 3},
    "sampled beams of one token": {"num_beams": 2, "do_sample": True, "top_h": 1e-6, "top_k": 0},
    "top_h leaves one": {"do_sample": True, "top_h": 1e-6},
}


def allowed(batch: int, ids: Any) -> list[int]:
    """Tokens that depend on the prompt and on the last token."""
    return [t for t in range(31) if (t + int(ids[-1]) + batch) % 3]


@pytest.mark.parametrize("case", CASES)
def test_options_give_the_tokens_of_transformers(case: str) -> None:
    pytest.importorskip("transformers", reason="compares with transformers")
    from .compare import llamas, torch, transformers

    reference, ours = llamas(4)
    ask = {"max_new_tokens": 10, "pad_token_id": 30, **CASES[case]}
    theirs, mine = dict(ask), dict(ask)
    if "watermarking_config" in ask:
        theirs["watermarking_config"] = transformers.WatermarkingConfig(**ask["watermarking_config"])
    if "within lists" in case:
        theirs["prefix_allowed_tokens_fn"] = mine["prefix_allowed_tokens_fn"] = allowed
    if case == "guided":
        theirs["negative_prompt_ids"] = torch.tensor([[3, 3], [5, 6]])
        mine["negative_prompt_ids"] = votive.tensor([[3, 3], [5, 6]])
    expected = reference.generate(torch.tensor(IDS), attention_mask=torch.ones(2, 6), **theirs)
    assert generate(ours, votive.tensor(IDS), **mine).tolist() == expected.tolist()
    plain = generate(ours, votive.tensor(IDS), max_new_tokens=10).tolist()
    alike = {"cache_implementation", "top_h"} & set(CASES[case])
    assert alike or plain != expected.tolist(), "the option does something"


def test_embeddings_are_continued_as_there() -> None:
    pytest.importorskip("transformers", reason="compares with transformers")
    from .compare import llamas, torch

    reference, ours = llamas(4)
    votive.manual_seed(0)
    embeds = votive.randn(2, 5, 16)
    masks = votive.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]), votive.ones(2, 5, dtype=votive.int64)
    cases: list[dict[str, Any]] = [
        {"max_new_tokens": 7},
        {"max_length": 12},
        {"max_new_tokens": 7, "num_beams": 3},
        # There, the length of the padding is taken off the new tokens.
        {"max_new_tokens": 7, "no_repeat_ngram_size": 1, "attention_mask": masks[1]},
    ]
    for case in cases:
        ask = {"pad_token_id": 30, "attention_mask": masks[0], **case}
        there = {**ask, "attention_mask": torch.tensor(ask["attention_mask"].numpy())}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = reference.generate(inputs_embeds=torch.tensor(embeds.numpy()), **there).tolist()
        for way in ({}, {"use_cache": False}, {"prefill_chunk_size": 2}, {"cache_implementation": "static"}):
            assert generate(ours, inputs_embeds=embeds, **ask, **way).tolist() == expected
    ids = votive.tensor(IDS)
    known = ours.get_input_embeddings()(ids)
    both = generate(ours, ids, inputs_embeds=known, max_new_tokens=6)
    assert both.tolist() == generate(ours, ids, max_new_tokens=6).tolist()


def test_watermarks_of_one_are_seen_by_the_other() -> None:
    pytest.importorskip("transformers", reason="compares with transformers")
    from .compare import llamas, torch, transformers

    # There, selfhash takes a vocabulary of at least 40 tokens.
    reference, ours = llamas(4, vocab_size=64)
    for scheme in ({}, {"seeding_scheme": "selfhash", "context_width": 3}):
        # The first token of texts would be taken for their beginning.
        ask: dict[str, Any] = {"max_new_tokens": 60, "do_sample": True, "seed": 1, "suppress_tokens": [1]}
        config = {**GREEN, "hashing_key": 17, **scheme}
        text = generate(ours, votive.tensor(IDS), **ask, watermarking_config=config)
        plain = generate(ours, votive.tensor(IDS), **ask)
        there = transformers.WatermarkDetector(reference.config, "cpu", transformers.WatermarkingConfig(**config))
        here = WatermarkDetector(ours.config, watermarking_config=config)
        for ids in (text[:, 6:], plain[:, 6:]):
            a, b = here(ids, return_dict=True), there(torch.tensor(ids.numpy()), return_dict=True)
            for name in ("num_tokens_scored", "num_green_tokens", "z_score", "p_value", "prediction"):
                np.testing.assert_allclose(getattr(a, name), getattr(b, name))
        assert here(text[:, 6:], return_dict=True).z_score.mean() > here(plain[:, 6:], return_dict=True).z_score.mean()


def test_top_h_leaves_the_tokens_that_it_leaves_there() -> None:
    transformers = pytest.importorskip("transformers", reason="compares with transformers")
    import torch

    rng = np.random.default_rng(0)
    for size, sharp in ((7, 1.0), (300, 3.0), (50, 0.2)):
        scores = rng.normal(size=(4, size)).astype(np.float32) * sharp
        scores[0, :3] = -np.inf
        for share in (0.1, 0.5, 0.9):
            ours = votive.generation.TopHLogitsWarper(share)(None, votive.tensor(scores)).numpy()
            theirs = transformers.TopHLogitsWarper(share)(None, torch.tensor(scores)).numpy()
            np.testing.assert_array_equal(ours, theirs)


def test_what_was_read_is_banned_as_there() -> None:
    transformers = pytest.importorskip("transformers", reason="compares with transformers")
    import torch

    rng = np.random.default_rng(0)
    for size in (1, 2, 3):
        read, ids = rng.integers(0, 4, (2, 9)), rng.integers(0, 4, (4, 5))
        scores = rng.normal(size=(4, 6)).astype(np.float32)
        ours = votive.generation.EncoderNoRepeatNGramLogitsProcessor(size, votive.tensor(read))
        theirs = transformers.EncoderNoRepeatNGramLogitsProcessor(size, torch.tensor(read))
        found = ours(votive.tensor(ids), votive.tensor(scores)).numpy()
        np.testing.assert_array_equal(found, theirs(torch.tensor(ids), torch.tensor(scores)).numpy())
        assert np.isinf(found).any()
