"""Layers with int8 weights on NumPy: sums of codes by BLAS on wider numbers, which are exact."""

from __future__ import annotations

import numpy as np

from ....core import dtype as dt
from ...base import kernel
from ..arrays import Array

_PANEL = 16


def _unpacked(packed: Array, rows: int, columns: int) -> Array:
    """The codes as a matrix, (rows, columns)."""
    panels, quads, _ = packed.shape
    whole = packed.reshape(panels, quads, _PANEL, 4).transpose(0, 2, 1, 3).reshape(panels * _PANEL, quads * 4)
    return whole[:rows, :columns]


def _finished(
    total: Array,
    x: Array,
    columns: int,
    sums: Array,
    scales: Array,
    zeros: Array | None,
    bias: Array | None,
    steps: tuple[float, int],
    out: tuple[float, int],
    relu: bool,
    dtype: dt.dtype,
) -> Array:
    """Sums of products of codes, (rows, channels), as results."""
    scale, zero = np.float32(steps[0]), steps[1]
    total = total - zero * sums.astype(np.int64)
    if zeros is not None:
        wide = zeros.astype(np.int64)
        total = total - x.astype(np.int64).sum(1, keepdims=True) * wide + columns * zero * wide
    unit = scale * scales
    if dtype is dt.float32:
        y: Array = total.astype(np.float32) * unit + (0 if bias is None else bias)
        return np.maximum(y, np.float32(0)) if relu else y
    extra = np.float32(0) if bias is None else bias / unit
    low = -128 if dtype is dt.int8 else 0
    codes = np.rint((total.astype(np.float32) + extra) * (unit / np.float32(out[0]))) + np.float32(out[1])
    return np.clip(codes, max(low, out[1]) if relu else low, low + 255).astype(dtype.np)


def _codes(x: Array, scale: float, zero_point: int, low: int, high: int) -> Array:
    """Rounded once, with the zero added: in double precision product and sum are exact enough for that."""
    inverse = np.float32(1) / np.float32(scale)
    with np.errstate(invalid="ignore", over="ignore"):
        v = np.rint((x.astype(np.float64) * np.float64(inverse) + zero_point).astype(np.float32))
    return np.clip(np.where(np.isnan(v), high, v), low, high)


@kernel("_quantize_affine", widen=False)
def quantize_affine(x: Array, scale: float, zero_point: int, dtype: dt.dtype) -> Array:
    info = np.iinfo(dtype.np)
    if dtype is not dt.int32:
        return _codes(x, scale, zero_point, info.min, info.max).astype(dtype.np)
    # There torch rounds the product first, too, and NaN is the least code.
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.rint(x * (np.float32(1) / np.float32(scale)) + np.float32(zero_point)).astype(np.float64)
    return np.clip(np.where(np.isnan(wide), info.min, wide), info.min, info.max).astype(np.int64).astype(dtype.np)


def _product(x: Array, weight: Array) -> Array:
    return (x.astype(np.float64) @ weight.astype(np.float64).T).astype(np.int64)


@kernel("_int8_linear", widen=False)
def int8_linear(
    x: Array,
    packed: Array,
    sums: Array,
    scales: Array,
    zeros: Array | None,
    bias: Array | None,
    scale: float,
    zero_point: int,
    out_scale: float,
    out_zero_point: int,
    relu: bool,
    dtype: dt.dtype,
) -> Array:
    columns, n = x.shape[-1], len(sums)
    rows = x.reshape(-1, columns) if columns else np.zeros((int(np.prod(x.shape[:-1])), 0), x.dtype)
    total = _product(rows, _unpacked(packed, n, columns))
    steps, out = (scale, zero_point), (out_scale, out_zero_point)
    y = _finished(total, rows, columns, sums, scales, zeros, bias, steps, out, relu, dtype)
    return y.reshape(*x.shape[:-1], n)


def choose(least: float, most: float, highest: int) -> tuple[float, int]:
    """The step and zero of numbers between two bounds, which contain 0: as torch chooses them."""
    f = np.float32
    low, high = f(min(least, 0.0)), f(max(most, 0.0))
    smallest = f(6.1e-5)
    scale = (float(high) - float(low)) / highest
    with np.errstate(divide="ignore", over="ignore"):
        if f(scale) == 0 or np.isinf(f(1) / f(scale)):
            scale = 0.1
    if scale < smallest:
        before, scale = f(scale), float(smallest)
        if low == 0:
            high = smallest * f(highest)
        elif high == 0:
            low = -smallest * f(highest)
        else:
            low, high = low * (smallest / before), high * (smallest / before)
    zero = -float(low) / scale
    return float(f(scale)), int(np.rint(min(max(zero, 0.0), highest)))


@kernel("_int8_linear_dynamic", widen=False)
def int8_linear_dynamic(
    x: Array,
    packed: Array,
    sums: Array,
    scales: Array,
    zeros: Array | None,
    bias: Array | None,
    highest: int,
    relu: bool,
) -> Array:
    if not np.isfinite(x).all():
        raise ValueError("linear: int8 needs finite numbers; the input holds infinities or NaN")
    least, most = (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)
    scale, zero = choose(least, most, highest)
    codes = _codes(x, scale, zero, 0, highest).astype(np.uint8)
    return int8_linear(codes, packed, sums, scales, zeros, bias, scale, zero, 1.0, 0, relu, dt.float32)


@kernel("_int8_conv", widen=False)
def int8_conv(
    x: Array,
    packed: Array,
    sums: Array,
    scales: Array,
    zeros: Array | None,
    bias: Array | None,
    scale: float,
    zero_point: int,
    out_scale: float,
    out_zero_point: int,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    relu: bool,
    dtype: dt.dtype,
) -> Array:
    edges = ((0, 0), (0, 0), *((p, p) for p in padding))
    full = np.pad(x, edges, constant_values=zero_point)
    span = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    windows = np.lib.stride_tricks.sliding_window_view(full, span, (2, 3, 4))
    cut = windows[:, :, :: stride[0], :: stride[1], :: stride[2], :: dilation[0], :: dilation[1], :: dilation[2]]
    batch, channels, *places = cut.shape[:5]
    each, n = channels // groups, len(sums) // groups
    taps = int(np.prod(kernel))
    panels = -(-n // _PANEL)
    out = np.empty((batch, len(sums), *places), dtype.np)
    for g in range(groups):
        part = cut[:, g * each : (g + 1) * each].transpose(0, 2, 3, 4, 5, 6, 7, 1)
        rows = np.ascontiguousarray(part).reshape(-1, taps * each)
        total = _product(rows, _unpacked(packed[g * panels : (g + 1) * panels], n, taps * each))
        at = slice(g * n, (g + 1) * n)
        zero, extra = (None if v is None else v[at] for v in (zeros, bias))
        steps, ends = (scale, zero_point), (out_scale, out_zero_point)
        y = _finished(total, rows, taps * each, sums[at], scales[at], zero, extra, steps, ends, relu, dtype)
        out[:, at] = y.reshape(batch, *places, n).transpose(0, 4, 1, 2, 3)
    return out
