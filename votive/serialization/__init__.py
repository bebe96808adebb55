"""`votive.save` and `votive.load`: nested values and tensors in a file that runs no code.

The file is a safetensors file; a state dict in it can be read by anything that reads those. What
is not a tensor stands as JSON in its metadata. Knows tensors and files; knows no module.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import IO, Any

import numpy as np

from ..backends.base import BACKENDS
from ..core import dtype as dt
from ..core.device import DeviceLike
from ..core.device import device as Device
from ..nn.parameter import Buffer, Parameter, is_lazy
from ..ops.registry import F
from ..surface.interchange import _share
from ..tensor import Tensor
from .atomic import replacing
from .container import Entry, FileFormatError, Header, parse_json, raw_bytes, read_header, widen, write
from .sharing import Shelf, span
from .skeleton import decode, encode

__all__ = ["FileFormatError", "load", "save"]

_KEY = "votive"


Source = str | os.PathLike[str] | IO[bytes]
MapLocation = DeviceLike | dict[str, str] | Callable[[Tensor, str], Tensor | None]


def save(obj: object, f: str | os.PathLike[str] | IO[bytes]) -> None:
    """Write numbers, text, None, tensors, arrays, and lists, tuples, sets and dicts of them.

    A file given by path is replaced in one step: readers, and a crash, see the old or the new one.
    Tensors that share memory share it again when loaded. Objects of other types are refused, since
    loading them would have to run code; save their `state_dict()`.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/state.safetensors"
    >>> votive.save({"weight": votive.ones(2), "step": 3}, path)
    >>> votive.load(path)
    {'weight': tensor([1., 1.]), 'step': 3}
    """
    shelf = Shelf()
    description = encode(obj, lambda value, path: _describe(value, path, shelf))
    shelf.settle()
    arrays = {name: _array(t) for name, t in shelf.stored.items()}
    # Readers of safetensors ask which framework's order of dimensions the tensors have.
    metadata = {"format": "pt", _KEY: json.dumps(description, separators=(",", ":"))}
    if shelf.copies:
        metadata["votive.copies"] = json.dumps(shelf.copies)
    if isinstance(f, (str, os.PathLike)):
        with replacing(f) as file:
            write(file, arrays, metadata)
    else:
        write(f, arrays, metadata)


def _describe(value: object, path: str, shelf: Shelf) -> Any:
    if not isinstance(value, Tensor):
        array = np.asarray(value)
        try:
            known = dt.from_numpy(array.dtype)
        except TypeError:
            raise TypeError(
                f"save: {path or 'the object'} is an array of {array.dtype}; only arrays of numbers can be saved."
            ) from None
        plain = _share(np.array(array, known.np, order="C"))
        kind = "scalar" if isinstance(value, np.generic) else "array"
        return {"numpy": {"kind": kind, "at": _stored(plain, path, shelf)}}
    if is_lazy(value):
        raise ValueError(f"save: {path} has no shape yet; call forward once to initialize it.")
    out: dict[str, Any] = {"at": _stored(value.detach().resolve_conj().resolve_neg(), path, shelf)}
    if not value.is_cpu:
        out["device"] = str(value.device)
    if isinstance(value, Parameter):
        out["kind"] = "parameter"
    elif isinstance(value, Buffer):
        out["kind"] = "buffer" if value.persistent else "transient buffer"
    if value.requires_grad:
        out["grad"] = True
    dense = value._spec.dense_like()
    if not dense.contiguous:
        out["stride"] = list(dense.strides)
    return {"tensor": out}


def _stored(tensor: Tensor, path: str, shelf: Shelf) -> dict[str, Any]:
    """A place on the shelf; complex numbers lie there as pairs."""
    if tensor.dtype is dt.complex128:  # the format has no name for it
        return {"pairs": shelf.put(F.view_as_real(tensor), path)}
    return shelf.put(tensor, path)


def _array(tensor: Tensor) -> np.ndarray[Any, Any]:
    return BACKENDS[tensor.device.type].to_numpy(tensor._data)


def load(f: Source, map_location: MapLocation = None, *, weights_only: bool = True, mmap: bool | None = None) -> Any:
    """Read what `save` wrote, the tensors of a safetensors file, or what torch or NumPy saved.

    `map_location` is a device, a dict of devices by device, or a function of (tensor, device).
    With `mmap` a file's tensors are read when they are touched; writing to them changes only the
    copy in memory. Nothing in a file can run code, whatever `weights_only` says.

    >>> import io
    >>> file = io.BytesIO()
    >>> votive.save([1, votive.arange(3)], file)
    >>> _ = file.seek(0)
    >>> votive.load(file)
    [1, tensor([0, 1, 2])]
    """
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            read = _other(file)
            if read is not None:
                return read(f, map_location, bool(mmap))
            return _Reader(file, map_location, os.fspath(f) if mmap else None).read()
    if mmap:
        raise ValueError("load: mmap=True needs a path, not an open file.")
    if not (hasattr(f, "seek") and hasattr(f, "readinto")):
        f = io.BytesIO(f.read())
    read = _other(f)
    if read is not None:
        return read(f, map_location, False)
    return _Reader(f, map_location, None).read()


def _other(file: IO[bytes]) -> Callable[[Source, MapLocation, bool], Any] | None:
    """Who reads a file that starts like one of torch or NumPy; the file stays where it is."""
    origin = file.tell()
    head = file.read(512)
    file.seek(origin)
    # The length of a safetensors header may be any number, also one that looks like a pickle.
    if head[4:9] == b"\0\0\0\0{":
        return None
    if head[:6] == b"\x93NUMPY" or (head[:2] == b"PK" and _member(head).endswith(b".npy")):
        return _numpy
    # torch's archives, its older pickles, and the oldest in tar, which are refused by name.
    if head[:4] == b"PK\x03\x04" or head[:2] in _PICKLES or head[257:262] == b"ustar":
        return _torch
    return None


_PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def _member(head: bytes) -> bytes:
    """The name of the first file in a zip archive."""
    return head[30 : 30 + int.from_bytes(head[26:28], "little")]


def _torch(f: Source, map_location: MapLocation, mmap: bool) -> Any:
    from ..io import torch_file

    return torch_file.load(f, map_location, mmap=mmap)


def _numpy(f: Source, map_location: MapLocation, mmap: bool) -> Any:
    from ..io import npy

    found = npy.load(f, "c" if mmap else None)
    place = _placement(map_location)
    if isinstance(found, dict):
        return {name: place(t, "cpu") for name, t in found.items()}
    return place(found, "cpu")


class _Reader:
    """One file being read."""

    def __init__(self, file: IO[bytes], map_location: MapLocation, mapped: str | None) -> None:
        self.file = file
        self.place = _placement(map_location)
        self.origin = file.tell()
        size = file.seek(0, os.SEEK_END) - self.origin
        file.seek(self.origin)
        self.header: Header = read_header(file, size)
        self.whole: Any = None
        if mapped is not None and size > self.header.start:
            self.whole = np.memmap(mapped, np.uint8, "c", self.header.start)
        self.found: dict[str, Any] = {}

    def read(self) -> Any:
        description = self.header.metadata.get(_KEY)
        if description is None:
            return {name: self.place(self._stored(name), "cpu") for name in self.header.entries}
        return decode(parse_json(description), self._tensor)

    def _tensor(self, described: dict[str, Any]) -> Any:
        ((kind, d),) = described.items()
        t = self._at(d["at"])
        if kind == "numpy":
            array = t.numpy()
            return array[()] if d["kind"] == "scalar" else array
        stride = d.get("stride")
        if stride is not None and stride != list(t.stride()):
            shape = tuple(t.shape)
            _check_window(shape, stride, 0, t.numel())
            t = F.copy_(F.empty_strided(shape, tuple(stride), dtype=t.dtype), t)
        t = self.place(t, d.get("device", "cpu"))
        grad = bool(d.get("grad", False))
        name = d.get("kind")
        if name == "parameter":
            return Parameter(t, requires_grad=grad)
        if name in ("buffer", "transient buffer"):
            t = Buffer(t, persistent=name == "buffer")
        return t.requires_grad_() if grad else t

    def _at(self, at: dict[str, Any]) -> Any:
        if "pairs" in at:
            return F.view_as_complex(self._at(at["pairs"])).detach()
        base = self._stored(at["name"])
        if "view" not in at:
            return base.detach()
        offset, shape, strides = at["view"]
        _check_window(shape, strides, offset, base.numel())
        return F.as_strided(base, tuple(shape), tuple(strides), offset).detach()

    def _stored(self, name: str) -> Any:
        """The tensor that the file holds under `name`, read once."""
        if name not in self.found:
            entry = self.header.entries.get(name)
            if entry is None:
                raise FileFormatError(f"load: the file refers to a tensor {name!r} that it does not contain.")
            self.found[name] = self._widened(name, entry) if entry.foreign else self._read(entry)
        return self.found[name]

    def _widened(self, name: str, entry: Entry) -> Any:
        flat = dataclasses.replace(entry, dtype=dt.uint8, shape=(entry.end - entry.begin,))
        return _share(widen(name, self._read(flat).numpy(), entry))

    def _read(self, entry: Entry) -> Any:
        if self.whole is not None and sys.byteorder == "little" and entry.end > entry.begin:
            raw = self.whole[entry.begin : entry.end].view(np.ndarray)
            if (self.header.start + entry.begin) % entry.dtype.itemsize == 0:
                return _share(raw.view(entry.dtype.np).reshape(entry.shape))
        out = F.empty(entry.shape, dtype=entry.dtype, device="cpu")
        if entry.end > entry.begin:
            target = out.numpy().reshape(-1).view(np.uint8)
            self.file.seek(self.origin + self.header.start + entry.begin)
            if self.file.readinto(memoryview(target)) != target.nbytes:  # type: ignore[attr-defined]
                raise FileFormatError("load: the file became shorter while it was read.")
            if sys.byteorder == "big":
                target[:] = np.frombuffer(raw_bytes(out.numpy()), np.uint8)
        return out


def _check_window(shape: Sequence[int], strides: Sequence[int], offset: int, available: int) -> None:
    """A view must stay inside the tensor it is a view of."""
    numbers = [offset, *shape, *strides]
    if len(shape) != len(strides) or any(type(n) is not int or n < 0 for n in numbers):
        raise FileFormatError("load: a view has a wrong shape, stride or offset.")
    if 0 not in shape and offset + span(shape, strides) > available:
        raise FileFormatError("load: a view reaches beyond the tensor it belongs to.")


def _placement(map_location: MapLocation) -> Callable[[Tensor, str], Tensor]:
    """`place(tensor, saved device)`: the tensor where it shall be."""

    def move(t: Tensor, to: DeviceLike) -> Tensor:
        target = known(to)
        if target.type not in BACKENDS:
            raise RuntimeError(
                f"load: a tensor was saved on {target}, which is not available here; use map_location='cpu'."
            )
        return t if t.device == target else t.to(target)

    def known(target: DeviceLike) -> Device:
        try:
            return Device(target)
        except RuntimeError as e:
            if map_location is not None:
                raise
            raise FileFormatError(f"load: a tensor was saved on {target!r} ({e}); use map_location='cpu'.") from None

    if map_location is None:
        return move
    if isinstance(map_location, dict):
        table = {str(Device(k)): v for k, v in map_location.items()}
        return lambda t, saved: move(t, table.get(saved, saved))
    if callable(map_location) and not isinstance(map_location, Device):

        def ask(t: Tensor, saved: str) -> Tensor:
            placed = map_location(t, saved)
            return move(t, saved) if placed is None else placed

        return ask
    return lambda t, saved: move(t, map_location)
