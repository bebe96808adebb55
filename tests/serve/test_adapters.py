"""A model answers by its own name as it is, and by those of its adapters with them, whatever comes in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import votive
from votive import cli
from votive.serve import Engine, ServedModel
from votive.serve.adapters import AdapterSwitch

from .client import language_model, post, serving, tokenizer
from .engines import ask


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two adapters, as PEFT writes them."""
    found = {}
    for seed, (name, config) in enumerate(
        {
            "poet": votive.models.LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False),
            "critic": votive.models.LoraConfig(
                r=2, target_modules=["q_proj"], modules_to_save=["lm_head"], init_lora_weights=False
            ),
        }.items()
    ):
        model = language_model()
        votive.manual_seed(seed + 5)
        model.add_adapter(config)
        with votive.no_grad():
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter.add_(votive.randn_like(parameter) * 0.3)
        found[name] = tmp_path_factory.mktemp("adapters") / name
        model.save_adapter(found[name])
    return found


def written(folder: Path | None, prompt: list[int]) -> list[int]:
    """What a model of its own writes with an adapter."""
    model = language_model()
    if folder is not None:
        model.load_adapter(folder)
        model.eval()
    ids = votive.tensor([prompt])
    out = votive.generation.generate(model, ids, max_new_tokens=12, eos_token_id=None)
    return [int(t) for t in out[0].tolist()[len(prompt) :]]


def test_each_name_writes_with_its_adapter_while_others_are_written(folders: dict[str, Path]) -> None:
    switch = AdapterSwitch(language_model())
    for name, folder in folders.items():
        switch.load(name, folder)
    engines: dict[str | None, Engine] = {
        name: Engine(ServedModel(name or "base", switch.model, None, before=switch.using(name)), chunk=4, block=4)
        for name in (None, *folders)
    }
    prompts = [[5, 6, 7, 8, 9, 10], [11, 12], [5, 6, 7, 8, 9, 10]]
    answers: dict[Any, Any] = {}
    for i, prompt in enumerate(prompts):
        for name, one in engines.items():
            answers[name, i] = ask(one, prompt, new=12, eos_token_id=None)
        for one in engines.values():
            one.step()
    while any(one.busy for one in engines.values()):
        for one in engines.values():
            one.step()
    different = set()
    for (name, i), answer in answers.items():
        assert answer.tokens() == written(None if name is None else folders[name], prompts[i]), (name, i)
        different.add(tuple(answer.tokens()))
    assert len(different) == 6


def test_adapters_are_models_to_requests(folders: dict[str, Path]) -> None:
    switch = AdapterSwitch(language_model())
    switch.load("poet", folders["poet"])
    words = tokenizer()
    engines = [
        Engine(ServedModel(name or "base", switch.model, words, before=switch.using(name))) for name in (None, "poet")
    ]
    with serving(*engines) as one:
        for name, folder in (("base", None), ("poet", folders["poet"]), ("base", None)):
            asked = {"model": name, "prompt": "Once", "max_tokens": 12, "temperature": 0, "ignore_eos": True}
            text = words.decode(written(folder, words.encode("Once")), skip_special_tokens=True)
            assert post(one, "completions", asked).json["choices"][0]["text"] == text


def test_the_command_takes_adapters(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from .test_command import served

    folder = tmp_path / "small"
    language_model().save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    one = served(monkeypatch, folder, "--adapter", f"poet={folders['poet']}", "--adapter", f"c={folders['critic']}")
    assert one.registry.names() == ["small", "poet", "c"]
    for words, code, says in [
        ([folder, "--adapter", "poet"], 2, "NAME=FOLDER"),
        ([folder, "--adapter", f"small={folders['poet']}"], 1, "two models are called 'small'"),
        ([folder, "--adapter", f"x={tmp_path}/none"], 1, "adapter_config.json"),
        ([folder, folder, "--adapter", f"x={folders['poet']}"], 2, "--adapter goes with one model"),
    ]:
        assert cli.main(["serve", "--port", "0", *map(str, words)]) == code
        assert says in capsys.readouterr().err
