"""Settings and questions of the whole process at the top of torch: devices, determinism, autocast by device."""

from __future__ import annotations

import importlib
import warnings
from types import ModuleType
from typing import Any

import votive

from ..amp import autocast_mode
from ..core import dtype as dt
from ..core.device import DeviceLike
from ..core.device import device as Device

has_lapack = True
has_mkl = False
has_openmp = False
has_spectral = True
_nesting = 0
_warn_always = False


def get_device_module(device: DeviceLike = None) -> ModuleType:
    """The module of a device: `torch.cuda` or `torch.cpu`."""
    place = Device(device) if device is not None else Device("cuda" if votive.cuda.is_available() else "cpu")
    return importlib.import_module(f"torch.{place.type}")


def is_storage(obj: object, /) -> bool:
    """Whether a value is a storage."""
    from .storage import UntypedStorage
    from .typed_storage import TypedStorage

    return isinstance(obj, UntypedStorage | TypedStorage)


def is_vulkan_available() -> bool:
    """Whether Vulkan is there: never."""
    return False


def compiled_with_cxx11_abi() -> bool:
    """Whether native code has the newer names of the C++ library."""
    return True


def get_file_path(*path_components: str) -> str:
    """A path below the folder of torch, which there is none of; the parts are joined."""
    import os

    return os.path.join(os.path.dirname(__file__), *path_components)


def init_num_threads() -> None:
    """Threads are set up when they are needed."""


def prepare_multiprocessing_environment(path: str) -> None:
    """Nothing has to be prepared."""


def set_flush_denormal(mode: bool) -> bool:
    """Ask that tiny numbers count as zero; votive computes with them, so the answer is that it is not so."""
    return False


def set_warn_always(b: bool, /) -> None:
    """Let warnings that come once come every time."""
    global _warn_always
    _warn_always = bool(b)
    if b:
        warnings.simplefilter("always")


def is_warn_always_enabled() -> bool:
    """Whether warnings come every time."""
    return _warn_always


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch the search for what made a NaN."""
    votive.autograd.set_detect_anomaly(enabled, check_nan)


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """0 or "default", 1 or "warn", 2 or "error": what an operation does that may differ from run to run."""
    names = {"default": 0, "warn": 1, "error": 2}
    level = names.get(debug_mode, -1) if isinstance(debug_mode, str) else debug_mode
    if level not in (0, 1, 2):
        raise RuntimeError(f"debug_mode: 0, 1, 2 or 'default', 'warn', 'error', got {debug_mode!r}.")
    votive.use_deterministic_algorithms(level > 0, warn_only=level == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2, see `set_deterministic_debug_mode`."""
    if not votive.are_deterministic_algorithms_enabled():
        return 0
    return 1 if votive.is_deterministic_algorithms_warn_only_enabled() else 2


def autocast_increment_nesting() -> int:
    """Count one more region of autocast."""
    global _nesting
    _nesting += 1
    return _nesting


def autocast_decrement_nesting() -> int:
    """Count one region of autocast less."""
    global _nesting
    _nesting -= 1
    return _nesting


def _by_device() -> dict[str, Any]:
    """`get_autocast_gpu_dtype` and kin: the older names, with the device in them."""
    made: dict[str, Any] = {}
    for label, kind in (("cpu", "cpu"), ("gpu", "cuda")):

        def get(kind: str = kind) -> dt.dtype:
            return autocast_mode.get_autocast_dtype(kind)

        def put(dtype: dt.dtype, kind: str = kind) -> None:
            autocast_mode.set_autocast_dtype(kind, dtype)

        made[f"get_autocast_{label}_dtype"] = get
        made[f"set_autocast_{label}_dtype"] = put

    made["is_autocast_cpu_enabled"] = lambda: autocast_mode.is_autocast_enabled("cpu")
    made["set_autocast_cpu_enabled"] = lambda enabled: autocast_mode.set_autocast_enabled("cpu", enabled)
    return made


BY_DEVICE = _by_device()
