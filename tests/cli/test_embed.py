"""`votive embed`: vectors of sentences and how near they are."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from tests import tiny_sizes

Run = Callable[..., tuple[int, str, str]]
RunJson = Callable[..., Any]
TEXTS = ["a cat sat", "a dog ran away from here", "stocks fell"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    votive.text.train_bpe(TEXTS, 280, progress=False).save_pretrained(folder)
    votive.manual_seed(0)
    config = votive.models.BertConfig(
        **tiny_sizes.transformer(16, 32, layers=1, heads=2, vocab=280), max_position_embeddings=32
    )
    votive.models.BertModel(config).save_pretrained(folder)
    return folder


def test_vectors_are_those_of_the_library(run_json: RunJson, encoder: Path) -> None:
    found = run_json("embed", *TEXTS, "--model", encoder, "--normalize")
    expected = votive.models.SentenceEncoder.from_pretrained(encoder).encode(TEXTS, normalize=True)
    assert found["texts"] == TEXTS
    assert found["dimensions"] == 16
    assert np.allclose(found["embeddings"], expected.numpy(), atol=1e-6)
    assert np.allclose(np.linalg.norm(found["embeddings"], axis=1), 1, atol=1e-6)


def test_similarities(run: Run, run_json: RunJson, encoder: Path) -> None:
    near = np.array(run_json("embed", *TEXTS, "--model", encoder, "--similarity")["similarity"])
    assert np.allclose(np.diag(near), 1, atol=1e-5)
    assert np.allclose(near, near.T, atol=1e-6)
    code, out, _ = run("embed", *TEXTS, "--model", encoder, "--similarity")
    assert code == 0
    assert out.count("1.000") >= 3


def test_texts_come_from_files_and_pipes_and_go_to_npy(
    run: Run, encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, out = tmp_path / "lines.txt", tmp_path / "v.npy"
    lines.write_text("\n".join([*TEXTS, "", ""]))
    code, printed, err = run("embed", "--file", lines, "--model", encoder, "--out", out)
    assert (code, err) == (0, "")
    assert "3 vectors of 16" in printed
    first = np.load(out)
    assert (first.shape, first.dtype) == ((3, 16), np.float32)
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines.read_text()))
    assert run("embed", "--model", encoder, "--out", out)[0] == 0
    assert np.array_equal(np.load(out), first)


def test_plain_output_names_each_text(run: Run, encoder: Path) -> None:
    code, out, _ = run("embed", *TEXTS, "--model", encoder)
    assert code == 0
    assert len(out.splitlines()) == 3
    assert "16 numbers" in out


def test_a_gguf_file_gives_the_same_vectors(run: Run, run_json: RunJson, encoder: Path, tmp_path: Path) -> None:
    out = tmp_path / "encoder.gguf"
    assert run("convert", encoder, out)[0] == 0
    ours = run_json("embed", *TEXTS, "--model", out)["embeddings"]
    theirs = run_json("embed", *TEXTS, "--model", encoder, "--normalize")["embeddings"]
    assert np.allclose(ours, theirs, atol=1e-5)


def test_wrong_usage(run: Run, encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert run("embed", "x")[0] == 2
    assert run("embed", "--model", encoder)[0] == 2
    assert run("embed", "x", "--model", encoder, "--out", "v.txt")[0] == 2
    assert run("embed", "x", "--model", encoder / "nope")[0] == 1
    assert run("embed", "x", "--model", encoder / "model.safetensors")[0] == 1
