"""Where each pixel of a result is read, and the reading itself. Knows images, no transform."""

from __future__ import annotations

from collections.abc import Sequence

from ....core import dtype as dt
from ....nn import functional as NF
from ....ops.registry import F
from ....tensor import Tensor
from ...types import Fill
from .interpolation import InterpolationMode

NEAREST, BILINEAR = InterpolationMode.NEAREST, InterpolationMode.BILINEAR


def float_like(image: Tensor) -> Tensor:
    """An empty tensor of the type that places in this image are computed in."""
    kind = image.dtype if image.dtype.is_floating_point else dt.float32
    return F.empty((0,), dtype=kind, device=image.device)


def _crossed(across: tuple[float, float, int], down: tuple[float, float, int], like: Tensor) -> Tensor:
    """(H, W, 2): x and y of each pixel, each (first, last, count) along its line."""
    x, y = (F.linspace(*line, dtype=like.dtype, device=like.device) for line in (across, down))
    shape = (down[2], across[2])
    return F.stack((F.expand(x, shape), F.expand(y.unsqueeze(1), shape)), -1)


def _mapped(points: Tensor, row: Tensor) -> Tensor:
    """ax + by + c of (H, W, 2) points, each step rounded by itself, as torch's product does."""
    x, y = F.unbind(points, -1)
    return x * row[0] + y * row[1] + row[2]


def affine_grid(matrix: Sequence[float], old: tuple[int, int], new: tuple[int, int], like: Tensor) -> Tensor:
    """(1, H, W, 2): where in an image of size `old` each pixel of one of size `new` lies."""
    across, down = ((0.5 * (1.0 - n), 0.5 * (n - 1.0), n) for n in new)
    points = _crossed(across, down, like)
    theta = F.tensor(matrix, dtype=like.dtype, device=like.device).reshape(2, 3)
    half = F.tensor([0.5 * size for size in old], dtype=like.dtype, device=like.device)
    rows = theta / half.unsqueeze(1)
    return F.stack([_mapped(points, row) for row in rows], -1).unsqueeze(0)


def perspective_grid(c: Sequence[float], width: int, height: int, like: Tensor) -> Tensor:
    """(1, H, W, 2): where each pixel comes from under eight coefficients."""
    points = _crossed((0.5, width - 0.5, width), (0.5, height - 0.5, height), like)
    above = F.tensor([c[0:3], c[3:6]], dtype=like.dtype, device=like.device)
    half = F.tensor([0.5 * width, 0.5 * height], dtype=like.dtype, device=like.device)
    rows = above / half.unsqueeze(1)
    below = _mapped(points, F.tensor([c[6], c[7], 1.0], dtype=like.dtype, device=like.device))
    return F.stack([_mapped(points, row) / below - 1.0 for row in rows], -1).unsqueeze(0)


def sampled(op: str, image: Tensor, grid: Tensor, mode: InterpolationMode, fill: Fill) -> Tensor:
    """The image at the places of the grid, with `fill` outside."""
    shape = tuple(image.shape)
    values = None if fill is None else list(fill) if isinstance(fill, Sequence) else [fill]
    if values is not None and len(values) not in (1, shape[-3]):
        raise ValueError(f"{op}: fill has {len(values)} values for {shape[-3]} channels.")
    if mode not in (NEAREST, BILINEAR):
        raise ValueError(f"{op}: tensors take 'nearest' or 'bilinear', got {mode.value!r}.")
    size = tuple(grid.shape[1:3])
    if 0 in shape:
        return image.reshape(*shape[:-2], *size)
    flat = image.reshape(-1, *shape[-3:]).to(grid.dtype)
    n = flat.shape[0]
    grid = grid.expand(n, -1, -1, -1)
    if values is not None:  # one more channel says how much of a pixel comes from the image
        flat = F.cat((flat, F.ones_like(flat[:, :1])), 1)
    out = NF.grid_sample(flat, grid, mode=mode.value, padding_mode="zeros", align_corners=False)
    if values is not None:
        out, inside = out[:, :-1], out[:, -1:]
        colour = F.tensor([float(v) for v in values], dtype=out.dtype, device=out.device)
        colour = colour.reshape(1, -1, 1, 1)
        if mode is NEAREST:
            out = F.where(inside < 0.5, colour, out)
        else:
            out = (out - colour) * inside + colour
    if not image.dtype.is_floating_point:
        out = F.round(out).to(image.dtype)
    return out.reshape(*shape[:-2], *size)


def identity_grid(size: tuple[int, int], like: Tensor) -> Tensor:
    """(1, H, W, 2): each pixel at its own place."""
    down, across = (((1 - n) / n, (n - 1) / n, n) for n in size)
    return _crossed(across, down, like).unsqueeze(0)
