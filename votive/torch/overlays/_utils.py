"""`torch._utils`: the functions that files of torch name to rebuild tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import votive

from ...core import dtype as dt
from ...nn.parameter import Parameter
from ...surface.pending import negated_view
from ...tensor import Tensor
from ..storage import UntypedStorage
from ..tensor_types import from_storage
from ..typed_storage import TypedStorage

__all__ = [
    "ExceptionWrapper",
    "_flatten_dense_tensors",
    "_get_available_device_type",
    "_get_device_index",
    "_rebuild_parameter",
    "_rebuild_parameter_with_state",
    "_rebuild_tensor",
    "_rebuild_tensor_v2",
    "_rebuild_tensor_v3",
    "_unflatten_dense_tensors",
]


def _rebuild_tensor(storage: TypedStorage | UntypedStorage, storage_offset: int, size: Any, stride: Any) -> Tensor:
    kind = storage.dtype if isinstance(storage, TypedStorage) else dt.uint8
    return from_storage(storage, kind).as_strided(tuple(size), tuple(stride), storage_offset)


def _rebuild_tensor_v2(
    storage: TypedStorage,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    made = _rebuild_tensor(storage, storage_offset, size, stride).detach()
    flags = metadata if isinstance(metadata, dict) else {}
    made = made.conj() if flags.get("conj") else made
    made = negated_view(made) if flags.get("neg") else made
    return made.requires_grad_(requires_grad)


def _rebuild_tensor_v3(
    storage: UntypedStorage,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: dt.dtype,
    metadata: Any = None,
) -> Tensor:
    typed = TypedStorage(wrap_storage=storage, dtype=dtype)
    return _rebuild_tensor_v2(typed, storage_offset, size, stride, requires_grad, backward_hooks, metadata)


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Parameter:
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any) -> Parameter:
    made = Parameter(data, requires_grad)
    for name, value in (state or {}).items():
        setattr(made, name, value)
    return made


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """All numbers of some tensors in one."""
    return votive.cat([t.contiguous().view(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """The parts of a flat tensor in the shapes of others."""
    shapes = [t.shape for t in tensors]
    return tuple(p.view(s) for p, s in zip(flat.split([s.numel() for s in shapes]), shapes, strict=True))


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a GPU."""
    if isinstance(device, int):
        return device
    if device is None and not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got: {device}")
    place = votive.device(device) if device is not None else votive.device("cuda")
    if place.type == "cpu":
        return -1
    return votive.cuda.current_device() if place.index is None else place.index


def _get_available_device_type() -> str | None:
    """The kind of the accelerator that is here, if any."""
    return "cuda" if votive.cuda.is_available() else None


class ExceptionWrapper:
    """An error of a worker, kept to be raised where its result is wanted."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        import sys

        found: Any = exc_info or sys.exc_info()
        self.exc_type, self.exc = found[:2]
        self.where = where

    def reraise(self) -> None:
        """Raise it."""
        raise self.exc


for _name in __all__:
    # Files name them so, and Python looks for them there when it writes one.
    globals()[_name].__module__ = "torch._utils"
