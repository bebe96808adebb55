"""Hostile indexes of sharded checkpoints are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import votive
from votive.io import safetensors as st

from .forge import refusal

PATHS = [
    "../secret.safetensors",
    "sub/../../secret.safetensors",
    "/etc/passwd",
    "C:\\secret",
    "c:secret",
    "\\\\server\\share\\file",
    "..\\secret.safetensors",
    "sub\\..\\..\\secret",
    "",
    "a\0b",
    "..",
    "/",
    "//server/file",
    "\\secret",
]


def index(weight_map: Any, **other: Any) -> str:
    return json.dumps({"weight_map": weight_map, **other})


ATTACKS: dict[str, tuple[Any, str]] = {
    "broken JSON": ("{", "not valid JSON"),
    "no map": ("{}", "must have a 'weight_map'"),
    "a list": ("[]", "must have a 'weight_map'"),
    "a map that is a list": (index(["a"]), "must have a 'weight_map'"),
    "metadata that is a list": (index({}, metadata=[1]), "'metadata' must map"),
    "a file that is a number": (index({"w": 3}), "3 is not the name of a file"),
    "a file that is a list": (index({"w": ["a"]}), "not the name of a file"),
    "a name twice": ('{"weight_map": {"w": "part", "w": "other"}}', "a name occurs twice"),
    "NaN": ('{"weight_map": {}, "metadata": {"a": NaN}}', "NaN is not JSON"),
    "deep": ('{"weight_map":' + "[" * 50_000 + "]" * 50_000 + "}", "not valid JSON"),
    "not UTF-8": (b'{"weight_map": {"\xff": "part"}}', "not valid JSON"),
    "a file that is missing": (index({"w": "gone.safetensors"}), "'gone.safetensors' that is not"),
    "a folder": (index({"w": "folder"}), "that is not beside it"),
    "a tensor that is not in its file": (index({"x": "part.safetensors"}), "part.safetensors does not hold 'x'"),
    "itself": (index({"w": "model.safetensors.index.json"}), "is an index, not a part"),
    **{f"the path {p!r}": (index({"w": p}), "") for p in PATHS},
}


@pytest.mark.parametrize("name", ATTACKS)
def test_it_is_refused(name: str, tmp_path: Path) -> None:
    content, expected = ATTACKS[name]
    st.save_file({"secret": votive.ones(1)}, tmp_path / "secret.safetensors")
    folder = tmp_path / "model"
    (folder / "folder").mkdir(parents=True)
    st.save_file({"w": votive.ones(1)}, folder / "part.safetensors")
    path = folder / "model.safetensors.index.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    for target in (path, folder):
        message = refusal(target)
        assert expected in message
        if name.startswith("the path"):
            assert "outside the folder" in message or "not the name of a file" in message


def test_a_part_in_a_folder_below_is_fine(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    st.save_file({"w": votive.ones(1)}, tmp_path / "sub" / "part.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(index({"w": "sub/part.safetensors"}))
    assert votive.io.open_weights(tmp_path).tensor("w").item() == 1


def test_an_index_without_end_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors.index.json"
    with open(path, "wb") as f:
        f.truncate(200_000_000)
    assert "too many for an index" in refusal(path)
