"""How convolutions, pools and resizing are written as ONNX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.graph import Value
from ..core import dtype as dt
from .rules_reductions import reduced
from .sizes import Int, Sym, product
from .translate import Call, translates


def _batched(c: Call, x: Value, spatial: int) -> tuple[str, bool]:
    """The input with a batch; ONNX knows no other."""
    if len(c.shape(x)) == spatial + 1:
        return c.op("Unsqueeze", c.name(x), c.b.constant([0])), True
    return c.name(x), False


def _plain(c: Call, made: str, single: bool) -> str:
    return c.op("Squeeze", made, c.b.constant([0])) if single else made


@translates("_convolution")
def convolution(
    c: Call, x: Value, w: Value, bias: Value | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> str:
    name, single = _batched(c, x, len(stride))
    made = c.op(
        "Conv",
        name,
        c.name(w),
        c.maybe(bias),
        strides=list(stride),
        pads=[*padding, *padding],
        dilations=list(dilation),
        group=groups,
        kernel_shape=[int(k) for k in w.spec.shape[2:]],
    )
    return _plain(c, made, single)


@translates("_convolution_transpose")
def convolution_transpose(
    c: Call, x: Value, w: Value, bias: Value | None, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> str:
    name, single = _batched(c, x, len(stride))
    kernel = [int(k) for k in w.spec.shape[2:]]
    have = c.shape(x)[-len(stride) :]
    extra = [
        out - ((n - 1) * s - 2 * p + d * (k - 1) + 1)
        for out, n, s, p, d, k in zip(size, have, stride, padding, dilation, kernel, strict=True)
    ]
    if any(isinstance(e, Sym) or e < 0 for e in extra):
        raise c.refuse("its output size does not follow from the input's")
    made = c.op(
        "ConvTranspose",
        name,
        c.name(w),
        c.maybe(bias),
        strides=list(stride),
        pads=[*padding, *padding],
        dilations=list(dilation),
        group=groups,
        kernel_shape=kernel,
        output_padding=[int(e) for e in extra],
    )
    return _plain(c, made, single)


def _ceiled(c: Call, x: Value, size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> bool:
    """Whether output sizes were rounded up."""
    have = c.shape(x)[-len(kernel) :]
    floor = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, p, d, k, s in zip(have, padding, dilation, kernel, stride, strict=True)
    ]
    return list(size) != floor


@translates("_max_pool", "_max_pool_values")
def max_pool(c: Call, x: Value, size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> list[str]:
    name, single = _batched(c, x, len(kernel))
    wants = c.node.op.name == "_max_pool"
    outs = c.b.ops(
        "MaxPool",
        [name],
        2 if wants else 1,
        kernel_shape=list(kernel),
        strides=list(stride),
        pads=[*padding, *padding],
        dilations=list(dilation),
        ceil_mode=int(_ceiled(c, x, size, kernel, stride, padding, dilation)),
    )
    made = [_plain(c, outs[0], single)]
    if wants:  # ONNX counts places through the whole tensor, votive inside of a plane
        plane = c.b.number(product(c.shape(x)[-len(kernel) :]), dt.int64)
        made.append(_plain(c, c.op("Mod", outs[1], plane), single))
    return made


@translates("_avg_pool")
def avg_pool(
    c: Call, x: Value, size: Any, kernel: Any, stride: Any, padding: Any, include_pad: bool, divisor: Any
) -> str:
    name, single = _batched(c, x, len(kernel))
    ceiled = _ceiled(c, x, size, kernel, stride, padding, [1] * len(kernel))
    if divisor is not None and ceiled:
        raise c.refuse("divisor_override with ceil_mode has no counterpart in ONNX")
    made = c.op(
        "AveragePool",
        name,
        kernel_shape=list(kernel),
        strides=list(stride),
        pads=[*padding, *padding],
        ceil_mode=int(ceiled),
        count_include_pad=int(include_pad or divisor is not None),
    )
    if divisor is not None:
        made = c.op("Mul", made, c.b.number(math.prod(kernel) / divisor, c.dtype(x)))
    return _plain(c, made, single)


def _averages(inside: int, outside: int) -> np.ndarray[Any, Any]:
    """The matrix that averages a line of `inside` values to `outside` ones."""
    found = np.zeros((inside, outside))
    for i in range(outside):
        start, end = i * inside // outside, -((-(i + 1) * inside) // outside)
        found[start:end, i] = 1 / (end - start)
    return found


@translates("_adaptive_avg_pool")
def adaptive_avg_pool(c: Call, x: Value, size: Sequence[Int]) -> str:
    n = len(size)
    have, first = c.shape(x)[-n:], len(c.shape(x)) - n
    if all(s == 1 for s in size):
        return reduced(c, "ReduceMean", c.name(x), list(range(first, first + n)), True)
    inside, outside = c.fixed(have, "a pool to several values"), c.fixed(size, "a pool")
    made = c.name(x)
    for i in range(n):
        if inside[i] == outside[i]:
            continue
        order = list(range(first + n))
        order[first + i], order[-1] = order[-1], order[first + i]
        matrix = c.b.constant(_averages(inside[i], outside[i]), c.dtype(x))
        swapped = made if i == n - 1 else c.op("Transpose", made, perm=order)
        made = c.op("MatMul", swapped, matrix)
        made = made if i == n - 1 else c.op("Transpose", made, perm=order)
    return made


@translates("_adaptive_max_pool")
def adaptive_max_pool(c: Call, x: Value, size: Sequence[Int]) -> list[str]:
    n = len(size)
    have, size = c.fixed(c.shape(x)[-n:], "a pool"), c.fixed(size, "a pool")
    if any(h % s for h, s in zip(have, size, strict=True)):
        raise c.refuse("it is supported where the output size divides a fixed input size")
    kernel = [h // s for h, s in zip(have, size, strict=True)]
    name, single = _batched(c, x, n)
    outs = c.b.ops("MaxPool", [name], 2, kernel_shape=kernel, strides=kernel)
    places = c.op("Mod", outs[1], c.b.constant(math.prod(have)))
    return [_plain(c, outs[0], single), _plain(c, places, single)]


@translates("_resample")
def resample(c: Call, x: Value, size: Any, mode: str, align: bool, smooth: bool, scales: Sequence[float]) -> str:
    kinds = {"nearest": "nearest", "nearest-exact": "nearest", "linear": "linear", "cubic": "cubic"}
    if mode not in kinds:
        raise c.refuse(f"the mode {mode!r} has no counterpart in ONNX")
    if not c.dtype(x).is_floating_point and mode != "nearest":
        raise c.refuse("whole numbers are rounded otherwise by ONNX; resize floating-point numbers")
    place = "align_corners" if align else "asymmetric" if mode == "nearest" else "half_pixel"
    if mode != "nearest" and not align:
        place = "pytorch_half_pixel" if mode == "linear" else "half_pixel"
    given: dict[str, Any] = {"nearest_mode": "floor"} if mode == "nearest" else {}
    if mode == "nearest-exact":
        given = {"nearest_mode": "round_prefer_ceil"}
    if mode == "cubic":
        given["cubic_coeff_a"] = -0.5 if smooth else -0.75
    if smooth:
        given["antialias"] = 1
    n = len(size)
    if all(s for s in scales) and not align:
        factors = c.b.constant([1.0, 1.0, *scales], dt.float32)
        return c.op("Resize", c.name(x), None, factors, mode=kinds[mode], coordinate_transformation_mode=place, **given)
    wanted = c.b.sizes([*c.shape(x)[: len(c.shape(x)) - n], *size])
    return c.op(
        "Resize", c.name(x), None, None, wanted, mode=kinds[mode], coordinate_transformation_mode=place, **given
    )


@translates("_grid_sample")
def grid_sample(c: Call, x: Value, grid: Value, mode: str, padding: str, align: bool) -> str:
    names = {"bilinear": "linear", "bicubic": "cubic"} if c.b.opset >= 20 else {}
    return c.op(
        "GridSample",
        c.name(x),
        c.name(grid),
        mode=names.get(mode, mode),
        padding_mode=padding,
        align_corners=int(align),
    )
