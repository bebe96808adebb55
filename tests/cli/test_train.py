"""`votive train`: from a text file to a folder that runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import TEXT

Run = Callable[..., tuple[int, str, str]]
RunJson = Callable[..., Any]
SMALL = [
    "--hidden-size",
    16,
    "--layers",
    1,
    "--heads",
    2,
    "--kv-heads",
    1,
    "--context",
    16,
    "--vocab-size",
    280,
    "--batch-size",
    4,
    "--steps",
    6,
    "--checkpoint-every",
    2,
    "--eval-every",
    3,
]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


def test_training_makes_a_folder_that_generate_runs(run: Run, run_json: RunJson, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "made"
    curve = tmp_path / "curve.png"
    found = run_json("train", text, "--out", out, "--curve", curve, "--prompt", "Once", *SMALL)
    assert found["steps"] == 6
    assert found["held_out_loss"] > 0
    assert found["samples"][0].startswith("Once")
    assert found["recipe"]["hidden_size"] == 16
    assert curve.read_bytes()[:4] == b"\x89PNG"
    assert (out / "training" / "curve.svg").is_file()
    code, text_out, _ = run("generate", "Once", "--model", out, "--max-new-tokens", 5)
    assert code == 0
    assert text_out.startswith("Once")


def test_progress_is_on_stderr_and_the_result_on_stdout(run: Run, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "made"
    code, printed, err = run("train", text, "--out", out, "--no-samples", *SMALL)
    assert code == 0
    assert "step 6" in err
    assert "step 6" not in printed
    assert "held-out loss" in printed
    assert "--- sample" not in printed
    assert run("train", text, "--out", tmp_path / "quiet", "-q", "--no-samples", *SMALL)[2] == ""


def test_a_run_is_resumed_exactly(
    run: Run, run_json: RunJson, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from votive.train import Trainer

    whole = run_json("train", text, "--out", tmp_path / "whole", "--no-samples", *SMALL)
    original = Trainer._after_step

    def interrupted(self: Any) -> None:
        original(self)
        if self.step == 4:
            raise KeyboardInterrupt

    out = tmp_path / "parts"
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_after_step", interrupted)
        code, _, err = run("train", text, "--out", out, "--no-samples", *SMALL)
    assert code == 130
    assert "--resume" in err
    code, _, err = run("train", text, "--out", out, *SMALL)
    assert code == 1
    assert "resume it" in err
    # The settings are those that the run began with.
    found = run_json("train", text, "--out", out, "--resume", "--no-samples")
    assert found["loss"] == whole["loss"]
    assert found["held_out_loss"] == whole["held_out_loss"]
    code, _, err = run("train", text, "--out", out, "--resume", "--lr", 1)
    assert code == 1
    assert "lr was 0.002, now 1.0" in err
    text.write_text(TEXT + "more")
    assert "not what" in run("train", text, "--out", out, "--resume")[2]


@pytest.mark.parametrize("suffix", ["json", "toml"])
def test_settings_come_from_a_file_and_options_change_them(
    run_json: RunJson, text: Path, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"recipe.{suffix}"
    values = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "context": 16,
        "num_key_value_heads": 1,
        "vocab_size": 280,
        "max_steps": 3,
    }
    if suffix == "json":
        path.write_text(json.dumps({**values, "model": {"rope_theta": 500.0}}))
    else:
        lines = [f"{k} = {v}" for k, v in values.items()]
        path.write_text("\n".join([*lines, "[model]", "rope_theta = 500.0"]))
    found = run_json(
        "train",
        text,
        "--out",
        tmp_path / "made",
        "--config",
        path,
        "--steps",
        2,
        "--no-samples",
        "--set",
        "weight_decay=0.05",
        "--set",
        "model.rms_norm_eps=1e-5",
        "--separator",
        "\\n\\n",
    )
    assert found["steps"] == 2
    recipe = found["recipe"]
    assert recipe["weight_decay"] == 0.05
    assert recipe["separator"] == "\n\n"
    assert recipe["model"] == {"rope_theta": 500.0, "rms_norm_eps": 1e-5}
    config = json.loads((tmp_path / "made" / "config.json").read_text())
    assert config["rope_theta"] == 500.0


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_other_families(run: Run, text: Path, tmp_path: Path, family: str) -> None:
    out = tmp_path / "made"
    words = ("--model-type", family, "--dtype", "bfloat16", "--prompt", "Once")
    code, _, err = run("train", text, "--out", out, *words, *SMALL)
    assert code == 0, err
    config = json.loads((out / "config.json").read_text())
    assert (config["model_type"], config["dtype"]) == (family, "bfloat16")


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--set", "nonsense"], 2, "NAME=VALUE"),
        (["--set", "hidden_sise=3"], 1, "did you mean 'hidden_size'"),
        (["--config", "no-such-file.json"], 1, "no-such-file.json"),
        (["--curve", "x.gif"], 2, ".svg or .png"),
        (["--vocab-size", "100"], 1, "too small"),
        (["--context", "100000"], 1, "shorten the context"),
        (["--model-type", "nonsense"], 1, "unknown model_type"),
        (["--resume"], 1, "no checkpoint"),
    ],
)
def test_wrong_settings_are_told(
    run: Run, text: Path, tmp_path: Path, options: list[str], code: int, says: str
) -> None:
    found, _, err = run("train", text, "--out", tmp_path / "made", *options)
    assert found == code
    assert says in err


def test_what_is_no_text_is_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    for name, says in (("missing", "is no file"), ("empty.txt", "no text"), ("bytes.txt", "UTF-8")):
        code, _, err = run("train", tmp_path / name, "--out", tmp_path / "made")
        assert code == 1
        assert says in err
