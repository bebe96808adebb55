"""`votive.config`: what this installation computes with, and how many threads it uses."""

from __future__ import annotations

import os
import platform
from functools import cache
from typing import Any

import numpy as np

from ._version import __version__
from .backends.cpu.native import loader as _native

_interop: int | None = None
_fallback: int | None = None  # the number of threads where there is no native module


def _positive(name: str, value: Any) -> int:
    if type(value) is not int:
        raise RuntimeError(f"{name} expects an int, but got {type(value).__name__}")
    if value < 1:
        raise RuntimeError(f"{name} expects a positive integer, got {value}")
    return value


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def get_num_threads() -> int:
    """How many threads an operator may use: `OMP_NUM_THREADS`, or as many as there are cores.

    >>> votive.get_num_threads() >= 1
    True
    """
    if _native.module is not None:
        return int(_native.module.num_threads())
    if _fallback is not None:
        return _fallback
    given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(given) if given.isdecimal() and int(given) else _cores()


def set_num_threads(n: int) -> None:
    """Let operators use `n` threads, NumPy's OpenBLAS among them.

    >>> votive.set_num_threads(votive.get_num_threads())
    """
    global _fallback
    n = _positive("set_num_threads", n)
    if _native.module is not None:
        _native.module.set_num_threads(n)
    _fallback = n
    openblas = _openblas()
    if openblas is not None:
        openblas[1](n)


def set_float32_matmul_precision(precision: str) -> None:
    """How exactly a GPU multiplies matrices of float32: "highest" with all digits, "high" and
    "medium" with those of TF32. The CPU always uses all.

    >>> votive.set_float32_matmul_precision("highest")
    """
    from .backends.cuda import precision as gpu

    if precision not in gpu.PRECISIONS:
        raise RuntimeError(
            f"set_float32_matmul_precision: expected one of {', '.join(gpu.PRECISIONS)}, got {precision!r}."
        )
    gpu.matmul.choose(precision)


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision`, or `votive.backends.cuda.matmul.allow_tf32`, set.

    >>> votive.get_float32_matmul_precision()
    'highest'
    """
    from .backends.cuda import matmul

    return matmul.precision


def get_num_interop_threads() -> int:
    """How many operators may run side by side; votive runs one after another per Python thread.

    The number is kept for programs that ask for it; nothing depends on it.

    >>> votive.get_num_interop_threads() >= 1
    True
    """
    return _cores() if _interop is None else _interop


def set_num_interop_threads(n: int) -> None:
    """Set what `get_num_interop_threads` tells; like torch's, it can be set once.

    >>> votive.set_num_interop_threads(0)
    Traceback (most recent call last):
    ...
    RuntimeError: set_num_interop_threads expects a positive integer, got 0
    """
    global _interop
    n = _positive("set_num_interop_threads", n)
    if _interop is not None:
        raise RuntimeError("set_num_interop_threads: the number was already set; it can be once.")
    _interop = n


@cache
def _openblas() -> tuple[str, Any, Any] | None:
    """NumPy's OpenBLAS: its file, how to set and how to ask its threads. None with another BLAS."""
    import ctypes
    from pathlib import Path

    home = Path(np.__file__).parent
    for folder in (home.parent / "numpy.libs", home / ".dylibs"):
        for path in sorted(folder.glob("*openblas*")):
            try:
                library = ctypes.CDLL(str(path))
            except OSError:
                continue
            for prefix in ("scipy_openblas", "openblas"):
                for suffix in ("64_", ""):
                    set_ = getattr(library, f"{prefix}_set_num_threads{suffix}", None)
                    get = getattr(library, f"{prefix}_get_num_threads{suffix}", None)
                    if set_ is not None and get is not None:
                        return path.name, set_, get
    return None


def _blas() -> str:
    built: Any = np.show_config(mode="dicts")
    found = built.get("Build Dependencies", {}).get("blas", {})
    name = f"{found.get('name', 'unknown')} {found.get('version', '')}".strip()
    openblas = _openblas()
    if openblas is None:
        return f"{name} (its threads are set by its own environment variables)"
    return f"{name}, {openblas[2]()} threads"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def native_kernels() -> str:
    """The level of the native kernels in use and why, or why there are none.

    >>> isinstance(votive.config.native_kernels(), str)
    True
    """
    if _native.module is None:
        return f"none: {_native.reason}"
    return f"{_native.module.level}: {_native.reason}"


def show() -> str:
    """What votive computes with here: versions, native kernels, threads, and how to change it.

    >>> print(votive.config.show().splitlines()[0].split()[0])
    votive
    """
    compiler = "" if _native.module is None else f"{_native.module.compiler}"
    rows = [
        ("votive", f"{__version__}, Python {platform.python_version()}, NumPy {np.__version__}"),
        ("processor", f"{_processor()}, {_cores()} cores for this process"),
        ("native", native_kernels()),
        ("levels", f"{', '.join(_native.built()) or 'none'} built{compiler and f' by {compiler}'}"),
        ("threads", f"{get_num_threads()}"),
        ("blas", _blas()),
        ("", ""),
        ("To change", "VOTIVE_NATIVE=0, baseline, avx2 or avx512 before the first import;"),
        ("", "OMP_NUM_THREADS before it, or votive.set_num_threads(n) at any time."),
    ]
    return "\n".join(f"{name:10} {text}".rstrip() for name, text in rows)
