"""Texts become vectors as a folder says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.models import SentenceEncoder
from votive.models.sentence import _POOLINGS

from .golden import model_of

LETTERS = "abcdefghijklmnopqrst"


class Letters:
    """A tokenizer of letters: 1, letters from 4 on, 2."""

    pad_token_id = 0

    def __call__(self, texts: list[str], truncation: bool = False, max_length: int = 99) -> Any:
        rows = [[4 + LETTERS.index(c) for c in text] for text in texts]
        return {"input_ids": [[1, *row[: max_length - 2], 2] for row in rows]}


@pytest.fixture(scope="module")
def bert() -> Any:
    return model_of("bert").bert


def alone(model: Any, text: str) -> np.ndarray:
    ids = votive.tensor(Letters()([text])["input_ids"])
    with votive.no_grad():
        return model(ids).last_hidden_state[0].numpy()


EXPECTED = {
    "cls_token": lambda x: x[0],
    "max_tokens": lambda x: x.max(0),
    "mean_tokens": lambda x: x.mean(0),
    "mean_sqrt_len_tokens": lambda x: x.sum(0) / np.sqrt(len(x)),
    "weightedmean_tokens": lambda x: np.average(x, 0, np.arange(1, len(x) + 1)),
    "lasttoken": lambda x: x[-1],
}
TEXTS = ["abc", "k", "qrstqrst", "", "hello".replace("h", "a")]


@pytest.mark.parametrize("pooling", EXPECTED)
@pytest.mark.parametrize("size", [1, 2, 32])
def test_padding_and_order_change_no_vector(bert: Any, pooling: str, size: int) -> None:
    got = SentenceEncoder(bert, Letters(), pooling=pooling).encode(TEXTS, batch_size=size)
    expected = np.stack([EXPECTED[pooling](alone(bert, text)) for text in TEXTS])
    np.testing.assert_allclose(got.numpy(), expected, rtol=0, atol=2e-6)


def test_every_pooling_is_tested() -> None:
    assert set(EXPECTED) == set(_POOLINGS)


def test_poolings_are_joined(bert: Any) -> None:
    both = SentenceEncoder(bert, Letters(), pooling=["cls_token", "mean_tokens"])
    assert both.encode(TEXTS).shape == (5, 32)
    assert both.encode([]).shape == (0, 32)


def test_vectors_have_length_one_when_asked(bert: Any) -> None:
    plain, unit = (SentenceEncoder(bert, Letters(), normalize=n) for n in (False, True))
    a, b = plain.encode(TEXTS), unit.encode(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(b.numpy(), axis=1), 1.0, rtol=1e-6)
    assert votive.equal(plain.encode(TEXTS, normalize=True), b)
    assert votive.equal(unit.encode(TEXTS, normalize=False), a)
    assert plain.encode("abc").shape == (16,)


def test_long_texts_are_cut(bert: Any) -> None:
    encoder = SentenceEncoder(bert, Letters(), max_length=5)
    a, b, c = encoder.encode(["abcdefg", "abc", "abcd"])
    np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-6)
    np.testing.assert_allclose(a.numpy(), c.numpy(), atol=1e-6)
    d, e = encoder.encode(["abcdefg", "ab"], max_length=4)
    np.testing.assert_allclose(d.numpy(), e.numpy(), atol=1e-6)


def test_prompts_stand_before_texts(bert: Any) -> None:
    encoder = SentenceEncoder(bert, Letters(), prompts={"query": "qq"})
    expected = encoder.encode("qqabc").numpy()
    for options in ({"prompt": "qq"}, {"prompt_name": "query"}):
        np.testing.assert_allclose(encoder.encode("abc", **options).numpy(), expected, atol=1e-6)
    with pytest.raises(ValueError, match="unknown prompt 'answer'; known: query"):
        encoder.encode("abc", prompt_name="answer")


@pytest.mark.parametrize("kind", ["cosine", "dot", "euclidean", "manhattan"])
def test_near_vectors_are_told_by_each_measure(bert: Any, kind: str) -> None:
    encoder = SentenceEncoder(bert, Letters(), similarity=kind)
    a, b = np.array([[1.0, 2.0], [0.0, -1.0]]), np.array([[2.0, 0.5]])
    expected = {
        "cosine": (a @ b.T) / np.linalg.norm(a, axis=1, keepdims=True) / np.linalg.norm(b),
        "dot": a @ b.T,
        "euclidean": -np.linalg.norm(a - b, axis=1, keepdims=True),
        "manhattan": -np.abs(a - b).sum(1, keepdims=True),
    }[kind]
    got = encoder.similarity(votive.tensor(a), votive.tensor(b)).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.fixture
def folder(bert: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as sentence-transformers writes it; its tokenizer knows letters."""
    bert.save_pretrained(tmp_path)
    from votive.text import Tokenizer

    monkeypatch.setattr(Tokenizer, "from_pretrained", classmethod(lambda cls, path: Letters()))
    return tmp_path


def put(folder: Path, *parts: tuple[str, dict[str, Any]]) -> None:
    rows = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    for i, (kind, told) in enumerate(parts, 1):
        path = folder / f"{i}_{kind}"
        path.mkdir()
        (path / "config.json").write_text(json.dumps(told))
        rows.append({"idx": i, "path": path.name, "type": f"sentence_transformers.models.{kind}"})
    (folder / "modules.json").write_text(json.dumps(rows))


def test_a_folder_says_what_follows_the_model(folder: Path, bert: Any) -> None:
    linear = votive.nn.Linear(16, 3)
    told = {
        "in_features": 16,
        "out_features": 3,
        "bias": True,
        "activation_function": "torch.nn.modules.activation.Tanh",
    }
    put(
        folder,
        ("Pooling", {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}),
        ("Dense", told),
        ("Normalize", {}),
    )
    weights = {f"linear.{k}": v for k, v in linear.state_dict().items()}
    votive.io.safetensors.save_file(weights, folder / "2_Dense" / "model.safetensors")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 6, "do_lower_case": true}')
    (folder / "config_sentence_transformers.json").write_text(
        '{"prompts": {"query": "q"}, "default_prompt_name": "query", "similarity_fn_name": "dot"}'
    )
    encoder = SentenceEncoder.from_pretrained(folder)
    assert (encoder.max_length, encoder.compared, encoder.width) == (6, "dot", 3)
    first = votive.tensor(alone(bert, "qabc")[0])
    expected = votive.nn.functional.normalize(votive.tanh(linear(first)), dim=0).detach().numpy()
    np.testing.assert_allclose(encoder.encode("ABCDEFG").numpy(), expected, atol=1e-5)


def test_a_folder_without_modules_is_averaged(folder: Path) -> None:
    encoder = SentenceEncoder.from_pretrained(folder)
    assert (encoder.pooling, encoder.normalize) == (["mean_tokens"], False)


@pytest.mark.parametrize("told", ["mean", "mean_tokens"])
def test_a_pooling_may_be_named(folder: Path, told: str) -> None:
    put(folder, ("Pooling", {"pooling_mode": told}))
    assert SentenceEncoder.from_pretrained(folder).pooling == ["mean_tokens"]


def test_what_a_folder_cannot_mean_is_told(folder: Path, bert: Any) -> None:
    put(folder, ("Rinse", {}))
    with pytest.raises(ValueError, match="unknown kind Rinse"):
        SentenceEncoder.from_pretrained(folder)
    (folder / "modules.json").write_text('[{"type": "a.Transformer", "path": "../elsewhere"}]')
    with pytest.raises(ValueError, match="leads out of the folder"):
        SentenceEncoder.from_pretrained(folder)
    (folder / "modules.json").write_text('{"type": 1}')
    with pytest.raises(ValueError, match="does not list the parts"):
        SentenceEncoder.from_pretrained(folder)
    with pytest.raises(ValueError, match="unknown pooling"):
        SentenceEncoder(bert, Letters(), pooling="median")
    with pytest.raises(ValueError, match="unknown similarity"):
        SentenceEncoder(bert, Letters(), similarity="taste")
    with pytest.raises(FileNotFoundError, match="no folder and no repository id"):
        SentenceEncoder.from_pretrained(folder / "config.json")
    with pytest.raises(ValueError, match="batch_size"):
        SentenceEncoder(bert, Letters()).encode(["a"], batch_size=0)


def test_a_decoder_can_give_vectors_by_its_last_token() -> None:
    model = model_of("qwen3").model
    got = SentenceEncoder(model, Letters(), pooling="lasttoken").encode(TEXTS, batch_size=2)
    expected = np.stack([alone(model, text)[-1] for text in TEXTS])
    np.testing.assert_allclose(got.numpy(), expected, atol=5e-6)
