"""The commands in the documentation run, in order, as they are written."""

from __future__ import annotations

import importlib.util
import io
import re
import shlex
import sys
from pathlib import Path

import pytest

import votive
from votive.cli import COMMANDS, main
from votive.models import checkpoint

from ..speech import small as speech
from .conftest import TEXT, make_model, make_pictures

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [p.name for p in sorted(DOCS.glob("*.md")) if "```sh\nvotive " in p.read_text()]


def commands(page: str) -> list[tuple[str | None, list[str]]]:
    """Each `votive …` in an sh block, with what an `echo` pipes into it."""
    out = []
    for block in re.findall(r"```sh\n(.*?)```", (DOCS / page).read_text(), re.S):
        for line in block.replace("\\\n", " ").splitlines():
            first, pipe, last = line.partition(" | votive ")
            if pipe and first.startswith("echo "):
                out.append((shlex.split(first)[1] + "\n", shlex.split(last)))
            elif line.startswith("votive "):
                out.append((None, shlex.split(line, comments=True)[1:]))
    return out


def shown(page: str) -> dict[str, str]:
    """The files that a page shows, each under its name: `name`: and a block of it."""
    return dict(re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)```", (DOCS / page).read_text(), re.S | re.M))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the pages speak of: texts, pictures, models and the bundled model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text(TEXT * 3)
    encoder = tmp_path / "encoder"
    tokenizer = votive.text.train_bpe([TEXT], 280, progress=False)
    tokenizer.save_pretrained(encoder)
    config = votive.models.BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2
    )
    votive.models.BertModel(config).save_pretrained(encoder)
    make_pictures(tmp_path, tokenizer)
    speech.written(tmp_path / "hearing")
    if importlib.util.find_spec("soundfile") is not None:
        votive.audio.save(tmp_path / "talk.wav", speech.sound(0.9).unsqueeze(0), 16000)
    if "tales" not in votive.models.bundled():
        make_model(tmp_path / "bundled" / "tales")
        monkeypatch.setattr(checkpoint, "BUNDLED", tmp_path / "bundled")
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run(
    page: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = commands(page)
    assert found
    for name, text in shown(page).items():
        (place / name).write_text(text)
    for piped, words in found:
        if words[0] in ("classify", "ocr") and importlib.util.find_spec("PIL") is None:
            continue  # they read pictures with pillow
        if words[0] == "transcribe" and importlib.util.find_spec("soundfile") is None:
            continue  # it reads files with soundfile
        monkeypatch.setattr(sys, "stdin", io.StringIO(piped or ""))
        code = main(words)
        out, err = capsys.readouterr()
        assert code == 0, f"votive {shlex.join(words)}: {err}"
        assert out, f"votive {shlex.join(words)} prints nothing"


def test_the_tours_are_among_the_pages() -> None:
    assert {"cli.md", "models.md"} <= set(PAGES)


def test_the_page_names_every_command() -> None:
    text = (DOCS / "cli.md").read_text()
    for name in COMMANDS:
        assert f"`{name}`" in text or f"votive {name}" in text
