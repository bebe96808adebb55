"""Where operators run: the kernel table and the devices; and, under torch's names, the switches of libraries."""

from importlib import import_module
from typing import Any

_FOUND_WHEN_ASKED_FOR = frozenset(
    (
        "cpu",
        "cuda",
        "cudnn",
        "cusparselt",
        "kleidiai",
        "mha",
        "miopen",
        "mkl",
        "mkldnn",
        "mps",
        "nnpack",
        "openmp",
        "opt_einsum",
        "quantized",
        "xnnpack",
    )
)


def __getattr__(name: str) -> Any:
    if name in _FOUND_WHEN_ASKED_FOR:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
