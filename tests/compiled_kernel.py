"""Compiles one C++ kernel by itself, without the module it is part of, and calls it on NumPy arrays."""

from __future__ import annotations

import ctypes as c
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# The numbers of vt::Dtype.
DTYPES = {"float16": 9, "bfloat16": 10, "float32": 11, "float64": 12}
CALL = """
#include "vt/kernel.h"
extern "C" const char* run(const char* name, int views, char** data, const int* ndims, const int64_t** shapes,
                           const int64_t** strides, const int* dtypes, int ints, const int64_t* values) {
  static std::string said;
  try {
    vt::Call c;
    for (int k = 0; k < views; ++k) c.views.push_back({data[k], ndims[k], shapes[k], strides[k], vt::Dtype(dtypes[k])});
    c.ints.assign(values, values + ints);
    vt::find_kernel(name)(c);
    return nullptr;
  } catch (const std::exception& e) {
    said = e.what();
    return said.c_str();
  }
}
"""


def compiled(kernel: Path, folder: Path) -> Callable[..., None]:
    """A function `run(name, arrays, numbers)` that calls kernels of one file; skips where no compiler is."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        pytest.skip("no C++ compiler")
    source = kernel.parent.parent
    (folder / "call.cpp").write_text(CALL)
    files = [str(folder / "call.cpp"), str(kernel), str(source / "runtime.cpp")]
    options = [
        "-std=c++20",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Wno-missing-field-initializers",
        "-shared",
        "-fPIC",
        "-pthread",
    ]
    command = [compiler, *options, f"-I{source}", *files, "-o", str(folder / "kernel.so")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert str(kernel) not in done.stderr, done.stderr  # no warnings
    library = c.CDLL(str(folder / "kernel.so"))
    library.run.restype = c.c_char_p

    def run(name: str, arrays: list[np.ndarray[Any, Any]], numbers: tuple[int, ...] = ()) -> None:
        n = len(arrays)
        longs = [((c.c_int64 * a.ndim)(*a.shape), (c.c_int64 * a.ndim)(*a.strides)) for a in arrays]
        pointers = [(c.POINTER(c.c_int64) * n)(*(pair[k] for pair in longs)) for k in (0, 1)]
        data = (c.c_void_p * n)(*(a.ctypes.data for a in arrays))
        ndims, dtypes = (c.c_int * n)(*(a.ndim for a in arrays)), (c.c_int * n)(*(DTYPES[a.dtype.name] for a in arrays))
        values = (c.c_int64 * len(numbers))(*numbers)
        error = library.run(name.encode(), n, data, ndims, *pointers, dtypes, len(numbers), values)
        assert error is None, error

    return run


def arrays_of(shape: tuple[int, ...], dtype: Any) -> list[np.ndarray[Any, Any]]:
    """The same numbers dense, transposed and with gaps."""
    dense = np.random.default_rng(0).normal(size=shape).astype(dtype)
    room = np.zeros((*shape[:-1], 2 * shape[-1] + 1), dtype)
    room[..., 1::2] = dense
    return [dense, np.asfortranarray(dense), room[..., 1::2]]
