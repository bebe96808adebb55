"""Whisper's weights load from OpenAI's and CTranslate2's files as from Hugging Face's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.io import FileFormatError, ctranslate2
from votive.models import AutoConfig, AutoModelForSpeechSeq2Seq, WhisperModel
from votive.models.whisper_names import ALIGNMENT

from .whisper_files import OPENAI_DIMS, ctranslate2_file, openai_names, small


def logits(model: Any) -> np.ndarray:
    mels = votive.tensor(np.random.default_rng(0).standard_normal((1, 80, 20)).astype(np.float32))
    with votive.no_grad():
        return model(mels, decoder_input_ids=votive.tensor([[50258, 7, 9]])).logits.numpy()


@pytest.mark.parametrize(
    ("quantization", "tolerance"),
    [("float32", 1e-6), ("float16", 2e-3), ("int16", 1e-2), ("int8", 4e-2), ("int8_float16", 4e-2)],
)
def test_files_of_ctranslate2_load(tmp_path: Path, quantization: str, tolerance: float) -> None:
    model = small()
    ctranslate2_file(model, tmp_path / "model.bin", quantization)
    told = {
        "alignment_heads": [[1, 0], [2, 1]],
        "suppress_ids": [1, 2],
        "lang_ids": [50259],
        "suppress_ids_begin": [220, 50257],
    }
    (tmp_path / "config.json").write_text(json.dumps(told))
    for place in (tmp_path, tmp_path / "model.bin"):
        found = AutoModelForSpeechSeq2Seq.from_pretrained(place)
        expected = logits(model)
        assert np.abs(logits(found) - expected).max() <= tolerance * np.abs(expected).max()
        settings = found.generation_config
        assert settings.extra["alignment_heads"] == [[1, 0], [2, 1]]
        assert (settings.suppress_tokens, settings.begin_suppress_tokens) == ([1, 2], [220, 50257])
        assert settings.extra["lang_to_id"]["<|de|>"] == 50261
        assert found.config.decoder_start_token_id == 50258
    assert AutoConfig.from_pretrained(tmp_path).encoder_layers == 2


def test_other_models_of_ctranslate2_are_refused(tmp_path: Path) -> None:
    ctranslate2.write(tmp_path / "model.bin", "TransformerSpec", {"w": votive.ones(1)})
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(FileFormatError, match="only Whisper"):
        AutoModelForSpeechSeq2Seq.from_pretrained(tmp_path)


def test_openais_names_load_into_both_models(tmp_path: Path) -> None:
    model = small()
    source = votive.io.MemorySource(openai_names(model))
    other = type(model)(model.config).eval()
    assert not other.load_weights(source).missing
    assert np.abs(logits(other) - logits(model)).max() == 0
    bare = WhisperModel(model.config)
    assert not bare.load_weights(source).missing


@pytest.mark.parity
def test_openais_files_load(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = small()
    state = {k: torch.tensor(v.numpy()).half() for k, v in openai_names(model).items()}
    # Not by the sizes of the small one, whose inner width is no multiple of four.
    wide = small(encoder_ffn_dim=64, decoder_ffn_dim=64)
    state = {k: torch.tensor(v.numpy()).half() for k, v in openai_names(wide).items()}
    torch.save({"dims": OPENAI_DIMS, "model_state_dict": state}, tmp_path / "mine.pt")
    found = AutoModelForSpeechSeq2Seq.from_pretrained(tmp_path / "mine.pt")
    expected = logits(wide)
    assert found.dtype is votive.float32
    assert np.abs(logits(found) - expected).max() <= 2e-3 * np.abs(expected).max()
    # Where no heads are known those of the later half serve.
    assert found.generation_config.extra["alignment_heads"] == [[1, 0], [1, 1], [2, 0], [2, 1]]
    torch.save({"dims": OPENAI_DIMS, "model_state_dict": state}, tmp_path / "tiny.pt")
    named = AutoModelForSpeechSeq2Seq.from_pretrained(tmp_path / "tiny.pt")
    assert named.generation_config.extra["alignment_heads"] != ALIGNMENT["tiny"]  # it has a layer 3


def test_another_file_of_torch_is_not_taken_for_a_whisper(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"w": torch.ones(2)}, tmp_path / "w.pt")
    with pytest.raises(FileNotFoundError, match="beside it"):
        AutoModelForSpeechSeq2Seq.from_pretrained(tmp_path / "w.pt")
