"""`votive inspect`: right facts about every kind of file, in little memory."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.cli.tensor_stats import Difference, Statistics

Run = Callable[..., tuple[int, str, str]]
RunJson = Callable[..., Any]


def test_a_file_is_described_from_its_header(run: Run, run_json: RunJson, weights: Path) -> None:
    found = run_json("inspect", weights)
    assert found["format"] == "safetensors"
    assert found["nbytes"] == weights.stat().st_size
    assert found["parameters"] == 2 * 64 * 32 + 40 * 32 + 4 + 1
    assert found["metadata"]["note"] == "x" * 300
    rows = {r["name"]: r for r in found["tensors"]}
    assert rows["model.embed.weight"]["stored"] == "BF16"
    assert rows["model.embed.weight"]["shape"] == [40, 32]
    assert rows["steps"]["shape"] == []
    code, out, _ = run("inspect", weights)
    assert code == 0
    assert "5,381 parameters" in out
    assert "64×32" in out
    assert "x" * 300 not in out  # long values are cut
    assert "x" * 300 in run("inspect", weights, "--metadata")[1]


def test_statistics_are_those_of_numpy(run_json: RunJson, weights: Path) -> None:
    found = run_json("inspect", weights, "--stats")
    for row in found["tensors"]:
        with votive.io.open_weights(weights) as source:
            x = source.tensor(row["name"]).double().numpy().reshape(-1)
        finite, s = x[np.isfinite(x)], row["stats"]
        assert s["min"] == finite.min()
        assert s["max"] == finite.max()
        assert s["mean"] == pytest.approx(finite.mean(), rel=1e-12, abs=1e-15)
        if finite.size > 1:
            assert s["std"] == pytest.approx(finite.std(ddof=1), rel=1e-12)
        assert s["l1"] == pytest.approx(np.abs(finite).sum(), rel=1e-12)
        assert s["l2"] == pytest.approx(np.linalg.norm(finite), rel=1e-12)
        assert s["nan"] == np.isnan(x).sum()
        assert s["inf"] == np.isinf(x).sum()
        assert s["zero_fraction"] == np.mean(x == 0)


def test_statistics_do_not_depend_on_how_the_numbers_are_cut() -> None:
    x = np.random.default_rng(0).normal(5.0, 0.01, 200_000)
    whole, parts = Statistics(), Statistics()
    whole.add(x)
    for part in np.array_split(x, 37):
        parts.add(part)
    a, b = whole.to_dict(), parts.to_dict()
    for name in a:
        assert a[name] == pytest.approx(b[name], rel=1e-12)
    assert b["std"] == pytest.approx(x.std(ddof=1), rel=1e-10)


def test_sums_beyond_the_largest_number_are_infinite() -> None:
    s = Statistics()
    s.add(np.array([1e308, 1e308, -1e308]))
    assert (s.min, s.max, s.inf, s.l2) == (-1e308, 1e308, 0, math.inf)


def test_a_histogram_counts_every_finite_number(run: Run, run_json: RunJson, weights: Path) -> None:
    found = run_json("inspect", weights, "--histogram", "--bins", 7, "--tensor", "*layers.0*")
    (row,) = found["tensors"]
    h = row["histogram"]
    with votive.io.open_weights(weights) as source:
        x = source.tensor(row["name"]).double().numpy()
    counts, _ = np.histogram(x, 7, (h["low"], h["high"]))
    assert sum(h["counts"]) == 64 * 32
    assert np.abs(np.array(h["counts"]) - counts).max() <= 1  # edges round differently
    out = run("inspect", weights, "--histogram", "--tensor", "bias")[1]
    assert "█" in out


def test_tensors_are_picked_by_pattern_or_part(run: Run, run_json: RunJson, weights: Path) -> None:
    names = lambda *words: [r["name"] for r in run_json("inspect", weights, *words)["tensors"]]
    assert names("--tensor", "model.layers.*") == names("--tensor", "mlp")
    assert sorted(names("--tensor", "bias", "--tensor", "steps")) == ["bias", "steps"]
    code, _, err = run("inspect", weights, "--tensor", "nothing*")
    assert code == 1
    assert "no tensor matches 'nothing*'" in err


def test_sorting(run_json: RunJson, weights: Path) -> None:
    by_size = [r["nbytes"] for r in run_json("inspect", weights, "--sort", "size")["tensors"]]
    assert by_size == sorted(by_size, reverse=True)
    by_name = [r["name"] for r in run_json("inspect", weights, "--sort", "name")["tensors"]]
    assert by_name == sorted(by_name)


def test_a_tree_sums_parameters_by_prefix(run: Run, run_json: RunJson, weights: Path) -> None:
    tree = {r["prefix"]: r for r in run_json("inspect", weights, "--tree", 3)["tree"]}
    assert tree["model"]["parameters"] == 2 * 64 * 32 + 40 * 32
    assert tree["model.layers"]["tensors"] == 2
    assert tree["model.layers.1"]["parameters"] == 64 * 32
    assert "model.layers.0.mlp" not in tree
    out = run("inspect", weights, "--tree")[1]
    assert "  layers " in out


def test_a_model_folder_tells_configuration_and_tokenizer(run: Run, run_json: RunJson, model: Path) -> None:
    found = run_json("inspect", model)
    assert found["config"]["model_type"] == "qwen3"
    assert found["tokenizer"]["type"] == "BPE"
    assert found["tokenizer"]["vocab_size"] == len(votive.text.Tokenizer.from_pretrained(model))
    assert "<|im_end|>" in found["tokenizer"]["special_tokens"]
    assert found["parameters"] > 0
    assert "model_type: qwen3" in run("inspect", model)[1]


@pytest.mark.parametrize(("name", "kind"), [("config.json", "config"), ("tokenizer.json", "tokenizer")])
def test_single_files_of_a_model(run_json: RunJson, model: Path, name: str, kind: str) -> None:
    assert run_json("inspect", model / name)["format"] == kind


def test_what_cannot_be_measured_is_refused(run: Run, model: Path) -> None:
    for option in ("--stats", "--histogram", "--tree"):
        assert run("inspect", model / "config.json", option)[0] == 2


def test_token_files(run_json: RunJson, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "train.tokens"
    votive.data.TokenFile.write(path, [3, 5, 5, 9])
    found = run_json("inspect", path, "--stats")
    assert found["format"] == "tokens"
    assert found["tokens"]["count"] == 4
    stats = found["tokens"]["stats"]
    assert (stats["min"], stats["max"], stats["distinct"]) == (3, 9, 3)
    assert stats["most_common"][0] == [5, 2]
    assert stats["entropy_bits"] == pytest.approx(1.5)
    assert run("inspect", path, "--tree")[0] == 2


@pytest.mark.parametrize("suffix", ["npz", "gguf", "safetensors"])
def test_other_formats(run: Run, run_json: RunJson, model: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"m.{suffix}"
    assert run("convert", model, out)[0] == 0
    found = run_json("inspect", out, "--stats")
    assert found["format"] == suffix
    assert found["parameters"] == run_json("inspect", model)["parameters"]


def test_wrong_files_are_errors_in_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)) * 4)
    (tmp_path / "broken.json").write_text("{ not json")
    (tmp_path / "empty").mkdir()
    for name in ("noise.bin", "broken.json", "empty"):
        code, _, err = run("inspect", tmp_path / name)
        assert code == 1
        assert err.count("\n") == 1
    assert run("inspect", tmp_path / "noise.bin", "--histogram", "--bins", 0)[0] == 2
    assert run("inspect", tmp_path / "noise.bin", "--bins", 5)[0] == 2


def sparse(path: Path, gigabytes: int) -> None:
    """A safetensors file of zeros that takes no room on the disk."""
    header: dict[str, Any] = {}
    end, each = 0, 256 << 20
    for i in range(4 * gigabytes):
        dtype, size = ("F32", 4) if i % 2 else ("BF16", 2)
        header[f"layers.{i}.weight"] = {
            "dtype": dtype,
            "shape": [each // size // 4096, 4096],
            "data_offsets": [end, end + each],
        }
        end += each
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        f.truncate(8 + len(text) + end)


def test_four_gigabytes_are_inspected_in_less_than_300_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "large.safetensors"
    sparse(path, 4)
    assert path.stat().st_size > 4 << 30
    code = (
        "import re, sys\nfrom votive.cli import main\n"
        "assert main(['inspect', sys.argv[1], '--json']) == 0\n"
        "assert main(['inspect', sys.argv[1], '--json', '--stats', '--tensor', 'layers.1.*'])"
        " == 0\n"
        # Not ru_maxrss, which a process inherits from the one that started it.
        "printed = open('/proc/self/status').read()\n"
        "print(re.search('VmHWM:[^0-9]+([0-9]+)', printed)[1], file=sys.stderr)"
    )
    found = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr
    assert int(found.stderr) * 1024 < 300e6
    assert '"zero_fraction": 1.0' in found.stdout


def test_differences_of_nan_and_infinity() -> None:
    d = Difference()
    d.add(np.array([np.nan, np.inf, 1.0]), np.array([np.nan, np.inf, 1.0]))
    assert (d.max_abs, d.close, d.different) == (0.0, True, 0)
    d.add(np.array([np.nan]), np.array([1.0]))
    assert math.isnan(d.max_abs)
    assert not d.close


def test_one_block_of_a_quantized_tensor_is_taken_apart(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    w = votive.randn(4, 512, generator=votive.Generator().manual_seed(0))
    path = tmp_path / "w.gguf"
    votive.io.gguf.write(path, {"a.weight": w.to(votive.q4_k), "norm": votive.ones(4)}, {})
    code, out, _ = run("inspect", path, "--tensor", "a.weight", "--block", 3)
    assert code == 0
    assert "q4_k block 3: row 1, columns 256..511, 144 bytes" in out
    found = run_json("inspect", path, "--tensor", "a.weight", "--block", 3)
    assert found["numbers"] == w.to(votive.q4_k).dequantize()[1, 256:].tolist()
    assert len(found["scales"]) == len(found["minima"]) == 8
    assert len(found["codes"]) == 256
    assert "stored as F32, not in blocks" in run("inspect", path, "--tensor", "norm", "--block", 0)[2]
    assert "out of range; the tensor has 8" in run("inspect", path, "--tensor", "a.weight", "--block", 8)[2]
    assert run("inspect", path, "--block", 0)[0] == 2
