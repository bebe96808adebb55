"""`torch.load` on the alias. Files with data alone are read by votive's reader, which runs nothing; a program that says
`weights_only=False`, or allows classes by name, gets Python's unpickler with torch's names leading to votive.
"""

from __future__ import annotations

import importlib
import io
import os
import pickle
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import IO, Any

import votive

from ..core.device import device as Device
from ..io.pickle_stack import UnsafeFileError
from ..serialization import load as _load_data
from .storage import UntypedStorage
from .typed_storage import TypedStorage

_MAGIC = 0x1950A86A20F9469CFC6C
_SAFE: dict[str, Any] = {}
# What files of data are made of, beside what a program allows.
_PLAIN = {
    ("collections", "OrderedDict"),
    ("collections", "defaultdict"),
    ("collections", "Counter"),
    ("builtins", "set"),
    ("builtins", "frozenset"),
    ("builtins", "complex"),
    ("builtins", "slice"),
    ("builtins", "range"),
    ("builtins", "dict"),
    ("builtins", "list"),
    ("_codecs", "encode"),
}


def _name(kind: Any) -> str:
    if isinstance(kind, tuple):
        return str(kind[1])
    return f"{kind.__module__}.{getattr(kind, '__qualname__', kind.__name__)}"


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow classes and functions in files that are loaded with `weights_only=True`."""
    _SAFE.update({_name(kind): kind[0] if isinstance(kind, tuple) else kind for kind in safe_globals})


def clear_safe_globals() -> None:
    """Allow data alone again."""
    _SAFE.clear()


def get_safe_globals() -> list[Any]:
    """What was allowed."""
    return list(_SAFE.values())


class safe_globals:
    """Allow classes and functions for a while."""

    def __init__(self, safe_globals: list[Any]) -> None:
        self.added = safe_globals

    def __enter__(self) -> safe_globals:
        self.before = dict(_SAFE)
        add_safe_globals(self.added)
        return self

    def __exit__(self, *error: object) -> None:
        _SAFE.clear()
        _SAFE.update(self.before)


def get_unsafe_globals_in_checkpoint(f: str | os.PathLike[str] | IO[bytes]) -> list[str]:
    """The names in a file that are neither data nor allowed."""
    import pickletools

    with _opened(f) as file, zipfile.ZipFile(file) as archive:
        text = archive.read(next(n for n in archive.namelist() if n.endswith("/data.pkl")))
    found = {str(arg).replace(" ", ".", 1) for op, arg, _ in pickletools.genops(text) if op.name == "GLOBAL"}
    known = {f"{module}.{name}" for module, name in _PLAIN}
    return sorted(n for n in found if n not in known and n not in _SAFE and not _is_data(*n.rsplit(".", 1)))


def _is_data(module: str, name: str) -> bool:
    """Whether a name of torch is a dtype, a storage, a tensor or what rebuilds one."""
    if module in ("torch._utils", "torch.storage", "torch._tensor"):
        return name.startswith("_rebuild") or name.endswith("Storage") or name == "_load_from_bytes"
    if module == "torch.nn.parameter":
        return name in ("Parameter", "Buffer")
    if module != "torch":
        return False
    found = getattr(importlib.import_module("torch"), name, None)
    return name.endswith("Storage") or isinstance(found, votive.dtype) or name in ("Size", "device", "Tensor")


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes], restrict: bool, storage: Callable[[Any], Any], **options: Any) -> None:
        super().__init__(file, **options)
        self.restrict, self.storage = restrict, storage

    def find_class(self, module: str, name: str) -> Any:
        if self.restrict and (module, name) not in _PLAIN and not _is_data(module, name):
            if f"{module}.{name}" in _SAFE:
                return _SAFE[f"{module}.{name}"]
            raise pickle.UnpicklingError(
                f"Weights only load failed: the file asks for {module}.{name}, which is not data. If you trust the "
                f"file, use torch.load(..., weights_only=False) or torch.serialization.add_safe_globals([{name}])."
            )
        return super().find_class(module, name)

    def persistent_load(self, pid: Any) -> Any:
        return self.storage(pid)


@contextmanager
def _opened(f: str | os.PathLike[str] | IO[bytes]) -> Iterator[IO[bytes]]:
    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as file:
            yield file
    else:
        yield f


def _moved(made: Any, location: str, map_location: Any) -> Any:
    """A storage where a program wants it; `location` is where it was."""
    if map_location is None:
        target: Any = location
    elif isinstance(map_location, dict):
        target = map_location.get(location, location)
    elif callable(map_location) and not isinstance(map_location, Device):
        found = map_location(made, location)
        if found is not None:
            return found
        target = location
    else:
        target = map_location
    place = Device(str(target))
    if place.type == "cuda" and not votive.cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False: "
            "use torch.load with map_location=torch.device('cpu')."
        )
    return made.to(device=place) if place.type != "cpu" else made


def _typed(kind: Any, raw: bytes) -> Any:
    whole = UntypedStorage.from_buffer(bytearray(raw)) if raw else UntypedStorage(0)
    of = getattr(kind, "_of", None)
    return whole if of is None else TypedStorage(wrap_storage=whole, dtype=of)


def load(
    f: str | os.PathLike[str] | IO[bytes],
    map_location: Any = None,
    pickle_module: ModuleType | None = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what `torch.save` or `votive.save` wrote; by default data alone."""
    if pickle_module not in (None, pickle):
        raise NotImplementedError(f"load: reads with Python's pickle, not with {pickle_module!r}.")
    whole = weights_only is False
    with _opened(f) as file:
        start = file.tell()
        head = file.read(8)
        file.seek(start)
        if head[:4] == b"PK\x03\x04" and (whole or _SAFE):
            return _from_zip(file, not whole, map_location, pickle_load_args)
        if whole and head[:1] == b"\x80":
            return _from_pickles(file, map_location, pickle_load_args)
        try:
            return _load_data(f if isinstance(f, str | os.PathLike) else file, map_location, mmap=mmap)
        except UnsafeFileError as error:
            raise pickle.UnpicklingError(
                f"Weights only load failed. {error} If you trust the file, use torch.load(..., weights_only=False)."
            ) from None


def _from_zip(file: IO[bytes], restrict: bool, map_location: Any, options: dict[str, Any]) -> Any:
    with zipfile.ZipFile(file) as archive:
        root = next(n for n in archive.namelist() if n.endswith("/data.pkl")).removesuffix("data.pkl")
        made: dict[str, Any] = {}

        def storage(pid: tuple[Any, ...]) -> Any:
            _, kind, key, location, _ = pid
            if key not in made:
                made[key] = _moved(_typed(kind, archive.read(f"{root}data/{key}")), location, map_location)
            return made[key]

        return _Unpickler(io.BytesIO(archive.read(f"{root}data.pkl")), restrict, storage, **options).load()


def _from_pickles(file: IO[bytes], map_location: Any, options: dict[str, Any]) -> Any:
    """The format before torch 1.6: pickles one after another, then the bytes of all storages."""
    if pickle.Unpickler(file).load() != _MAGIC:
        raise pickle.UnpicklingError("load: the file is a pickle that torch did not write.")
    pickle.Unpickler(file).load()
    pickle.Unpickler(file).load()
    made: dict[str, Any] = {}

    def storage(pid: tuple[Any, ...]) -> Any:
        _, kind, key, _, count, _ = pid
        if key not in made:
            size = count * (kind._of.itemsize if getattr(kind, "_of", None) else 1)
            made[key] = _typed(kind, bytes(size))
        return made[key]

    value = _Unpickler(file, False, storage, **options).load()
    for key in pickle.Unpickler(file).load():
        (count,) = struct.unpack("<q", file.read(8))
        target = made[key]
        raw = file.read(count * target.element_size())
        target.untyped()._bytes.copy_(UntypedStorage.from_buffer(bytearray(raw))._bytes)
    return value
