"""Tensors between devices: copies, pieces and sums, all of which have gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.device import device as Device
from ...ops.registry import F
from ...tensor import Tensor


def as_device(where: Any) -> Device:
    """A device from a number, a name or itself; -1 is the CPU, as in torch."""
    if isinstance(where, int):
        return Device("cpu") if where < 0 else Device("cuda", where)
    return where if isinstance(where, Device) else Device(where)


def _places(devices: Any) -> list[Device]:
    if devices is None:
        raise ValueError("give the devices, as numbers or names.")
    return [as_device(d) for d in devices]


def broadcast(tensor: Tensor, devices: Any = None, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """A copy of a tensor on each device, or written into each of `out`.

    >>> votive.nn.parallel.comm.broadcast(votive.ones(2), ["cpu", "cpu"])
    (tensor([1., 1.]), tensor([1., 1.]))
    """
    if (devices is None) == (out is None):
        raise RuntimeError(f"Exactly one of 'devices' and 'out' must be specified, but got {devices=} and {out=}")
    if out is not None:
        return tuple(one.copy_(tensor) for one in out)
    return tuple(tensor.to(d) for d in _places(devices))


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: Any, buffer_size: int = 10485760
) -> tuple[tuple[Tensor, ...], ...]:
    """Copies of several tensors on each device; the size of buffers changes nothing.

    >>> len(votive.nn.parallel.comm.broadcast_coalesced([votive.ones(2)] * 3, ["cpu"] * 2)[0])
    3
    """
    return tuple(tuple(t.to(d) for t in tensors) for d in _places(devices))


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """The sum of tensors of different devices, on one of them: the first unless it is named.

    >>> votive.nn.parallel.comm.reduce_add([votive.ones(2), votive.ones(2)])
    tensor([2., 2.])
    """
    if not inputs:
        raise ValueError("reduce_add expects at least one tensor.")
    if len({tuple(t.shape) for t in inputs}) > 1:
        raise ValueError(f"reduce_add: tensors have different shapes, got {[tuple(t.shape) for t in inputs]}.")
    place = inputs[0].device if destination is None else as_device(destination)
    total = inputs[0].to(place)
    for t in inputs[1:]:
        total = total + t.to(place)
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Any = None, buffer_size: int = 10485760
) -> tuple[Tensor, ...]:
    """Sums of several tensors, each over all devices.

    >>> votive.nn.parallel.comm.reduce_add_coalesced([[votive.ones(2)], [votive.ones(2)]])
    (tensor([2., 2.]),)
    """
    return tuple(reduce_add(list(group), destination) for group in zip(*inputs, strict=True))


def scatter(
    tensor: Tensor,
    devices: Any = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Any = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """Pieces of a tensor, one per device.

    >>> votive.nn.parallel.comm.scatter(votive.arange(5), ["cpu", "cpu"])
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    if out is not None:
        pieces = tensor.split([t.shape[dim] for t in out], dim)
        return tuple(one.copy_(piece) for one, piece in zip(out, pieces, strict=True))
    places = _places(devices)
    pieces = tensor.chunk(len(places), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    return tuple(piece.to(d) for piece, d in zip(pieces, places, strict=False))


def gather(tensors: Sequence[Tensor], dim: int = 0, destination: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Pieces put together on one device.

    >>> votive.nn.parallel.comm.gather([votive.zeros(1), votive.ones(2)], destination="cpu")
    tensor([0., 1., 1.])
    """
    if out is not None:
        return out.copy_(F.cat([t.to(out.device) for t in tensors], dim))
    place = tensors[0].device if destination is None else as_device(destination)
    made: Tensor = F.cat([t.to(place) for t in tensors], dim)
    return made
