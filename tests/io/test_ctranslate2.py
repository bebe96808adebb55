"""CTranslate2's files: types, scales, other names, old versions, and what is damaged."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import votive
from votive.io import FileFormatError, ctranslate2, open_weights


def test_every_type_comes_back(tmp_path: Path) -> None:
    names = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
    tensors = {n: votive.arange(6).view(2, 3).to(getattr(votive, n)) for n in names}
    tensors["number"] = votive.tensor(7, dtype=votive.int16)
    path = tmp_path / "model.bin"
    ctranslate2.write(path, "WhisperSpec", tensors, revision=3, aliases={"again": "int8"})
    with open_weights(path) as file:
        assert isinstance(file, ctranslate2.CTranslate2File)
        assert (file.spec, file.revision, file.version) == ("WhisperSpec", 3, 6)
        assert file.names() == [*tensors]
        for name, t in tensors.items():
            got = file.tensor(name)
            assert got.dtype is t.dtype
            assert votive.equal(got, t)
        assert file.number("number") == 7
        assert file.aliases == {"again": "int8"}
        assert file.slice("float32", slice(1, 2)).tolist() == [[3.0, 4.0, 5.0]]


def test_quantized_weights_are_divided_by_their_scales(tmp_path: Path) -> None:
    w = np.random.default_rng(0).standard_normal((4, 3, 5)).astype(np.float32)
    scale = 127 / np.abs(w).reshape(4, -1).max(1)
    q = np.rint(w * scale.reshape(4, 1, 1)).astype(np.int8)
    whole = np.float32(2**10 / np.abs(w).max())
    tensors = {
        "a/weight": votive.tensor(q),
        "a/weight_scale": votive.tensor(scale.astype(np.float32)),
        "b/weight": votive.tensor(np.rint(w * whole).astype(np.int16)),
        "b/weight_scale": votive.tensor(whole),
    }
    path = tmp_path / "model.bin"
    ctranslate2.write(path, "XSpec", tensors)
    with open_weights(path, "ctranslate2") as file:
        assert file.names() == ["a/weight", "b/weight"]
        assert (file.info("a/weight").stored, file.info("a/weight").dtype) == ("int8", votive.float32)
        assert np.abs(file.tensor("a/weight").numpy() - w).max() <= 0.5 / scale.min() + 1e-6
        assert np.abs(file.tensor("b/weight").numpy() - w).max() <= 0.5 / whole + 1e-6
        part = file.slice("a/weight", slice(1, 3))
        assert votive.equal(part, file.tensor("a/weight")[1:3])


def old(version: int) -> bytes:
    """A file of an early version: the size of elements stands for their type."""
    data = np.arange(3, dtype="<f4").tobytes()
    head = struct.pack("<I", version) + struct.pack("<H", 5) + b"Spec\0" + struct.pack("<II", 1, 1)
    body = struct.pack("<H", 2) + b"w\0" + struct.pack("<BI", 1, 3) + struct.pack("<BI", 4, 3)
    return head + body + data + (struct.pack("<I", 0) if version >= 3 else b"")


@pytest.mark.parametrize("version", [2, 3])
def test_early_versions_are_read(tmp_path: Path, version: int) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(old(version))
    assert open_weights(path).tensor("w").tolist() == [0.0, 1.0, 2.0]


def test_a_file_that_ends_too_early_is_an_error_wherever_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    tensors = {"a": votive.ones(3), "b": votive.ones(2, 2)}
    ctranslate2.write(path, "Spec", tensors, aliases={"c": "a"})
    whole = path.read_bytes()
    for length in range(4, len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError):
            ctranslate2.open(path)


@pytest.mark.parametrize(
    ("at", "raw", "told"),
    [
        (0, struct.pack("<I", 9), "version 9"),
        (15, struct.pack("<I", 1 << 30), "too many"),
        (21, b"\xff", "not UTF-8|does not end"),
        (23, b"\x63", "dimensions"),
        (28, b"\x09", "unknown type"),
        (29, struct.pack("<I", 1 << 20), "bytes instead of"),
    ],
)
def test_damaged_files_are_told(tmp_path: Path, at: int, raw: bytes, told: str) -> None:
    path = tmp_path / "model.bin"
    ctranslate2.write(path, "Spec", {"a": votive.ones(3)})
    data = bytearray(path.read_bytes())
    assert data[21:23] == b"a\0"
    data[at : at + len(raw)] = raw
    path.write_bytes(bytes(data))
    with pytest.raises(FileFormatError, match=told):
        ctranslate2.open(path)


def test_changed_bytes_never_do_more_than_raise(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    ctranslate2.write(path, "Spec", {"a": votive.ones(3), "a_scale": votive.ones(2)})
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(300):
        data = bytearray(whole)
        data[rng.integers(len(data))] = rng.integers(256)
        path.write_bytes(bytes(data))
        try:
            with ctranslate2.open(path) as file:
                for name in file.names():
                    file.tensor(name)
        except FileFormatError:
            pass


def test_four_bits_and_wrong_scales_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    ctranslate2.write(path, "Spec", {"w": votive.ones(3), "w_zero": votive.ones(3)})
    with pytest.raises(FileFormatError, match="4 bits"):
        ctranslate2.open(path)
    ctranslate2.write(path, "Spec", {"w": votive.ones(3), "w_scale": votive.ones(2)})
    with pytest.raises(FileFormatError, match="2 scales"):
        ctranslate2.open(path).tensor("w")
    with pytest.raises(TypeError, match="float64"):
        ctranslate2.write(path, "Spec", {"w": votive.ones(3, dtype=votive.float64)})
