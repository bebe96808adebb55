"""Importance matrices in files of both kinds: read, written, and honoured by whatever quantizes."""

from __future__ import annotations

import importlib
import struct
from pathlib import Path

import numpy as np
import pytest

import votive
from tests import docstrings, tiny_sizes
from votive import nn
from votive.io.gguf import GGUFFile, quantize, write
from votive.quant import ImportanceMatrix, load_imatrix, quantize_, save_imatrix
from votive.quant.grid import decoded, records_of
from votive.quant.imatrix import columns_of, means


def matrix() -> ImportanceMatrix:
    rng = np.random.default_rng(0)
    return ImportanceMatrix(
        {
            "blk.0.attn_q.weight": (rng.random(256, np.float32) * 10, 32),
            "blk.0.ffn_up_exps.weight": (rng.random((3, 256), np.float32), np.array([16, 48, 0])),
        },
        datasets=["words.txt"],
        chunk_count=4,
        chunk_size=8,
    )


def test_the_gguf_kind_gives_back_what_was_written_with_llama_cpps_keys(tmp_path: Path) -> None:
    path, made = tmp_path / "imatrix.gguf", matrix()
    save_imatrix(path, made)
    found = load_imatrix(path)
    assert list(found) == list(made)
    for name in made:
        assert np.array_equal(found[name][0], made[name][0])
        assert np.array_equal(found[name][1], made[name][1])
    assert (found.datasets, found.chunk_count, found.chunk_size) == (["words.txt"], 4, 8)
    with GGUFFile(path) as file:
        assert file.metadata["general.type"] == "imatrix"
        assert {t.name: (t.shape, t.stored) for t in file.tensors} == {
            "blk.0.attn_q.weight.in_sum2": ((1, 256), "F32"),
            "blk.0.attn_q.weight.counts": ((1, 1), "F32"),
            "blk.0.ffn_up_exps.weight.in_sum2": ((3, 256), "F32"),
            "blk.0.ffn_up_exps.weight.counts": ((3, 1), "F32"),
        }


def test_the_older_kind_is_read_with_and_without_its_tail(tmp_path: Path) -> None:
    path = tmp_path / "imatrix.dat"
    name, values = b"blk.0.attn_q.weight", np.arange(4, dtype="<f4")
    head = struct.pack("<ii", 1, len(name)) + name + struct.pack("<ii", 5, 4) + values.tobytes()
    for tail, chunks, datasets in (
        (b"", 1, []),
        (struct.pack("<i", 7), 7, []),
        (struct.pack("<ii", 7, 5) + b"w.txt", 7, ["w.txt"]),
    ):
        path.write_bytes(head + tail)
        found = load_imatrix(path)
        assert np.array_equal(found["blk.0.attn_q.weight"][0], values)
        assert found["blk.0.attn_q.weight"][1] == 5
        assert (found.chunk_count, found.datasets) == (chunks, datasets)


def test_the_older_kind_holds_the_same_means_and_experts_one_after_the_other(tmp_path: Path) -> None:
    path, made = tmp_path / "imatrix.dat", matrix()
    save_imatrix(path, made, format="dat")
    found = load_imatrix(path)
    assert found["blk.0.ffn_up_exps.weight"][0].shape == (768,)
    for name, shape in (("blk.0.attn_q.weight", (8, 256)), ("blk.0.ffn_up_exps.weight", (3, 8, 256))):
        before, after = columns_of(made, [name], shape), columns_of(found, [name], shape)
        assert before is not None
        assert after is not None
        np.testing.assert_allclose(after, before, rtol=1e-6)


def test_experts_that_were_never_fed_count_all_columns_alike() -> None:
    assert np.array_equal(means((np.zeros((2, 3), np.float32), np.array([0, 4]))), [[1, 1, 1], [0, 0, 0]])
    found = columns_of({"w": (np.zeros((2, 3), np.float32), np.array([0, 4]))}, ["w"], (2, 5, 3))
    assert found is not None
    assert (found == 1).all()


def test_names_of_modules_become_llama_cpps_and_experts_are_stacked(tmp_path: Path) -> None:
    config = votive.models.MixtralConfig(
        **tiny_sizes.transformer(64, 96, layers=2, heads=2, vocab=40, kv_heads=2), num_local_experts=3
    )
    model = votive.models.MixtralForCausalLM(config)
    found = votive.quant.importance(model, [votive.randint(0, 40, (4, 12))])
    path = tmp_path / "imatrix.gguf"
    save_imatrix(path, found, datasets=["random"], chunk_count=4)
    again = load_imatrix(path)
    assert again["blk.1.ffn_down_exps.weight"][0].shape == (3, 96)
    assert np.sum(again["blk.1.ffn_down_exps.weight"][1]) == 4 * 12 * config.num_experts_per_tok
    name = "model.layers.1.block_sparse_moe.experts.2.w2.weight"
    row = columns_of(again, [name], (64, 96))
    assert row is not None
    np.testing.assert_allclose(row, means(found[name]), rtol=1e-6)


@pytest.mark.parametrize("name", ["imatrix", "imatrix_file", "recipes"])
def test_the_examples_of_a_module_run_as_printed(name: str) -> None:
    assert docstrings.run_module(importlib.import_module(f"votive.quant.{name}"))


def test_quantize_takes_the_path_of_a_file_and_weighs_by_it(tmp_path: Path) -> None:
    votive.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 64))
    data = [votive.randn(32, 256) * votive.linspace(0.0, 4.0, 256)]
    path = tmp_path / "imatrix.gguf"
    save_imatrix(path, votive.quant.importance(model, data))
    other = nn.Sequential(nn.Linear(256, 64))
    other.load_state_dict(model.state_dict())
    quantize_(model, "q4_k", imatrix=path)
    quantize_(other, "q4_k", data=data)
    assert model[0].weight.equal(other[0].weight)


def test_each_expert_of_a_tensor_is_weighed_by_its_own_row(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    w = rng.standard_normal((3, 4, 256)).astype(np.float32)
    rows = rng.random((3, 256), np.float32)
    whole = quantize(w, "Q4_K", importance=rows)
    for i in range(3):
        assert np.array_equal(whole[i], quantize(w[i], "Q4_K", importance=rows[i]))
    write(tmp_path / "m.gguf", {"w": w}, {}, types="Q4_K", importance=lambda name, shape: rows)
    assert np.array_equal(GGUFFile(tmp_path / "m.gguf").raw("w"), whole)
    plain = np.square(decoded(records_of(quantize(w[0], "Q4_K"), votive.q4_k), votive.q4_k).reshape(4, 256) - w[0])
    weighed = np.square(decoded(records_of(whole[0], votive.q4_k), votive.q4_k).reshape(4, 256) - w[0])
    assert (weighed * rows[0]).sum() < (plain * rows[0]).sum()


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (np.ones((2, 2, 2)), "shape"),
        (-np.ones(4), "not negative"),
        (np.full(4, np.nan), "finite"),
        ((np.ones(4), -1), "counts"),
        ((np.ones(4), np.array([1, 2])), "2 counts"),
    ],
)
def test_entries_that_make_no_sense_are_refused(entry: object, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        ImportanceMatrix({"w": entry})


def test_sizes_that_do_not_fit_the_weight_are_refused() -> None:
    with pytest.raises(ValueError, match="'w' has 5 columns, the weight 4"):
        columns_of({"w": np.ones(5)}, ["w"], (2, 4))
    with pytest.raises(ValueError, match="3 x 4 columns, the weight 4 in each of 2 matrices"):
        columns_of({"w": np.ones((3, 4))}, ["w"], (2, 5, 4))
    with pytest.raises(ValueError, match="format is"):
        save_imatrix("x", {"w": np.ones(4)}, format="npz")
    with pytest.raises(ValueError, match="is empty"):
        save_imatrix("x", {})
