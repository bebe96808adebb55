"""What models of pictures refuse, keep and allow; nothing else need be installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import votive
import votive.models as models
from tests import tiny_sizes

SEES: dict[str, Any] = {**tiny_sizes.transformer(16, 20, layers=2, heads=4), "image_size": 16, "patch_size": 8}
WRITES: dict[str, Any] = {
    "vocab_size": 24,
    **tiny_sizes.trocr(16, 20, layers=2, heads=4),
    "max_position_embeddings": 16,
}


def reader(**more: Any) -> Any:
    return models.ViTModel(models.ViTConfig(**{**SEES, **more})).eval()


def ocr(**more: Any) -> Any:
    config = models.VisionEncoderDecoderConfig(
        encoder=models.ViTConfig(**SEES), decoder=models.TrOCRConfig(**{**WRITES, **more})
    )
    return models.VisionEncoderDecoderModel(config).eval()


def test_pictures_of_another_size_are_refused_with_the_way_out() -> None:
    with pytest.raises(ValueError, match="interpolate_pos_encoding=True"):
        reader()(votive.ones(1, 3, 24, 24))
    assert reader()(votive.ones(1, 3, 24, 24), interpolate_pos_encoding=True)[0].shape[1] == 10


@pytest.mark.parametrize("shape", [(1, 1, 16, 16), (3, 16, 16)])
def test_what_are_no_pictures_is_said(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="pixel_values must be pictures"):
        reader()(votive.ones(*shape))


def test_patches_are_hidden_only_with_a_token_for_them() -> None:
    with pytest.raises(ValueError, match="use_mask_token=True"):
        reader()(votive.ones(1, 3, 16, 16), bool_masked_pos=votive.ones(1, 4))


@pytest.mark.parametrize("wrong", [{"hidden_size": 15}, {"patch_size": 32}, {"image_size": [16, 4]}])
def test_numbers_that_do_not_go_together_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="ViTConfig"):
        models.ViTConfig(**{**SEES, **wrong})


def test_an_empty_batch_and_double_precision_work() -> None:
    model = reader().double()
    found = model(votive.ones(0, 3, 16, 16))
    assert found.last_hidden_state.shape == (0, 5, 16)
    assert found.last_hidden_state.dtype == votive.float64


def test_stochastic_depth_only_acts_in_training() -> None:
    config = models.BeitConfig(**SEES, drop_path_rate=0.9)
    model, x = models.BeitModel(config), votive.rand(8, 3, 16, 16)
    with votive.no_grad():
        assert votive.equal(model.eval()(x)[0], model(x)[0])
        votive.manual_seed(0)
        assert not votive.equal(model.train()(x)[0], model(x)[0])


def test_a_text_that_is_too_long_for_clip_is_refused() -> None:
    config = models.CLIPTextConfig(
        **tiny_sizes.transformer(8, 8, layers=1, heads=2, vocab=9), max_position_embeddings=4
    )
    with pytest.raises(ValueError, match="5 tokens"):
        models.CLIPTextModel(config)(votive.ones(1, 5, dtype=votive.int64))


def test_clip_takes_configurations_of_its_sides_only() -> None:
    with pytest.raises(TypeError, match="text_config"):
        models.CLIPConfig(text_config=models.CLIPVisionConfig())


def test_the_decoder_needs_a_text_to_begin_with() -> None:
    with pytest.raises(ValueError, match="decoder_start_token_id=2"):
        ocr()(votive.ones(1, 3, 16, 16))
    with pytest.raises(ValueError, match="pixel_values"):
        ocr().generate()


def test_positions_that_were_not_learned_are_refused() -> None:
    with pytest.raises(IndexError, match="max_position_embeddings=16"):
        ocr()(votive.ones(1, 3, 16, 16), votive.ones(1, 17, dtype=votive.int64))


def test_computed_positions_grow_as_they_are_needed() -> None:
    model = ocr(use_learned_position_embeddings=False)
    ids = votive.full((1, 40), 5)
    assert model(votive.ones(1, 3, 16, 16), ids).logits.shape == (1, 40, 24)


def test_other_decoders_cannot_look_at_pictures() -> None:
    config = models.VisionEncoderDecoderConfig(
        encoder=models.ViTConfig(**SEES), decoder={"model_type": "gpt2", "n_embd": 16, "n_head": 2}
    )
    with pytest.raises(ValueError, match="TrOCR"):
        models.VisionEncoderDecoderModel(config)


def test_a_decoder_without_eyes_refuses_a_picture() -> None:
    model = models.TrOCRForCausalLM(models.TrOCRConfig(**WRITES))
    ids = votive.ones(1, 2, dtype=votive.int64)
    with pytest.raises(ValueError, match="is_decoder=True"):
        model(ids, encoder_hidden_states=votive.ones(1, 5, 16))


def test_tied_words_stay_tied_through_a_file(tmp_path: Path) -> None:
    for tied in (True, False):
        model = ocr(tie_word_embeddings=tied)
        model.save_pretrained(tmp_path / str(tied))
        again = models.VisionEncoderDecoderModel.from_pretrained(tmp_path / str(tied))
        words = again.decoder.get_input_embeddings().weight
        assert (again.decoder.output_projection.weight is words) == tied
        x, ids = votive.rand(1, 3, 16, 16), votive.tensor([[2, 5, 6]])
        with votive.no_grad():
            assert votive.equal(model(x, ids).logits, again(x, ids).logits)


def test_a_model_is_made_of_the_folders_of_its_parts(tmp_path: Path) -> None:
    reader().save_pretrained(tmp_path / "sees")
    models.TrOCRForCausalLM(models.TrOCRConfig(**WRITES)).save_pretrained(tmp_path / "writes")
    with pytest.warns(UserWarning, match="encoder_attn"):
        model = models.VisionEncoderDecoderModel.from_encoder_decoder_pretrained(tmp_path / "sees", tmp_path / "writes")
    assert model(votive.rand(1, 3, 16, 16), votive.tensor([[2]])).logits.shape == (1, 1, 24)


def test_padding_in_front_changes_nothing_with_positions() -> None:
    model = models.TrOCRForCausalLM(models.TrOCRConfig(**WRITES)).eval()
    short = model.generate([[2, 7, 9]], max_new_tokens=4)
    both = model.generate([[2, 7, 9], [2, 7, 9, 4, 5]], max_new_tokens=4)
    assert both[0, 2:].tolist()[: short.shape[1]] == short[0].tolist()


def test_sampling_from_a_picture_repeats_with_its_seed() -> None:
    model, x = ocr(), votive.rand(2, 3, 16, 16)
    asked = {"do_sample": True, "seed": 3, "max_new_tokens": 6}
    assert model.generate(x, **asked).tolist() == model.generate(x, **asked).tolist()
