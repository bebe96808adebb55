"""NumPy's files: every type and order comes back as NumPy reads it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.core import dtype as dt
from votive.io import FileFormatError, npy, open_weights

SHAPES = [(3, 4), (), (0, 2), (5,), (2, 3, 4)]


def sample(d: Any, shape: tuple[int, ...]) -> Any:
    count = int(np.prod(shape)) * d.itemsize
    raw = np.random.default_rng(1).integers(0, 2 if d is dt.bool_ else 256, count, np.uint8)
    return raw.view(d.np).reshape(shape)


def same(tensor: Any, array: Any) -> bool:
    got = tensor.detach().numpy()
    return got.shape == array.shape and got.tobytes() == np.ascontiguousarray(array).tobytes()


@pytest.mark.parametrize("d", dt.ALL, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_numpy_saves_is_read_bit_by_bit(d: Any, shape: Any, order: str, tmp_path: Path) -> None:
    array = np.asarray(sample(d, shape), order=order)
    path = tmp_path / "w.npy"
    np.save(path, array)
    with open(path, "rb") as f:
        readings = [
            npy.load(path),
            npy.load(path, mmap_mode="c"),
            npy.load(f),
            votive.load(path),
            votive.load(path, mmap=True),
            open_weights(path).tensor("w"),
            open_weights(path).slice("w", ...),
        ]
    for t in readings:
        assert t.dtype is d
        assert same(t, array)
    info = open_weights(path).info("w")
    assert (info.shape, info.dtype, info.nbytes) == (shape, d, array.nbytes)


@pytest.mark.parametrize("d", [d for d in dt.ALL if d.np.isbuiltin == 1 and d.itemsize > 1], ids=lambda d: d.name)
def test_big_endian_files_are_read(d: Any, tmp_path: Path) -> None:
    array = np.arange(6).reshape(2, 3).astype(d.np.newbyteorder(">"))
    np.save(tmp_path / "w.npy", array)
    np.savez(tmp_path / "w.npz", w=array.T)
    assert np.array_equal(npy.load(tmp_path / "w.npy").numpy(), array)
    assert np.array_equal(open_weights(tmp_path / "w.npy").slice("w", 1).numpy(), array[1])
    assert np.array_equal(npy.load(tmp_path / "w.npz", "c")["w"].numpy(), array.T)


def test_columns_first_stay_columns_first(tmp_path: Path) -> None:
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    np.save(tmp_path / "w.npy", array)
    assert npy.load(tmp_path / "w.npy").stride() == (1, 2)
    # A parameter is better laid out as modules expect it.
    assert open_weights(tmp_path / "w.npy").tensor("w").is_contiguous()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed, npy.savez, npy.savez_compressed])
def test_archives_are_sources_of_weights(save: Any, tmp_path: Path) -> None:
    arrays = {
        "a": np.arange(12.0).reshape(3, 4),
        "b.c": np.asfortranarray(np.ones((2, 3), np.float32)),
        "d": np.array(3, np.int8),
        "e": np.empty((0, 4)),
    }
    path = tmp_path / "w.npz"
    save(path, np.zeros(5), **arrays)
    source = open_weights(path)
    assert sorted(source.names()) == ["a", "arr_0", "b.c", "d", "e"]
    for name, array in arrays.items():
        assert same(source.tensor(name), array)
        assert same(npy.load(path)[name], array)
        assert same(votive.load(path, mmap=True)[name], array)
        assert same(npy.load(io.BytesIO(path.read_bytes()))[name], array)
        assert source.info(name).shape == array.shape
    assert source.slice("a", (slice(1, 3), 0)).tolist() == [4, 8]
    t = source.tensor("a")
    t.fill_(0)
    assert same(source.tensor("a"), arrays["a"])


@pytest.mark.parametrize("d", dt.ALL, ids=lambda d: d.name)
def test_numpy_reads_what_votive_saves(d: Any, tmp_path: Path) -> None:
    array = sample(d, (3, 4))
    t = votive.from_numpy(array.copy())
    npy.save(tmp_path / "w", t)
    npy.savez(tmp_path / "z", t, k=t.t())
    assert npy.load(tmp_path / "w.npy").dtype is d
    if d is votive.float8_e5m2:
        return  # NumPy writes a name for it that NumPy does not know
    got = np.load(tmp_path / "w.npy", allow_pickle=False)
    assert got.tobytes() == array.tobytes()
    if d.np.isbuiltin == 1:
        assert got.dtype == array.dtype
        with np.load(tmp_path / "z.npz", allow_pickle=False) as z:
            assert z["k"].tobytes() == array.T.tobytes()


@pytest.mark.parametrize(
    ("array", "what"),
    [
        (np.array([{}], object), "Python objects"),
        (np.array(["a"]), "text"),
        (np.array([b"a"]), "text"),
        (np.zeros(2, [("x", "f4")]), "structured arrays"),
        (np.zeros(2, "M8[s]"), "dates"),
        (np.zeros(2, np.longdouble), "numbers of the type"),
    ],
)
def test_what_is_no_number_is_refused_by_name(array: Any, what: str, tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", array, allow_pickle=True)
    np.savez(tmp_path / "w.npz", w=array)
    with pytest.raises(FileFormatError, match=what):
        npy.load(tmp_path / "w.npy")
    with pytest.raises(FileFormatError, match=what):
        open_weights(tmp_path / "w.npz").tensor("w")
    if array.dtype != np.longdouble:
        with pytest.raises(TypeError, match="save: can't convert"):
            npy.save(tmp_path / "x", array)


def test_versions_of_the_format_are_known(tmp_path: Path) -> None:
    for version in ((1, 0), (2, 0), (3, 0)):
        f = io.BytesIO()
        np.lib.format.write_array(f, np.arange(3), version)
        f.seek(0)
        assert npy.load(f).tolist() == [0, 1, 2]


def test_modes_that_cannot_be_honoured_are_refused(tmp_path: Path) -> None:
    npy.save(tmp_path / "w", votive.ones(2))
    for mode in ("r", "r+", "w+"):
        with pytest.raises(ValueError, match="mmap_mode must be None or 'c'"):
            npy.load(tmp_path / "w.npy", mmap_mode=mode)
    with pytest.raises(ValueError, match="needs a path"):
        npy.load(io.BytesIO(), mmap_mode="c")


def test_a_mapped_array_does_not_write_to_its_file(tmp_path: Path) -> None:
    npy.save(tmp_path / "w", votive.ones(2))
    npy.load(tmp_path / "w.npy", mmap_mode="c").zero_()
    assert npy.load(tmp_path / "w.npy").tolist() == [1, 1]
