"""`torch.cuda.comm`: copies and sums of tensors on several devices, as far as this process has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import votive

from ....core.device import DeviceLike
from ....core.device import device as Device
from ....tensor import Tensor

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def _places(devices: Any) -> list[Any]:
    return [Device("cuda", d) if isinstance(d, int) else Device(d) for d in devices]


def broadcast(tensor: Tensor, devices: Any = None, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """A copy on each device; the tensor itself on its own."""
    if (devices is None) == (out is None):
        raise RuntimeError(f"Exactly one of 'devices' and 'out' must be specified, got devices={devices} and out={out}")
    if out is not None:
        return tuple(target.copy_(tensor) for target in out)
    return tuple(tensor if tensor.device == d else tensor.to(d) for d in _places(devices))


def broadcast_coalesced(tensors: Sequence[Tensor], devices: Any, buffer_size: int = 10485760) -> list[list[Tensor]]:
    """Copies of several tensors, a list for each device. `buffer_size` is torch's: nothing is gathered for the way."""
    if buffer_size <= 0:
        raise RuntimeError(f"buffer_size must be positive, got {buffer_size}")
    return [[t if t.device == d else t.to(d) for t in tensors] for d in _places(devices)]


def reduce_add(inputs: Sequence[Tensor], destination: DeviceLike | int | None = None) -> Tensor:
    """The sum of tensors of one shape, on `destination`, or on the first one's device."""
    if not inputs:
        raise RuntimeError("reduce_add expects a non-empty list of inputs")
    if any(t.shape != inputs[0].shape for t in inputs):
        raise ValueError(f"reduce_add: expected tensors of shape {tuple(inputs[0].shape)}.")
    place = inputs[0].device if destination is None else _places([destination])[0]
    total: Tensor = inputs[0].to(place)
    for t in inputs[1:]:
        total = total + t.to(place)
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: DeviceLike | int | None = None, buffer_size: int = 10485760
) -> tuple[Tensor, ...]:
    """`reduce_add` of each position of several lists."""
    if buffer_size <= 0:
        raise RuntimeError(f"buffer_size must be positive, got {buffer_size}")
    return tuple(reduce_add(tensors, destination) for tensors in zip(*inputs, strict=True))


def scatter(
    tensor: Tensor,
    devices: Any = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Any = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """Pieces of a tensor along a dimension, one for each device."""
    if streams is not None:
        raise NotImplementedError("scatter: copies run on the current stream; leave `streams` out.")
    if out is not None:
        if devices is not None or chunk_sizes is not None:
            raise RuntimeError("'devices' and 'chunk_sizes' must not be specified when 'out' is specified")
        pieces = tensor.split([t.shape[dim] for t in out], dim)
        return tuple(target.copy_(piece) for target, piece in zip(out, pieces, strict=True))
    places = _places(range(votive.cuda.device_count()) if devices is None else devices)
    pieces = tensor.chunk(len(places), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    return tuple(piece.to(d) for piece, d in zip(pieces, places, strict=False))


def gather(
    tensors: Sequence[Tensor], dim: int = 0, destination: DeviceLike | int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Tensors of several devices joined along a dimension: on `destination`, which is the first GPU unless told."""
    if out is not None:
        if destination is not None:
            raise RuntimeError("'destination' must not be specified when 'out' is specified")
        place = out.device
    else:
        place = Device("cpu") if destination == -1 else _places([0 if destination is None else destination])[0]
    joined: Tensor = votive.cat([t.to(place) for t in tensors], dim)
    return joined if out is None else out.copy_(joined)
