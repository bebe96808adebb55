"""A file opened as what it is not is refused by every reader."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from votive.io import FileFormatError, open_weights
from votive.io.formats import FORMATS

from .forge import valid

DATA = Path(__file__).parent.parent / "io" / "data"
FILES = {
    **valid(),
    "gguf": (DATA / "little.gguf").read_bytes(),
    "nothing": b"",
    "text": b"hello\n" * 100,
    "zeros": bytes(2000),
    "noise": random.Random(0).randbytes(3000),
    "a document": valid()["npz"].replace(b".npy", b".xml"),
}
# What it is, where that is one of the formats.
IS = {"torch zip": "torch", "torch legacy": "torch", "npz, compressed": "npz"}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("format", FORMATS)
def test_only_its_own_reader_takes_a_file(name: str, format: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(FILES[name])
    if IS.get(name, name) == format:
        assert len(open_weights(path, format=format)) > 0
        assert sorted(open_weights(path)) == sorted(open_weights(path, format=format))
        return
    with pytest.raises(FileFormatError):
        open_weights(path, format=format)


@pytest.mark.parametrize("name", ["nothing", "text", "zeros", "noise", "a document"])
def test_what_has_no_known_format_is_told(name: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(FILES[name])
    with pytest.raises(FileFormatError):
        open_weights(path)
