"""Regions taken from the level of a feature pyramid that fits their size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ... import nn
from ...ops.registry import F
from ...tensor import Tensor
from .boxes import box_area
from .regions import roi_align


class MultiScaleRoIAlign(nn.Module):
    """`roi_align` on the pyramid level that fits each box (Lin et al. 2017, equation 1).

    A box of `canonical_scale` squared goes to level `canonical_level`, one of half its side to the
    level below. The scale of each map is inferred from the first batch, as a power of 2.

    >>> pool = votive.vision.ops.MultiScaleRoIAlign(["0", "1"], 3, 2)
    >>> maps = {"0": votive.zeros(1, 5, 64, 64), "1": votive.zeros(1, 5, 32, 32)}
    >>> pool(maps, [votive.tensor([[0.0, 0.0, 200.0, 100.0]])], [(256, 256)]).shape
    votive.Size([1, 5, 3, 3])
    """

    def __init__(
        self,
        featmap_names: Sequence[str],
        output_size: int | Sequence[int],
        sampling_ratio: int,
        *,
        canonical_scale: int = 224,
        canonical_level: int = 4,
    ) -> None:
        super().__init__()
        self.featmap_names, self.sampling_ratio = featmap_names, sampling_ratio
        self.output_size = (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)
        self.scales: list[float] | None = None
        self.canonical_scale, self.canonical_level = canonical_scale, canonical_level

    def _level(self, boxes: Sequence[Tensor], scales: Sequence[float]) -> Tensor:
        """The number of the feature map for each box."""
        side = F.sqrt(F.cat([box_area(b) for b in boxes]))
        # The small number keeps a box of exactly the canonical size from falling one level.
        level = F.floor(self.canonical_level + F.log2(side / self.canonical_scale) + 1e-6)
        low, high = (int(-math.log2(s)) for s in (scales[0], scales[-1]))
        return level.clamp(min=low, max=high).long() - low

    def forward(
        self, x: Mapping[str, Tensor], boxes: Sequence[Tensor], image_shapes: Sequence[tuple[int, int]]
    ) -> Tensor:
        maps = [v for k, v in x.items() if k in self.featmap_names]
        if not maps:
            raise ValueError(f"MultiScaleRoIAlign: none of the maps {list(x)} is among {self.featmap_names}.")
        if self.scales is None:
            if not image_shapes:
                raise ValueError("MultiScaleRoIAlign: image_shapes should not be empty.")
            height = max(shape[0] for shape in image_shapes)
            self.scales = [2.0 ** round(math.log2(m.shape[-2] / height)) for m in maps]
        rois = F.cat([F.cat((F.full_like(b[:, :1], i), b), 1) for i, b in enumerate(boxes)])
        if len(maps) == 1:
            return roi_align(maps[0], rois, self.output_size, self.scales[0], self.sampling_ratio)
        level = self._level(boxes, self.scales)
        found, order = [], []
        for k, (feature, scale) in enumerate(zip(maps, self.scales, strict=True)):
            mine = F.nonzero(level == k, as_tuple=True)[0]
            found.append(roi_align(feature, rois[mine], self.output_size, scale, self.sampling_ratio))
            order.append(mine)
        return F.cat(found)[F.argsort(F.cat(order))]

    def extra_repr(self) -> str:
        return (
            f"featmap_names={self.featmap_names}, output_size={self.output_size}, sampling_ratio={self.sampling_ratio}"
        )
