"""Data sets: files in their formats, hostile files, folders, and downloads from a local server."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import io
import pickle
import struct
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive

pytest.importorskip("PIL.Image")

from votive.io.pickle_stack import UnsafeFileError
from votive.serialization.container import FileFormatError
from votive.vision import datasets
from votive.vision import transforms as T


def idx(array: Any, code: int = 8) -> bytes:
    """The bytes of an idx file."""
    head = bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


def digits(count: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (count, 28, 28)).astype(np.uint8)
    return images, rng.integers(0, 10, count).astype(np.uint8)


def write_mnist(folder: Path, packed: bool) -> dict[str, tuple[Any, Any]]:
    folder.mkdir(parents=True, exist_ok=True)
    sets = {"train": digits(20, 0), "t10k": digits(6, 1)}
    for part, (images, labels) in sets.items():
        for name, array in (("images-idx3-ubyte", images), ("labels-idx1-ubyte", labels)):
            raw = idx(array)
            path = folder / f"{part}-{name}{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(raw) if packed else raw)
    return sets


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("place", ["", "MNIST/raw"])
def test_mnist_is_read_packed_or_not_from_either_folder(packed: bool, place: str, tmp_path: Path) -> None:
    sets = write_mnist(tmp_path / place, packed)
    for train, part in ((True, "train"), (False, "t10k")):
        data = datasets.MNIST(tmp_path, train=train)
        images, labels = sets[part]
        assert len(data) == len(images)
        assert votive.equal(data.data, votive.from_numpy(images))
        assert data.targets.tolist() == labels.tolist()
        image, label = data[3]
        assert image.mode == "L"
        np.testing.assert_array_equal(np.asarray(image), images[3])
        assert (label, type(label)) == (labels[3], int)
    assert data.class_to_idx["7 - seven"] == 7
    assert "Split: Test" in repr(data)


def test_transforms_of_image_and_target_are_applied(tmp_path: Path) -> None:
    images, labels = write_mnist(tmp_path, True)["train"]
    data = datasets.MNIST(tmp_path, transform=T.ToTensor(), target_transform=lambda t: -t)
    image, label = data[0]
    assert image.shape == (1, 28, 28)
    np.testing.assert_allclose(image[0].numpy(), images[0] / 255, atol=1e-6)
    assert label == -labels[0]
    loader = votive.utils.data.DataLoader(data, batch_size=8)
    assert next(iter(loader))[0].shape == (8, 1, 28, 28)
    with pytest.raises(ValueError, match="either transforms"):
        datasets.VisionDataset(transforms=lambda a, b: (a, b), transform=T.ToTensor())


def test_a_torch_user_finds_the_same_in_torchvision(tmp_path: Path) -> None:
    from tests.vision.reference import torchvision

    tv = torchvision()
    write_mnist(tmp_path / "MNIST" / "raw", False)
    ours, theirs = datasets.MNIST(tmp_path), tv.datasets.MNIST(tmp_path)
    np.testing.assert_array_equal(ours.data.numpy(), theirs.data.numpy())
    assert ours.targets.tolist() == theirs.targets.tolist()
    for k in range(3):
        assert ours[k][0].tobytes() == theirs[k][0].tobytes()
        assert ours[k][1] == theirs[k][1]
    assert list(ours.classes) == tv.datasets.MNIST.classes
    for name in ("FashionMNIST", "KMNIST"):
        mine, yours = getattr(datasets, name), getattr(tv.datasets, name)
        assert list(mine.classes) == yours.classes
        assert [tuple(r) for r in mine.resources] == yours.resources


@pytest.mark.parametrize(
    ("dtype", "code"), [(np.uint8, 8), (np.int8, 9), (np.int16, 11), (np.int32, 12), (np.float32, 13), (np.float64, 14)]
)
def test_every_type_of_idx_is_read(dtype: Any, code: int, tmp_path: Path) -> None:
    array = np.arange(-6, 6).astype(dtype).reshape(2, 3, 2)
    (tmp_path / "a").write_bytes(idx(array, code))
    np.testing.assert_array_equal(datasets.read_idx(tmp_path / "a").numpy(), array)


BROKEN = {
    "empty": b"",
    "other magic": b"\x01\x00\x08\x01\0\0\0\x01a",
    "unknown type": b"\0\0\x07\x01\0\0\0\x01a",
    "no dimensions": b"\0\0\x08\x00a",
    "cut sizes": b"\0\0\x08\x03\0\0\0\x01",
    "too short": idx(np.zeros((3, 4), np.uint8))[:-1],
    "too long": idx(np.zeros((3, 4), np.uint8)) + b"x",
    "huge": b"\0\0\x08\x02\x7f\xff\xff\xff\x7f\xff\xff\xff",
    "negative": b"\0\0\x08\x01\xff\xff\xff\xff",
    "cut gzip": gzip.compress(idx(np.zeros((30, 40), np.uint8)))[:-12],
    "wrong gzip": b"\x1f\x8b" + b"no gzip at all",
    "gzip without end": gzip.compress(idx(np.zeros((2, 2), np.uint8)) + b"\0" * 10**7),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_idx_files_are_refused(kind: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(BROKEN[kind])
    with pytest.raises(FileFormatError, match="a:"):
        datasets.read_idx(tmp_path / "a")


def test_images_without_labels_are_refused(tmp_path: Path) -> None:
    write_mnist(tmp_path, False)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(np.zeros(3, np.uint8)))
    with pytest.raises(FileFormatError, match="20 images, but 3 labels"):
        datasets.MNIST(tmp_path)
    with pytest.raises(RuntimeError, match=r"use download=True"):
        datasets.FashionMNIST(tmp_path / "other")


# --- CIFAR --------------------------------------------------------------------------


def python2_pickle(array: Any, rest: dict[str, Any]) -> bytes:
    """A batch as Python 2 wrote it: protocol 2, NumPy's old module, text and bytes alike."""
    short = lambda b: b"U" + bytes([len(b)]) + b
    out = b"\x80\x02}("
    out += short(b"data") + b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85U\x01btR"
    out += b"(K\x01J" + struct.pack("<i", array.shape[0]) + b"M" + struct.pack("<H", array.shape[1])
    out += b"\x86cnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNN"
    out += b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    out += b"\x89T" + struct.pack("<i", array.size) + array.tobytes() + b"tb"
    for key, values in rest.items():
        out += short(key.encode()) + b"]("
        for v in values:
            out += b"K" + bytes([v]) if isinstance(v, int) else short(v.encode())
        out += b"e"
    return out + b"u."


class SmallCIFAR10(datasets.CIFAR10):
    train_list = tuple((f"data_batch_{k}", None) for k in (1, 2))
    test_list = (("test_batch", None),)
    meta = ("batches.meta", "label_names", None)


class SmallCIFAR100(datasets.CIFAR100):
    train_list = (("train", None),)
    test_list = (("test", None),)
    meta = ("meta", "fine_label_names", None)


def pixels(count: int, seed: int, high: int = 256) -> Any:
    return np.random.default_rng(seed).integers(0, high, (count, 3072)).astype(np.uint8)


@pytest.mark.parametrize("high", [128, 256])
def test_cifar_is_read_as_python_2_wrote_it(high: int, tmp_path: Path) -> None:
    """Up to 128 its bytes are valid text, from there on they are not; both are pixels."""
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    batches = {f"data_batch_{k}": pixels(4, k, high) for k in (1, 2)}
    for name, array in batches.items():
        (folder / name).write_bytes(python2_pickle(array, {"labels": [3, 1, 4, 1]}))
        loaded = pickle.loads((folder / name).read_bytes(), encoding="latin1")
        np.testing.assert_array_equal(loaded["data"], array)  # it is what pickle reads too
    (folder / "batches.meta").write_bytes(
        python2_pickle(pixels(1, 0), {"label_names": ["plane", "car", "bird", "cat", "deer"]})
    )
    data = SmallCIFAR10(tmp_path)
    everything = np.concatenate(list(batches.values())).reshape(-1, 3, 32, 32)
    np.testing.assert_array_equal(data.data, everything.transpose(0, 2, 3, 1))
    assert data.targets == [3, 1, 4, 1] * 2
    assert data.classes[4] == "deer"
    image, label = data[6]
    np.testing.assert_array_equal(np.moveaxis(np.asarray(image), -1, 0), everything[6])
    assert label == 4
    with pytest.raises(RuntimeError, match="test_batch is missing"):
        SmallCIFAR10(tmp_path, train=False)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_cifar_is_read_from_newer_pickles_too(protocol: int, tmp_path: Path) -> None:
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    array = pixels(5, 3)
    entry = {"data": array, "fine_labels": [9, 8, 7, 6, 5], "coarse_labels": [0] * 5}
    (folder / "train").write_bytes(pickle.dumps(entry, protocol))
    names = {"fine_label_names": [f"c{k}" for k in range(10)]}
    (folder / "meta").write_bytes(pickle.dumps(names, protocol))
    data = SmallCIFAR100(tmp_path)
    assert data.targets == [9, 8, 7, 6, 5]
    np.testing.assert_array_equal(data.data[0].transpose(2, 0, 1).reshape(-1), array[0])


class _Evil:
    def __reduce__(self) -> Any:
        import os

        return (os.system, ("echo never > /dev/null",))


def test_cifar_runs_nothing_that_a_file_asks_for(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    bad = {"data": _Evil(), "labels": [1]}
    (folder / "data_batch_1").write_bytes(pickle.dumps(bad, 2))
    with pytest.raises(UnsafeFileError, match="system"):
        SmallCIFAR10(tmp_path)
    for content, words in (
        (pickle.dumps([1, 2]), "not hold a dict"),
        (pickle.dumps({"data": np.zeros((2, 5), np.uint8), "labels": [1, 2]}), "3 x 32 x 32"),
        (pickle.dumps({"data": pixels(2, 0), "labels": [1]}), "2 images and 1 labels"),
        (b"\x80\x02garbage", "pickle"),
    ):
        (folder / "data_batch_1").write_bytes(content)
        with pytest.raises(FileFormatError, match=words):
            SmallCIFAR10(tmp_path)
    with pytest.raises(RuntimeError, match="damaged"):
        datasets.CIFAR10(tmp_path)  # the checksum of the real one


# --- folders and noise --------------------------------------------------------------------------


def test_folders_are_classes(tmp_path: Path) -> None:
    from votive.vision.io import write_png

    for name, count in (("cat", 2), ("dog", 3)):
        for k in range(count):
            folder = tmp_path / name / ("deep" if k == 2 else "")
            folder.mkdir(parents=True, exist_ok=True)
            write_png(votive.full((3, 2, 2), 10 * k, dtype=votive.uint8), folder / f"{k}.png")
        (tmp_path / name / "notes.txt").write_text("no image")
    (tmp_path / "file.png").write_text("not in a class")
    data = datasets.ImageFolder(tmp_path, transform=T.PILToTensor())
    assert data.classes == ["cat", "dog"]
    assert data.class_to_idx == {"cat": 0, "dog": 1}
    assert data.targets == [0, 0, 1, 1, 1]
    assert data[4][0][0, 0, 0].item() == 20
    assert [Path(p).name for p, _ in data.samples] == ["0.png", "1.png", "0.png", "1.png", "2.png"]
    assert data.imgs is data.samples
    notes = datasets.DatasetFolder(tmp_path, lambda p: Path(p).read_text(), (".TXT",))
    assert notes[1] == ("no image", 1)
    chosen = datasets.ImageFolder(tmp_path, is_valid_file=lambda p: p.endswith("0.png"))
    assert len(chosen) == 2
    (tmp_path / "emu").mkdir()
    with pytest.raises(FileNotFoundError, match=r"\['emu'\] have no files"):
        datasets.ImageFolder(tmp_path)
    assert len(datasets.ImageFolder(tmp_path, allow_empty=True).classes) == 3
    with pytest.raises(FileNotFoundError, match="one per class"):
        datasets.ImageFolder(tmp_path / "emu")
    with pytest.raises(ValueError, match="not both"):
        datasets.DatasetFolder(tmp_path, str)


def test_folders_agree_with_torchvision(tmp_path: Path) -> None:
    from tests.vision.reference import torchvision
    from votive.vision.io import write_png

    tv = torchvision()
    for k, name in enumerate(("b/1", "a/x", "a/sub", "B", "b/10")):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        for file in ("2.png", "10.png", "Z.PNG"):
            write_png(votive.full((3, 1, 1), k, dtype=votive.uint8), tmp_path / name / file)
    ours, theirs = datasets.ImageFolder(tmp_path), tv.datasets.ImageFolder(tmp_path)
    assert ours.samples == theirs.samples
    assert (ours.classes, ours.class_to_idx) == (theirs.classes, theirs.class_to_idx)


def test_fake_data_is_always_the_same_and_leaves_the_generator_alone() -> None:
    data = datasets.FakeData(5, (3, 4, 6), num_classes=3)
    votive.manual_seed(0)
    expected = votive.rand(3)
    votive.manual_seed(0)
    a, b = data[2], data[2]
    assert votive.equal(votive.rand(3), expected)
    assert a[0].tobytes() == b[0].tobytes()
    assert a[1] == b[1]
    assert data[1][0].tobytes() != a[0].tobytes()
    assert {datasets.FakeData(40, (1, 1, 1), 3)[k][1] for k in range(40)} == {0, 1, 2}
    assert datasets.FakeData(5, (3, 4, 6), random_offset=1)[1][0].tobytes() == a[0].tobytes()
    with pytest.raises(IndexError):
        data[5]


# --- downloads --------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Path, str, list[str]]]:
    """A folder, its address, and what was asked for."""
    folder = tmp_path / "served"
    folder.mkdir()
    asked: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, directory=str(folder), **options)

        def do_GET(self) -> None:
            asked.append(self.path)
            super().do_GET()

        def log_message(self, *args: Any) -> None:
            pass

    service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=service.serve_forever, daemon=True)
    thread.start()
    yield folder, f"http://127.0.0.1:{service.server_address[1]}/", asked
    service.shutdown()
    service.server_close()
    thread.join()


def md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()


def test_mnist_is_downloaded_once_from_the_first_mirror_that_has_it(server: Any, tmp_path: Path) -> None:
    folder, address, asked = server
    sets = write_mnist(folder, True)

    class Local(datasets.MNIST):
        mirrors = (f"{address}nothing/", address)
        resources = tuple((p.name, md5(p)) for p in sorted(folder.iterdir()))

    data = Local(tmp_path / "new", download=True)
    assert votive.equal(data.data, votive.from_numpy(sets["train"][0]))
    assert len(asked) == 8  # each file is asked for at both
    Local(tmp_path / "new", train=False, download=True)
    assert len(asked) == 8
    assert sorted(p.name for p in (tmp_path / "new/Local/raw").iterdir()) == sorted(name for name, _ in Local.resources)


def test_a_download_with_a_wrong_checksum_leaves_nothing(server: Any, tmp_path: Path) -> None:
    folder, address, _ = server
    write_mnist(folder, True)

    class Local(datasets.MNIST):
        mirrors = (address,)
        resources = tuple((p.name, "0" * 32) for p in sorted(folder.iterdir()))

    with pytest.raises(RuntimeError, match=r"checksum is [0-9a-f]{32}, not 0000"):
        Local(tmp_path / "new", download=True)
    assert list((tmp_path / "new/Local/raw").iterdir()) == []

    class Nowhere(datasets.MNIST):
        mirrors = ("http://127.0.0.1:9/",)

    with pytest.raises(RuntimeError, match="could not be downloaded"):
        Nowhere(tmp_path / "new", download=True)


def test_cifar_is_downloaded_and_unpacked_and_stays_in_its_folder(server: Any, tmp_path: Path) -> None:
    folder, address, asked = server

    def archive(entries: dict[str, bytes]) -> None:
        with tarfile.open(folder / "small.tar.gz", "w:gz") as tar:
            for name, content in entries.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))

    base = "cifar-10-batches-py"
    batch = pickle.dumps({"data": pixels(2, 1), "labels": [0, 1]}, 2)
    archive(
        {
            f"{base}/data_batch_1": batch,
            f"{base}/data_batch_2": batch,
            f"{base}/test_batch": batch,
            f"{base}/batches.meta": pickle.dumps({"label_names": ["a", "b"]}, 2),
        }
    )

    class Local(SmallCIFAR10):
        url, filename, tgz_md5 = f"{address}small.tar.gz", "small.tar.gz", None

    assert len(Local(tmp_path / "new", download=True)) == 4
    assert len(Local(tmp_path / "new", train=False, download=True)) == 2
    assert len(asked) == 1
    archive({"../outside": b"escaped"})
    with pytest.raises(tarfile.FilterError):
        Local(tmp_path / "other", download=True)
    assert not (tmp_path / "outside").exists()
