"""Images of noise, for trying things out."""

from __future__ import annotations

from typing import Any

from ...ops.registry import F
from ...random import Generator
from ..transforms.functional.conversion import to_pil_image
from ..types import Function
from .base import VisionDataset


class FakeData(VisionDataset):
    """`size` images of noise with random labels; sample i is always the same.

    >>> data = votive.vision.datasets.FakeData(3, (3, 4, 5), num_classes=2)
    >>> len(data), data[0][0].size, data[0][1] in (0, 1)
    (3, (5, 4), True)
    """

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10,
        transform: Function | None = None,
        target_transform: Function | None = None,
        random_offset: int = 0,
    ) -> None:
        super().__init__(transform=transform, target_transform=target_transform)
        self.size, self.image_size, self.num_classes = size, image_size, num_classes
        self.random_offset = random_offset

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if not 0 <= index < len(self):
            raise IndexError(f"FakeData: index {index} is out of range for {len(self)} samples.")
        chance = Generator().manual_seed(index + self.random_offset)
        # In 0..255 and not around 0: noise that is seen.
        noise = F.rand(self.image_size, generator=chance)
        target = F.randint(0, self.num_classes, (), generator=chance).item()
        return self._transformed(to_pil_image(noise), target)

    def __len__(self) -> int:
        return self.size
