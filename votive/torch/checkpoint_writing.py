"""`torch.save` on the alias: torch's own kind of file, so that the real torch reads what was written here.

A zip file of a pickle and one entry per storage. Classes and dtypes are written under torch's names for them.
"""

from __future__ import annotations

import importlib
import io
import os
import pickle
import sys
import zipfile
from collections import OrderedDict
from types import ModuleType
from typing import IO, Any

import numpy as np

from ..core import dtype as dt
from ..core.device import device as Device
from ..core.layout import Size
from ..nn.parameter import Buffer, Parameter
from ..serialization.atomic import replacing
from ..surface.pending import Pending
from ..tensor import Tensor
from .storage import UntypedStorage, untyped_storage
from .typed_storage import TypedStorage, storage

# Where the real torch finds classes by their plain names.
_HOMES = ("torch", "torch.nn", "torch.optim", "torch.optim.lr_scheduler", "torch.utils.data", "torch.distributions")


# The pickler that is written in Python lets names be chosen.
_Base: Any = vars(pickle)["_Pickler"]


class _Pickler(_Base):  # type: ignore[misc]
    def __init__(self, file: IO[bytes], protocol: int) -> None:
        super().__init__(file, protocol)
        self.blocks: dict[int, tuple[str, UntypedStorage]] = {}

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, TypedStorage | UntypedStorage):
            return None
        whole = obj.untyped()
        key, _ = self.blocks.setdefault(id(whole), (str(len(self.blocks)), whole))
        kind: Any = UntypedStorage
        if isinstance(obj, TypedStorage):
            kind = getattr(importlib.import_module("torch"), obj.pickle_storage_type())
        place = "cpu" if obj.device.type == "cpu" else str(obj.device)
        return ("storage", kind, key, place, len(obj))

    def save(self, obj: Any, save_persistent_id: bool = True) -> Any:
        if isinstance(obj, dt.dtype):
            return self._named("torch", obj.name)
        return super().save(obj, save_persistent_id)

    def save_global(self, obj: Any, name: str | None = None) -> Any:
        short = name or getattr(obj, "__qualname__", None)
        if short is not None and str(getattr(obj, "__module__", "")).startswith("votive."):
            for home in _HOMES:
                if getattr(importlib.import_module(home), short, None) is obj:
                    return self._named(home, short)
        return super().save_global(obj, name)

    def _named(self, module: str, name: str) -> None:
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor):
            return _reduced(obj)
        if isinstance(obj, Device):
            return Device, (str(obj),)
        if isinstance(obj, Size):
            return Size, (tuple(obj),)
        return NotImplemented

    # Under these names the real torch finds them.
    dispatch = {**_Base.dispatch, type: save_global}


def _reduced(x: Tensor) -> Any:
    from .overlays import _utils

    if x.grad_fn is not None:
        raise RuntimeError("save: only leaf tensors can be saved; detach() it first.")
    hooks: OrderedDict[Any, Any] = OrderedDict()
    if isinstance(x, Parameter):
        return _utils._rebuild_parameter, (x.data, x.requires_grad, hooks)
    where = x.storage_offset(), tuple(x.size()), tuple(x.stride())
    if isinstance(x, Pending):
        flags = {x._flip: True}
        return _utils._rebuild_tensor_v2, (storage(x._of.detach()), *where, x.requires_grad, hooks, flags)
    if type(x) not in (Tensor, Buffer):
        return x.__reduce_ex__(2)
    home = importlib.import_module("torch")
    if hasattr(home, storage(x).pickle_storage_type()):
        return _utils._rebuild_tensor_v2, (storage(x), *where, x.requires_grad, hooks)
    return _utils._rebuild_tensor_v3, (untyped_storage(x), *where, x.requires_grad, hooks, x.dtype)


def save(
    obj: object,
    f: str | os.PathLike[str] | IO[bytes],
    pickle_module: ModuleType = pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write a value with the tensors in it as torch does."""
    if pickle_module is not pickle:
        raise NotImplementedError(f"save: writes with Python's pickle, not with {pickle_module.__name__}.")
    if not _use_new_zipfile_serialization:
        raise NotImplementedError("save: the format before torch 1.6 is read here, not written.")
    if isinstance(f, str | os.PathLike):
        name = os.path.splitext(os.path.basename(os.fspath(f)))[0] or "archive"
        with replacing(f) as file:
            _write(obj, file, name, pickle_protocol)
    else:
        _write(obj, f, "archive", pickle_protocol)


def _write(obj: object, f: IO[bytes], name: str, protocol: int) -> None:
    text = io.BytesIO()
    pickler = _Pickler(text, protocol)
    pickler.dump(obj)
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        _entry(archive, f"{name}/data.pkl", text.getvalue())
        _entry(archive, f"{name}/byteorder", sys.byteorder.encode())
        for key, whole in pickler.blocks.values():
            data: np.ndarray[Any, Any] = whole._bytes.cpu().numpy()
            _entry(archive, f"{name}/data/{key}", data.tobytes())
        _entry(archive, f"{name}/version", b"3\n")


def _entry(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """One entry whose bytes begin at a multiple of 64, as readers that map the file expect."""
    made = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    # A header has 30 bytes and the name; the rest is filled by an extra field, which itself has a head of 4.
    start = archive.fp.tell() + 30 + len(name.encode())  # type: ignore[union-attr]
    gap = -(start + 4) % 64
    made.extra = b"FB" + gap.to_bytes(2, "little") + b"Z" * gap
    archive.writestr(made, data)
