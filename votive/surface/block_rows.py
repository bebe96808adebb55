"""Moves of whole rows of blocks that are written with the bytes alone: joining, repeating, reshaping, writing rows.
Knows no kernel; products and casts stand in `block_rules.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import dtype as dt
from ..core.device import DeviceLike, resolve
from ..core.dtype import dtype as Dtype
from ..core.errors import DeviceError, UnsupportedError
from ..ops.registry import F
from ..tensor import Tensor
from .block_rules import _getitem, _rows, _rule, _to, _whole
from .block_tensor import BlockTensor, encoded, like


@_rule("cpu")
def _cpu(input: BlockTensor, memory_format: Any = None) -> Any:
    return _to(input, device="cpu", memory_format=memory_format)


@_rule("cuda")
def _cuda(input: BlockTensor, device: DeviceLike = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
    place = resolve("cuda" if device is None else device)
    if place.type != "cuda":
        raise DeviceError(f"cuda: the device must be a GPU, got {place}; use to({str(place)!r}).")
    return _to(input, device=place, non_blocking=non_blocking, memory_format=memory_format)


@_rule("type_as")
def _type_as(input: Tensor, other: Tensor) -> Any:
    return _to(input, dtype=other.dtype, device=other.device)


@_rule("flatten")
def _flatten(input: BlockTensor, start_dim: int = 0, end_dim: int = -1) -> Any:
    return _rows(input, lambda b: F.flatten(b, start_dim, _whole(input, end_dim, "flatten")), "flatten")


@_rule("unflatten")
def _unflatten(input: BlockTensor, dim: int, sizes: Any) -> Any:
    return _rows(input, lambda b: F.unflatten(b, _whole(input, dim, "unflatten"), sizes), "unflatten")


@_rule("expand_as")
def _expand_as(input: Tensor, other: Tensor) -> Any:
    return _expand(input, tuple(other.shape)) if isinstance(input, BlockTensor) else F.expand(input, tuple(other.shape))


@_rule("stack")
def _stack(tensors: Sequence[Any], dim: int = 0) -> BlockTensor:
    first = next(t for t in tensors if isinstance(t, BlockTensor))
    if not all(isinstance(t, BlockTensor) and t._format is first._format and not t._flipped for t in tensors):
        names = ", ".join(str(t.dtype) for t in tensors)
        raise UnsupportedError(f"stack: blocks are joined with blocks of the same format, got {names}.")
    at = dim + first.ndim + 1 if dim < 0 else dim
    if not 0 <= at <= first.ndim:
        raise IndexError(f"stack: dim={dim} is out of range for tensors of shape {tuple(first.shape)}.")
    if at == first.ndim:
        raise UnsupportedError(f"stack: {first._format.name} blocks lie along the last dimension; {first._advice}")
    return like(first, F.stack([t._bytes for t in tensors], at))


@_rule("expand")
def _expand(input: BlockTensor, *size: Any, implicit: bool = False) -> Any:
    sizes = list(size[0] if len(size) == 1 and isinstance(size[0], Sequence) else size)
    if not sizes or sizes[-1] not in (-1, input.shape[-1]):
        raise UnsupportedError(
            f"expand: rows of {input._format.name} blocks stay whole: the last size must be {input.shape[-1]}, got "
            f"{tuple(sizes)}; {input._advice}"
        )
    return _rows(input, lambda b: F.expand(b, (*sizes[:-1], -1)), "expand")


@_rule("repeat")
def _repeat(input: BlockTensor, *repeats: Any) -> Any:
    """Rows after rows, and blocks after blocks."""
    return _rows(input, lambda b: F.repeat(b, *repeats), "repeat")


@_rule("squeeze")
def _squeeze(input: BlockTensor, dim: int | Sequence[int] | None = None) -> Any:
    if dim is None:
        dims = [i for i, n in enumerate(input.shape[:-1]) if n == 1]
    else:
        given = [dim] if isinstance(dim, int) else list(dim)
        dims = [_whole(input, d, "squeeze") for d in given]
    return _rows(input, lambda b: F.squeeze(b, tuple(dims)), "squeeze")


@_rule("empty_like")
def _empty_like(input: BlockTensor, *, dtype: Dtype | None = None, **given: Any) -> Tensor:
    if dtype is not None and dtype is not input._format:
        return F.empty(input.shape, dtype=dtype, device=given.pop("device", None) or input.device, **given)
    return like(input, F.empty_like(input._bytes, **given))


@_rule("__setitem__", "_setitem")
def _setitem(input: Any, index: Any, value: Any) -> None:
    """Whole rows are written: blocks of the same format as they are, numbers encoded."""
    if not isinstance(input, BlockTensor):
        input[index] = value.dequantize(input.dtype if input.dtype.is_floating_point else None)
        return
    place: BlockTensor = _getitem(input, index)
    made = value if isinstance(value, Tensor) else F.full((), value, dtype=dt.float32)
    rows = encoded(F.expand(made, tuple(place.shape)) if not isinstance(made, BlockTensor) else made, input._format)
    input._bytes[index] = F.expand(rows._bytes, tuple(place._bytes.shape))
