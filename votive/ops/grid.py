"""Sampling at arbitrary positions: grid_sample, and affine_grid, which makes such positions.

Written with other operators, so gradients of any order by input and grid follow. Knows no kernels.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from ..core import dtype as dt
from ..core.errors import DtypeError, UnsupportedError, fail
from ..formula import Expr, apply, where
from .fold import NN
from .registry import F, composite, pointwise


def _clip(x: Expr, size: int) -> Expr:
    """Into 0..size-1, NaN to 0. The ends count as outside: torch's gradient there is zero."""
    return where(x > 0, where(x < size - 1, x, size - 1), 0)


def _reflect(x: Expr, size: int, align: bool) -> Expr:
    """Mirrored at the centres of the first and last element (align) or at their outer edges."""
    low, span = (0.0, size - 1) if align else (-0.5, size)
    if span == 0:
        return _clip(x * 0, size)
    away = where(x < low, low - x, x - low)
    turns = apply("floor", away / span)
    rest = away - turns * span
    odd = turns - 2 * apply("floor", turns / 2)
    return _clip(where(odd > 0, span - rest, rest) + low, size)


def _padded(x: Expr, size: int, padding: str, align: bool) -> Expr:
    if padding == "border":
        return _clip(x, size)
    return _reflect(x, size, align) if padding == "reflection" else x


pointwise(
    "_grid_element(Tensor input, int size, str padding, bool align)",
    _padded,
    allow="f",
    inplace=False, method=False, namespaces=(), out=False,
    doc="A position among elements, brought back into `size` of them as the padding says.",
)  # fmt: skip


def _cubic(distance: Any, near: bool) -> Any:
    """Keys' kernel with a = -3/4 for distances of 0..1 or 1..2; see `interpolate`."""
    a, d = -0.75, distance
    if near:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


def _position(x: Any, size: int, align: bool) -> Any:
    """-1..1 as positions of elements: the ends are the outer centres (align) or the outer edges."""
    x = x + 1
    if align:
        return x * ((size - 1) / 2)
    # Rounded once, as a fused multiply-add does: in float32 it matters for large images.
    return F._to_dtype(F._to_dtype(x, dt.float64) * (size / 2) - 0.5, x.dtype)


def _taps(position: Any, mode: str) -> list[tuple[Any, Any]]:
    """(element, weight) along one dimension; a weight of None is 1."""
    if mode == "nearest":
        return [(F.round(position.detach()), None)]
    low = F.floor(position.detach())
    part = position - low
    if mode == "bilinear":
        return [(low, 1 - part), (low + 1, part)]
    weights = (
        _cubic(part + 1, False), _cubic(part, True), _cubic(1 - part, True), _cubic(2 - part, False)
    )  # fmt: skip
    return [(low + k, w) for k, w in zip((-1, 0, 1, 2), weights, strict=True)]


def _along(
    coordinate: Any, size: int, mode: str, padding: str, align: bool
) -> list[tuple[Any, Any, Any]]:
    """(element, whether it exists, weight) for each tap along one dimension."""
    position, late = _position(coordinate, size, align), mode == "bicubic"
    if not late:  # bicubic leaves the position where it is and brings back each of its taps
        position = F._grid_element(position, size, padding, align)
    found = []
    for element, weight in _taps(position, mode):
        if late:
            element = F._grid_element(element, size, padding, align)
        inside = F.logical_and(element >= 0, element <= size - 1)
        found.append((F._grid_element(element, size, "border", align).long(), inside, weight))
    return found


def _sample(x: Any, grid: Any, mode: str, padding: str, align: bool) -> Any:
    n = grid.shape[-1]
    sizes, places = tuple(x.shape)[2:], tuple(grid.shape)[1:-1]
    # The grid's last dimension names the innermost dimension of the input first.
    taps = [_along(F.select(grid, -1, n - 1 - d), sizes[d], mode, padding, align) for d in range(n)]
    flat = F.flatten(x, 2)
    spread = (*tuple(x.shape)[:2], math.prod(places))
    total: Any = None
    for corner in itertools.product(*taps):
        index, inside, weight = corner[0]
        for size, (element, within, w) in zip(sizes[1:], corner[1:], strict=True):
            index, inside = index * size + element, F.logical_and(inside, within)
            weight = None if w is None else weight * w
        index = F.expand(F.reshape(index, (spread[0], 1, spread[2])), spread)
        value = F.reshape(F.gather(flat, 2, index), (*spread[:2], *places))
        if padding == "zeros":
            value = F.where(inside.unsqueeze(1), value, 0)
        value = value if weight is None else value * weight.unsqueeze(1)
        total = value if total is None else total + value
    return total


def _check(op: str, x: Any, grid: Any, mode: str) -> None:
    if not x.dtype.is_floating_point or x.dtype in dt.FLOAT8:
        fail(UnsupportedError, op, f"not implemented for {x.dtype}; it takes floats.")
    if grid.dtype is not x.dtype:
        fail(DtypeError, op, f"grid must have the dtype of input, {x.dtype}, got {grid.dtype}.")
    shape, wanted = tuple(x.shape), tuple(grid.shape)
    if x.ndim not in (4, 5) or grid.ndim != x.ndim:
        fail(RuntimeError, op, f"input and grid must both be 4-d or 5-d, got {shape}, {wanted}.")
    if shape[0] != wanted[0] or wanted[-1] != x.ndim - 2:
        fail(
            RuntimeError, op,
            f"an input of shape {shape} needs a grid of shape ({shape[0]}, ..., {x.ndim - 2}), got "
            f"{wanted}.",
        )  # fmt: skip
    if 0 in shape[2:]:
        fail(RuntimeError, op, f"only batch and channels may be empty, got shape {shape}.")
    if mode == "bicubic" and x.ndim == 5:
        fail(RuntimeError, op, "mode 'bicubic' takes 4-d inputs only.")


@composite(namespaces=NN, method=False)
def grid_sample(
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:
    """Values of `input` (N, C, H, W) at the positions of `grid` (N, H', W', 2); or in 3-d.

    A position (x, y) is (-1, -1) at the upper left corner and (1, 1) at the lower right one. Modes:
    bilinear, nearest, bicubic; outside the input: zeros, border, reflection.

    >>> image = votive.tensor([[[[0.0, 1.0], [2.0, 3.0]]]])
    >>> votive.nn.functional.grid_sample(image, votive.zeros(1, 1, 1, 2))
    tensor([[[[1.5000]]]])
    """
    op = "grid_sample"
    if mode not in ("bilinear", "nearest", "bicubic"):
        fail(ValueError, op, f"mode must be bilinear, nearest or bicubic, got {mode!r}.")
    if padding_mode not in ("zeros", "border", "reflection"):
        fail(
            ValueError, op,
            f"padding_mode must be zeros, border or reflection, got {padding_mode!r}.",
        )  # fmt: skip
    _check(op, input, grid, mode)
    kind = input.dtype
    if kind in dt.HALF:  # positions and sums are rounded once
        input, grid = F._to_dtype(input, dt.float32), F._to_dtype(grid, dt.float32)
    y = _sample(input, grid, mode, padding_mode, bool(align_corners))
    return F._to_dtype(y, kind) if kind in dt.HALF else y


def _centres(n: int, theta: Any, align: bool) -> Any:
    """Coordinates of n elements in -1..1."""
    if n <= 1:
        return F.zeros((1,), dtype=theta.dtype, device=theta.device)
    line = F.linspace(-1, 1, n, dtype=theta.dtype, device=theta.device)
    return line if align else line * ((n - 1) / n)


@composite(namespaces=NN, method=False)
def affine_grid(theta: Any, size: Any, align_corners: bool | None = None) -> Any:
    """The grid that samples an output of `size` (N, C, H, W) through affine maps `theta` (N, 2, 3).

    >>> theta = votive.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]]])
    >>> votive.nn.functional.affine_grid(theta, (1, 1, 1, 2))
    tensor([[[[-0.5000,  0.5000],
              [ 0.5000,  0.5000]]]])
    """
    op = "affine_grid"
    size = tuple(int(s) for s in size)
    if not theta.dtype.is_floating_point:
        fail(ValueError, op, f"theta must be floating-point, got {theta.dtype}.")
    if len(size) not in (4, 5):
        fail(UnsupportedError, op, f"size must have 4 or 5 elements, got {size}.")
    n = len(size) - 2
    if theta.ndim != 3 or tuple(theta.shape)[1:] != (n, n + 1):
        fail(
            ValueError, op,
            f"theta must have shape (N, {n}, {n + 1}) for size {size}, got {tuple(theta.shape)}.",
        )  # fmt: skip
    if min(size) <= 0:
        fail(ValueError, op, f"sizes must be positive, got {size}.")
    if theta.shape[0] != size[0]:
        fail(RuntimeError, op, f"theta has {theta.shape[0]} maps for a batch of {size[0]}.")
    lines = [_centres(s, theta, bool(align_corners)) for s in size[2:]]
    axes = [
        F.expand(F.reshape(line, (-1, *(1,) * (n - 1 - d))), size[2:])
        for d, line in enumerate(lines)
    ]
    base = F.stack([*reversed(axes), F.ones_like(axes[0])], -1)
    points = F.matmul(F.reshape(base, (1, -1, n + 1)), F.transpose(theta, 1, 2))
    return F.reshape(points, (size[0], *size[2:], n))
