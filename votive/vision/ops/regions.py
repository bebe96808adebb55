"""Features of regions: `roi_align` and `roi_pool`. Knows feature maps and boxes, no detector."""

from __future__ import annotations

from collections.abc import Sequence

from ... import nn
from ...core import dtype as dt
from ...ops.registry import F
from ...tensor import Tensor
from ..types import Size

Boxes = Tensor | Sequence[Tensor]


def _regions(op: str, boxes: object) -> Tensor:
    """(K, 5) rows: the number of the image, then x1, y1, x2, y2."""
    if isinstance(boxes, Tensor):
        if boxes.ndim != 2 or boxes.shape[1] != 5:
            raise AssertionError(
                f"{op}: boxes as one tensor must be (K, 5), the first column the number of the "
                f"image, got {tuple(boxes.shape)}; or pass a list of (L, 4) tensors."
            )
        return boxes
    if not isinstance(boxes, (list, tuple)) or not boxes:
        raise AssertionError(f"{op}: boxes must be a (K, 5) tensor or a list of (L, 4) tensors.")
    for b in boxes:
        if b.ndim != 2 or b.shape[1] != 4:
            raise AssertionError(f"{op}: the boxes of an image must be (L, 4), got {tuple(b.shape)}.")
    return F.cat([F.cat((F.full_like(b[:, :1], i), b), 1) for i, b in enumerate(boxes)])


def _checked(op: str, input: Tensor, boxes: Boxes, output_size: Size) -> tuple[Tensor, tuple[int, int]]:
    rois = _regions(op, boxes)
    if input.ndim != 4:
        raise ValueError(f"{op}: input must be (N, C, H, W), got {tuple(input.shape)}.")
    if rois.dtype is not input.dtype:
        raise RuntimeError(f"{op}: input and boxes must have the same dtype, got {input.dtype}, {rois.dtype}.")
    if rois.shape[0]:
        low, high = int(rois[:, 0].min().item()), int(rois[:, 0].max().item())
        if low < 0 or high >= input.shape[0]:
            raise IndexError(f"{op}: boxes name the images {low}..{high} in a batch of {input.shape[0]}.")
    rows, columns = (output_size,) * 2 if isinstance(output_size, int) else output_size
    return rois, (rows, columns)


def _weights(start: Tensor, length: Tensor, bins: int, samples: int, size: int) -> Tensor:
    """(K, bins, size): how much each element of a line counts in each bin.

    A bin averages samples at the centres of equal steps; a sample mixes its two neighbours. Samples
    up to one element outside take the border's value, those further away are 0.
    """
    per_bin = length / bins
    if samples > 0:
        count, most = F.full_like(length, samples), samples
    else:
        count = F.ceil(per_bin)
        most = max(int(count.max().item()), 1) if count.numel() else 1
    steps = F.arange(most, dtype=start.dtype, device=start.device)
    bin_at = F.arange(bins, dtype=start.dtype, device=start.device)
    places = (
        start[:, None, None]
        + bin_at[None, :, None] * per_bin[:, None, None]
        + (steps + 0.5) * (per_bin / count.clamp(min=1))[:, None, None]
    )  # (K, bins, samples)
    used = (steps < count[:, None])[:, None] & (places >= -1.0) & (places <= size)
    places = places.clamp(min=0)
    low = F.floor(places).clamp(max=size - 1)
    part = F.where(low >= size - 1, 0.0, places - low)
    share = used.to(start.dtype) / count.clamp(min=1)[:, None, None]
    line = F.zeros((start.shape[0], bins, size), dtype=start.dtype, device=start.device)
    line = line.scatter_add(2, low.long(), (1 - part) * share)
    return line.scatter_add(2, (low + 1).clamp(max=size - 1).long(), part * share)


def roi_align(
    input: Tensor,
    boxes: Boxes,
    output_size: int | Sequence[int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> Tensor:
    """Means of interpolated samples in the bins of each region, (K, C, *output_size).

    Interpolation is separable, so a region is rows x features x columns, two products with few
    weights that are not 0 (He et al. 2017). `boxes`: (K, 5) with the number of the image
    first, or a list with (L, 4) boxes for each image. There is no gradient by boxes.

    >>> x = votive.arange(16.0).reshape(1, 1, 4, 4)
    >>> votive.vision.ops.roi_align(x, [votive.tensor([[0.0, 0.0, 4.0, 4.0]])], 2, aligned=True)
    tensor([[[[ 2.5000,  4.5000],
              [10.5000, 12.5000]]]])
    """
    rois, (rows, columns) = _checked("roi_align", input, boxes, output_size)
    kind = input.dtype
    if kind in dt.HALF:
        input, rois = input.float(), rois.float()
    height, width = input.shape[2:]
    rois = rois.detach()
    offset = 0.5 if aligned else 0.0
    edges = rois[:, 1:] * spatial_scale - offset
    left, top, right, bottom = F.unbind(edges, 1)
    wide, high = right - left, bottom - top
    if not aligned:  # malformed boxes become one element wide
        wide, high = wide.clamp(min=1.0), high.clamp(min=1.0)
    by_row = _weights(top, high, rows, sampling_ratio, height)  # (K, rows, H)
    by_column = _weights(left, wide, columns, sampling_ratio, width)  # (K, columns, W)
    return F._region_sums(input, rois[:, 0].long(), by_row, by_column).to(kind)


def roi_pool(input: Tensor, boxes: Boxes, output_size: int | Sequence[int], spatial_scale: float = 1.0) -> Tensor:
    """The largest elements in the bins of each region, (K, C, *output_size); 0 in empty bins.

    Region borders are rounded to elements first (Girshick 2015). The gradient goes to the maxima.

    >>> x = votive.arange(16.0).reshape(1, 1, 4, 4)
    >>> votive.vision.ops.roi_pool(x, [votive.tensor([[0.0, 0.0, 3.0, 3.0]])], 2)
    tensor([[[[ 5.,  7.],
              [13., 15.]]]])
    """
    rois, (rows, columns) = _checked("roi_pool", input, boxes, output_size)
    _, channels, height, width = input.shape
    rois = rois.detach()
    # Halves away from zero, as C's round, not to even.
    scaled = (rois[:, 1:].float() if rois.dtype in dt.HALF else rois[:, 1:]) * spatial_scale
    edges = F.trunc(scaled + F.where(scaled < 0, -0.5, 0.5).to(scaled.dtype))
    left, top, right, bottom = F.unbind(edges, 1)

    def bins(first: Tensor, last: Tensor, count: int, size: int) -> tuple[Tensor, Tensor]:
        step = ((last - first + 1).clamp(min=1) / count)[:, None]
        at = F.arange(count, dtype=first.dtype, device=first.device)
        begin, end = F.floor(at * step) + first[:, None], F.ceil((at + 1) * step) + first[:, None]
        return begin.clamp(0, size).long(), end.clamp(0, size).long()

    image = rois[:, 0].long()
    up, down = bins(top, bottom, rows, height)
    start, stop = bins(left, right, columns, width)
    place = F._region_argmax(input.detach(), image, up, down, start, stop)
    channel = F.arange(channels, device=input.device)[None, :, None, None]
    flat = (image[:, None, None, None] * channels + channel) * (height * width) + place
    empty = place < 0
    values = input.reshape(-1)[F.where(empty, 0, flat)] if input.numel() else place.to(input.dtype)
    return F.where(empty, 0.0, values).to(input.dtype)


class RoIAlign(nn.Module):
    """`roi_align` as a module.

    >>> votive.vision.ops.RoIAlign(2, spatial_scale=0.5, sampling_ratio=2)
    RoIAlign(output_size=2, spatial_scale=0.5, sampling_ratio=2, aligned=False)
    """

    def __init__(
        self, output_size: int | Sequence[int], spatial_scale: float, sampling_ratio: int, aligned: bool = False
    ) -> None:
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale
        self.sampling_ratio, self.aligned = sampling_ratio, aligned

    def forward(self, input: Tensor, rois: Boxes) -> Tensor:
        return roi_align(input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, spatial_scale={self.spatial_scale}, "
            f"sampling_ratio={self.sampling_ratio}, aligned={self.aligned}"
        )


class RoIPool(nn.Module):
    """`roi_pool` as a module.

    >>> votive.vision.ops.RoIPool(2, 1.0)
    RoIPool(output_size=2, spatial_scale=1.0)
    """

    def __init__(self, output_size: int | Sequence[int], spatial_scale: float) -> None:
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale

    def forward(self, input: Tensor, rois: Boxes) -> Tensor:
        return roi_pool(input, rois, self.output_size, self.spatial_scale)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, spatial_scale={self.spatial_scale}"
