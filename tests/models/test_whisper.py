"""Whisper gives what transformers gives, from the same weights."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
import votive.models as models
from tests import tiny_sizes
from votive.models.whisper import SIZES

from .compare import BF16, agree, arrays, both, gradients_agree, pair, torch, transformers

pytestmark = pytest.mark.parity
SPECIAL = {
    "decoder_start_token_id": 51,
    "pad_token_id": 50,
    "eos_token_id": 50,
    "bos_token_id": 50,
    "begin_suppress_tokens": [4, 50],
}
SMALL = {
    "vocab_size": 90,
    **tiny_sizes.whisper(32, layers=(2, 2), heads=4),
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_source_positions": 20,
    "max_target_positions": 32,
    **SPECIAL,
}
TINY = {"d_model": 384, "encoder_layers": 4, "decoder_layers": 4}
BASE = {**tiny_sizes.whisper(512, layers=(6, 6), heads=8), "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048}
# As large-v3-turbo in all but its width and the number of its encoder's layers.
TURBO = {
    **tiny_sizes.whisper(160, layers=(8, 4), heads=20),
    "encoder_ffn_dim": 640,
    "decoder_ffn_dim": 640,
    "num_mel_bins": 128,
    "vocab_size": 51866,
}


@cache
def small(dtype: Any = None) -> Any:
    return fresh(dtype=dtype)


def fresh(dtype: Any = None, train: bool = False, use: str = "ForConditionalGeneration", **other: Any) -> Any:
    config = transformers.WhisperConfig(**{**SMALL, **other})
    theirs = (getattr(transformers, f"Whisper{use}"), config)
    return pair(theirs, getattr(models, f"Whisper{use}"), dtype=dtype, train=train)


def mels(rows: int = 2, config: Any = None, seed: int = 0) -> tuple[Any, Any]:
    bins = 80 if config is None else config.num_mel_bins
    frames = 40 if config is None else 2 * config.max_source_positions
    values = np.random.default_rng(seed).standard_normal((rows, bins, frames)).astype(np.float32)
    return torch.tensor(values), votive.tensor(values)


def ids(shape: tuple[int, int], seed: int = 0) -> tuple[Any, Any]:
    return both(np.random.default_rng(seed).integers(3, 50, shape))


@pytest.mark.parametrize("size", ["tiny", "base", "turbo"])
def test_models_of_published_sizes_agree(size: str) -> None:
    numbers = {"tiny": TINY, "base": BASE, "turbo": TURBO}[size]
    torch.manual_seed(0)
    config = transformers.WhisperConfig(**numbers)
    reference = transformers.WhisperForConditionalGeneration(config).eval()
    with votive.nn.init.skipped():
        model = models.WhisperForConditionalGeneration(models.WhisperConfig(**numbers)).eval()
    model.load_weights(arrays(reference.state_dict()))
    (t, v), (td, vd) = mels(1, config), ids((1, 7))
    with torch.no_grad(), votive.no_grad():
        expected = reference(t, decoder_input_ids=td)
        got = model(v, decoder_input_ids=vd)
    assert np.abs(got.logits.numpy() - expected.logits.numpy()).max() <= 1e-4
    agree(got.encoder_last_hidden_state, expected.encoder_last_hidden_state)


def test_a_batch_with_padded_texts_agrees() -> None:
    reference, model = small()
    (t, v), (td, vd) = mels(3), ids((3, 8))
    mask = [[1] * 8, [0] * 3 + [1] * 5, [0] * 6 + [1] * 2]
    tm, vm = both(mask)
    tp, vp = both((np.cumsum(mask, 1) - 1).clip(0))
    with torch.no_grad(), votive.no_grad():
        told = {"decoder_attention_mask": tm, "decoder_position_ids": tp}
        expected = reference(t, decoder_input_ids=td, **told).logits
        got = model(v, decoder_input_ids=vd, decoder_attention_mask=vm, decoder_position_ids=vp).logits
    agree(got, expected, where=mask)


def test_bfloat16_agrees_as_far_as_it_can_tell() -> None:
    reference, model = small("bfloat16")
    (t, v), (td, vd) = mels(), ids((2, 5))
    with torch.no_grad(), votive.no_grad():
        expected = reference(t.bfloat16(), decoder_input_ids=td).logits
        agree(model(v.bfloat16(), decoder_input_ids=vd).logits, expected, BF16)


def test_decoding_step_by_step_gives_what_a_whole_pass_gives() -> None:
    reference, model = small()
    (t, v), (td, vd) = mels(), ids((2, 10))
    with torch.no_grad():
        expected = reference(t, decoder_input_ids=td).logits
    with votive.no_grad():
        encoded = model.get_encoder()(v)
        cache, parts = models.EncoderDecoderCache(), []
        for i in (0, 4, 5, 6, 7, 8, 9):
            new = vd[:, i : i + 4] if i == 0 else vd[:, i : i + 1]
            out = model(encoder_outputs=encoded, decoder_input_ids=new, past_key_values=cache)
            parts.append(out.logits)
    agree(votive.cat(parts, 1), expected)


def test_beams_that_share_the_encoders_keys_give_what_copies_of_them_give() -> None:
    _, model = small()
    (_, v), (_, vd) = mels(), ids((6, 4))
    with votive.no_grad():
        encoded = model.get_encoder()(v)
        repeated = (encoded.last_hidden_state.repeat_interleave(3, 0),)
        expected = model(encoder_outputs=repeated, decoder_input_ids=vd, output_attentions=True)
        kept = models.EncoderDecoderCache()
        model.model.decoder.look(encoded.last_hidden_state, kept)
        got = model(
            encoder_outputs=repeated, decoder_input_ids=vd, past_key_values=kept.another(), output_attentions=True
        )
    agree(got.logits, expected.logits, 1e-6)
    for a, b in zip(got.cross_attentions, expected.cross_attentions, strict=True):
        agree(a, b, 1e-6)


def test_shared_keys_refuse_beams_that_change_recordings() -> None:
    kept = models.EncoderDecoderCache()
    kept.cross(0, lambda: (votive.ones(2, 1, 3, 4), votive.ones(2, 1, 3, 4)))
    kept = kept.another()
    kept.reorder(votive.tensor([1, 0, 3, 2]))
    with pytest.raises(ValueError, match="those of another"):
        kept.reorder(votive.tensor([2, 0, 3, 2]))


def test_attention_weights_and_hidden_states_agree() -> None:
    reference, model = small()
    (t, v), (td, vd) = mels(), ids((2, 5))
    wanted = {"output_attentions": True, "output_hidden_states": True}
    with torch.no_grad(), votive.no_grad():
        expected = reference(t, decoder_input_ids=td, **wanted)
        got = model(v, decoder_input_ids=vd, **wanted)
    for name in (
        "cross_attentions",
        "decoder_attentions",
        "encoder_attentions",
        "decoder_hidden_states",
        "encoder_hidden_states",
    ):
        assert len(got[name]) == len(expected[name]), name
        for a, b in zip(got[name], expected[name], strict=True):
            agree(a, b)


def test_loss_and_gradients_agree() -> None:
    reference, model = fresh(train=True)
    (t, v), (tl, vl) = mels(), both([[5, 6, 7, 50], [8, 50, -100, -100]])
    expected, got = reference(t, labels=tl), model(v, labels=vl)
    agree(got.loss.reshape(1), expected.loss.reshape(1))
    expected.loss.backward()
    got.loss.backward()
    gradients_agree(reference, model)


def test_names_and_ties_are_those_of_transformers(tmp_path: Path) -> None:
    reference, model = fresh()
    assert set(model.state_dict()) == set(reference.state_dict())
    reference.save_pretrained(tmp_path / "theirs")
    loaded = models.AutoModelForSpeechSeq2Seq.from_pretrained(tmp_path / "theirs")
    assert loaded.proj_out.weight is loaded.model.decoder.embed_tokens.weight
    loaded.save_pretrained(tmp_path / "ours")
    again = transformers.AutoModelForSpeechSeq2Seq.from_pretrained(tmp_path / "ours")
    (t, v), (td, vd) = mels(), ids((2, 3))
    with torch.no_grad(), votive.no_grad():
        agree(loaded(v, decoder_input_ids=vd).logits, again(t, decoder_input_ids=td).logits)
    bare = models.WhisperModel.from_pretrained(tmp_path / "theirs")
    with votive.no_grad():
        a = bare(v, decoder_input_ids=vd).last_hidden_state
        b = model.model(v, decoder_input_ids=vd).last_hidden_state
    agree(a, b, 1e-6)


@pytest.mark.parametrize("name", SIZES)
def test_published_sizes_have_the_parameters_that_were_published(name: str) -> None:
    ours = models.WhisperConfig.of_size(name)
    d, e, n = ours.d_model, ours.encoder_layers, ours.decoder_layers
    attention = 4 * d * d + 3 * d
    mlp = 2 * d * ours.encoder_ffn_dim + ours.encoder_ffn_dim + d
    convolutions = 3 * d * ours.num_mel_bins + d + 3 * d * d + d
    total = (
        e * (attention + mlp + 4 * d)
        + n * (2 * attention + mlp + 6 * d)
        + 4 * d
        + convolutions
        + (1500 + 448 + ours.vocab_size) * d
    )
    published = {"tiny": 39, "base": 74, "small": 244, "medium": 769, "large": 1550, "turbo": 809}
    kind = "turbo" if "turbo" in name else name.partition(".")[0].partition("-")[0]
    assert total / 1e6 == pytest.approx(published[kind], rel=0.05)


def test_start_values_have_sines_for_positions_of_the_sound() -> None:
    torch.manual_seed(0)
    config = transformers.WhisperConfig(**SMALL)
    expected = transformers.WhisperModel(config).encoder.embed_positions.weight
    got = models.WhisperModel(models.WhisperConfig(**SMALL)).encoder.embed_positions.weight
    agree(got, expected, 1e-5)
    assert not got.requires_grad
