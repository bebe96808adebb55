"""Vectors of texts over HTTP are those of the encoder."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import votive
from votive.serve.server import Server

from .client import get, post, serving, tokenizer


def encoder() -> Any:
    """A tiny sentence encoder."""
    votive.manual_seed(0)
    config = votive.models.BertConfig(
        vocab_size=320, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2
    )
    return votive.models.SentenceEncoder(votive.models.BertModel(config).eval(), tokenizer(), normalize=True)


@pytest.fixture(scope="module")
def vectors() -> Iterator[Any]:
    with serving(encoder=encoder()) as one:
        yield one


def test_vectors_are_those_of_the_encoder(vectors: Server) -> None:
    texts = ["Once upon a time", "a cat", "fish and milk"]
    expected = encoder().encode(texts).numpy()
    answer = post(vectors, "embeddings", {"model": "vectors", "input": texts})
    assert answer.status == 200, answer.text
    found = answer.json
    np.testing.assert_allclose([d["embedding"] for d in found["data"]], expected, rtol=1e-5)
    assert [d["index"] for d in found["data"]] == [0, 1, 2]
    assert found["usage"]["prompt_tokens"] == sum(len(tokenizer().encode(t)) for t in texts)
    packed = post(vectors, "embeddings", {"input": texts[1], "encoding_format": "base64", "dimensions": 16}).json
    raw = np.frombuffer(base64.b64decode(packed["data"][0]["embedding"]), "<f4")
    np.testing.assert_allclose(raw, expected[1], rtol=1e-5)


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": ""}, "input"),
        ({"input": [1, 2]}, "input"),
        ({"input": ["x"] * 2049}, "input"),
        ({"input": "x" * (1 << 20 | 1)}, "input"),
        ({"dimensions": 8}, "dimensions"),
        ({"encoding_format": "int8"}, "encoding_format"),
        ({"normalize": False}, "normalize"),
    ],
    ids=lambda given: str(given)[:30],
)
def test_what_cannot_be_done_is_refused(vectors: Server, more: dict[str, Any], param: str) -> None:
    answer = post(vectors, "embeddings", {"model": "vectors", "input": "x", **more})
    assert (answer.status, answer.error["param"]) == (400, param)


def test_models_do_what_they_are_for(vectors: Server) -> None:
    assert [m["id"] for m in get(vectors, "/v1/models").json["data"]] == ["tiny", "vectors"]
    assert post(vectors, "embeddings", {"model": "tiny", "input": "x"}).status == 404
    assert post(vectors, "completions", {"model": "vectors", "prompt": "x"}).status == 404


def test_many_texts_are_done_in_parts_in_their_order(vectors: Server) -> None:
    texts = [f"a cat {i}" for i in range(40)]
    found = post(vectors, "embeddings", {"model": "vectors", "input": texts}).json
    expected = encoder().encode(texts).numpy()
    np.testing.assert_allclose([d["embedding"] for d in found["data"]], expected, rtol=1e-4, atol=1e-6)
    assert found["usage"]["prompt_tokens"] == sum(len(tokenizer().encode(t)) for t in texts)
