"""Sentence encoders are written as they were, and sentence-transformers gives the same vectors, from either side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive import nn
from votive.models import BertConfig, BertModel, SentenceEncoder

WORDS = ["a candle in the wind", "the fox jumps over a lazy dog, again", "light"]


def made(**more: Any) -> SentenceEncoder:
    votive.manual_seed(0)
    tok = votive.text.train_bpe(WORDS * 3, vocab_size=300, special_tokens=["<pad>", "<s>"], progress=False)
    tok.pad_token = "<pad>"
    config = BertConfig(
        vocab_size=len(tok), hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=64, initializer_range=0.2, pad_token_id=tok.pad_token_id,
    )  # fmt: skip
    return SentenceEncoder(BertModel(config), tok, **more)


def dense() -> list[nn.Module]:
    return [nn.Sequential(nn.Linear(16, 6), nn.Tanh()), nn.Sequential(nn.Linear(6, 3, bias=False), nn.Identity())]


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "unit": {"normalize": True, "max_length": 5, "similarity": "dot"},
    "dense": {"normalize": True, "prompts": {"q": "find: "}, "default_prompt": "q"},
    "without prompt": {"include_prompt": False, "prompts": {"q": "the dog: "}, "default_prompt": "q"},
    "first": {"pooling": "cls_token", "lower_case": True},
    "joined": {"pooling": ["max_tokens", "mean_tokens", "mean_sqrt_len_tokens"]},
    "last": {"pooling": ["weightedmean_tokens", "lasttoken"]},
}


@pytest.mark.parametrize("case", CASES)
def test_an_encoder_comes_back_as_it_was(case: str, tmp_path: Path) -> None:
    one = made(**CASES[case], dense=dense() if case == "dense" else ())
    one.save_pretrained(tmp_path)
    again = SentenceEncoder.from_pretrained(tmp_path)
    assert again.max_length == (one.max_length or 64)  # that of the model's positions
    for name in ("pooling", "normalize", "include_prompt", "prompts", "default_prompt", "compared", "lower_case"):
        assert getattr(again, name) == getattr(one, name), name
    np.testing.assert_allclose(again.encode(WORDS).numpy(), one.encode(WORDS).numpy(), atol=1e-6)


@pytest.mark.parity
@pytest.mark.parametrize("case", CASES)
def test_sentence_transformers_reads_and_writes_the_same(case: str, tmp_path: Path) -> None:
    theirs = pytest.importorskip("sentence_transformers")
    one = made(**CASES[case], dense=dense() if case == "dense" else ())
    one.save_pretrained(tmp_path / "ours")
    other = theirs.SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    expected = other.encode(WORDS)
    np.testing.assert_allclose(one.encode(WORDS).numpy(), expected, atol=1e-5)
    other.save(str(tmp_path / "theirs"))
    again = SentenceEncoder.from_pretrained(tmp_path / "theirs")
    np.testing.assert_allclose(again.encode(WORDS).numpy(), expected, atol=1e-5)
    assert again.compared == one.compared


def test_of_an_adapted_encoder_the_adapter_is_written(tmp_path: Path) -> None:
    one = made()
    one.model.save_pretrained(tmp_path / "base")
    from votive.models import AutoModel

    one.model = AutoModel.from_pretrained(tmp_path / "base")
    one.model.add_adapter(votive.models.LoraConfig(r=2, target_modules=["query"], init_lora_weights=False))
    one.save_pretrained(tmp_path / "out")
    assert (tmp_path / "out" / "adapter_model.safetensors").is_file()
    assert not (tmp_path / "out" / "model.safetensors").exists()
    again = SentenceEncoder.from_pretrained(tmp_path / "out")
    np.testing.assert_allclose(again.encode(WORDS).numpy(), one.encode(WORDS).numpy(), atol=1e-6)


def test_what_no_folder_can_say_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    one = made(pooling=["mean_tokens", "cls_token"])
    with pytest.raises(ValueError, match="joins poolings in the order cls_token"):
        one.save_pretrained(out)
    for layer in (nn.Linear(16, 2), nn.Sequential(nn.Linear(16, 2), nn.SELU())):
        with pytest.raises(ValueError, match=r"Sequential\(Linear, activation\)"):
            made(dense=[layer]).save_pretrained(out)
    one = made()
    one.tokenizer = lambda texts, **_: {"input_ids": [[1] for _ in texts]}
    with pytest.raises(TypeError, match="which has no save_pretrained"):
        one.save_pretrained(out)
    assert not out.exists()
    with pytest.raises(ValueError, match="unknown pooling"):
        made().pool_by("median")


def test_modules_are_listed_in_the_order_they_are_called(tmp_path: Path) -> None:
    made(dense=dense(), normalize=True).save_pretrained(tmp_path)
    rows = json.loads((tmp_path / "modules.json").read_text())
    assert [row["path"] for row in rows] == ["", "1_Pooling", "2_Dense", "3_Dense", "4_Normalize"]
