"""Checkpoints in several files: written as Hugging Face names them, and found again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.io import FileFormatError, open_weights
from votive.io import safetensors as st
from votive.io.sharded import parse_size, split


def state() -> dict[str, Any]:
    return {f"layer.{i}": votive.full((100,), i) for i in range(5)}


def test_shards_bear_hugging_face_names_and_an_index(tmp_path: Path) -> None:
    index = st.save_sharded(state(), tmp_path, 1600, {"format": "pt"})
    files = sorted(os.listdir(tmp_path))
    assert files == [f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)] + [index.name]
    content = json.loads(index.read_text())
    assert content["metadata"] == {"total_size": 4000, "format": "pt"}
    assert content["weight_map"]["layer.4"] == "model-00003-of-00003.safetensors"
    for path in (tmp_path, index):
        source = open_weights(path)
        assert source.names() == list(state())
        assert source.tensor("layer.3").tolist() == [3] * 100
        assert source.slice("layer.3", slice(0, 2)).tolist() == [3, 3]
        assert source.info("layer.3").file.name == "model-00002-of-00003.safetensors"


def test_what_fits_into_one_file_needs_no_index(tmp_path: Path) -> None:
    path = st.save_sharded(state(), tmp_path)
    assert os.listdir(tmp_path) == ["model.safetensors"]
    assert open_weights(path).names() == open_weights(tmp_path).names()


def test_a_new_save_removes_the_files_of_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    st.save_sharded(state(), tmp_path, 500)
    st.save_sharded(state(), tmp_path, 1600)
    assert len(os.listdir(tmp_path)) == 5
    st.save_sharded(state(), tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["config.json", "model.safetensors"]


def test_a_save_that_fails_changes_nothing(tmp_path: Path) -> None:
    st.save_sharded(state(), tmp_path, 1600)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    wrong = {**state(), "layer.0": votive.ones(7), "bad": np.array(["text"] * 1000)}
    with pytest.raises(TypeError, match="'bad'"):
        st.save_sharded(wrong, tmp_path, 1600)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_tied_tensors_are_written_once_and_named(tmp_path: Path) -> None:
    w = votive.ones(4)
    st.save_sharded({"embed": w, "x": votive.zeros(1), "head": w}, tmp_path)
    source = open_weights(tmp_path)
    assert set(source.names()) == {"embed", "x"}
    assert source.metadata == {"head": "embed"}
    with pytest.raises(RuntimeError, match="overlap in memory without being the same"):
        st.save_sharded({"a": w, "b": w[1:]}, tmp_path)


@pytest.mark.parametrize(("size", "want"), [(7, 7), ("5GB", 5 * 10**9), ("1.5 MiB", 3 << 19), ("10kb", 10**4)])
def test_sizes_may_be_text(size: Any, want: int) -> None:
    assert parse_size(size) == want


@pytest.mark.parametrize("size", ["", "5 apples", "-1", 0, "0GB"])
def test_what_is_no_size_is_refused(size: Any) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(size)


def test_a_tensor_above_the_limit_gets_a_file_of_its_own() -> None:
    assert split({"a": 1, "b": 100, "c": 2, "d": 3}, 10) == [["a"], ["b"], ["c", "d"]]


@pytest.mark.parity
def test_transformers_finds_the_parts(tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    pytest.importorskip("torch")
    torch = pytest.importorskip("torch")
    st.save_sharded(state(), tmp_path, 1600)
    module = torch.nn.Module()
    module.layer = torch.nn.ParameterList(torch.zeros(100) for _ in range(5))
    hub.load_torch_model(module, tmp_path)
    assert module.layer[4][0] == 4


def test_a_folder_with_several_files_and_no_index_is_ambiguous(tmp_path: Path) -> None:
    for name in ("a.safetensors", "b.safetensors"):
        st.save_file({"w": votive.ones(1)}, tmp_path / name)
    with pytest.raises(FileFormatError, match=r"2 files that may be meant \(a\.safetensors, b"):
        open_weights(tmp_path)
    with pytest.raises(FileNotFoundError, match="no gguf weights"):
        open_weights(tmp_path, format="gguf")


def test_a_folder_prefers_the_index_then_safetensors(tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", w=np.zeros(1))
    assert open_weights(tmp_path).tensor("w").item() == 0
    st.save_file({"w": votive.ones(1)}, tmp_path / "model.safetensors")
    st.save_file({"w": votive.ones(2)}, tmp_path / "other.safetensors")
    assert open_weights(tmp_path).info("w").shape == (1,)
    assert open_weights(tmp_path, format="npz").tensor("w").item() == 0


def test_what_is_not_there_or_unknown_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        open_weights(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="holds no weights in a known format"):
        open_weights(tmp_path)
    (tmp_path / "x").write_bytes(b"hello")
    with pytest.raises(FileFormatError, match="none of the known formats"):
        open_weights(tmp_path / "x")
    with pytest.raises(ValueError, match="unknown format 'onnx'; known: safetensors, gguf"):
        open_weights(tmp_path / "x", format="onnx")
