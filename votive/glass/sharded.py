"""Values of models that are cut over ranks: whole for whoever looks, in parts for the model.

Distributed tensors are put together by themselves. Where activations are plain tensors of a rank's part, whoever cut
the model leaves a `_spread` with its modules, and `parts` with places of a layer that runs: objects that put a value
together (`whole`) and take it apart (`part`). All ranks look at the same calls, since messages are sent for it; nothing
is sent where nobody looks.
"""

from __future__ import annotations

from typing import Any, Protocol

from ..core.mode import mode
from ..nn.points import POINTS, Point
from ..tensor import Tensor


class Lies(Protocol):
    """How a value lies over ranks."""

    def whole(self, x: Any, summed: bool = False) -> Tensor: ...

    def part(self, x: Any) -> Any: ...


class Distributed:
    """How a distributed tensor lies; `parts` are those of its local tensors, where they are no shards of it."""

    def __init__(self, x: Any, parts: Lies | None) -> None:
        self.mesh, self.placements, self.shape, self.parts = x.device_mesh, x.placements, tuple(x.shape), parts

    def whole(self, x: Any, summed: bool = False) -> Tensor:
        """The value on each rank; all ranks of the mesh call it."""
        found: Tensor = x.full_tensor() if self.parts is None else self.parts.whole(x.to_local(), summed)
        return found

    def part(self, x: Any) -> Any:
        """A value that is whole, lying as the other one."""
        from ..distributed.tensor import DTensor, Replicate

        if self.parts is not None:
            strides = [1] * len(self.shape)
            for d in reversed(range(len(strides) - 1)):
                strides[d] = strides[d + 1] * max(self.shape[d + 1], 1)
            local = self.parts.part(x)
            return DTensor.from_local(local, self.mesh, self.placements, shape=self.shape, stride=strides)
        made = DTensor.from_local(x, self.mesh, [Replicate()] * self.mesh.ndim)
        lies = [p if p.is_shard() else Replicate() for p in self.placements]
        return made.redistribute(placements=lies)


def lies(module: Any, side: str, value: Any) -> Lies | None:
    """How the input ("into") or output ("out") of a call lies over ranks; None where it is whole."""
    if not isinstance(value, Tensor):
        return None
    if module.__class__ is Point:
        parts: dict[str, Lies] | None = POINTS.here.__dict__.get("parts")
        if parts is None:
            return None
        return parts.get(module.address.split(".", 2)[-1] if module.address.startswith("layers.") else module.address)
    own = module.__dict__.get("_spread")
    found: Lies | None = None if own is None else getattr(own, side)
    return Distributed(value, found) if "_placements" in value.__dict__ else found


def joined(value: Any, how: Lies | None, edited: bool) -> Any:
    """The whole of a value of which this rank has a part."""
    if how is None:
        return value
    mode.unobserved += 1
    try:
        return how.whole(value, edited)
    finally:
        mode.unobserved -= 1


def apart(value: Any, whole: Any, given: Any, how: Lies | None) -> Any:
    """This rank's part of what became of a whole: just what it had, where nobody changed it."""
    if how is None:
        return value
    if value is whole:
        return given
    return how.part(value) if isinstance(value, Tensor) else value
