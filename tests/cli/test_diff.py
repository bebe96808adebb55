"""`votive diff`: what differs, by how much, and the exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import votive

Run = Callable[..., tuple[int, str, str]]


def save(path: Path, **tensors: Any) -> Path:
    votive.io.safetensors.save_file(tensors, path)
    return path


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    votive.manual_seed(0)
    w = votive.randn(100, 50)
    common = {"same": votive.ones(3), "n": votive.tensor([1, 2])}
    a = save(
        tmp_path / "a.safetensors", w=w, gone=votive.ones(1), shape=votive.ones(2, 3), half=votive.ones(2), **common
    )
    b = save(
        tmp_path / "b.safetensors",
        w=w + 0.25,
        new=votive.ones(1),
        shape=votive.ones(3, 2),
        half=votive.ones(2).half(),
        **common,
    )
    return a, b


def test_equal_weights_are_exit_code_0(run: Run, weights: Path) -> None:
    code, out, err = run("diff", weights, weights)
    assert (code, err) == (0, "")
    assert "5 tensors are equal" in out


def test_every_kind_of_difference_is_told(run: Run, pair: tuple[Path, Path]) -> None:
    import json

    code, out, _ = run("diff", *pair, "--json")
    assert code == 1
    found = json.loads(out)
    assert (found["only_a"], found["only_b"]) == (["gone"], ["new"])
    rows = {r["name"]: r for r in found["tensors"]}
    assert {n: r.get("why") for n, r in rows.items() if not r["equal"]} == {
        "w": "values",
        "shape": "shape",
        "half": "dtype",
    }
    assert rows["w"]["max_abs"] == pytest.approx(0.25, rel=1e-6)
    with votive.io.open_weights(pair[0]) as a, votive.io.open_weights(pair[1]) as b:
        x, y = a.tensor("w").double(), b.tensor("w").double()
    cosine = (x * y).sum() / (x.norm() * y.norm())
    assert rows["w"]["cosine"] == pytest.approx(cosine.item(), rel=1e-9)
    relative = ((x - y).abs() / votive.maximum(x.abs(), y.abs())).max()
    assert rows["w"]["max_rel"] == pytest.approx(relative.item(), rel=1e-9)
    code, out, _ = run("diff", *pair)
    assert code == 1
    assert "- gone" in out
    assert "+ new" in out
    assert "2×3 → 3×2" in out
    assert "same" not in out
    assert "same" in run("diff", *pair, "--all")[1]


@pytest.mark.parametrize(
    ("options", "code"), [([], 1), (["--tolerance", "0.26"], 0), (["--tolerance", "0.24"], 1), (["--rtol", "1e9"], 0)]
)
def test_tolerances_decide(run: Run, pair: tuple[Path, Path], options: list[str], code: int) -> None:
    assert run("diff", *pair, "--tensor", "w", *options)[0] == code


def test_types_may_be_ignored(run: Run, pair: tuple[Path, Path]) -> None:
    assert run("diff", *pair, "--tensor", "half")[0] == 1
    assert run("diff", *pair, "--tensor", "half", "--ignore-dtype")[0] == 0


def test_formats_may_differ(run: Run, weights: Path, tmp_path: Path) -> None:
    assert run("convert", weights, tmp_path / "w.npz")[0] == 0
    assert run("diff", weights, tmp_path / "w.npz", "--ignore-dtype")[0] == 0


def test_models_are_compared_under_one_set_of_names(run: Run, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.gguf"
    assert run("convert", model, out)[0] == 0
    assert run("diff", model, out)[0] == 1
    assert run("diff", model, out, "--model")[0] == 0


def test_trouble_is_exit_code_2(run: Run, weights: Path, model: Path) -> None:
    assert run("diff", weights, "missing")[0] == 2
    assert run("diff", weights, model / "config.json")[0] == 2
    assert run("diff", weights, weights, "--tolerance", "-1")[0] == 2


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (votive.tensor([1 + 2j]), votive.tensor([1 - 2j])),
        (votive.tensor([2**60]), votive.tensor([2**60 + 1])),
        (votive.tensor([True]), votive.tensor([False])),
        (votive.ones(1).to(votive.float8_e4m3fn), votive.zeros(1).to(votive.float8_e4m3fn)),
        (votive.tensor([0.0]), votive.tensor([5e-324], dtype=votive.float64)),
    ],
    ids=["conjugates", "large integers", "truth values", "eight bits", "the smallest number"],
)
def test_nothing_that_differs_passes_as_equal(run: Run, tmp_path: Path, a: Any, b: Any) -> None:
    first, second = save(tmp_path / "a.safetensors", x=a), save(tmp_path / "b.safetensors", x=b)
    assert run("diff", first, second, "--ignore-dtype")[0] == 1
    assert run("diff", first, first)[0] == 0
