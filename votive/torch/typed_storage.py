"""`torch.TypedStorage` and the legacy classes per dtype: a block of memory as numbers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import votive

from ..core import dtype as dt
from ..core.device import DeviceLike
from ..core.device import device as Device
from ..ops.copy import _TYPE_NAMES
from ..tensor import Tensor
from .storage import UntypedStorage, _fresh, _listing, _over


def _rebuild(raw: bytes, dtype: dt.dtype) -> TypedStorage:
    made = UntypedStorage.from_buffer(raw) if raw else UntypedStorage(0)
    return TypedStorage(wrap_storage=made, dtype=dtype)


class TypedStorage:
    """A block of memory as numbers of one dtype."""

    is_sparse = is_hpu = False
    dtype: dt.dtype
    _untyped: UntypedStorage

    def __new__(
        cls,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: dt.dtype | None = None,
        device: DeviceLike = None,
        _internal: bool = False,
    ) -> Any:
        kind = dtype or getattr(cls, "_of", None) or dt.get_default_dtype()
        made = object.__new__(TypedStorage)
        made.dtype = kind
        if wrap_storage is not None:
            if args:
                raise RuntimeError("TypedStorage: takes either wrap_storage= or sizes and data.")
            made._untyped = wrap_storage
            return made
        place = device or getattr(cls, "_where", None)
        if len(args) > 1 or (args and not isinstance(args[0], int | Sequence)):
            raise TypeError(f"TypedStorage takes a number of elements or a sequence of numbers, got {args!r}.")
        if not args or isinstance(args[0], int):
            made._untyped = _over(votive.zeros(args[0] if args else 0, dtype=kind, device=place))
        else:
            made._untyped = _over(votive.tensor(list(args[0]), dtype=kind, device=place))
        return made

    @property
    def _numbers(self) -> Tensor:
        whole = self._untyped._bytes
        return whole[: len(whole) // self.dtype.itemsize * self.dtype.itemsize].view(self.dtype)

    @property
    def device(self) -> Device:
        return self._untyped.device

    @property
    def is_cuda(self) -> bool:
        return self._untyped.is_cuda

    @property
    def filename(self) -> str | None:
        return self._untyped.filename

    def untyped(self) -> UntypedStorage:
        """The same block as bytes."""
        return self._untyped

    def __len__(self) -> int:
        return self._untyped.nbytes() // self.dtype.itemsize

    size = __len__

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__; use untyped().")
        return self._numbers[index].item()

    def __setitem__(self, index: int | slice, value: Any) -> None:
        self._numbers[index] = value

    def nbytes(self) -> int:
        return self._untyped.nbytes()

    def element_size(self) -> int:
        return self.dtype.itemsize

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def data_ptr(self) -> int:
        return self._untyped.data_ptr()

    def get_device(self) -> int:
        return self._untyped.get_device()

    def tolist(self) -> list[Any]:
        return self._numbers.tolist()

    def fill_(self, value: Any) -> TypedStorage:
        self._numbers.fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """The numbers of another storage, cast."""
        theirs = source._numbers if isinstance(source, TypedStorage) else source._bytes.view(self.dtype)
        if len(theirs) != len(self):
            raise RuntimeError(f"copy_: sizes differ, {len(self)} and {len(theirs)}.")
        self._numbers.copy_(theirs, bool(non_blocking))
        return self

    def clone(self) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped.clone(), dtype=self.dtype)

    def resizable(self) -> bool:
        return self._untyped.resizable()

    def resize_(self, size: int) -> None:
        self._untyped.resize_(size * self.dtype.itemsize)

    def to(self, *, device: DeviceLike, non_blocking: bool = False) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped.to(device=device, non_blocking=non_blocking), dtype=self.dtype)

    def cpu(self) -> TypedStorage:
        return self.to(device="cpu")

    def cuda(self, device: DeviceLike = None, non_blocking: bool = False) -> TypedStorage:
        return self.to(device="cuda" if device is None else device, non_blocking=non_blocking)

    def pin_memory(self, device: DeviceLike = "cuda") -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped.pin_memory(device), dtype=self.dtype)

    def is_pinned(self, device: DeviceLike = "cuda") -> bool:
        return self._untyped.is_pinned(device)

    def is_shared(self) -> bool:
        return self._untyped.is_shared()

    def share_memory_(self) -> TypedStorage:
        self._untyped.share_memory_()
        return self

    def pickle_storage_type(self) -> str:
        """The name of the legacy class, which files written by torch have."""
        return f"{_TYPE_NAMES[self.dtype]}Storage"

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        if dtype is None:
            place = "" if self.device.type == "cpu" else f"{self.device.type}."
            return f"torch.{place}{self.pickle_storage_type()}"
        return self._cast(dtype if isinstance(dtype, dt.dtype) else _by_name(dtype), non_blocking)

    def _cast(self, dtype: dt.dtype, non_blocking: bool = False) -> TypedStorage:
        return TypedStorage(wrap_storage=_fresh(self._numbers.to(dtype, non_blocking=non_blocking)), dtype=dtype)

    @classmethod
    def from_buffer(cls, *args: Any, dtype: dt.dtype | None = None, **options: Any) -> TypedStorage:
        kind = getattr(cls, "_of", None) or dtype
        if kind is None:
            raise RuntimeError("TypedStorage.from_buffer: needs dtype=.")
        return TypedStorage(wrap_storage=UntypedStorage.from_buffer(*args, **options), dtype=kind)

    @classmethod
    def from_file(cls, filename: str | os.PathLike[str], shared: bool, size: int) -> TypedStorage:
        """A block that is a file of numbers."""
        kind: dt.dtype = getattr(cls, "_of", None) or dt.get_default_dtype()
        return TypedStorage(wrap_storage=UntypedStorage.from_file(filename, shared, size * kind.itemsize), dtype=kind)

    def __repr__(self) -> str:
        title = f"torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}"
        return _listing(self.tolist(), title)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and other.data_ptr() == self.data_ptr() and other.dtype is self.dtype

    __hash__ = object.__hash__

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        return memo.setdefault(id(self), self.clone())

    def __reduce__(self) -> Any:
        return _rebuild, (bytes(self._untyped.tolist()), self.dtype)


def _by_name(kind: Any) -> dt.dtype:
    """The dtype of "torch.FloatStorage" or of that class."""
    found = getattr(kind, "_of", None) or {f"{n}Storage": d for d, n in _TYPE_NAMES.items()}.get(
        str(kind).split(".")[-1]
    )
    if found is None:
        raise RuntimeError(f"type: {kind!r} is not a type of storage.")
    return found


def _casts() -> None:
    """`storage.float()` and so on; outside of the classes, whose annotations mean the builtins of those names."""
    for kind, label in _TYPE_NAMES.items():
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", label.replace("BFloat", "Bfloat")).lower()
        for cls in (UntypedStorage, TypedStorage):
            setattr(cls, name, lambda self, kind=kind: self._cast(kind))


_casts()


TypedStorage.__module__ = "torch.storage"


class _Legacy(type(TypedStorage)):  # type: ignore[misc]
    """`isinstance(s, torch.FloatStorage)` asks for the dtype and the device."""

    def __instancecheck__(cls, instance: object) -> bool:
        if cls._of is None:
            return isinstance(instance, TypedStorage)
        return isinstance(instance, TypedStorage) and instance.dtype is cls._of and instance.device.type == cls._where


def legacy(name: str, dtype: dt.dtype, where: str = "cpu") -> Any:
    """The class `torch.FloatStorage`, or `torch.cuda.FloatStorage`."""
    module = "torch" if where == "cpu" else f"torch.{where}"
    return _Legacy(f"{name}Storage", (TypedStorage,), {"_of": dtype, "_where": where, "__module__": module})


def storage(x: Tensor) -> TypedStorage:
    """The block of a tensor as numbers of its dtype."""
    return TypedStorage(wrap_storage=_over(x), dtype=x.dtype)
