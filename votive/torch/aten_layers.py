"""Layers as they stand at the top of torch: norms that also give their statistics, convolutions, bags, samplers."""

from __future__ import annotations

from collections.abc import Sequence

import votive

from ..core import dtype as dt
from ..nn import functional as F
from ..tensor import Tensor


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`nn.functional.bilinear`."""
    return F.bilinear(input1, input2, weight, bias)


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """`nn.functional.channel_shuffle`."""
    return F.channel_shuffle(input, groups)


def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """`nn.functional.affine_grid`."""
    return F.affine_grid(theta, list(size), align_corners)


def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`nn.functional.grid_sample` with the modes as numbers."""
    mode = ("bilinear", "nearest", "bicubic")[interpolation_mode]
    return F.grid_sample(input, grid, mode, ("zeros", "border", "reflection")[padding_mode], align_corners)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """The largest values of windows, and where they stood."""
    step = stride if isinstance(stride, int) or len(stride) else None
    return F.max_pool1d(input, kernel_size, step, padding, dilation, ceil_mode=ceil_mode, return_indices=True)


def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """A convolution of one, two or three dimensions, or its transpose."""
    n = input.ndim - 2
    if n not in (1, 2, 3):
        raise RuntimeError(f"convolution: takes inputs with 3 to 5 dimensions, got {input.ndim}.")
    wide = [list(v) * n if len(v) == 1 else list(v) for v in (stride, padding, dilation, output_padding)]
    if transposed:
        plan = getattr(F, f"conv_transpose{n}d")
        return plan(input, weight, bias, wide[0], wide[1], wide[3], groups, wide[2])
    return getattr(F, f"conv{n}d")(input, weight, bias, wide[0], wide[1], wide[2], groups)


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Bags of rows summed (0), averaged (1) or their maximum (2), and each index's bag, sizes and places of maxima."""
    out = F.embedding_bag(
        indices,
        weight,
        offsets,
        scale_grad_by_freq=scale_grad_by_freq,
        mode={0: "sum", 1: "mean", 2: "max"}[mode],
        sparse=sparse,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )
    starts = offsets[:-1] if include_last_offset else offsets
    ends = votive.cat([starts[1:], starts.new_tensor([indices.numel()])])
    sizes = ends - starts
    bag = votive.repeat_interleave(votive.arange(len(starts), device=indices.device, dtype=indices.dtype), sizes)
    if mode == 0:
        # Sums need neither the bags nor their sizes to go back.
        return out, bag[:0], votive.zeros_like(starts), votive.zeros_like(starts)
    if mode == 1:
        return out, bag, sizes, sizes
    places = votive.zeros((len(starts), weight.shape[1]), dtype=indices.dtype, device=indices.device)
    for i, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True)):
        if size:
            rows = indices[start : start + size]
            places[i] = rows[weight.detach()[rows].argmax(0)]
    return out, bag, sizes, places


def _channels(x: Tensor) -> list[int]:
    return [d for d in range(x.ndim) if d != 1]


def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch norm with the mean and the inverse deviation that it divided by; both are empty in evaluation."""
    out = F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        return out, input.new_empty(0), input.new_empty(0)
    still = input.detach()
    mean = still.mean(_channels(input))
    return out, mean, (still.var(_channels(input), correction=0) + eps).rsqrt()


def batch_norm_update_stats(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float
) -> tuple[Tensor, Tensor]:
    """Mean and variance of each channel; the running ones move towards them."""
    mean, var = input.mean(_channels(input)), input.var(_channels(input), correction=0)
    count = input.numel() // max(input.shape[1], 1)
    if running_mean is not None:
        running_mean.lerp_(mean.to(running_mean.dtype), momentum)
    if running_var is not None:
        running_var.lerp_((var * (count / (count - 1))).to(running_var.dtype), momentum)
    return mean, var


def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Layer norm with the mean and the inverse deviation that it divided by."""
    dims = list(range(-len(normalized_shape), 0))
    still = input.detach()
    mean = still.mean(dims, keepdim=True)
    rstd = (still.var(dims, correction=0, keepdim=True) + eps).rsqrt()
    return F.layer_norm(input, list(normalized_shape), weight, bias, eps), mean, rstd


def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Group norm with the mean and the inverse deviation of each group."""
    groups = input.detach().reshape(N, group, C // group * HxW)
    rstd = (groups.var(-1, correction=0) + eps).rsqrt()
    return F.group_norm(input, group, weight, bias, eps), groups.mean(-1), rstd


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Dropout with the mask of what stays."""
    if train is False or p == 0:
        return input.clone(), votive.ones_like(input, dtype=dt.bool_)
    kept = votive.rand_like(input, dtype=votive.float32) >= p
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return input * kept * scale, kept


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm over all dimensions but one, which keep their place with size 1; -1 is the norm of all."""
    if dim == -1:
        return v.norm(pow)
    return votive.linalg.vector_norm(v, pow, [d for d in range(v.ndim) if d != dim % v.ndim], keepdim=True)
