"""Hostile files in NumPy's formats are refused."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from votive.io import open_weights

from .forge import both, described, npy, npz, refusal

GOOD = npy(described(), bytes(8))
ATTACKS: dict[str, tuple[bytes, str]] = {
    "an unknown version": (npy(described(), bytes(8), version=9), "version 9.0"),
    "a header that is longer than the file": (npy(described(), length=9000), "header is cut off"),
    "a header of 4 GB": (npy(described(), version=2, length=2**32 - 1), "bytes is refused"),
    "a header that is code": (npy(b"__import__('os').system('true')"), "header is damaged"),
    "a header that is deep": (npy(b"(" * 4000 + b")" * 4000), "header is damaged"),
    "a header that is a chain of signs": (npy(b"-" * 9000 + b"1"), "header is damaged"),
    "a header that multiplies": (
        npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (9**9**9,)}"),
        "header is damaged",
    ),
    "a number with too many digits": (npy(b"1" * 9000), "header is damaged"),
    "a header with another key": (npy({**described(), "x": 1}, bytes(8)), "header is damaged"),
    "a header that is no dict": (npy([1]), "header is damaged"),
    "an order that is a number": (npy(described(fortran=1), bytes(8)), "header is damaged"),
    "a shape that is a list": (npy(described(shape=[2]), bytes(8)), "header is damaged"),
    "a negative size": (npy(described(shape=(-2,)), bytes(8)), "at least 0"),
    "a size that is a float": (npy(described(shape=(2.0,)), bytes(8)), "at least 0"),
    "a product that overflows": (npy(described(shape=(2**40, 2**40)), bytes(8)), "too large"),
    "an empty array with a huge side": (npy(described(shape=(0, 2**63)), b""), "too large"),
    "a hundred dimensions": (npy(described(shape=(1,) * 100), bytes(4)), "too large"),
    "more data than there are": (npy(described(shape=(2**40,)), bytes(8)), "cut off"),
    "objects": (npy(described("|O"), b"\x80\x02."), "Python objects"),
    "a structure": (npy(described([("a", "<f4")]), bytes(8)), "structured"),
    "a structure in text": (npy(described("f4,f4"), bytes(16)), "numbers of the type"),
    "an unknown type": (npy(described("<f3"), bytes(8)), "numbers of the type"),
    "an empty type": (npy(described(""), bytes(8)), "structured"),
    "a type over two lines": (npy(described("<f4\n"), bytes(8)), "structured"),
}


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("kind", ["npy", "npz", "npz, compressed"])
def test_it_is_refused(name: str, kind: str, tmp_path: Path) -> None:
    content, expected = ATTACKS[name]
    if kind == "npy":
        path = tmp_path / "w.npy"
        path.write_bytes(content)
        assert expected in both(path)
        return
    path = tmp_path / "w.npz"
    method = zipfile.ZIP_DEFLATED if "compressed" in kind else zipfile.ZIP_STORED
    path.write_bytes(npz({"w.npy": content}, method))
    message = both(path)
    if "more data" not in name:
        assert expected in message


def patched(content: bytes, **fields: int) -> bytes:
    """An archive of one member whose directory claims other sizes or places."""
    at = content.rindex(b"PK\x01\x02")
    offsets = {
        "method": (10, "<H"),
        "crc": (16, "<I"),
        "packed": (20, "<I"),
        "size": (24, "<I"),
        "flags": (8, "<H"),
        "offset": (42, "<I"),
    }
    out = bytearray(content)
    for name, value in fields.items():
        where, form = offsets[name]
        struct.pack_into(form, out, at + where, value)
    return bytes(out)


STORED, DEFLATED = npz({"w.npy": GOOD}), npz({"w.npy": GOOD}, zipfile.ZIP_DEFLATED)
ARCHIVES: dict[str, tuple[bytes, str]] = {
    "a stored member of two sizes": (patched(STORED, size=4 << 20), "two different sizes"),
    "a stored member beyond the end": (patched(STORED, size=2**31, packed=2**31), "beyond the end"),
    "a compressed member that claims too much": (patched(DEFLATED, size=2**31), "cannot hold"),
    "a compressed member that holds less": (patched(DEFLATED, size=len(GOOD) + 1), "holds less than it claims"),
    "a compressed member that holds more": (patched(DEFLATED, size=len(GOOD) - 1), "holds more than it claims"),
    "another checksum": (patched(DEFLATED, crc=1), "checksum differs"),
    "an unknown method": (patched(DEFLATED, method=99), "method 99"),
    "an encrypted member": (patched(STORED, flags=1), "encrypted"),
    "a member before the beginning": (patched(STORED, offset=2**31), "has no header"),
    "no directory": (STORED[: STORED.index(b"PK\x01\x02")], "cut off or damaged"),
    "a directory alone": (STORED[STORED.index(b"PK\x01\x02") :], "none of the known"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_that_lies_is_refused(name: str, tmp_path: Path) -> None:
    content, expected = ARCHIVES[name]
    path = tmp_path / "w.npz"
    path.write_bytes(content)
    assert expected in both(path)


def test_members_that_overlap_are_refused(tmp_path: Path) -> None:
    # The directory names one stretch of the file several times, each time as another member.
    at = STORED.index(b"PK\x01\x02")
    end = STORED.index(b"PK\x05\x06")
    row = STORED[at:end]
    rows = row + row.replace(b"w.npy", b"x.npy")
    tail = bytearray(STORED[end:])
    struct.pack_into("<2H2I", tail, 8, 2, 2, len(rows), at)
    path = tmp_path / "w.npz"
    path.write_bytes(STORED[:at] + rows + bytes(tail))
    assert "overlap in the archive" in both(path)


def test_a_name_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.npz"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("w.npy", GOOD)
        with pytest.warns(UserWarning, match="Duplicate"):
            z.writestr("w.npy", GOOD)
    assert "a name occurs twice" in both(path)


def test_looking_at_a_bomb_unpacks_its_header_only(tmp_path: Path) -> None:
    # 64 MB of zeros in 64 KB, which is honest; reading it is the user's decision.
    path = tmp_path / "w.npz"
    zeros = npy(described(shape=(1 << 24,)), bytes(1 << 26))
    path.write_bytes(npz({"w.npy": zeros}, zipfile.ZIP_DEFLATED))
    assert path.stat().st_size < 100_000

    def look(path: Path) -> None:
        assert open_weights(path).info("w").shape == (1 << 24,)
        raise votive_error

    from votive.io import FileFormatError

    votive_error = FileFormatError("seen")
    assert refusal(path, look, 4_000_000) == "seen"


def test_deflate_cannot_do_better_than_the_bound_that_is_believed() -> None:
    size = 50_000_000
    packed = len(zlib.compress(bytes(size), 9))
    assert size / packed < 1032


def test_numpy_agrees_that_the_untouched_archives_are_fine(tmp_path: Path) -> None:
    for content in (STORED, DEFLATED):
        (tmp_path / "w.npz").write_bytes(content)
        with np.load(tmp_path / "w.npz") as z:
            assert z["w"].tolist() == [0, 0]
        assert open_weights(tmp_path / "w.npz").tensor("w").tolist() == [0, 0]
