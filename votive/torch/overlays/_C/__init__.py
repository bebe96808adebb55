"""`torch._C`: what libraries reach for behind torch's front. Its switches belong to compilers that are not here."""

from __future__ import annotations

from typing import Any

import votive

from ....core.device import device
from ....core.dtype import dtype
from ....core.layout import Size
from ....core.memory_format import layout, memory_format
from ....core.mode import mode
from ....futures import Future
from ....overrides import DisableTorchFunction, DisableTorchFunctionSubclass
from ....random import Generator
from ....tensor import Tensor as TensorBase
from ...streams import Event, Stream

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "Event",
    "Future",
    "Generator",
    "Graph",
    "Size",
    "Stream",
    "TensorBase",
    "Value",
    "_GLIBCXX_USE_CXX11_ABI",
    "_ImperativeEngine",
    "_TensorBase",
    "_TensorMeta",
    "_are_functorch_transforms_active",
    "_VariableFunctions",
    "_cuda_getCurrentRawStream",
    "_cuda_getDeviceCount",
    "_cuda_isInBadFork",
    "_disabled_torch_dispatch_impl",
    "_disabled_torch_function_impl",
    "_get_accelerator",
    "_get_cublas_allow_tf32",
    "_get_default_device",
    "_get_privateuse1_backend_name",
    "_get_tracing_state",
    "_has_mps",
    "_is_torch_function_enabled",
    "_is_tracing",
    "_jit_can_fuse_on_cpu",
    "_jit_can_fuse_on_gpu",
    "_jit_get_profiling_executor",
    "_jit_get_profiling_mode",
    "_jit_override_can_fuse_on_cpu",
    "_jit_override_can_fuse_on_gpu",
    "_jit_set_nvfuser_enabled",
    "_jit_set_nvfuser_guard_mode",
    "_jit_set_profiling_executor",
    "_jit_set_profiling_mode",
    "_jit_set_texpr_fuser_enabled",
    "_log_api_usage_metadata",
    "_log_api_usage_once",
    "_set_deterministic_algorithms",
    "default_generator",
    "device",
    "dtype",
    "has_cuda",
    "has_lapack",
    "has_mkl",
    "has_mps",
    "has_openmp",
    "has_spectral",
    "layout",
    "memory_format",
]


class Graph:
    """A graph of TorchScript: there for annotations."""


class Value:
    """A value in a graph of TorchScript: there for annotations."""


def _log_api_usage_once(_event: str) -> None:
    """Count that something is used: nothing is counted here."""


def _get_tracing_state() -> None:
    """The trace that `torch.jit.trace` is making: none."""
    return


def _is_tracing() -> bool:
    """Whether `torch.jit.trace` runs."""
    return False


def _cuda_isInBadFork() -> bool:
    """Whether this process was forked from one that used CUDA; votive's CUDA says so itself when it is used."""
    return False


def _get_accelerator(_check: bool = False) -> Any:
    """The device that programs should use: a GPU, or the CPU."""
    from .... import cuda

    return device("cuda") if cuda.is_available() else device("cpu")


def _get_privateuse1_backend_name() -> str:
    """The name of a device that a plug-in brought."""
    return "privateuseone"


def _jit_can_fuse_on_cpu() -> bool:
    """Whether TorchScript fuses."""
    return False


_jit_can_fuse_on_gpu = _jit_can_fuse_on_cpu


def _jit_override_can_fuse_on_cpu(_override: bool) -> bool:
    """Let TorchScript fuse, which is not here; returns what was set before."""
    return False


_jit_override_can_fuse_on_gpu = _jit_override_can_fuse_on_cpu
_jit_set_nvfuser_enabled = _jit_override_can_fuse_on_cpu
_jit_set_profiling_executor = _jit_override_can_fuse_on_cpu
_jit_set_profiling_mode = _jit_override_can_fuse_on_cpu
_jit_set_texpr_fuser_enabled = _jit_override_can_fuse_on_cpu


_TensorBase = TensorBase
_TensorMeta: Any = type(TensorBase)
default_generator = votive.default_generator
_GLIBCXX_USE_CXX11_ABI = True
_has_mps = has_mps = has_mkl = has_openmp = False
has_lapack = has_spectral = True
has_cuda = votive.cuda.is_available()


class _Functions:
    """Functions by name, looked up where votive has them."""

    def __init__(self, *homes: Any) -> None:
        self._homes = homes

    def __getattr__(self, name: str) -> Any:
        for home in self._homes:
            found = getattr(home, name, None)
            if found is not None:
                return found
        raise AttributeError(f"There is no function {name!r}.")


_VariableFunctions = _Functions(votive)


class _ImperativeEngine:
    """The engine that runs backward; callbacks of its end are not kept here."""

    def queue_callback(self, callback: Any) -> None:
        """Call a function when backward has ended."""
        raise NotImplementedError("queue_callback: use Tensor.register_post_accumulate_grad_hook.")


def _log_api_usage_metadata(name: str, data: Any, /) -> None:
    """Nothing is counted."""


def _get_default_device() -> str:
    return str(votive.get_default_device())


def _is_torch_function_enabled() -> bool:
    return True


def _disabled_torch_function_impl(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def _disabled_torch_dispatch_impl(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    return _disabled_torch_function_impl(cls, func, types, args, kwargs)


def _get_cublas_allow_tf32() -> bool:
    return votive.get_float32_matmul_precision() != "highest"


def _set_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    votive.use_deterministic_algorithms(mode, warn_only=warn_only)


def _cuda_getDeviceCount() -> int:
    return votive.cuda.device_count()


def _cuda_getCurrentRawStream(device: int) -> int:
    return int(votive.cuda.current_stream(device).cuda_stream)


def _jit_get_profiling_executor() -> bool:
    return True


def _jit_get_profiling_mode() -> bool:
    return True


def _jit_set_nvfuser_guard_mode(profiling_flag: bool) -> bool:
    """A setting of TorchScript, which is not compiled here."""
    return False


def _are_functorch_transforms_active() -> bool:
    """Whether `vmap`, `grad` or another transformation of functions runs."""
    return bool(mode.levels)
