"""Convolutions of one to three dimensions (strides, dilation, groups, depthwise, transposed) and pooling."""

from __future__ import annotations

import math
from typing import Any

from ..draw import Draw
from ..family import Drawn, family
from ..side import Side, Work
from ..spec import Layout


def _picture(d: Draw, dims: int, channels: int, least: int, elements: int) -> tuple[int, ...]:
    """A batch of pictures: log-uniform batch and sides."""
    n = d.size(1, 32)
    room = max(1, elements // (n * channels))
    side = d.size(least, max(least, round(room ** (1 / dims))))
    sides = [max(least, min(round(side * d.random.uniform(0.7, 1.4)), 4096)) for _ in range(dims)]
    return (n, channels, *sides)


def _memory(d: Draw, shape: tuple[int, ...]) -> str:
    if len(shape) == 4 and d.chance(0.3):
        return str(Layout(shape, "cl"))
    return d.layout(shape, 0.9)


def _conv(d: Draw) -> Drawn:
    dims = d.pick((1, 1, 2, 2, 2, 2, 3))
    kernel = d.pick(((1, 3, 3, 5, 7, 9), (1, 1, 3, 3, 3, 5, 7), (1, 3, 3))[dims - 1])
    stride, dilation = d.pick((1, 1, 1, 2, 2, 3)), d.pick((1, 1, 1, 1, 2))
    way = d.pick(("dense", "dense", "dense", "groups", "depthwise", "transposed"))
    c, o = d.size(1, 256), d.size(1, 256)
    groups = 1
    if way == "groups":
        groups = d.pick((2, 4, 8))
        c, o = -(-c // groups) * groups, -(-o // groups) * groups
    elif way == "depthwise":
        groups = c
        o = c * d.pick((1, 1, 1, 2))
    least = dilation * (kernel - 1) + 1
    work = d.random.uniform(math.log(1 << 10), math.log(d.work // 2))
    taps = kernel**dims * c * o // groups
    places = max(1, int(math.exp(work) / taps)) * (stride**dims if way != "transposed" else 1)
    shape = _picture(d, dims, c, least, min(d.elements, places * c))
    op = ("conv_transpose" if way == "transposed" else "conv") + f"{dims}d"
    params: dict[str, Any] = {"x": _memory(d, shape), "o": o, "k": kernel, "stride": stride}
    params |= {"padding": d.pick((0, kernel // 2)), "dilation": dilation, "groups": groups, "bias": d.pick((0, 1))}
    return op, params


@family("conv", _conv, weight=4)
def _build_conv(s: Side) -> Work:
    p = s.spec
    dims = int(p.op[-2])
    c = Layout.parse(p["x"]).shape[1]
    x, o, groups = s(p["x"]), p["o"], p["groups"]
    first = (c, o // groups) if "transpose" in p.op else (o, c // groups)
    shape = Layout((*first, *[p["k"]] * dims))
    w = s(str(shape), scale=1 / math.sqrt(max(1, c // groups * p["k"] ** dims)))
    bias = s(str(o)) if p["bias"] else None
    fn = getattr(s.F, p.op)
    if "transpose" in p.op:
        return lambda: fn(x, w, bias, p["stride"], p["padding"], 0, groups, p["dilation"])
    return lambda: fn(x, w, bias, p["stride"], p["padding"], p["dilation"], groups)


def _pool(d: Draw) -> Drawn:
    dims = d.pick((1, 2, 2, 2, 2, 3))
    op = d.pick(("max_pool", "max_pool", "avg_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool"))
    kernel = d.pick((2, 2, 3, 3, 5))
    shape = _picture(d, dims, d.size(1, 256), kernel, d.elements // 2)
    params: dict[str, Any] = {"x": _memory(d, shape)}
    if op.startswith("adaptive"):
        return op + f"{dims}d", params | {"size": min(d.pick((1, 1, 2, 4, 7)), *shape[2:])}
    return op + f"{dims}d", params | {
        "k": kernel,
        "stride": d.pick((1, 2, kernel)),
        "padding": d.pick((0, kernel // 2)),
    }


@family("pool", _pool, weight=2)
def _build_pool(s: Side) -> Work:
    x, fn = s(s.spec["x"]), getattr(s.F, s.spec.op)
    if s.spec.op.startswith("adaptive"):
        return lambda: fn(x, s.spec["size"])
    return lambda: fn(x, s.spec["k"], s.spec["stride"], s.spec["padding"])


def _resample(d: Draw) -> Drawn:
    op = d.pick(("nearest", "bilinear", "bicubic", "linear", "grid_sample", "pixel_shuffle", "unfold"))
    dims = 1 if op == "linear" else 2
    shape = _picture(d, dims, d.size(1, 64), 4, d.elements // 4)
    if op == "pixel_shuffle":
        shape = (shape[0], max(1, shape[1] // 4) * 4, *shape[2:])
    if op == "unfold":
        shape = (shape[0], max(1, shape[1] // 8), *shape[2:])
    out = [max(1, round(side * d.random.uniform(0.4, 2.0))) for side in shape[2:]]
    return op, {"x": _memory(d, shape), "size": tuple(out), "corners": d.pick((0, 1))}


@family("resample", _resample)
def _build_resample(s: Side) -> Work:
    op, size = s.spec.op, s.spec["size"]
    x, corners = s(s.spec["x"]), bool(s.spec["corners"])
    if op == "grid_sample":
        grid = s(str(Layout((x.shape[0], *size, 2))), "signed", scale=1.1)
        return lambda: s.F.grid_sample(x, grid, align_corners=corners)
    if op == "pixel_shuffle":
        return lambda: s.F.pixel_shuffle(x, 2)
    if op == "unfold":
        return lambda: s.F.unfold(x, 3, padding=1)
    if op == "nearest":
        return lambda: s.F.interpolate(x, size=size)
    return lambda: s.F.interpolate(x, size=size, mode=op, align_corners=corners)
