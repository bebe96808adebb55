"""CLIP gives what transformers gives, from the same weights."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import votive
import votive.models as models

from .compare import BF16, agree, both, gradients_agree, pair, torch, transformers

pytestmark = pytest.mark.parity
LAYERS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40}
TEXT: dict[str, Any] = {
    **LAYERS,
    "vocab_size": 50,
    "max_position_embeddings": 12,
    "eos_token_id": 49,
    "projection_dim": 16,
    "bos_token_id": 48,
}
VISION: dict[str, Any] = {**LAYERS, "hidden_size": 24, "image_size": 32, "patch_size": 8, "projection_dim": 16}
IDS = [[48, 3, 7, 49, 1, 1], [48, 9, 12, 33, 20, 49], [48, 5, 49, 1, 1, 1]]


def fresh(use: str, dtype: Any = None, train: bool = False, **other: Any) -> Any:
    if use.startswith("Text"):
        config = transformers.CLIPTextConfig(**{**TEXT, **other})
    elif use.startswith("Vision"):
        config = transformers.CLIPVisionConfig(**{**VISION, **other})
    else:
        config = transformers.CLIPConfig(text_config={**TEXT, **other}, vision_config=VISION, projection_dim=16)
    theirs = getattr(transformers, f"CLIP{use}")
    return pair((theirs, config), getattr(models, f"CLIP{use}"), dtype=dtype, train=train)


@cache
def models_of(use: str = "Model", dtype: Any = None) -> Any:
    return fresh(use, dtype)


def given(size: tuple[int, int] = (32, 32)) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    values = np.random.default_rng(0).standard_normal((2, 3, *size)).astype(np.float32)
    return both(IDS), both(values)


def test_how_near_texts_and_pictures_are_agrees() -> None:
    reference, model = models_of()
    (ti, vi), (tp, vp) = given()
    asked = {"output_attentions": True, "output_hidden_states": True}
    with torch.no_grad(), votive.no_grad():
        expected, got = reference(ti, tp, **asked), model(vi, vp, **asked)
    for name in ("logits_per_image", "logits_per_text", "text_embeds", "image_embeds"):
        agree(got[name], expected[name])
    for side in ("text_model_output", "vision_model_output"):
        a, b = got[side], expected[side]
        agree(a.last_hidden_state, b.last_hidden_state)
        assert len(a.hidden_states) == len(b.hidden_states) == 3
        for x, y in zip([*a.hidden_states, *a.attentions], [*b.hidden_states, *b.attentions]):
            agree(x, y)


def test_padding_is_not_seen() -> None:
    reference, model = models_of()
    (ti, vi), (tp, vp) = given()
    tm, vm = both([[int(i != 1) for i in row] for row in IDS])
    with torch.no_grad(), votive.no_grad():
        expected = reference(ti, tp, attention_mask=tm).logits_per_image
        agree(model(vi, vp, attention_mask=vm).logits_per_image, expected)


@pytest.mark.parametrize("eos", [49, 2])
def test_features_agree_also_for_files_that_name_a_wrong_end(eos: int) -> None:
    reference, model = fresh("Model", eos_token_id=eos)
    (ti, vi), (tp, vp) = given()
    with torch.no_grad(), votive.no_grad():
        text, seen = reference.get_text_features(ti), reference.get_image_features(tp)
        agree(model.get_text_features(vi), getattr(text, "pooler_output", text))
        agree(model.get_image_features(vp), getattr(seen, "pooler_output", seen))


def test_the_contrastive_loss_and_its_gradients_agree() -> None:
    reference, model = fresh("Model", train=True)
    (ti, vi), (tp, vp) = given()
    expected = reference(ti[:2], tp, return_loss=True)
    got = model(vi[:2], vp, return_loss=True)
    agree(got.loss.reshape(1), expected.loss.reshape(1))
    expected.loss.backward()
    got.loss.backward()
    gradients_agree(reference, model, 2e-4)


@pytest.mark.parametrize("use", ["TextModel", "VisionModel", "TextModelWithProjection", "VisionModelWithProjection"])
def test_one_side_alone_agrees(use: str) -> None:
    reference, model = models_of(use)
    (ti, vi), (tp, vp) = given()
    t, v = (ti, vi) if use.startswith("Text") else (tp, vp)
    with torch.no_grad(), votive.no_grad():
        expected, got = reference(t), model(v)
    for name in expected:
        agree(got[name], expected[name])


def test_pictures_of_another_size_agree() -> None:
    reference, model = models_of("VisionModel")
    _, (tp, vp) = given((40, 24))
    with torch.no_grad(), votive.no_grad():
        expected = reference(tp, interpolate_pos_encoding=True)
        agree(model(vp, interpolate_pos_encoding=True).pooler_output, expected.pooler_output)


def test_a_head_of_classes_agrees() -> None:
    reference, model = models_of("ForImageClassification")
    _, (tp, vp) = given()
    with torch.no_grad(), votive.no_grad():
        agree(model(vp).logits, reference(tp).logits)


def test_bfloat16_agrees_as_far_as_it_can_tell() -> None:
    reference, model = models_of(dtype="bfloat16")
    (ti, vi), (tp, vp) = given()
    with torch.no_grad(), votive.no_grad():
        expected = reference(ti, tp.to(torch.bfloat16)).image_embeds
        agree(model(vi, vp.to(votive.bfloat16)).image_embeds, expected, BF16)


def test_folders_go_both_ways(tmp_path: Any) -> None:
    reference, model = models_of()
    (ti, vi), (tp, vp) = given()
    reference.save_pretrained(tmp_path / "theirs")
    model.save_pretrained(tmp_path / "ours")
    again = models.AutoModel.from_pretrained(tmp_path / "theirs")
    zero = models.AutoModelForZeroShotImageClassification.from_pretrained(tmp_path / "ours")
    assert type(again) is type(zero) is models.CLIPModel
    theirs = transformers.CLIPModel.from_pretrained(tmp_path / "ours").eval()
    with torch.no_grad(), votive.no_grad():
        expected = reference(ti, tp).logits_per_image
        for found in (again, zero):
            agree(found(vi, vp).logits_per_image, expected)
        agree(votive.tensor(theirs(ti, tp).logits_per_image.numpy()), expected)
        # One side is read from the folder of both.
        text = models.CLIPTextModelWithProjection.from_pretrained(tmp_path / "theirs")
        seen = models.CLIPVisionModelWithProjection.from_pretrained(tmp_path / "theirs")
        bare = models.CLIPTextModel.from_pretrained(tmp_path / "theirs")
        agree(text(vi).text_embeds, text.text_projection(bare(vi).pooler_output))
        agree(seen(vp).image_embeds, model.get_image_features(vp))
