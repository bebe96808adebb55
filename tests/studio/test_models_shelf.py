"""Models in allowed folders: what is found there, what a page may open, and what it may not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from votive.studio import demo, downloads
from votive.studio.shelf import Outside, Shelf, hub_cache, weight_bytes

from .client import Page, Refused, studio


def saved(folder: Path, hidden: int = 16) -> Path:
    """A small model with its tokenizer in a folder."""
    demo.model(layers=1, hidden=hidden, heads=2).save_pretrained(folder)
    demo.tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def allowed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of models, and a repository in the form of the hub's cache."""
    root = tmp_path_factory.mktemp("models")
    saved(root / "fox")
    cached = root / "models--bear--tiny"
    version = cached / "snapshots" / "0123"
    saved(version, hidden=32)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("0123")
    (cached / "blobs").mkdir()
    weights = version / "model.safetensors"
    os.replace(weights, cached / "blobs" / "aa")
    weights.symlink_to("../../blobs/aa")
    (root / "notes").mkdir()
    (root / "notes" / "config.json").write_text("{}")
    return root


@pytest.fixture
def shelf(allowed: Path) -> Shelf:
    return Shelf([allowed])


@pytest.fixture
def own(allowed: Path, tmp_path: Path) -> Iterator[Page]:
    with studio(tmp_path, models=[allowed]) as one, Page(one) as page:
        yield page


def test_models_of_a_folder_and_of_the_hub_s_cache_are_found(shelf: Shelf, allowed: Path) -> None:
    found = {m.name: m for m in shelf.models()}
    assert set(found) == {"fox", "bear/tiny"}, "a folder without weights is no model"
    assert found["fox"].bytes == (allowed / "fox" / "model.safetensors").stat().st_size
    assert found["fox"].kind == "qwen3"
    assert found["bear/tiny"].bytes == weight_bytes(found["bear/tiny"].place)


def test_a_path_outside_of_the_folders_is_refused(shelf: Shelf, allowed: Path, tmp_path: Path) -> None:
    other = saved(tmp_path / "secret")
    for text in (str(other), str(allowed / ".." / tmp_path.name / "secret"), f"file://{other}", "/etc/passwd"):
        with pytest.raises(Outside, match="outside the folders"):
            shelf.path(text)
    with pytest.raises(Outside, match="not a whole path"):
        shelf.path("fox")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        shelf.path(str(allowed / "wolf"))
    assert shelf.path(f"file://{allowed}/fox") == allowed / "fox"
    assert shelf.path(str(allowed / "fox" / "model.safetensors")) == allowed / "fox"
    assert shelf.path(str(allowed / "models--bear--tiny")).name == "0123"


def test_links_that_lead_out_are_not_followed(tmp_path: Path) -> None:
    outside, root = saved(tmp_path / "outside"), tmp_path / "models"
    saved(root / "bad")
    (root / "bad" / "model.safetensors").unlink()
    (root / "bad" / "model.safetensors").symlink_to(outside / "model.safetensors")
    (root / "link").symlink_to(outside)
    shelf = Shelf([root])
    assert list(shelf.models()) == []
    for name in ("bad", "link", "bad/model.safetensors"):
        with pytest.raises(Outside):
            shelf.path(str(root / name))


def test_a_dropped_file_is_known_by_its_name_and_size(shelf: Shelf, allowed: Path) -> None:
    path = allowed / "fox" / "tokenizer.json"
    weights = allowed / "fox" / "model.safetensors"
    size = weights.stat().st_size
    assert shelf.dropped("model.safetensors", size) == weights
    assert shelf.dropped("model.safetensors", size + 1) is None
    assert shelf.dropped("../fox/model.safetensors", size) is None
    assert shelf.dropped(path.name, path.stat().st_size) is None, "no file of weights"


def test_a_folder_that_is_not_there_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match=r"--models: .* is not a folder"):
        Shelf([tmp_path / "no"])


def test_the_default_is_the_cache_of_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    assert hub_cache() == tmp_path / "cache"
    assert Shelf().folders == [tmp_path / "cache"]
    assert list(Shelf().models()) == [], "a cache that is not there yet is empty"


def test_a_page_lists_and_loads_models_of_the_folders(own: Page) -> None:
    found = own.ask("model.list")
    rows = {m["name"]: m for m in found["models"]}
    assert {"fox", "bear/tiny"} <= set(rows)
    assert rows["fox"]["bytes"] > 1000
    assert found["folders"]
    assert found["memory"] is None or found["memory"]["total"] >= found["memory"]["available"]
    assert own.ask("model.load", name="bear/tiny")["layers"] == 1
    with pytest.raises(Refused, match="There is no model 'wolf' in the list"):
        own.ask("model.load", name="wolf")


def test_a_page_opens_a_path_in_the_folders_and_no_other(own: Page, allowed: Path, tmp_path: Path) -> None:
    assert own.ask("model.locate", path=str(allowed / "fox"))["name"] == "fox"
    weights = allowed / "fox" / "model.safetensors"
    assert own.ask("model.locate", path="model.safetensors", size=weights.stat().st_size)["name"] == "fox"
    other = saved(tmp_path / "other")
    with pytest.raises(Refused, match="outside the folders"):
        own.ask("model.locate", path=str(other))
    with pytest.raises(Refused, match="does not tell where"):
        own.ask("model.locate", path="model.safetensors", size=1)
    with pytest.raises(Refused, match="in the list"):
        own.ask("model.load", name=str(other))


def test_a_repository_is_downloaded_with_progress_and_loaded(
    own: Page, allowed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(name: str) -> Path:
        assert name == "wolf/small"
        return allowed / "fox"

    monkeypatch.setattr(downloads, "download", fetch)
    monkeypatch.setattr(downloads, "_size", lambda name: 1000.0)
    assert own.ask("model.download", name="wolf/small") == {"name": "wolf/small"}
    assert own.ask("model.load", name="wolf/small")["layers"] == 1
    texts = [d["text"] for n, d in own.events if n == "progress"]
    assert any("wolf/small" in t for t in texts)


@pytest.mark.parametrize(
    ("raised", "says"),
    [
        (OSError("x (Got: ConnectError: [Errno -2] Name or service not known)"), "there is no network here"),
        (OSError("x (404 Client Error: Repository Not Found)"), "no such repository"),
    ],
)
def test_a_download_that_fails_says_why(own: Page, monkeypatch: pytest.MonkeyPatch, raised: Any, says: str) -> None:
    def fetch(name: str) -> Path:
        raise raised

    monkeypatch.setattr(downloads, "download", fetch)
    monkeypatch.setattr(downloads, "_size", lambda name: 0.0)
    with pytest.raises(Refused, match=says):
        own.ask("model.download", name="wolf/small")
    with pytest.raises(Refused, match="not the name of a repository"):
        own.ask("model.download", name="../../etc")


def test_a_model_that_is_not_there_ends_the_command_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    from votive.cli import main

    assert main(["studio", "no such model", "--no-browser"]) != 0
    assert "there is no model 'no such model'" in capsys.readouterr().err
    assert main(["studio", "--models", "/no/such/folder", "--no-browser"]) != 0
    assert "--models: '/no/such/folder' is not a folder" in capsys.readouterr().err
