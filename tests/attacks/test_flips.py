"""Any byte of a file may be cut off or changed: it is read or refused, nothing else happens."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

import votive
from votive.io import FileFormatError
from votive.io.pickle_machine import Machine
from votive.io.torch_parts import find, storage

from .forge import read_all, valid

FILES = valid()
SUFFIX = {"npz": ".npz", "npz, compressed": ".npz", "npy": ".npy"}
QUIET = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)


def placed(tmp_path: Path, kind: str, content: bytes) -> Path:
    path = tmp_path / f"file{SUFFIX.get(kind, '')}"
    path.write_bytes(content)
    return path


def survives(path: Path) -> None:
    """Either the file is read, or it is refused as it should be."""
    for read in (read_all, votive.load):
        with contextlib.suppress(FileFormatError):
            read(path)
    with contextlib.suppress(FileFormatError):
        votive.load(io.BytesIO(path.read_bytes()))


@pytest.mark.parametrize("kind", FILES)
def test_the_untouched_file_is_read(kind: str, tmp_path: Path) -> None:
    read_all(placed(tmp_path, kind, FILES[kind]))


@pytest.mark.parametrize("kind", FILES)
def test_a_file_cut_off_at_any_byte_is_refused(kind: str, tmp_path: Path) -> None:
    for length in range(len(FILES[kind])):
        path = placed(tmp_path, kind, FILES[kind][:length])
        for read in (read_all, votive.load):
            with pytest.raises(FileFormatError):
                read(path)


@pytest.mark.parametrize("kind", FILES)
def test_every_single_byte_may_be_changed(kind: str, tmp_path: Path) -> None:
    for at in range(len(FILES[kind])):
        content = bytearray(FILES[kind])
        content[at] ^= (0xFF, 0x01, 0x80)[at % 3]
        survives(placed(tmp_path, kind, bytes(content)))


@pytest.mark.parametrize("kind", FILES)
@given(data=some.data())
@QUIET
def test_many_bytes_may_be_changed_cut_out_or_put_in(kind: str, data: some.DataObject, tmp_path: Path) -> None:
    content = bytearray(FILES[kind])
    for _ in range(data.draw(some.integers(1, 6))):
        at = data.draw(some.integers(0, len(content)))
        length = data.draw(some.integers(0, 8))
        content[at : at + length] = data.draw(some.binary(max_size=8))
    survives(placed(tmp_path, kind, bytes(content)))


@given(some.binary(max_size=60))
@QUIET
def test_any_bytes_may_follow_the_beginning_of_a_pickle(content: bytes) -> None:
    def persistent(identity: Any) -> Any:
        return storage(identity)

    with contextlib.suppress(FileFormatError):
        Machine(b"\x80\x02" + content + b".", 0, find, persistent).run()
