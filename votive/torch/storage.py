"""`torch.UntypedStorage`: the memory that a tensor lies in.

A storage is a tensor of bytes over the whole block, so that everything a tensor can do on its device it can do too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import votive

from .. import dispatch
from ..backends.base import BACKENDS
from ..core import dtype as dt
from ..core.device import DeviceLike
from ..core.device import device as Device
from ..core.layout import Layout, Spec
from ..tensor import Tensor

if TYPE_CHECKING:
    from .typed_storage import TypedStorage


def block(x: Tensor) -> Tensor:
    """All bytes of the memory that a tensor lies in."""
    storage = x._storage
    spec = Spec(Layout((storage.nbytes,)), dt.uint8, x.device)
    return dispatch.make(storage, BACKENDS[x.device.type].view(storage, spec, 0), spec, 0)


class UntypedStorage:
    """A block of memory as bytes."""

    is_sparse = is_sparse_csr = False
    is_hpu = False

    def __new__(cls, *args: Any, device: DeviceLike = None) -> UntypedStorage:
        if cls is not UntypedStorage:
            raise TypeError("UntypedStorage cannot be derived from.")
        if len(args) > 1 or (args and not isinstance(args[0], int | Sequence)):
            raise TypeError(f"UntypedStorage takes a number of bytes or a sequence of them, got {args!r}.")
        if not args or isinstance(args[0], int):
            data = votive.zeros(args[0] if args else 0, dtype=dt.uint8, device=device)
        else:
            data = votive.tensor(list(args[0]), dtype=dt.uint8, device=device)
        return _over(data)

    _bytes: Tensor

    @property
    def device(self) -> Device:
        return self._bytes.device

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def filename(self) -> str | None:
        return None

    def __len__(self) -> int:
        return self._bytes.numel()

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return _fresh(self._bytes[index])
        return int(self._bytes[index])

    def __setitem__(self, index: int | slice, value: int) -> None:
        self._bytes[index] = value

    def nbytes(self) -> int:
        """The number of bytes."""
        return len(self)

    size = nbytes

    def element_size(self) -> int:
        return 1

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def data_ptr(self) -> int:
        return self._bytes._storage.data_ptr() if len(self) else 0

    def get_device(self) -> int:
        return -1 if self.device.type == "cpu" else (self.device.index or 0)

    def tolist(self) -> list[int]:
        return self._bytes.tolist()

    def fill_(self, value: int) -> UntypedStorage:
        self._bytes.fill_(int(value) % 256)
        return self

    def copy_(self, source: UntypedStorage | TypedStorage, non_blocking: bool | None = None) -> UntypedStorage:
        theirs = source.untyped()
        if len(theirs) != len(self):
            raise RuntimeError(f"copy_: sizes differ, {len(self)} and {len(theirs)} bytes.")
        self._bytes.copy_(theirs._bytes, bool(non_blocking))
        return self

    def clone(self) -> UntypedStorage:
        return _fresh(self._bytes)

    def new(self) -> UntypedStorage:
        return UntypedStorage(0, device=self.device)

    def resizable(self) -> bool:
        return bool(self._bytes._storage.owned)

    def resize_(self, size: int) -> UntypedStorage:
        """Give the block another number of bytes; those that fit are kept."""
        old = self._bytes._storage
        self._bytes.resize_(size)
        if self._bytes._storage is old:
            raise NotImplementedError(
                "resize_: a storage cannot be made smaller while tensors look at it; make new tensors instead."
            )
        self._bytes._storage.__dict__["untyped"] = self
        return self

    def to(self, *, device: DeviceLike, non_blocking: bool = False) -> UntypedStorage:
        return self if Device(device) == self.device else _over(self._bytes.to(device, non_blocking=non_blocking))

    def cpu(self) -> UntypedStorage:
        return self.to(device="cpu")

    def cuda(self, device: DeviceLike = None, non_blocking: bool = False) -> UntypedStorage:
        return self.to(device="cuda" if device is None else device, non_blocking=non_blocking)

    def pin_memory(self, device: DeviceLike = "cuda") -> UntypedStorage:
        return _over(self._bytes.pin_memory(device))

    def is_pinned(self, device: DeviceLike = "cuda") -> bool:
        return self._bytes._storage.is_pinned(device)

    def is_shared(self) -> bool:
        return self._bytes.is_shared()

    def share_memory_(self) -> UntypedStorage:
        self._bytes.share_memory_()
        return self

    def byteswap(self, dtype: dt.dtype) -> None:
        """Turn round the bytes of every element; the parts of complex numbers each for itself."""
        width = dtype.itemsize // (2 if dtype.is_complex else 1)
        if len(self) and width > 1:
            self._bytes.copy_(self._bytes.view(-1, width).flip(1).reshape(-1))

    def untyped(self) -> UntypedStorage:
        return self

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        if dtype is None:
            place = "" if self.device.type == "cpu" else f"{self.device.type}."
            return f"torch.{place}UntypedStorage" if place else "torch.storage.UntypedStorage"
        return self._cast(dtype, non_blocking)

    def _cast(self, dtype: dt.dtype, non_blocking: bool = False) -> TypedStorage:
        from .typed_storage import TypedStorage

        return TypedStorage(wrap_storage=_fresh(self._bytes.to(dtype, non_blocking=non_blocking)), dtype=dtype)

    @classmethod
    def from_buffer(cls, buffer: Any, byte_order: str = "native", **options: Any) -> UntypedStorage:
        import numpy as np

        if byte_order not in ("native", sys.byteorder):
            raise NotImplementedError(f"from_buffer: bytes are taken in the order of this machine, got {byte_order!r}.")
        return _over(votive.tensor(np.frombuffer(buffer, np.uint8, **options)))

    @classmethod
    def from_file(cls, filename: str | os.PathLike[str], shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """A block that is a file: written through where `shared`, a private copy otherwise."""
        import numpy as np

        return _over(votive.from_numpy(np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(nbytes,))))

    def __repr__(self) -> str:
        return _listing(self.tolist(), f"torch.storage.UntypedStorage(device={self.device}) of size {len(self)}")

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        return memo.setdefault(id(self), self.clone())

    def __reduce__(self) -> Any:
        return _rebuild, (bytes(self.tolist()),)


UntypedStorage.__module__ = "torch.storage"


def _over(data: Tensor) -> UntypedStorage:
    """The storage of the memory that a tensor lies in; one object per block."""
    whole = block(data)
    known: UntypedStorage | None = vars(whole._storage).get("untyped")
    if known is None:
        known = vars(whole._storage)["untyped"] = object.__new__(UntypedStorage)
        known._bytes = whole
    return known


def _fresh(data: Tensor) -> UntypedStorage:
    return _over(data.clone(memory_format=votive.contiguous_format))


def _listing(values: list[Any], title: str) -> str:
    shown = [f" {v}" for v in values] if len(values) <= 20 else [*(f" {v}" for v in values[:20]), " ..."]
    return "\n".join([*shown, f"[{title}]"])


def _rebuild(raw: bytes) -> UntypedStorage:
    return UntypedStorage.from_buffer(raw) if raw else UntypedStorage(0)


def untyped_storage(x: Tensor) -> UntypedStorage:
    """The block of a tensor as bytes."""
    return _over(x)
