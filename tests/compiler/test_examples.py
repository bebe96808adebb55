"""The examples, their whole `main` compiled, print the numbers that they print eagerly."""

from __future__ import annotations

import importlib.util
import re
import sys
import warnings
from typing import Any

import pytest

import votive
from tests.test_examples_run import EXAMPLES, RUNS

pytestmark = pytest.mark.usefixtures("interpreted")

SHORT: dict[str, list[str]] = {
    "digits": ["--steps", "20"],
    "char_gpt": ["--steps", "20", "--batch", "2", "--width", "16", "--layers", "1", "--context", "16", "--write", "3"],
    "autoencoder": ["--steps", "20"],
    "lstm_tagger": ["--steps", "2"],
    "lora": ["--steps", "20"],
    "cartpole": ["--steps", "2", "--episodes", "4"],
}


def load(name: str) -> Any:
    """An example as a module of its own."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", SHORT)
def test_an_example_compiled_prints_what_it_prints_eagerly(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(sys, "argv", [name, *SHORT[name], "--seed", "0"])
    found = []
    for compiled in (False, True):
        module = load(name)
        main = module.main
        if compiled:
            for key, value in list(vars(module).items()):
                if (
                    isinstance(value, type)
                    and issubclass(value, votive.nn.Module)
                    and value.__module__ == module.__name__
                ):
                    monkeypatch.setattr(value, "forward", votive.compile(value.forward))
                elif key in ("loss_of", "train_step", "losses", "train", "fit", "accuracy", "network"):
                    monkeypatch.setattr(module, key, votive.compile(value))
            main = votive.compile(main)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="compile: .* was compiled")
            main()
        text = capsys.readouterr().out
        numbers = re.search(RUNS[name][1], text)
        assert numbers, text
        found.append([float(n) for n in numbers.groups()])
    assert found[1] == pytest.approx(found[0], rel=2e-2, abs=1e-6)
