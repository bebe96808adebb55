"""What the data sets of images have in common: a folder and what is done with each sample."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...data import Dataset
from ..types import Function


class StandardTransform:
    """A transform of the image and one of the target, applied together."""

    def __init__(self, transform: Function | None = None, target_transform: Function | None = None) -> None:
        self.transform, self.target_transform = transform, target_transform

    def __call__(self, image: Any, target: Any) -> tuple[Any, Any]:
        image = image if self.transform is None else self.transform(image)
        return image, target if self.target_transform is None else self.target_transform(target)


class VisionDataset(Dataset[Any]):
    """Base of data sets with images: `transforms(image, target)`, or one transform for each.

    >>> votive.vision.datasets.VisionDataset("folder").root
    'folder'
    """

    def __init__(
        self,
        root: str | Path | None = None,
        transforms: Callable[[Any, Any], Any] | None = None,
        transform: Function | None = None,
        target_transform: Function | None = None,
    ) -> None:
        separate = transform is not None or target_transform is not None
        if transforms is not None and separate:
            raise ValueError(f"{type(self).__name__}: takes either transforms, or transform and target_transform.")
        self.root = str(Path(root).expanduser()) if root is not None else None
        self.transform, self.target_transform = transform, target_transform
        self.transforms = StandardTransform(transform, target_transform) if separate else transforms

    def _transformed(self, image: Any, target: Any) -> Any:
        return (image, target) if self.transforms is None else self.transforms(image, target)

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__}: a subclass has to define __len__.")

    def extra_repr(self) -> str:
        """What else is said about the data set."""
        return ""

    def __repr__(self) -> str:
        lines = [f"Dataset {type(self).__name__}", f"    Number of datapoints: {len(self)}"]
        if self.root is not None:
            lines.append(f"    Root location: {self.root}")
        lines += [f"    {line}" for line in self.extra_repr().splitlines()]
        for name in ("transform", "target_transform"):
            if getattr(self, name) is not None:
                lines.append(f"    {name}: {getattr(self, name)}")
        return "\n".join(lines)


class SplitDataset(VisionDataset):
    """Base of data sets that come in two parts, to train with and to test, and can be fetched."""

    def __init__(
        self,
        root: str | Path,
        train: bool = True,
        transform: Function | None = None,
        target_transform: Function | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        self._load()

    def download(self) -> None:
        """Fetch what is missing."""
        raise NotImplementedError(f"{type(self).__name__}: a subclass has to define download.")

    def _load(self) -> None:
        """Read the part that `train` names."""
        raise NotImplementedError(f"{type(self).__name__}: a subclass has to define _load.")

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train else 'Test'}"
