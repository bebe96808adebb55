"""CIFAR-10 and CIFAR-100. Their files are pickles, read without running what is in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...io.pickle_machine import Machine
from ...io.pickle_stack import Maker, UnsafeFileError
from ...io.torch_parts import Array, find
from ...serialization.container import FileFormatError
from ..io.raw import pillow
from .base import SplitDataset
from .download import download, intact, unpack


class _Pixels(Array):
    """An array whose bytes may come as text: Python 2 did not tell the two apart."""

    def set_state(self, state: object) -> None:
        if isinstance(state, tuple) and len(state) == 5 and isinstance(state[4], str):
            state = (*state[:4], state[4].encode())
        super().set_state(state)


def _find(module: str, name: str) -> object:
    """What a name in the pickle stands for: NumPy's arrays and nothing else."""
    if name == "_reconstruct" and module in ("numpy.core.multiarray", "numpy._core.multiarray"):
        return Maker(f"{module}.{name}", lambda *rest: _Pixels())
    if module.split(".")[0] in ("numpy", "_codecs"):
        return find(module, name)
    raise UnsafeFileError(f"the file asks for {module}.{name}, which is not data; refused.")


def read_batch(path: str | Path) -> dict[str, Any]:
    """The contents of one of the files: arrays, lists and names by key."""
    found = Machine(Path(path).read_bytes(), 0, _find).run()
    if not isinstance(found, dict):
        raise FileFormatError(f"{path}: it does not hold a dict, as every CIFAR file does.")
    out = {}
    for key, value in found.items():
        name = key.decode() if isinstance(key, bytes) else str(key)
        out[name] = value.value if isinstance(value, Array) else value
    return out


class CIFAR10(SplitDataset):
    """Colour images of 32 x 32 in 10 classes: 50,000 to train with and 10,000 to test.

    `root` holds the folder cifar-10-batches-py. A sample is (PIL image, label); `data` is an array
    (N, 32, 32, 3) of bytes, `targets` a list. With `download` the archive is fetched and checked.

    >>> votive.vision.datasets.CIFAR10("nowhere")
    Traceback (most recent call last):
    RuntimeError: CIFAR10: data_batch_1 is missing or damaged in nowhere/cifar-10-batches-py; ...
    """

    base_folder = "cifar-10-batches-py"
    url = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    filename = "cifar-10-python.tar.gz"
    tgz_md5: str | None = "c58f30108f718f92721af3b95e74349a"
    train_list: tuple[tuple[str, str | None], ...] = (
        ("data_batch_1", "c99cafc152244af753f735de768cd75f"),
        ("data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"),
        ("data_batch_3", "54ebc095f3ab1f0389bbae665268c751"),
        ("data_batch_4", "634d18415352ddfa80567beed471001a"),
        ("data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"),
    )
    test_list: tuple[tuple[str, str | None], ...] = (("test_batch", "40351d587109b95175f43aff81a1287e"),)
    meta: tuple[str, str, str | None] = ("batches.meta", "label_names", "5ff9c542aee3614f3951f8cda6e48888")
    _label_key = "labels"

    def _load(self) -> None:
        parts, targets = [], []
        for name, md5 in self.train_list if self.train else self.test_list:
            pixels, labels = self._checked(name, read_batch(self._file(name, md5)))
            parts.append(pixels)
            targets += [int(label) for label in labels]
        images = np.concatenate(parts).reshape(-1, 3, 32, 32)
        self.data = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
        self.targets = targets
        name, key, md5 = self.meta
        self.classes = [str(c) for c in read_batch(self._file(name, md5))[key]]
        self.class_to_idx = {c: i for i, c in enumerate(self.classes)}

    def _checked(self, name: str, entry: dict[str, Any]) -> tuple[np.ndarray, list[Any]]:
        pixels, labels = entry.get("data"), entry.get(self._label_key)
        if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[1:] != (3072,):
            pixels = None
        if pixels is None or not isinstance(labels, list):
            raise FileFormatError(f"{type(self).__name__}: {name} holds no images of 3 x 32 x 32.")
        if len(labels) != len(pixels):
            raise FileFormatError(f"{type(self).__name__}: {name} has {len(pixels)} images and {len(labels)} labels.")
        return pixels, labels

    def _file(self, name: str, md5: str | None) -> Path:
        folder = Path(self.root or "") / self.base_folder
        if not intact(folder / name, md5):
            raise RuntimeError(
                f"{type(self).__name__}: {name} is missing or damaged in {folder}; unpack "
                f"{self.filename} in {self.root} or use download=True."
            )
        return folder / name

    def download(self) -> None:
        """Fetch and unpack the archive, unless all files are there and right."""
        folder = Path(self.root or "") / self.base_folder
        wanted = (*self.train_list, *self.test_list, (self.meta[0], self.meta[2]))
        if all(intact(folder / name, md5) for name, md5 in wanted):
            return
        archive = Path(self.root or "") / self.filename
        download(type(self).__name__, [self.url], archive, self.tgz_md5)
        unpack(archive, self.root or "")

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = pillow().fromarray(self.data[index])
        return self._transformed(image, self.targets[index])

    def __len__(self) -> int:
        return len(self.data)


class CIFAR100(CIFAR10):
    """Colour images of 32 x 32 in 100 classes.

    >>> votive.vision.datasets.CIFAR100.base_folder
    'cifar-100-python'
    """

    base_folder = "cifar-100-python"
    url = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
    filename = "cifar-100-python.tar.gz"
    tgz_md5 = "eb9058c3a382ffc7106e4002c42a8d85"
    train_list = (("train", "16019d7e3df5f24257cddd939b257f8d"),)
    test_list = (("test", "f0ef6b0ae62326f3e7ffdfab6717acfc"),)
    meta = ("meta", "fine_label_names", "7973b15100ade9c7d40fb424638fde48")
    _label_key = "fine_labels"
