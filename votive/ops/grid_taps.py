"""Sampling at arbitrary positions with single operators: what the kernels of `_grid_sample` must
agree with, and what gradients of gradients are made of. Knows no kernels.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..formula import Expr, apply, derivative, where
from .registry import F, composite, pointwise
from .standardise import widened

if TYPE_CHECKING:
    from .types import Tensor


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
    doc="A position among elements, brought back into `size` of them as the padding says.",
)

pointwise(
    "_grid_slope(Tensor input, int size, str padding, bool align)",
    lambda x, size, padding, align: derivative(_padded(x, size, padding, align), x)[0],
    allow="f",
    doc="How much `_grid_element` moves with its input: 1, -1, or 0.",
)


def _cubic(distance: Tensor, near: bool) -> Tensor:
    """Keys' kernel with a = -3/4 for distances of 0..1 or 1..2; see `interpolate`."""
    a, d = -0.75, distance
    if near:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


def _cubic_slope(distance: Tensor, near: bool) -> Tensor:
    """The derivative of `_cubic`."""
    a, d = -0.75, distance
    if near:
        return (3 * (a + 2) * d - 2 * (a + 3)) * d
    return (3 * a * d - 10 * a) * d + 8 * a


def _position(x: Tensor, size: int, align: bool) -> Tensor:
    """-1..1 as positions of elements: the ends are the outer centres (align) or the outer edges."""
    x = x + 1
    if align:
        return x * ((size - 1) / 2)
    # Rounded once, as a fused multiply-add does: in float32 it matters for large images.
    return F._to_dtype(F._to_dtype(x, dt.float64) * (size / 2) - 0.5, x.dtype)


def _taps(position: Tensor, mode: str) -> list[tuple[Any, Any, Any]]:
    """(element, weight, its derivative) along one dimension; a weight of None is 1."""
    if mode == "nearest":
        return [(F.round(position.detach()), None, None)]
    low = F.floor(position.detach())
    part = position - low
    if mode == "bilinear":
        return [(low, 1 - part, -1.0), (low + 1, part, 1.0)]
    far = ((part + 1, False, 1), (part, True, 1), (1 - part, True, -1), (2 - part, False, -1))
    return [
        (low + k, _cubic(d, near), sign * _cubic_slope(d, near))
        for k, (d, near, sign) in zip((-1, 0, 1, 2), far, strict=True)
    ]


def _along(coordinate: Tensor, size: int, mode: str, padding: str, align: bool) -> list[tuple[Any, Any, Any, Any]]:
    """(element, whether it exists, weight, its derivative by the coordinate) of each tap along one
    dimension.
    """
    position, late = _position(coordinate, size, align), mode == "bicubic"
    slope: Any = (size - 1) / 2 if align else size / 2
    if not late:  # bicubic leaves the position where it is and brings back each of its taps
        slope = F._grid_slope(position.detach(), size, padding, align) * slope
        position = F._grid_element(position, size, padding, align)
    found = []
    for element, weight, by in _taps(position, mode):
        if late:
            element = F._grid_element(element, size, padding, align)
        inside = F.logical_and(element >= 0, element <= size - 1)
        element = F._grid_element(element, size, "border", align).long()
        found.append((element, inside, weight, None if by is None else by * slope))
    return found


def _corners(x: Tensor, grid: Tensor, mode: str, padding: str, align: bool) -> Any:
    """For each combination of taps: the flat index of its element (N, C, places), whether it exists
    (N, 1, *places), and its taps.
    """
    n = grid.shape[-1]
    sizes, places = tuple(x.shape)[2:], tuple(grid.shape)[1:-1]
    spread = (*tuple(x.shape)[:2], math.prod(places))
    # The grid's last dimension names the innermost dimension of the input first.
    taps = [_along(F.select(grid, -1, n - 1 - d), sizes[d], mode, padding, align) for d in range(n)]
    for corner in itertools.product(*taps):
        index, inside = corner[0][:2]
        for size, (element, within, *_) in zip(sizes[1:], corner[1:], strict=True):
            index, inside = index * size + element, F.logical_and(inside, within)
        index = F.expand(F.reshape(index, (spread[0], 1, spread[2])), spread)
        yield index, inside.unsqueeze(1) if padding == "zeros" else None, corner


def _weight(corner: Any, without: int | None = None) -> Tensor:
    """The product of a corner's weights; of the dimension `without`, the derivative counts."""
    parts = [by if d == without else w for d, (_, _, w, by) in enumerate(corner)]
    return math.prod(parts[1:], start=parts[0]).unsqueeze(1)


@composite(name="_grid_sample_composite")
def grid_sample_composite(input: Tensor, grid: Tensor, mode: str, padding: str, align: bool) -> Tensor:
    """grid_sample from single operators: what the kernels must agree with."""
    x, at = widened(input), widened(grid)
    flat, total = F.flatten(x, 2), None
    out = (*tuple(x.shape)[:2], *tuple(grid.shape)[1:-1])
    for index, inside, corner in _corners(x, at, mode, padding, align):
        value = F.reshape(F.gather(flat, 2, index), out)
        value = value if inside is None else F.where(inside, value, 0)
        value = value if mode == "nearest" else value * _weight(corner)
        total = value if total is None else total + value
    return F._to_dtype(total, input.dtype)


@composite(name="_grid_sample_backward_composite")
def grid_sample_backward_composite(
    grad: Tensor, input: Tensor, grid: Tensor, mode: str, padding: str, align: bool
) -> tuple[Any, Any]:
    """The gradients of grid_sample from single operators, so that they have gradients too."""
    g, x, at = widened(grad), widened(input), widened(grid)
    flat, n = F.flatten(x, 2), at.shape[-1]
    back = F.zeros_like(flat)
    parts: list[Any] = [0.0] * n
    for index, inside, corner in _corners(x, at, mode, padding, align):
        part = g if mode == "nearest" else g * _weight(corner)
        part = part if inside is None else F.where(inside, part, 0)
        back = F.scatter_add(back, 2, index, F.flatten(part, 2))
        if mode == "nearest":
            continue
        value = F.reshape(F.gather(flat, 2, index), g.shape)
        value = value if inside is None else F.where(inside, value, 0)
        met = (g * value).sum(1, True)
        parts = [p + met * _weight(corner, d) for d, p in enumerate(parts)]
    by_input = F.reshape(back, x.shape)
    if mode == "nearest":
        return by_input, F.zeros_like(at)
    return by_input, F.stack([p.squeeze(1) for p in reversed(parts)], -1)
