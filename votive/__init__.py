"""votive: a glass-box, PyTorch-style deep-learning framework."""

from __future__ import annotations

import sys as _sys

from . import ops as _ops  # declares every operator
from .backends import cpu as _cpu  # registers the CPU
from .backends.cpu import reference as _reference
from .core.device import device, get_default_device, set_default_device
from .core.dtype import (
    bfloat16,
    complex64,
    complex128,
    dtype,
    finfo,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    set_default_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .core.dtype import bool_ as bool
from .core.layout import Size
from .core.memory_format import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from .core.promotion import can_cast, promote_types
from .tensor import Tensor
from .interchange import as_tensor, asarray, from_dlpack, from_numpy, frombuffer
from . import amp, autograd, cpu, cuda, fft, linalg, nn, optim, random, signal, special, utils
from .amp.autocast_mode import (
    autocast,
    clear_autocast_cache,
    get_autocast_dtype,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from .autograd import (
    enable_grad,
    inference_mode,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .random import (
    Generator,
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from .printing import get_printoptions, printoptions, set_printoptions
from . import _functions, operators as _operators, surface as _surface
from .custom import custom_op, register_kernel
from .explain import explain, explanation
from .fuse import fuse
from ._version import __version__

_float = float
float = float32
double = float64
half = float16
short = int16
int = int32
long = int64
cfloat = complex64
cdouble = complex128
e = 2.718281828459045
pi = 3.141592653589793
inf = _float("inf")
nan = _float("nan")
newaxis = None

_surface.install(_sys.modules[__name__], _functions, Tensor)
_operators.install(Tensor)

# Parts that not every program needs, imported when first asked for: name -> (module, attribute).
_LAZY = {
    "data": ("data", None), "distributions": ("distributions", None), "train": ("train", None),
    "save": ("serialization", "save"), "load": ("serialization", "load"),
}  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _LAZY[name]
    found = import_module(f"{__name__}.{module}")
    return found if attribute is None else getattr(found, attribute)
