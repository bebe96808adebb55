"""Log-mels are those of their definition and of transformers, for any shape, with gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.speech import WhisperFeatureExtractor, features, log_mel_spectrogram


def sounds() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(16000 * 3) * 0.1
    tone = np.sin(np.arange(16000 * 2) / 10)  # all but a few bands hold its rounding alone
    return {"noise": noise.astype(np.float32), "tone": tone.astype(np.float32)}


def by_definition(x: np.ndarray, bank: np.ndarray) -> np.ndarray:
    wide = np.pad(x.astype(np.float64), 200, mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    count = len(x) // 160
    frames = np.stack([wide[160 * i : 160 * i + 400] * window for i in range(count)])
    power = np.abs(np.fft.rfft(frames)) ** 2
    mel = np.log10(np.maximum(power @ bank, 1e-10)).T
    return (np.maximum(mel, mel.max() - 8) + 4) / 4


@pytest.mark.parametrize("kind", ["noise", "tone"])
@pytest.mark.parametrize("mels", [80, 128])
def test_mels_are_those_of_their_definition(kind: str, mels: int) -> None:
    x = sounds()[kind]
    bank = features._bank(mels, 400, 16000).numpy()
    got = log_mel_spectrogram(votive.tensor(x), mels).numpy()
    assert got.dtype == np.float32
    assert np.abs(got - by_definition(x, bank)).max() < 1e-6


@pytest.mark.parity
@pytest.mark.parametrize("mels", [80, 128])
def test_features_are_those_of_transformers(mels: int) -> None:
    module = pytest.importorskip("transformers.models.whisper.feature_extraction_whisper")
    theirs, ours = (module.WhisperFeatureExtractor(feature_size=mels), WhisperFeatureExtractor(mels))
    assert np.abs(theirs.mel_filters - features._bank(mels, 400, 16000).numpy()).max() < 1e-12
    long = np.random.default_rng(1).standard_normal(16000 * 31).astype(np.float32)
    rows = [*sounds().values(), long]
    got = ours(rows, sampling_rate=16000, return_attention_mask=True)
    told = theirs(rows, sampling_rate=16000, return_attention_mask=True, return_tensors="np")
    assert (got.attention_mask.numpy() == told["attention_mask"]).all()
    for i, x in enumerate(rows):
        x = np.pad(x, (0, max(0, 480000 - len(x))))[:480000]
        # Its path in double precision; the one in torch's single differs from it by 4e-5 itself.
        expected = theirs._np_extract_fbank_features(x[None], "cpu")[0]
        assert np.abs(got.input_features[i].numpy() - expected).max() < 1e-6
        assert np.abs(got.input_features[i].numpy() - told["input_features"][i]).max() < 5e-5


@pytest.mark.parity
@pytest.mark.parametrize(
    "how",
    [
        {"padding": "longest"},
        {"padding": "longest", "pad_to_multiple_of": 1000},
        {"padding": "max_length", "max_length": 20000},
        {"padding": "longest", "truncation": False},
        {"do_normalize": True},
    ],
)
def test_padding_is_that_of_transformers(how: dict[str, Any]) -> None:
    module = pytest.importorskip("transformers.models.whisper.feature_extraction_whisper")
    rows = list(sounds().values())
    asked = {"sampling_rate": 16000, "return_attention_mask": True, **how}
    expected = module.WhisperFeatureExtractor()(rows, return_tensors="np", **asked)
    got = WhisperFeatureExtractor()(rows, return_tensors="np", **asked)
    assert (got.attention_mask == expected["attention_mask"]).all()
    assert got.input_features.shape == expected["input_features"].shape
    assert np.abs(got.input_features - expected["input_features"]).max() < 5e-5


def test_leading_dimensions_are_kept_and_each_sound_has_its_own_scale() -> None:
    x = votive.randn(2, 3, 8000) * votive.tensor([1.0, 1e-3, 0.0]).view(3, 1)
    got = log_mel_spectrogram(x)
    assert got.shape == (2, 3, 80, 50)
    for i in range(2):
        for j in range(3):
            assert votive.allclose(got[i, j], log_mel_spectrogram(x[i, j]), atol=1e-6)


def test_long_sounds_are_made_in_parts_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    x = votive.randn(40000, dtype=votive.float64)
    whole = log_mel_spectrogram(x)
    monkeypatch.setattr(features, "_BLOCK", 37)
    assert votive.allclose(log_mel_spectrogram(x), whole, atol=1e-9)


@pytest.mark.parametrize("tail", [0, 100, 300, 5000])
def test_silence_at_the_end_is_left_out_without_a_trace(tail: int) -> None:
    x = votive.randn(4000, dtype=votive.float64)
    x[4000 - tail :] = 0.0
    bank = features._bank(80, 400, 16000).numpy()
    assert np.abs(log_mel_spectrogram(x).numpy() - by_definition(x.numpy(), bank)).max() < 1e-9


def test_gradients_flow_back_to_the_sound() -> None:
    x = votive.randn(1200, dtype=votive.float64, requires_grad=True)
    assert votive.autograd.gradcheck(log_mel_spectrogram, (x,), fast_mode=True)


def test_what_is_no_sound_is_refused() -> None:
    with pytest.raises(TypeError, match="floating-point numbers"):
        log_mel_spectrogram(votive.ones(4000, dtype=votive.int16))
    with pytest.raises(ValueError, match="too few"):
        log_mel_spectrogram(votive.ones(100))
    extract = WhisperFeatureExtractor()
    with pytest.raises(ValueError, match="resample"):
        extract(np.zeros(8000), sampling_rate=8000)
    with pytest.raises(ValueError, match="one channel"):
        extract(np.zeros((1, 2, 8000)))
    with pytest.raises(ValueError, match="padding"):
        extract([np.zeros(800), np.zeros(900)], padding="do_not_pad")
    with pytest.raises(ValueError, match="'max_length'"):
        extract(np.zeros(800), padding="some")


def test_settings_are_kept_in_a_folder(tmp_path: Path) -> None:
    WhisperFeatureExtractor(128, dither=0.5).save_pretrained(tmp_path)
    found = WhisperFeatureExtractor.from_pretrained(tmp_path)
    assert (found.feature_size, found.dither, found.n_samples) == (128, 0.5, 480000)
