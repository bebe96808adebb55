"""BLIP writes what transformers writes, and what it is given is prepared alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
import votive.models as models

from .compare import torch
from .seeing import inputs, models_of

SIDE = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
TEXT = {**SIDE, "vocab_size": 40, "bos_token_id": 38, "sep_token_id": 39, "initializer_range": 0.4}


def made(kind: str) -> Any:
    votive.manual_seed(0)
    seen = {**SIDE, "image_size": 16, "patch_size": 8, "initializer_range": 0.4}
    return getattr(models, kind)(models.BlipConfig(vision_config=seen, text_config=TEXT)).eval()


@pytest.mark.parity
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("name", ["blip", "blip answers"])
def test_what_is_written_is_what_transformers_writes(name: str, beams: int) -> None:
    reference, model = models_of(name)
    t, v = inputs(name)
    t, v = ({k: given[k] for k in ("pixel_values", "input_ids")} for given in (t, v))
    asked: dict[str, Any] = {"num_beams": beams, "do_sample": False, "min_new_tokens": 4, "max_new_tokens": 8}
    with torch.no_grad():
        want = reference.generate(**t, **asked)
    got = model.generate(**v, **asked)
    assert got.tolist() == want.tolist()


def test_a_text_goes_on_by_its_cache_as_without() -> None:
    model = made("BlipForConditionalGeneration")
    pixels = votive.rand(2, 3, 16, 16)
    asked: dict[str, Any] = {"do_sample": False, "min_new_tokens": 6, "max_new_tokens": 6}
    cached = model.generate(pixels, **asked)
    assert votive.equal(cached, model.generate(pixels, use_cache=False, **asked))
    begun = model.generate(pixels, votive.tensor([[1, 5, 7, 2]] * 2), **asked)
    assert begun[:, :3].tolist() == [[38, 5, 7]] * 2
    assert begun.shape == (2, 9)


def test_a_cut_of_a_picture_changes_what_is_written() -> None:
    model = made("BlipForConditionalGeneration")
    ids, pixels = votive.tensor([[38, 5, 7]]), votive.rand(1, 3, 16, 16)
    with votive.no_grad():
        one, other = model(pixels, ids).logits, model(-pixels, ids).logits
        past = model(pixels, votive.tensor([[38, 5, 9]])).logits
    assert not votive.allclose(one, other, atol=1e-3)
    assert votive.allclose(one[:, :2], past[:, :2], atol=1e-6), "a position saw a later one"


def test_what_is_wrong_is_told() -> None:
    model, answers = made("BlipForConditionalGeneration"), made("BlipForQuestionAnswering")
    pixels, ids = votive.rand(1, 3, 16, 16), votive.tensor([[38, 5, 7]])
    with pytest.raises(ValueError, match="give input_ids"):
        model(pixels)
    with pytest.raises(ValueError, match="same length"):
        model.generate(pixels, ids, votive.tensor([[1, 1, 0]]))
    with pytest.raises(ValueError, match="interpolate_pos_encoding"):
        model(votive.rand(1, 3, 24, 16), ids)
    with pytest.raises(ValueError, match="labels or decoder_input_ids"):
        answers(ids, pixels)
    with pytest.raises(ValueError, match=r"must be vision_config\.hidden_size"):
        models.BlipForQuestionAnswering(models.BlipConfig(vision_config=SIDE, text_config={**TEXT, "hidden_size": 8}))
    with pytest.raises(ValueError, match="max_position_embeddings"):
        model(pixels, votive.ones(1, 513, dtype=votive.int64))


def test_a_folder_gives_the_model_back(tmp_path: Path) -> None:
    for kind, auto in (
        ("BlipForConditionalGeneration", models.AutoModelForImageTextToText),
        ("BlipForQuestionAnswering", models.AutoModelForVisualQuestionAnswering),
    ):
        model = made(kind)
        model.save_pretrained(tmp_path / kind)
        again = auto.from_pretrained(tmp_path / kind)
        assert type(again) is type(model)
        for key, value in model.state_dict().items():
            assert votive.equal(value, again.state_dict()[key]), key


@pytest.mark.parity
def test_pictures_are_prepared_as_transformers_does_it(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("PIL")
    pixels = np.random.default_rng(0).integers(0, 256, (30, 50, 3), dtype=np.uint8)
    size = {"height": 24, "width": 24}
    theirs = transformers.models.blip.image_processing_pil_blip.BlipImageProcessorPil(size=size)
    ours = models.BlipProcessor(models.BlipImageProcessor(size=size), None)
    want, got = theirs(pixels, return_tensors="np"), ours(pixels, return_tensors="np")
    np.testing.assert_allclose(got["pixel_values"], want["pixel_values"], atol=2e-2)
    ours.save_pretrained(tmp_path)
    assert models.AutoImageProcessor.from_pretrained(tmp_path).size == size
