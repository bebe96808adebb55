"""MNIST and the sets that come as idx files. Knows bytes, no transform."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from ...core import dtype as dt
from ...serialization.container import FileFormatError
from ...surface.interchange import from_numpy
from ...tensor import Tensor
from ..io.raw import pillow
from .base import SplitDataset
from .download import download

_KINDS = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
_MAX_BYTES = 1 << 36
_PORTION = 1 << 24


def _read(file: IO[bytes] | gzip.GzipFile, wanted: int) -> bytes:
    """At most so many bytes, in portions: a header may announce more than memory holds."""
    parts = []
    while wanted > 0 and (part := file.read(min(wanted, _PORTION))):
        parts.append(part)
        wanted -= len(part)
    return b"".join(parts)


def read_idx(path: str | Path) -> Tensor:
    """The array in an idx file, compressed (.gz) or not, as a tensor.

    The header says the type, the number of dimensions and each of them, big-endian.

    >>> import tempfile, os
    >>> name = os.path.join(tempfile.mkdtemp(), "labels-idx1-ubyte")
    >>> with open(name, "wb") as file:
    ...     _ = file.write(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    >>> votive.vision.datasets.read_idx(name)
    tensor([7, 2, 1], dtype=votive.uint8)
    """
    path = Path(path)
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if packed else open(path, "rb") as file:
            start = file.read(4)
            if len(start) != 4 or start[:2] != b"\0\0" or start[2] not in _KINDS or not start[3]:
                raise FileFormatError(f"{path}: not an idx file; it begins otherwise.")
            raw = file.read(4 * start[3])
            if len(raw) != 4 * start[3]:
                raise FileFormatError(f"{path}: its sizes are cut off.")
            sizes = np.frombuffer(raw, ">i4").tolist()
            if min(sizes) < 0:
                raise FileFormatError(f"{path}: its sizes {tuple(sizes)} are wrong.")
            kind = np.dtype(_KINDS[start[2]])
            wanted = math.prod(sizes) * kind.itemsize
            if wanted > _MAX_BYTES:
                raise FileFormatError(f"{path}: the header announces {wanted:,} bytes, more than is read.")
            data = _read(file, wanted + 1)  # one more: what is packed may have no end
    except (EOFError, zlib.error, OSError) as e:
        if isinstance(e, FileFormatError):
            raise
        raise FileFormatError(f"{path}: damaged ({e}).") from None
    if len(data) != wanted:
        raise FileFormatError(f"{path}: {tuple(sizes)} needs {wanted:,} bytes, not {len(data):,}.")
    array = np.frombuffer(data, kind).reshape(sizes)
    return from_numpy(array.astype(kind.newbyteorder("=")))


class MNIST(SplitDataset):
    """Handwritten digits: 60,000 images of 28 x 28 to train with and 10,000 to test.

    `root` holds the idx files, as they come (.gz) or unpacked, in itself or in MNIST/raw. A sample
    is (PIL image, label); `data` and `targets` are all of them as tensors. With `download` they are
    fetched and their checksums compared.

    >>> votive.vision.datasets.MNIST("nowhere")
    Traceback (most recent call last):
    RuntimeError: MNIST: train-images-idx3-ubyte(.gz) is neither in nowhere/MNIST/raw nor in ...
    """

    mirrors: tuple[str, ...] = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "http://yann.lecun.com/exdb/mnist/")
    resources: tuple[tuple[str, str | None], ...] = (
        ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
    )
    classes: tuple[str, ...] = tuple(
        f"{i} - {word}"
        for i, word in enumerate(("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"))
    )

    def _load(self) -> None:
        part = "train" if self.train else "t10k"
        self.data = read_idx(self._file(f"{part}-images-idx3-ubyte"))
        self.targets = read_idx(self._file(f"{part}-labels-idx1-ubyte"))
        if self.data.dtype is not dt.uint8 or self.data.ndim != 3 or self.targets.ndim != 1:
            raise FileFormatError(f"{type(self).__name__}: images and labels have the wrong types or shapes.")
        if self.data.shape[0] != self.targets.shape[0]:
            raise FileFormatError(
                f"{type(self).__name__}: {self.data.shape[0]} images, but {self.targets.shape[0]} labels."
            )
        self.targets = self.targets.long()

    @property
    def raw_folder(self) -> str:
        """Where files are downloaded to."""
        return str(Path(self.root or "") / type(self).__name__ / "raw")

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The number of each class by its name."""
        return {name: i for i, name in enumerate(self.classes)}

    def _find(self, name: str) -> Path | None:
        for folder in (Path(self.raw_folder), Path(self.root or "")):
            for path in (folder / name, folder / f"{name}.gz"):
                if path.is_file():
                    return path
        return None

    def _file(self, name: str) -> Path:
        found = self._find(name)
        if found is None:
            raise RuntimeError(
                f"{type(self).__name__}: {name}(.gz) is neither in {self.raw_folder} nor in "
                f"{self.root}; put it there or use download=True."
            )
        return found

    def download(self) -> None:
        for name, md5 in self.resources:
            if self._find(name.removesuffix(".gz")) is None:
                urls = [mirror + name for mirror in self.mirrors]
                download(type(self).__name__, urls, Path(self.raw_folder) / name, md5)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = pillow().fromarray(self.data[index].numpy())
        return self._transformed(image, int(self.targets[index].item()))

    def __len__(self) -> int:
        return int(self.data.shape[0])


class FashionMNIST(MNIST):
    """Pieces of clothing in the form of MNIST.

    >>> votive.vision.datasets.FashionMNIST.classes[9]
    'Ankle boot'
    """

    mirrors = ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",)
    resources = (
        ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
        ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
        ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
    )
    classes = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")


class KMNIST(MNIST):
    """Cursive Japanese letters in the form of MNIST.

    >>> votive.vision.datasets.KMNIST.classes[:3]
    ('o', 'ki', 'su')
    """

    mirrors = ("http://codh.rois.ac.jp/kmnist/dataset/kmnist/",)
    resources = (
        ("train-images-idx3-ubyte.gz", "bdb82020997e1d708af4cf47b453dcf7"),
        ("train-labels-idx1-ubyte.gz", "e144d726b3acfaa3e44228e80efcd344"),
        ("t10k-images-idx3-ubyte.gz", "5c965bf0a639b31b8f53240b1b52f4d7"),
        ("t10k-labels-idx1-ubyte.gz", "7320c461ea6c1c855c0b718fb2a4b134"),
    )
    classes = ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")
