"""GGUF models in several files are read as one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.io import FileFormatError, gguf
from votive.io.gguf import GGUFFile, GGUFParts, Value, write
from votive.models.gguf_names import to_gguf


def split(folder: Path, tensors: Any, metadata: dict[str, Any], **change: Any) -> list[Path]:
    """Three files as llama.cpp's gguf-split writes them; the first has the metadata."""
    names = list(tensors)
    paths = []
    for i in range(3):
        path = folder / f"model-{i + 1:05d}-of-00003.gguf"
        told = {
            "split.no": Value(i, "u16"),
            "split.count": Value(3, "u16"),
            "split.tensors.count": Value(len(names), "i32"),
        } | change
        part = {n: tensors[n] for n in names[i::3]}
        write(path, part, {**(metadata if i == 0 else {}), **told}, types="Q8_0")
        paths.append(path)
    return paths


@pytest.fixture
def tensors() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {f"w{i}": rng.standard_normal((4, 64)).astype(np.float32) for i in range(7)}


@pytest.mark.parametrize("which", [0, 1, 2])
def test_any_part_opens_all(tmp_path: Path, tensors: dict[str, Any], which: int) -> None:
    paths = split(tmp_path, tensors, {"general.name": "x"})
    with votive.io.open_weights(paths[which]) as source:
        assert isinstance(source, GGUFParts)
        assert sorted(source.names()) == sorted(tensors)
        assert source.metadata["general.name"] == "x"
        assert len(source.tensors) == 7
        for name, want in tensors.items():
            got = source.tensor(name).numpy()
            np.testing.assert_allclose(got, want, atol=0.03)
            np.testing.assert_array_equal(source.slice(name, 1).numpy(), got[1])
            half = source.tensor(name, dtype=votive.float16).numpy()
            np.testing.assert_array_equal(half, got.astype(np.float16))
        with pytest.raises(KeyError, match="no tensor 'w9'"):
            source.tensor("w9")


def test_parts_are_written_as_one_file_without_a_change(tmp_path: Path, tensors: dict[str, Any]) -> None:
    parts = gguf.open(split(tmp_path, tensors, {"general.name": "x"})[0])
    one = tmp_path / "one.gguf"
    write(one, parts, parts.typed_metadata())
    file = gguf.open(one)
    assert isinstance(file, GGUFFile)
    assert file.metadata == {"general.name": "x"}
    for name in file:
        assert file.info(name).stored == "Q8_0"
        np.testing.assert_array_equal(file.raw(name), parts.raw(name))


def test_a_folder_of_parts_is_one_model(tmp_path: Path) -> None:
    config = votive.models.LlamaConfig(
        vocab_size=32, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2
    )
    model = votive.models.LlamaForCausalLM(config)
    metadata, made = to_gguf(config, model.state_dict())
    split(tmp_path, dict(made.items()), metadata)
    again = votive.models.AutoModelForCausalLM.from_pretrained(tmp_path)
    assert again.num_parameters() == model.num_parameters()
    assert len(votive.io.open_weights(tmp_path)) == len(made)


def test_missing_and_foreign_parts_are_refused(tmp_path: Path, tensors: dict[str, Any]) -> None:
    paths = split(tmp_path, tensors, {})
    paths[1].unlink()
    with pytest.raises(FileFormatError, match="1 of 3 parts are missing: model-00002-of-00003"):
        gguf.open(paths[0])
    paths[1].write_bytes(paths[2].read_bytes())
    with pytest.raises(FileFormatError, match="part 2 of 3, counted from 0"):
        gguf.open(paths[0])
    renamed = paths[0].rename(tmp_path / "other.gguf")
    with pytest.raises(FileFormatError, match="its name does not say so"):
        gguf.open(renamed)


@pytest.mark.parametrize("count", [0, -1, 65535, 2.5, "three", [3]])
def test_impossible_numbers_of_parts_are_refused(tmp_path: Path, count: Any) -> None:
    path = tmp_path / "model-00001-of-00003.gguf"
    write(path, {}, {"split.count": count, "split.no": 0})
    with pytest.raises(FileFormatError):
        gguf.open(path)


def test_contents_that_do_not_add_up_are_refused(tmp_path: Path, tensors: dict[str, Any]) -> None:
    paths = split(tmp_path, tensors, {}, **{"split.tensors.count": 99})
    with pytest.raises(FileFormatError, match="should hold 99 tensors together; there are 7"):
        gguf.open(paths[0])
    told = {"split.no": 1, "split.count": 3}
    write(paths[1], {"w0": votive.ones(2)}, told)
    with pytest.raises(FileFormatError, match=r"'w0' is in model-00001-of-00003\.gguf as well"):
        gguf.open(paths[0])
