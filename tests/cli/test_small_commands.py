"""`env`, `explain`, `bench` and `demo`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import votive

Run = Callable[..., tuple[int, str, str]]
RunJson = Callable[..., Any]


def test_env_tells_versions_and_devices(run: Run, run_json: RunJson) -> None:
    code, out, _ = run("env")
    assert code == 0
    assert votive.config.show() in out
    found = run_json("env")
    assert found["votive"] == votive.__version__
    assert "cpu" in found["devices"]
    assert found["threads"] == votive.get_num_threads()
    assert "qwen3" in found["models"]["families"]


def test_explain_prints_the_explanation(run: Run, run_json: RunJson) -> None:
    assert run("explain", "gelu")[1] == votive.explanation("gelu") + "\n"
    assert run_json("explain", "gelu")["explanation"] == votive.explanation("gelu")


def test_explain_lists_operators(run: Run, run_json: RunJson) -> None:
    names = run("explain", "--list")[1].split()
    assert {"gelu", "matmul", "softmax"} <= set(names)
    assert run_json("explain", "--list") == names


@pytest.mark.parametrize("words", [[], ["gelu", "--list"]])
def test_explain_wants_one_of_a_name_and_a_list(run: Run, words: list[str]) -> None:
    assert run("explain", *words)[0] == 2


def test_bench_measures_what_is_asked_for(run_json: RunJson, model: Path) -> None:
    found = run_json("bench", "--only", "call", "--seconds", "0.01", "--model", model)
    assert [r["name"].split(":")[0] for r in found["results"]] == ["call", "call"]
    for row in found["results"]:
        assert row["unit"] == "µs"
        assert 0 < row["best"] <= row["median"]
        assert row["blocks"] >= 5


def test_bench_measures_generation(run: Run, model: Path) -> None:
    code, out, _ = run("bench", "--only", "plain:", "--seconds", "0.01", "--model", model)
    assert code == 0
    assert "plain: write 32 tokens" in out
    assert "tokens/s" in out


def test_bench_refuses_what_it_does_not_measure(run: Run, model: Path) -> None:
    assert run("bench", "--only", "no such thing", "--model", model)[0] == 2
    assert run("bench", "--seconds", "0")[0] == 2
    assert run("bench", "abacus")[0] == 2


def test_bench_rates_are_amounts_by_time() -> None:
    from votive.cli.bench import Case

    assert Case("", lambda: lambda: None, 4e9, "GB/s", 1e-9).figure(2.0) == 2.0
    assert Case("", lambda: lambda: None, 1, "µs", 1e6).figure(2e-6) == pytest.approx(2.0)
