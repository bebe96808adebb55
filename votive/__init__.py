"""votive: a glass-box, PyTorch-style deep-learning framework."""

from __future__ import annotations

import sys as _sys

from . import ops as _ops  # declares every operator
from .backends import cpu as _cpu  # registers the CPU
from .backends.cpu import reference as _reference
from .core.affine import SCHEMES as _SCHEMES, TYPES as _QUANTIZED, qscheme
from .core.blocks import FORMATS as _FORMATS
from .core.determinism import (
    are_deterministic_algorithms_enabled,
    is_deterministic_algorithms_warn_only_enabled,
    use_deterministic_algorithms,
)
from .core.device import device, get_default_device, set_default_device
from .core.dtype import (
    bfloat16,
    complex32,
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
    jagged,
    layout,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from .core.promotion import can_cast, promote_types
from .tensor import Tensor
from .surface.interchange import as_tensor, asarray, from_dlpack, from_numpy, frombuffer
from . import autograd, config, cpu, cuda, fft, linalg, random, signal, special, utils
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
from .config import (
    get_float32_matmul_precision,
    get_num_interop_threads,
    get_num_threads,
    set_float32_matmul_precision,
    set_num_interop_threads,
    set_num_threads,
)
from .surface.printing import get_printoptions, printoptions, set_printoptions
from .surface import namespaces as _namespaces, operators as _operators
from .surface.custom import custom_op, register_kernel
from .surface.explain import explain, explanation
from .surface.disposal import DisposedError, tidy
from .surface.fuse import fuse
from ._version import __version__

_float = float
float = float32
double = float64
half = float16
short = int16
int = int32
long = int64
cfloat = complex64
chalf = complex32
cdouble = complex128
e = 2.718281828459045
pi = 3.141592653589793
inf = _float("inf")
nan = _float("nan")
newaxis = None

_namespaces.install(_sys.modules[__name__], Tensor)
_operators.install(Tensor)

# Parts that a program which only computes does not need, imported when first asked for.
_LAZY_MODULES = (
    "accelerator",
    "amp",
    "ao",
    "audio",
    "compiler",
    "data",
    "distributed",
    "distributions",
    "func",
    "fx",
    "futures",
    "generation",
    "glass",
    "hub",
    "io",
    "jit",
    "library",
    "masked",
    "models",
    "mps",
    "mtia",
    "multiprocessing",
    "nested",
    "nn",
    "np",
    "onnx",
    "optim",
    "overrides",
    "pipelines",
    "profiler",
    "quant",
    "remote",
    "sparse",
    "speech",
    "studio",
    "testing",
    "text",
    "torch",
    "train",
    "vision",
    "webgpu",
    "xpu",
)
_LAZY_NAMES = {
    "compile": "nn.compiled",
    "vmap": "func",
    "pipeline": "pipelines",
    "debug": "glass",
    "steps": "glass",
    "save": "serialization",
    "load": "serialization",
    "quantize_": "quant",
    "quantize_per_tensor": "surface.quantized_functions",
    "quantize_per_channel": "surface.quantized_functions",
    "quantize_per_tensor_dynamic": "surface.quantized_functions",
    "dequantize": "surface.quantized_functions",
    "int_repr": "surface.quantized_functions",
    "q_scale": "surface.quantized_functions",
    "q_zero_point": "surface.quantized_functions",
    "q_per_channel_scales": "surface.quantized_functions",
    "q_per_channel_zero_points": "surface.quantized_functions",
    "q_per_channel_axis": "surface.quantized_functions",
    "empty_quantized": "surface.quantized_functions",
    "fake_quantize_per_tensor_affine": "quant.fake",
    "fake_quantize_per_channel_affine": "quant.fake",
    "fused_moving_avg_obs_fake_quant": "quant.fake",
    "quantized_max_pool1d": "quant.pooling",
    "quantized_max_pool2d": "quant.pooling",
    "quantized_max_pool3d": "quant.pooling",
    "quantized_batch_norm": "quant.pooling",
    "autocast": "amp.autocast_mode",
    "clear_autocast_cache": "amp.autocast_mode",
    "get_autocast_dtype": "amp.autocast_mode",
    "is_autocast_cache_enabled": "amp.autocast_mode",
    "is_autocast_enabled": "amp.autocast_mode",
    "set_autocast_cache_enabled": "amp.autocast_mode",
    "set_autocast_dtype": "amp.autocast_mode",
    "set_autocast_enabled": "amp.autocast_mode",
    "sparse_coo_tensor": "sparse",
    "sparse_csr_tensor": "sparse",
    "sparse_csc_tensor": "sparse",
    "sparse_bsr_tensor": "sparse",
    "sparse_bsc_tensor": "sparse",
    "sparse_compressed_tensor": "sparse",
    "smm": "sparse",
    "sspaddmm": "sparse",
    "hspmm": "sparse",
    "hsmm": "sparse",
    "dsmm": "sparse",
    "spmm": "sparse",
    "saddmm": "sparse",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _LAZY_MODULES:
        return import_module(f"{__name__}.{name}")
    if name in _LAZY_NAMES:
        return getattr(import_module(f"{__name__}.{_LAZY_NAMES[name]}"), name)
    for known in (_FORMATS, _QUANTIZED, _SCHEMES):
        if name in known:
            return known[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY_MODULES, *_LAZY_NAMES, *_FORMATS, *_QUANTIZED, *_SCHEMES})
