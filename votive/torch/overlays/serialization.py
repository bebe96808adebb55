"""`torch.serialization`: reading and writing torch's files, and the settings around them."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable
from typing import IO, Any

from ...core.device import device as Device
from ..checkpoint_reading import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    get_unsafe_globals_in_checkpoint,
    load,
    safe_globals,
)
from ..checkpoint_writing import save

FileLike = str | os.PathLike[str] | IO[bytes]
MAP_LOCATION = Callable[[Any, str], Any] | Device | str | dict[str, str] | None

__all__ = [
    "FileLike",
    "LoadEndianness",
    "MAP_LOCATION",
    "SourceChangeWarning",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "mkdtemp",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "validate_cuda_device",
]


class SourceChangeWarning(Warning):
    """The code of a class is not what it was when it was saved."""


class LoadEndianness(enum.Enum):
    """The order of bytes that a file without a note about it is read with."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def mkdtemp(*args: Any, **options: Any) -> str:
    """A folder for the time being."""
    import tempfile

    return tempfile.mkdtemp(*args, **options)


def location_tag(storage: Any) -> str:
    """Where a storage is, as files say it."""
    return "cpu" if storage.device.type == "cpu" else str(storage.device)


def default_restore_location(storage: Any, location: str) -> Any:
    """A storage moved to where a file says it was."""
    return storage.to(device=validate_cuda_device(location) if location.startswith("cuda") else location)


def validate_cuda_device(location: str) -> str:
    """The place of a GPU, if it is there."""
    import votive

    if not votive.cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False: "
            "use torch.load with map_location=torch.device('cpu')."
        )
    return location


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[int, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's version is at least another."""
    try:
        found = tuple(int(part) for part in module.__version__.split(".")[: len(req_version_tuple)])
    except ValueError as error:
        if error_if_malformed:
            raise RuntimeError(f"'{module.__name__}' module version is malformed string.") from error
        return True
    return found >= tuple(req_version_tuple)


def get_crc32_options() -> bool:
    """Whether files get checksums: always."""
    return True


def set_crc32_options(compute_crc32: bool) -> None:
    """Files get checksums whatever is said."""


def get_default_load_endianness() -> LoadEndianness | None:
    """The order of bytes for files that say none."""
    return None


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Choose the order of bytes for files that say none."""
    if endianness not in (None, LoadEndianness.NATIVE, LoadEndianness.LITTLE):
        raise NotImplementedError("set_default_load_endianness: files are read in the order of this machine.")


def get_default_mmap_options() -> int:
    """The flags that files are mapped with: private."""
    import mmap

    return mmap.MAP_PRIVATE


class set_default_mmap_options:
    """Choose the flags that files are mapped with; private is what there is."""

    def __init__(self, flags: int) -> None:
        if flags != get_default_mmap_options():
            raise NotImplementedError("set_default_mmap_options: files are mapped privately.")

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


def register_package(priority: int, tagger: Any, deserializer: Any) -> None:
    """Let storages of a further kind of device be saved."""
    raise NotImplementedError("register_package: devices beside the CPU and CUDA are not here.")
