"""`votive.backends.cudnn`: torch's switches of cuDNN, which convolutions on a GPU may use. Starts nothing.

`enabled` and `allow_tf32` are honoured: with the first off, convolutions are votive's own kernels, with the second
off no convolution cuts float32 to TF32, whatever `cuda.matmul.allow_tf32` says. The others have nothing to switch:
only algorithms that give the same bits each time are asked for (`deterministic`), and they are chosen by rules, not
by measuring (`benchmark`, `benchmark_limit`); depthwise convolutions are votive's own.
"""

from __future__ import annotations

import contextlib
from typing import Any

from ..core import dtype as dt
from . import switches
from .cuda.precision import convolutions
from .switches import PRECISIONS, Precision, Switch

CUDNN_TENSOR_DTYPES = {dt.float16, dt.float64, dt.float32}
conv, rnn = Precision(), Precision()


def _library() -> Any:
    """The loaded cuDNN, or None."""
    from ..core.errors import CudaError
    from .cuda import runtime as rt

    try:
        if rt.runtime.driver is None:
            rt.runtime.start()
    except CudaError:
        return None
    from .cuda.libraries.cudnn import library

    return library.lib if library.load() else None


def is_available() -> bool:
    """Whether there is a GPU and cuDNN is installed.

    >>> votive.backends.cudnn.is_available() in (True, False)
    True
    """
    return _library() is not None


def version() -> int | None:
    """The version of cuDNN as a number, or None where there is none.

    >>> votive.backends.cudnn.version() is None or votive.backends.cudnn.version() > 9000
    True
    """
    library = _library()
    return None if library is None else int(library.cudnnGetVersion())


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN could compute with a tensor.

    >>> votive.backends.cudnn.is_acceptable(votive.ones(2))
    False
    """
    import sys

    on = bool(sys.modules[__name__].enabled)
    return on and tensor.device.type == "cuda" and tensor.dtype in CUDNN_TENSOR_DTYPES and is_available()


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str | None = None,
    _depthwise_kernel: str | None = None,
) -> tuple[Any, ...]:
    """Set several switches and return what they were.

    >>> before = votive.backends.cudnn.set_flags(_benchmark=True)
    >>> votive.backends.cudnn.benchmark = before[1]
    """
    return switches.put(
        __name__,
        {
            "enabled": _enabled,
            "benchmark": _benchmark,
            "benchmark_limit": _benchmark_limit,
            "deterministic": _deterministic,
            "allow_tf32": _allow_tf32,
            "fp32_precision": _fp32_precision,
            "depthwise_kernel": _depthwise_kernel,
        },
    )


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
    depthwise_kernel: str = "auto",
) -> contextlib.AbstractContextManager[None]:
    """Set the switches for a block. As in torch, those that are not given are set to these defaults, `enabled` off.

    >>> with votive.backends.cudnn.flags(enabled=True, deterministic=True):
    ...     votive.backends.cudnn.deterministic
    True
    """
    return switches.switched(
        __name__,
        {
            "enabled": enabled,
            "benchmark": benchmark,
            "benchmark_limit": benchmark_limit,
            "deterministic": deterministic,
            "allow_tf32": allow_tf32,
            "fp32_precision": fp32_precision,
            "depthwise_kernel": depthwise_kernel,
        },
    )


switches.install(
    __name__,
    {
        "enabled": Switch(True, (bool,), lambda on: convolutions.choose(library=on)),
        "benchmark": Switch(False, (bool,)),
        "benchmark_limit": Switch(None, (int, type(None))),
        "deterministic": Switch(False, (bool,)),
        "allow_tf32": Switch(True, (bool,), lambda on: convolutions.choose(tf32=on)),
        "fp32_precision": Switch("none", PRECISIONS),
        "depthwise_kernel": Switch("auto", (str,)),
    },
)
