"""What ONNX's layers mean: convolution, pools, norms, resizing, attention, recurrent networks, losses."""

from __future__ import annotations

import math
from typing import Any

from ..core import dtype as dt
from ..nn import functional as NF
from ..ops.registry import F
from ..tensor import Tensor
from .read import Attributes, reads, whole

A = Attributes
_CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")
_TRANSPOSED = ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
_AVERAGES = ("avg_pool1d", "avg_pool2d", "avg_pool3d")


def _windows(a: A, x: Tensor, kernel: tuple[int, ...]) -> tuple[Any, Any, list[int], list[int]]:
    """(strides, dilations, padding before, padding after) of a convolution or a pool."""
    n = len(kernel)
    strides, dilations = a.ints("strides", (1,) * n), a.ints("dilations", (1,) * n)
    how, pads = a("auto_pad", "NOTSET"), a.ints("pads", (0,) * (2 * n))
    if how in ("NOTSET", ""):
        return strides, dilations, list(pads[:n]), list(pads[n:])
    before, after = [0] * n, [0] * n
    if how != "VALID":
        for i, (size, k, s, d) in enumerate(zip(x.shape[2:], kernel, strides, dilations, strict=True)):
            missing = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
            less, more = missing // 2, missing - missing // 2
            before[i], after[i] = (less, more) if how == "SAME_UPPER" else (more, less)
    return strides, dilations, before, after


def _padded(x: Tensor, before: list[int], after: list[int], value: float = 0.0) -> tuple[Tensor, tuple[int, ...]]:
    """Equal padding is left to the kernel; the rest is added first."""
    if before == after:
        return x, tuple(before)
    amounts = [p for b, e in zip(reversed(before), reversed(after), strict=True) for p in (b, e)]
    return NF.pad(x, amounts, value=value), (0,) * len(before)


@reads("Conv")
def conv(a: A, x: Tensor, w: Tensor, bias: Tensor | None = None) -> Any:
    kernel = tuple(w.shape[2:])
    strides, dilations, before, after = _windows(a, x, kernel)
    x, padding = _padded(x, before, after)
    return getattr(NF, _CONVOLUTIONS[len(kernel) - 1])(x, w, bias, strides, padding, dilations, a("group", 1))


@reads("ConvTranspose")
def conv_transpose(a: A, x: Tensor, w: Tensor, bias: Tensor | None = None) -> Any:
    kernel = tuple(w.shape[2:])
    n = len(kernel)
    strides, dilations = a.ints("strides", (1,) * n), a.ints("dilations", (1,) * n)
    extra, pads = a.ints("output_padding", (0,) * n), a.ints("pads", (0,) * (2 * n))
    before, after = list(pads[:n]), list(pads[n:])
    how, wanted = a("auto_pad", "NOTSET"), a.ints("output_shape")
    full = [
        (size - 1) * s + (k - 1) * d + 1 + e
        for size, s, k, d, e in zip(x.shape[2:], strides, kernel, dilations, extra, strict=True)
    ]
    if wanted is not None or how.startswith("SAME"):
        sizes = wanted[-n:] if wanted is not None else [m * s for m, s in zip(x.shape[2:], strides, strict=True)]
        for i, (have, want) in enumerate(zip(full, sizes, strict=True)):
            total = have - want
            half = total // 2
            before[i], after[i] = (
                (total - half, half)
                if how == "SAME_LOWER" or (wanted is not None and how != "SAME_UPPER")
                else (half, total - half)
            )
    made = getattr(NF, _TRANSPOSED[n - 1])(x, w, bias, strides, 0, 0, a("group", 1), dilations)
    sizes = [h - b - e for h, b, e in zip(full, before, after, strict=True)]
    amounts = []
    for have, b, want in zip(reversed(made.shape[2:]), reversed(before), reversed(sizes), strict=True):
        amounts += [-b, want + b - have]
    made = NF.pad(made, amounts) if any(amounts) else made
    if bias is not None and any(amounts[i] > 0 for i in range(len(amounts))):
        # What lies behind the kernel's reach holds the bias alone.
        plain = getattr(NF, _TRANSPOSED[n - 1])(x, w, None, strides, 0, 0, a("group", 1), dilations)
        return NF.pad(plain, amounts) + bias.reshape(-1, *[1] * n)
    return made


def _ceiled(a: A, x: Tensor, kernel: Any, strides: Any, dilations: Any, before: Any, after: Any) -> list[int]:
    """Rows behind the padding that `ceil_mode` adds, as far as a window begins inside."""
    found = list(after)
    if not a("ceil_mode", 0):
        return found
    for i, (size, k, s, d) in enumerate(zip(x.shape[2:], kernel, strides, dilations, strict=True)):
        reach = d * (k - 1) + 1
        total = size + before[i] + after[i]
        count = -(-(total - reach) // s) + 1
        if (count - 1) * s >= size + before[i]:
            count -= 1
        found[i] += max((count - 1) * s + reach - total, 0)
    return found


@reads("MaxPool")
def max_pool(a: A, x: Tensor) -> Any:
    kernel = a.ints("kernel_shape")
    n = len(kernel)
    strides, dilations, before, after = _windows(a, x, kernel)
    after = _ceiled(a, x, kernel, strides, dilations, before, after)
    low = float("-inf") if x.dtype.is_floating_point else dt.iinfo(x.dtype).min
    amounts = [p for b, e in zip(reversed(before), reversed(after), strict=True) for p in (b, e)]
    padded = NF.pad(x, amounts, value=low) if any(amounts) else x
    if not x.dtype.is_floating_point:
        padded = F.to(padded, dt.float64)
    values, places = getattr(NF, f"max_pool{n}d")(padded, kernel, strides, 0, dilations, return_indices=True)
    values = F.to(values, x.dtype)
    if a.outputs < 2:
        return values
    return values, _places(a, x, padded, places, before)


def _places(a: A, x: Tensor, padded: Tensor, places: Tensor, before: list[int]) -> Tensor:
    """Places through the whole tensor, of those inside a padded plane."""
    sizes, inside = tuple(x.shape[2:]), tuple(padded.shape[2:])
    rest, coordinates = places, []
    for n in reversed(inside):
        coordinates.append(rest % n)
        rest = F.div(rest, n, rounding_mode="floor")
    coordinates = [c - b for c, b in zip(reversed(coordinates), before, strict=True)]
    order = range(len(sizes)) if not a("storage_order", 0) else reversed(range(len(sizes)))
    flat: Any = 0
    for i in order:
        flat = flat * sizes[i] + coordinates[i]
    planes = F.arange(x.shape[0] * x.shape[1]).reshape(x.shape[0], x.shape[1], *[1] * len(sizes))
    return planes * math.prod(sizes) + flat


@reads("AveragePool", "LpPool")
def average_pool(a: A, x: Tensor) -> Any:
    kernel = a.ints("kernel_shape")
    n = len(kernel)
    strides, dilations, before, after = _windows(a, x, kernel)
    reached = _ceiled(a, x, kernel, strides, dilations, before, after)
    p = a("p", 2)
    values = F.abs(x) ** p if a.op == "LpPool" else x
    ones = F.ones_like(x[:1, :1])
    if a("count_include_pad", 0):
        ones = _filled(ones, before, after, 1.0)
        ones = _filled(ones, [0] * n, [r - e for r, e in zip(reached, after, strict=True)], 0.0)
    else:
        ones = _filled(ones, before, reached, 0.0)
    sums = _sums(_filled(values, before, reached, 0.0), kernel, strides, dilations)
    if a.op == "LpPool":
        return sums ** (1 / p)
    return sums / _sums(ones, kernel, strides, dilations)


def _filled(x: Tensor, before: Any, after: Any, value: float) -> Any:
    amounts = [p for b, e in zip(reversed(before), reversed(after), strict=True) for p in (b, e)]
    return NF.pad(x, amounts, value=value) if any(amounts) else x


def _sums(x: Tensor, kernel: Any, strides: Any, dilations: Any) -> Any:
    n, channels = len(kernel), x.shape[1]
    if all(d == 1 for d in dilations):
        return getattr(NF, _AVERAGES[n - 1])(x, kernel, strides) * math.prod(kernel)
    w = F.ones((channels, 1, *kernel), dtype=x.dtype)
    return getattr(NF, _CONVOLUTIONS[n - 1])(x, w, None, strides, 0, dilations, channels)


@reads("GlobalAveragePool")
def global_average(a: A, x: Tensor) -> Any:
    return F.mean(x, tuple(range(2, x.ndim)), True)


@reads("GlobalMaxPool")
def global_max(a: A, x: Tensor) -> Any:
    return F.amax(x, tuple(range(2, x.ndim)), True)


@reads("GlobalLpPool")
def global_lp(a: A, x: Tensor) -> Any:
    p = a("p", 2)
    return F.sum(F.abs(x) ** p, tuple(range(2, x.ndim)), True) ** (1 / p)


@reads("BatchNormalization")
def batch_norm(a: A, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor) -> Any:
    eps = a("epsilon", 1e-5)
    if not a("training_mode", 0):
        return NF.batch_norm(x, mean, var, scale, bias, False, 0.0, eps)
    dims = (0, *range(2, x.ndim))
    now, spread = F.mean(x, dims), F.var(x, dims, correction=0)
    keep = a("momentum", 0.9)
    made = NF.batch_norm(x, now, spread, scale, bias, False, 0.0, eps)
    return made, mean * keep + now * (1 - keep), var * keep + spread * (1 - keep)


@reads("InstanceNormalization")
def instance_norm(a: A, x: Tensor, scale: Tensor, bias: Tensor) -> Any:
    return NF.group_norm(x, x.shape[1], scale, bias, a("epsilon", 1e-5))


@reads("GroupNormalization")
def group_norm(a: A, x: Tensor, scale: Tensor, bias: Tensor) -> Any:
    groups = a("num_groups")
    if a.opset < 21 and scale.shape[0] != x.shape[1]:
        scale, bias = (F.repeat_interleave(t, x.shape[1] // groups) for t in (scale, bias))
    return NF.group_norm(x, groups, scale, bias, a("epsilon", 1e-5))


@reads("LayerNormalization")
def layer_norm(a: A, x: Tensor, scale: Tensor, bias: Tensor | None = None) -> Any:
    axis = a("axis", -1) % x.ndim
    shape, eps = tuple(x.shape[axis:]), a("epsilon", 1e-5)
    scale = F.broadcast_to(scale, shape)
    bias = bias if bias is None else F.broadcast_to(bias, shape)
    made = NF.layer_norm(x, shape, scale, bias, eps)
    if a.outputs == 1 or not any(a.wanted[1:]):
        return made
    dims = tuple(range(axis, x.ndim))
    wide = F.to(x, dt.float32)
    mean = F.mean(wide, dims, True)
    return made, mean, 1 / F.sqrt(F.mean((wide - mean) ** 2, dims, True) + eps)


@reads("RMSNormalization")
def rms_norm(a: A, x: Tensor, scale: Tensor) -> Any:
    axis = a("axis", -1) % x.ndim
    shape = tuple(x.shape[axis:])
    return NF.rms_norm(x, shape, F.broadcast_to(scale, shape), a("epsilon", 1e-5))


@reads("LRN")
def lrn(a: A, x: Tensor) -> Any:
    size = a("size")
    before = (size - 1) // 2
    squares = NF.pad((x * x).unsqueeze(1), [0, 0] * (x.ndim - 2) + [before, size - 1 - before])
    flat = squares.reshape(x.shape[0], 1, squares.shape[2], -1)
    sums = NF.avg_pool2d(flat, (size, 1), 1) * size
    return x / (a("bias", 1.0) + a("alpha", 1e-4) / size * sums.reshape(x.shape)) ** a("beta", 0.75)


@reads("GridSample")
def grid_sample(a: A, x: Tensor, grid: Tensor) -> Any:
    names = {"linear": "bilinear", "cubic": "bicubic"}
    mode = a("mode", "linear")
    return NF.grid_sample(x, grid, names.get(mode, mode), a("padding_mode", "zeros"), bool(a("align_corners", 0)))


@reads("AffineGrid")
def affine_grid(a: A, theta: Tensor, size: Tensor) -> Any:
    return NF.affine_grid(theta, whole(size), bool(a("align_corners", 0)))


@reads("Resize", "Upsample")
def resize(a: A, x: Tensor, roi: Any = None, scales: Any = None, sizes: Any = None) -> Any:
    from .resize import resized

    return resized(a, x, roi, scales, sizes)


@reads("SoftmaxCrossEntropyLoss")
def cross_entropy(a: A, x: Tensor, target: Tensor, weight: Tensor | None = None) -> Any:
    logs = F.log_softmax(x, 1)
    made = _nll(a, logs, target, weight)
    return (made, logs) if a.outputs > 1 else made


@reads("NegativeLogLikelihoodLoss")
def nll(a: A, x: Tensor, target: Tensor, weight: Tensor | None = None) -> Any:
    return _nll(a, x, target, weight)


def _nll(a: A, logs: Tensor, target: Tensor, weight: Tensor | None) -> Any:
    ignore = a("ignore_index")
    places = F.to(target, dt.int64)
    return NF.nll_loss(
        logs, places, weight, ignore_index=-100 if ignore is None else ignore, reduction=a("reduction", "mean")
    )


@reads("LSTM", "GRU", "RNN")
def recurrent(
    a: A,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    bias: Any = None,
    lengths: Any = None,
    h: Any = None,
    c: Any = None,
    peep: Any = None,
) -> Any:
    from .recurrent import network

    return network(a, x, w, r, bias, lengths, h, c, peep)
