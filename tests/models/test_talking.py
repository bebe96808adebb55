"""Decoders that read pictures write what transformers' write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive

from .compare import torch
from .seeing import ROWS, inputs, models_of
from .seen import talking

pytestmark = pytest.mark.parity
SETTINGS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "beams": {"num_beams": 3},
    "without a cache": {"use_cache": False},
    "sampled beams' penalties": {"num_beams": 2, "repetition_penalty": 1.3, "no_repeat_ngram_size": 2},
}


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("name", talking.ROWS)
def test_texts_are_written_alike(name: str, settings: str) -> None:
    reference, model = models_of(name)
    t, v = inputs(name)
    asked = {"max_new_tokens": 6, "min_new_tokens": 6, **SETTINGS[settings]}
    with torch.no_grad():
        expected = reference.generate(**t, **asked, do_sample=False)
    assert model.generate(**v, **asked).tolist() == expected.tolist()


@pytest.mark.parametrize("name", talking.ROWS)
def test_a_text_without_pictures_is_continued(name: str) -> None:
    reference, model = models_of(name)
    ids = [[5, 7, 9, 11], [3, 8, 4, 6]]
    with torch.no_grad():
        expected = reference.generate(torch.tensor(ids), max_new_tokens=4, min_new_tokens=4, do_sample=False)
    assert model.generate(ids, max_new_tokens=4, min_new_tokens=4).tolist() == expected.tolist()


@pytest.mark.parametrize("name", talking.ROWS)
def test_embeddings_may_come_instead_of_ids(name: str) -> None:
    _, model = models_of(name)
    if model.config.image_token_id >= model.config.vocab_size:
        pytest.skip("the token has no embedding")
    _, v = inputs(name)
    if "mm_token_type_ids" in v:
        pytest.skip("places are counted in ids")
    ids = v.pop("input_ids")
    with votive.no_grad():
        expected = model(ids, **v).logits
        embeds = model.text_embeds(ids, None, None)
        assert votive.allclose(model(inputs_embeds=embeds, **v).logits, expected, atol=1e-5)


@pytest.mark.parametrize("name", talking.ROWS)
def test_a_text_without_its_pictures_is_refused(name: str) -> None:
    _, model = models_of(name)
    _, v = inputs(name)
    ids = v["input_ids"].clone()
    ids[0, int(np.argmax(ids[0].numpy() == talking.IMAGE))] = 4
    with pytest.raises(ValueError, match="tokens that stand for pictures"), votive.no_grad():
        model(**{**v, "input_ids": ids})


def test_rows_are_known() -> None:
    assert set(talking.ROWS) <= set(ROWS)
