"""`votive train --method`: each method from the command line, what it prints, resumes and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import votive
from tests.train import tuned
from tests.train.test_classification import TEXTS
from tests.train.test_embedding import PAIRS, encoder
from tests.train.test_policy import PROMPTS
from tests.train.test_preference import PAIRS as PREFERENCES
from votive.cli import main


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home, tok = tmp_path_factory.mktemp("home"), tuned.tokenizer()
    tuned.folder(home / "decoder", tuned.decoder(tok), tok)
    encoder().save_pretrained(home / "encoder")
    tuned.lines(home / "chats.jsonl", [tuned.conversation(i) for i in range(8)])
    tuned.lines(home / "preferences.jsonl", PREFERENCES)
    tuned.lines(home / "prompts.jsonl", PROMPTS)
    tuned.lines(home / "pairs.jsonl", PAIRS)
    tuned.lines(home / "texts.jsonl", TEXTS)
    (home / "reward.py").write_text("def short(completions): return [-len(c) for c in completions]\n")
    return home


METHODS = {
    "sft": ("chats", "decoder", ["--lora", "4", "--loss-on", "all", "--no-packing"]),
    "dpo": ("preferences", "decoder", ["--beta", "0.2", "--loss-type", "hinge", "--accumulate", "2"]),
    "grpo": ("prompts", "decoder", ["--num-generations", "2", "--max-new-tokens", "4", "--reward", "reward.py:short"]),
    "embed": ("pairs", "encoder", ["--temperature", "0.1", "--symmetric"]),
    "classify": ("texts", "encoder", ["--labels", "animal,number,answer", "--best", "accuracy"]),
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_each_method_trains_resumes_and_reports(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], method: str
) -> None:
    monkeypatch.chdir(home)
    data, model, more = METHODS[method]
    out = str(tmp_path / "out")
    words = ["train", f"{data}.jsonl", "--method", method, "--model", model, "--out", out, "--steps", "2", *more]
    assert main([*words, "--set", "held_out=0.2", "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert f"{out}: {method}, " in shown
    assert "measured: " in shown
    again = ["train", f"{data}.jsonl", "--out", out, "--resume", "--json", "--quiet"]
    assert main([*again, *(more[-2:] if method == "grpo" else [])]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["method"] == method
    assert told["steps"] == 2
    assert told["recipe"]["max_steps"] == 2
    assert set(told["metrics"])
    if method == "sft":
        assert f"run it: votive chat --model {out}" in shown  # the tokenizer has a template of chats
        assert told["recipe"]["lora"] == 4
        assert told["recipe"]["packing"] is False
        assert 0 < told["trained"] < told["parameters"] / 4
        assert main(["generate", "the", "--model", out, "--greedy", "--max-new-tokens", "2", "--quiet"]) == 0
    if method == "embed":
        assert main(["embed", "--model", out, "the cat", "--json"]) == 0
    if method == "classify":
        found = votive.models.AutoModelForSequenceClassification.from_pretrained(out)
        assert found.config.id2label == {0: "animal", 1: "number", 2: "answer"}


def test_an_adapter_that_classifies_is_told_with_its_classes(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(home)
    out = tmp_path / "out"
    words = ["texts.jsonl", "--method", "classify", "--model", "decoder", "--lora", "2", "--steps", "1"]
    assert main(["train", *words, "--out", str(out), "--quiet"]) == 0
    line = capsys.readouterr().out.rpartition("run it: ")[2]
    assert f"{str(out)!r}, id2label={{0: 'animal', 1: 'answer', 2: 'number'}})" in line
    with pytest.warns(UserWarning, match="missing"):
        assert eval(line, {"votive": votive}).config.num_labels == 3


def refusals() -> list[tuple[list[str], str]]:
    sft = ["chats.jsonl", "--method", "sft", "--model", "decoder"]
    return [
        (["chats.jsonl", "--beta", "0.1"], "--beta is for fine-tuning; add --method"),
        ([*sft, "--beta", "0.1"], "--beta is for --method dpo or grpo, not for --method sft"),
        ([*sft, "--base", "decoder"], "with --method, the model to begin with is --model"),
        ([*sft, "--best", "reward"], "best is one of loss, accuracy, got 'reward'"),
        ([*sft, "--hidden-size", "8"], "--hidden-size is for training a new model on a text"),
        ([*sft, "--set", "rank=3"], "there is no setting 'rank'"),
        ([*sft, "--set", "model.rope_theta=3"], "--set model.NAME is for training a new model"),
        ([*sft, "--reward", "reward.py:short"], "--reward is for --method grpo"),
        (["chats.jsonl", "--method", "sft"], "begins with a model: add --model FOLDER"),
        (["prompts.jsonl", "--method", "grpo", "--model", "decoder"], "add --reward file.py:function"),
        (["pairs.jsonl", "--method", "embed", "--model", "encoder", "--prompt", "x"], "writes none"),
        (["none.jsonl", *sft[1:]], "none.jsonl is no file"),
        (["pairs.jsonl", *sft[1:]], 'pairs.jsonl:1: needs "messages"'),
    ]


@pytest.mark.parametrize(("words", "says"), refusals())
def test_what_does_not_go_is_told(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    words: list[str], says: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(home)
    assert main(["train", *words, "--out", str(tmp_path / "out"), "--quiet"]) in (1, 2)
    assert says in capsys.readouterr().err


def test_settings_come_from_a_file(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(home)
    (tmp_path / "plan.toml").write_text('method = "sft"\nmodel = "decoder"\nmax_steps = 1\nlora = 2\nheld_out = 0.0\n')
    out = tmp_path / "out"
    words = ["train", "chats.jsonl", "--method", "sft", "--config", str(tmp_path / "plan.toml"), "--out", str(out)]
    assert main([*words, "--quiet"]) == 0
    assert json.loads((out / "training" / "recipe.json").read_bytes())["lora"] == 2
    assert main([*words, "--quiet", "--resume", "--method", "dpo"]) == 1
    assert "the settings are for method='sft'" in capsys.readouterr().err
