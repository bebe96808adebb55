"""What ONNX's sequences and boxes mean. A sequence is a Python list."""

from __future__ import annotations

from typing import Any

from ..core import dtype as dt
from ..ops.registry import F
from ..tensor import Tensor
from .read import Attributes, reads, whole

A = Attributes


@reads("SequenceConstruct")
def construct(a: A, *xs: Tensor) -> Any:
    return (list(xs),)


@reads("SequenceEmpty")
def empty(a: A) -> Any:
    return ([],)


@reads("SequenceInsert")
def insert(a: A, xs: list[Tensor], x: Tensor, place: Tensor | None = None) -> Any:
    at = len(xs) if place is None else int(place)
    at = at + len(xs) if at < 0 else at
    return ([*xs[:at], x, *xs[at:]],)


@reads("SequenceErase")
def erase(a: A, xs: list[Tensor], place: Tensor | None = None) -> Any:
    at = (-1 if place is None else int(place)) % len(xs)
    return (xs[:at] + xs[at + 1 :],)


@reads("SequenceAt")
def at(a: A, xs: list[Tensor], place: Tensor) -> Any:
    return xs[int(place)]


@reads("SequenceLength")
def length(a: A, xs: list[Tensor]) -> Any:
    return F.tensor(len(xs), dtype=dt.int64)


@reads("ConcatFromSequence")
def concat(a: A, xs: list[Tensor]) -> Any:
    return F.stack(xs, a("axis")) if a("new_axis", 0) else F.cat(xs, a("axis"))


@reads("SplitToSequence")
def split(a: A, x: Tensor, sizes: Tensor | None = None) -> Any:
    axis = a("axis", 0)
    if sizes is None:
        parts = list(F.split(x, 1, axis))
        return (parts if a("keepdims", 1) else [F.squeeze(p, axis) for p in parts],)
    if sizes.ndim == 0:
        return (list(F.split(x, int(sizes), axis)),)
    return (list(F.split(x, whole(sizes), axis)),)


@reads("NonMaxSuppression")
def non_max_suppression(
    a: A, boxes: Tensor, scores: Tensor, most: Any = None, overlap: Any = None, least: Any = None
) -> Any:
    limit = int(most.reshape(-1)[0]) if most is not None else 0
    threshold = float(overlap.reshape(-1)[0]) if overlap is not None else 0.0
    floor = float(least.reshape(-1)[0]) if least is not None else None
    found: list[list[int]] = []
    for batch in range(scores.shape[0]):
        corners = _corners(boxes[batch], bool(a("center_point_box", 0)))
        for kind in range(scores.shape[1]):
            kept = _kept(corners, scores[batch, kind], limit, threshold, floor)
            found += [[batch, kind, i] for i in kept]
    return F.tensor(found, dtype=dt.int64).reshape(-1, 3)


def _corners(boxes: Tensor, centred: bool) -> Any:
    """(y1, x1, y2, x2) with the smaller first."""
    b = boxes.detach().double().numpy()
    if centred:
        x, y, w, h = b.T
        return y - h / 2, x - w / 2, y + h / 2, x + w / 2
    y1, x1, y2, x2 = b.T
    import numpy as np

    return np.minimum(y1, y2), np.minimum(x1, x2), np.maximum(y1, y2), np.maximum(x1, x2)


def _kept(corners: Any, scores: Tensor, limit: int, threshold: float, floor: float | None) -> list[int]:
    import numpy as np

    y1, x1, y2, x2 = corners
    values = scores.detach().numpy()
    area = (y2 - y1) * (x2 - x1)
    order = [int(i) for i in np.argsort(-values, kind="stable") if floor is None or values[i] > floor]
    kept: list[int] = []
    for i in order:
        if len(kept) >= limit:
            break
        inside = [
            max(min(y2[i], y2[j]) - max(y1[i], y1[j]), 0.0) * max(min(x2[i], x2[j]) - max(x1[i], x1[j]), 0.0)
            for j in kept
        ]
        unions = [area[i] + area[j] - both for j, both in zip(kept, inside, strict=True)]
        if all(u <= 0 or both / u <= threshold for both, u in zip(inside, unions, strict=True)):
            kept.append(i)
    return kept


@reads("MaxUnpool")
def max_unpool(a: A, x: Tensor, places: Tensor, size: Tensor | None = None) -> Any:
    kernel = a.ints("kernel_shape")
    n = len(kernel)
    strides, pads = a.ints("strides", (1,) * n), a.ints("pads", (0,) * (2 * n))
    natural = [
        (m - 1) * s + k - pads[i] - pads[n + i]
        for i, (m, s, k) in enumerate(zip(x.shape[2:], strides, kernel, strict=True))
    ]
    inner = (x.shape[0], x.shape[1], *natural)
    total = 1
    for m in inner:
        total *= m
    made = F.zeros(total, dtype=x.dtype).scatter_(0, places.reshape(-1), x.reshape(-1)).reshape(inner)
    if size is None:
        return made
    wanted = whole(size)
    amounts = [p for have, want in zip(reversed(inner), reversed(wanted), strict=True) for p in (0, want - have)]
    return F.constant_pad_nd(made, amounts)


@reads("CenterCropPad")
def center_crop_pad(a: A, x: Tensor, size: Tensor) -> Any:
    axes = [d % x.ndim for d in a("axes", range(x.ndim))]
    for d, want in zip(axes, whole(size), strict=True):
        have = x.shape[d]
        if want < have:
            x = F.narrow(x, d, (have - want) // 2, want)
        elif want > have:
            before = (want - have) // 2
            amounts = [0] * (2 * (x.ndim - 1 - d)) + [before, want - have - before]
            x = F.constant_pad_nd(x, amounts)
    return x


@reads("Col2Im")
def col2im(a: A, x: Tensor, size: Tensor, block: Tensor) -> Any:
    from ..nn import functional as NF

    kernel = whole(block)
    n = len(kernel)
    if n != 2:
        raise NotImplementedError("Col2Im: only pictures of two dimensions are supported.")
    pads = a.ints("pads", (0,) * (2 * n))
    if pads[:n] != pads[n:]:
        raise NotImplementedError("Col2Im: padding must be the same on both sides.")
    return NF.fold(x, whole(size), kernel, a.ints("dilations", (1,) * n), pads[:n], a.ints("strides", (1,) * n))
