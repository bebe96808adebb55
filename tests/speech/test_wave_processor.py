"""Recordings and their letters, prepared together as transformers does it, and read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.speech import Wav2Vec2CTCTokenizer, Wav2Vec2FeatureExtractor, Wav2Vec2Processor

LETTERS = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, "|": 4, "A": 5, "B": 6, "C": 7}
TEXTS = ["AB C", "B"]


def sounds() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(n).astype(np.float32) for n in (320, 500)]


def made() -> Wav2Vec2Processor:
    return Wav2Vec2Processor(Wav2Vec2FeatureExtractor(return_attention_mask=True), Wav2Vec2CTCTokenizer(dict(LETTERS)))


def folder(path: Path, words: dict[str, Any], **settings: Any) -> Path:
    path.mkdir(exist_ok=True)
    (path / "vocab.json").write_text(json.dumps(words))
    (path / "tokenizer_config.json").write_text(json.dumps(settings))
    Wav2Vec2FeatureExtractor().save_pretrained(path)
    return path


@pytest.mark.parity
def test_what_is_prepared_is_what_transformers_prepares(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("torch")
    made().save_pretrained(tmp_path)
    theirs = transformers.Wav2Vec2Processor(
        transformers.Wav2Vec2FeatureExtractor.from_pretrained(tmp_path),
        transformers.Wav2Vec2CTCTokenizer.from_pretrained(tmp_path),
    )
    want = theirs(sounds(), sampling_rate=16000, padding=True, return_tensors="pt")
    got = made()(sounds(), sampling_rate=16000, padding=True)
    for name in ("input_values", "attention_mask"):
        np.testing.assert_allclose(got[name].numpy(), want[name].numpy(), atol=1e-5)
    one = theirs(sounds()[0], text=TEXTS[0], sampling_rate=16000, return_tensors="np")
    assert made()(sounds()[0], text=TEXTS[0], sampling_rate=16000).labels == np.ravel(one["labels"]).tolist()
    ids = [[5, 5, 0, 5, 4, 6], [7, 0, 0, 7, 7, 4]]
    assert made().batch_decode(ids) == theirs.batch_decode(ids)
    assert made().decode(ids[0]) == theirs.decode(ids[0])


def test_labels_of_a_batch_are_padded_with_what_counts_in_no_loss() -> None:
    found = made()(sounds(), text=TEXTS, padding=True, sampling_rate=16000)
    assert found.labels.tolist() == [[5, 6, 4, 7], [6, -100, -100, -100]]
    config = votive.models.Wav2Vec2Config(
        vocab_size=8, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, conv_dim=[8, 8],
        conv_kernel=[10, 3], conv_stride=[5, 2], num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2,
        feat_extract_norm="layer",
    )  # fmt: skip
    model = votive.models.Wav2Vec2ForCTC(config)
    loss = model(**found).loss
    loss.backward()
    assert float(loss.detach()) > 0
    assert model.lm_head.weight.grad is not None
    again = made()(sounds(), text=TEXTS, padding=True, sampling_rate=16000, return_tensors=None)
    assert again["labels"] == found.labels.tolist()


def test_a_text_alone_gives_its_letters() -> None:
    assert made()(text="AB C").input_ids == [5, 6, 4, 7]
    batch = made()(text=TEXTS, padding=True)
    assert batch.input_ids.tolist() == [[5, 6, 4, 7], [6, 0, 0, 0]]
    with pytest.raises(ValueError, match="give audio, text, or both"):
        made()()
    with pytest.raises(TypeError, match="'sampling_rate' is for recordings"):
        made()(text="A", sampling_rate=16000)


def test_a_folder_gives_the_processor_back(tmp_path: Path) -> None:
    made().save_pretrained(tmp_path)
    again = Wav2Vec2Processor.from_pretrained(tmp_path)
    assert again.tokenizer.ids == LETTERS
    assert again.feature_extractor.return_attention_mask
    languages = folder(tmp_path / "many", {"eng": LETTERS, "deu": {"<pad>": 0, "|": 1, "Ä": 2}})
    assert Wav2Vec2Processor.from_pretrained(languages, "deu").decode([2, 1, 2, 0, 2]) == "Ä ÄÄ"
    with pytest.raises(ValueError, match="target_lang must be one of eng, deu"):
        Wav2Vec2Processor.from_pretrained(languages)


def test_letters_that_were_added_later_are_known(tmp_path: Path) -> None:
    told = {"8": {"content": "<x>"}, "0": {"content": "<pad>"}}
    path = folder(tmp_path, {k: v for k, v in LETTERS.items() if v < 7}, added_tokens_decoder=told)
    (path / "added_tokens.json").write_text(json.dumps({"C": 7}))
    letters = Wav2Vec2CTCTokenizer.from_pretrained(path)
    assert letters.decode([7, 5, 8]) == "CA<x>"
    with pytest.raises(FileNotFoundError, match=r"has no vocab\.json"):
        Wav2Vec2CTCTokenizer.from_pretrained(tmp_path / "nothing")
