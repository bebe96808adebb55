"""Data sets that are folders: one for each class, files in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...serialization.container import FileFormatError
from ..io.raw import pillow
from ..types import Function, PILImage
from .base import VisionDataset

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def pil_loader(path: str | Path) -> PILImage:
    """A file as an RGB image of Pillow."""
    with open(path, "rb") as file:
        try:
            return pillow().open(file).convert("RGB")
        except ImportError:
            raise
        except Exception as e:  # decoders let out whatever a damaged file makes them raise
            raise FileFormatError(f"{path}: not an image that can be read ({e}).") from None


class DatasetFolder(VisionDataset):
    """Samples root/class/…/file, loaded by `loader`; classes are numbered in order of their names.

    Files count if they end in one of `extensions`, or if `is_valid_file(path)` says so. A class
    without files is an error unless `allow_empty`.

    >>> import tempfile, os
    >>> root = tempfile.mkdtemp()
    >>> for name in ("cat", "dog"):
    ...     os.mkdir(os.path.join(root, name))
    ...     _ = open(os.path.join(root, name, "1.txt"), "w").close()
    >>> data = votive.vision.datasets.DatasetFolder(root, os.path.basename, (".txt",))
    >>> data.classes, data[1]
    (['cat', 'dog'], ('1.txt', 1))
    """

    def __init__(
        self,
        root: str | Path,
        loader: Callable[[str], Any],
        extensions: Sequence[str] | None = None,
        transform: Function | None = None,
        target_transform: Function | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        if (extensions is None) == (is_valid_file is None):
            raise ValueError(f"{type(self).__name__}: give either extensions or is_valid_file, not both.")
        self.loader = loader
        self.extensions = None if extensions is None else tuple(e.lower() for e in extensions)
        self.classes, self.class_to_idx = self.find_classes(str(self.root))
        self.samples = self._found(is_valid_file or self._has_extension, allow_empty)
        self.targets = [target for _, target in self.samples]

    def find_classes(self, directory: str) -> tuple[list[str], dict[str, int]]:
        """The names of the classes and their numbers; override it for another layout."""
        classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
        if not classes:
            raise FileNotFoundError(f"{type(self).__name__}: {directory} has no folders; there must be one per class.")
        return classes, {name: i for i, name in enumerate(classes)}

    def _has_extension(self, path: str) -> bool:
        return path.lower().endswith(self.extensions or ())

    def _found(self, valid: Callable[[str], bool], allow_empty: bool) -> list[tuple[str, int]]:
        samples: list[tuple[str, int]] = []
        empty = []
        for name in sorted(self.class_to_idx):
            folder, before = os.path.join(str(self.root), name), len(samples)
            for where, _, files in sorted(os.walk(folder, followlinks=True)):
                paths = (os.path.join(where, file) for file in sorted(files))
                samples += [(path, self.class_to_idx[name]) for path in paths if valid(path)]
            if len(samples) == before:
                empty.append(name)
        if empty and not allow_empty:
            known = "" if self.extensions is None else f" that end in {self.extensions}"
            raise FileNotFoundError(
                f"{type(self).__name__}: the classes {empty} have no files{known}; use "
                "allow_empty=True if that is meant."
            )
        return samples

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        return self._transformed(self.loader(path), target)

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Images root/class/…/file as (PIL image, class).

    >>> import tempfile, os
    >>> root = tempfile.mkdtemp()
    >>> os.mkdir(os.path.join(root, "cat"))
    >>> image = votive.zeros(3, 2, 4, dtype=votive.uint8)
    >>> votive.vision.io.write_png(image, os.path.join(root, "cat", "1.png"))
    >>> data = votive.vision.datasets.ImageFolder(root)
    >>> len(data), data[0][0].size, data.imgs[0][1]
    (1, (4, 2), 0)
    """

    def __init__(
        self,
        root: str | Path,
        transform: Function | None = None,
        target_transform: Function | None = None,
        loader: Callable[[str], Any] = pil_loader,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        extensions = IMG_EXTENSIONS if is_valid_file is None else None
        super().__init__(root, loader, extensions, transform, target_transform, is_valid_file, allow_empty)
        self.imgs = self.samples
