"""Lets graphs name gathered parameters instead of holding them: what backward reads is gathered again then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ...autograd.saved_hooks import saved_tensors_hooks
from ...core.errors import AutogradError
from ...core.mode import mode
from ...ops.registry import F
from ...tensor import Tensor

if TYPE_CHECKING:
    from .unit import Unit

# By the id of the memory of a gathered parameter: whose it is. An entry lives as long as the memory.
LIVE: dict[int, tuple[Unit, int]] = {}


class Named(NamedTuple):
    """A view of a gathered parameter, without its memory."""

    unit: Unit
    place: int
    versions: tuple[int, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


class Otherwise(NamedTuple):
    """A value that hooks around these have packed, or that stays as it is."""

    packed: Any
    unpack: Any
    version: int


class names_parameters(saved_tensors_hooks):
    """A block in which graphs keep names of gathered parameters."""

    def __init__(self) -> None:
        outer = mode.saved_hooks[-1] if mode.saved_hooks else None
        if outer is not None and outer[1] is _unpack:
            outer = None

        def pack(t: Tensor) -> Named | Otherwise:
            found = LIVE.get(id(t._storage.root))
            if found is not None:
                unit, index = found
                if unit.names(index, t):
                    versions = unit.versions()
                    return Named(unit, index, versions, t._spec.shape, t._spec.layout.strides, t._offset)
            if outer is None:
                return Otherwise(t, None, t._storage.version)
            packing: Any = outer[0]
            return Otherwise(packing(t), outer[1], 0)

        super().__init__(pack, _unpack)


def _unpack(kept: Named | Otherwise) -> Any:
    if isinstance(kept, Otherwise):
        if kept.unpack is not None:
            return kept.unpack(kept.packed)
        t = kept.packed
        if t._storage.version != kept.version:
            raise AutogradError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"{tuple(t._spec.shape)} is at version {t._storage.version}, expected version {kept.version}."
            )
        return t
    if kept.unit.versions() != kept.versions:
        raise AutogradError(
            "fully_shard: a parameter that backward needs has been modified by an in-place operation since forward; "
            "call backward before optimizer.step()."
        )
    full = kept.unit.gathered_again()[kept.place]
    return F.as_strided(full, kept.shape, kept.strides, kept.offset)
