"""Samples are prepared as transformers prepares them for wav2vec 2.0."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.speech import Wav2Vec2FeatureExtractor

SOUNDS = [np.sin(np.arange(n) / 7).astype(np.float32) * 0.3 + 0.1 for n in (50, 31, 44)]
ASKED: list[dict[str, Any]] = [
    {"padding": True},
    {"padding": "longest", "return_attention_mask": True},
    {"padding": "max_length", "max_length": 64, "return_attention_mask": True},
    {"padding": "max_length", "max_length": 40, "truncation": True, "return_attention_mask": True},
    {"padding": True, "pad_to_multiple_of": 16, "return_attention_mask": True},
]


@pytest.mark.parity
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("made", [{}, {"do_normalize": False}, {"padding_value": 0.5, "return_attention_mask": True}])
def test_values_and_masks_are_those_of_transformers(made: dict[str, Any], asked: dict[str, Any]) -> None:
    transformers = pytest.importorskip("transformers")
    settings = {"feature_size": 1, "sampling_rate": 16000, "padding_value": 0.0, **made}
    expected = transformers.Wav2Vec2FeatureExtractor(**settings)(
        SOUNDS, sampling_rate=16000, return_tensors="np", **asked
    )
    got = Wav2Vec2FeatureExtractor(**made)(SOUNDS, sampling_rate=16000, **asked)
    assert set(got) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(got[name].numpy(), value, atol=1e-6)


@pytest.mark.parity
def test_folders_go_both_ways(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    ours = Wav2Vec2FeatureExtractor(do_normalize=False, return_attention_mask=True)
    ours.save_pretrained(tmp_path)
    theirs = transformers.AutoFeatureExtractor.from_pretrained(tmp_path)
    assert (theirs.do_normalize, theirs.return_attention_mask, theirs.sampling_rate) == (False, True, 16000)
    theirs.save_pretrained(tmp_path)
    assert vars(Wav2Vec2FeatureExtractor.from_pretrained(tmp_path)) == vars(ours)


def test_one_sound_has_mean_zero_and_variance_one() -> None:
    found = Wav2Vec2FeatureExtractor()(votive.tensor(SOUNDS[0]), sampling_rate=16000)["input_values"]
    assert found.shape == (1, 50)
    assert abs(float(found.mean())) < 1e-6
    assert float(found.var(correction=0)) == pytest.approx(1, abs=1e-4)
    rows = Wav2Vec2FeatureExtractor()(SOUNDS, return_tensors=None)["input_values"]
    assert [len(row) for row in rows] == [50, 31, 44]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"sampling_rate": 8000}, "resample it first"),
        ({"padding": "some"}, "padding must be"),
        ({"truncation": True}, "need max_length"),
        ({}, r"lengths \[31, 44, 50\] make no batch; use padding=True"),
    ],
)
def test_what_cannot_be_prepared_is_told(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Wav2Vec2FeatureExtractor()(SOUNDS, **asked)
    with pytest.raises(ValueError, match="has no samples"):
        Wav2Vec2FeatureExtractor()([np.zeros(0, np.float32)])
    with pytest.raises(ValueError, match="Wav2Vec2FeatureExtractor: give sounds of one channel"):
        Wav2Vec2FeatureExtractor()(np.zeros((1, 2, 3), np.float32))
