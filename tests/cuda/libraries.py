"""NVIDIA's libraries, or stand-ins for them where the GPU is emulated: those compute with NumPy
from addresses alone, so that what is handed to the real ones is tested everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from votive.ops.registry import OPS

from .device import EMULATED

TRANSFORMS = frozenset(["_fft_c2c", "_fft_c2r", "_fft_r2c"])
SOLVERS = frozenset(
    [
        "_cholesky",
        "_cholesky_inverse",
        "_cholesky_solve",
        "_det",
        "_eigh",
        "_geqrf",
        "_inv",
        "_lu_factor",
        "_qr",
        "_reflect",
        "_slogdet",
        "_solve",
        "_solve_triangular",
        "_svd",
        "_pinv",
        "_lstsq",
        "_matrix_exp",
        "_cofactor",
    ]
)


def forget(names: frozenset[str]) -> None:
    for name in names:
        OPS[name].forget()


@contextmanager
def solvers() -> Iterator[Any]:
    """cuSOLVER and cuBLAS: the stand-in, or None for the real ones; they get small matrices too."""
    from votive.backends.cuda.kernels.linalg_small import batch

    planned_anew()
    with patch.object(batch, "LARGEST", 0), _solvers() as found:
        yield found
    planned_anew()


def planned_anew() -> None:
    """Forget how matrices are factored."""
    from votive.backends.cuda.kernels import linalg_steps

    linalg_steps._row.cache_clear()
    forget(SOLVERS)


@contextmanager
def _solvers() -> Iterator[Any]:
    from votive.backends.cuda.kernels import linalg_steps
    from votive.backends.cuda.libraries import cusolver

    if not EMULATED:
        assert cusolver.library.load(), cusolver.library.reason
        yield None
        return
    from .fake_solver import FakeBlas, FakeSolver

    fake = cusolver._Library()
    fake.solver, fake.blas = FakeSolver(), FakeBlas()
    # Kernels hold the library itself, so it is what becomes another.
    here = vars(cusolver.library)
    before = dict(here)
    here.update(vars(fake))
    linalg_steps._row.cache_clear()
    forget(SOLVERS)
    try:
        yield cusolver.library
    finally:
        here.clear()
        here.update(before)
        forget(SOLVERS)


@contextmanager
def transforms() -> Iterator[Any]:
    """cuFFT: the stand-in, or None for the real one."""
    from votive.backends.cuda.libraries import cufft

    if not EMULATED:
        assert cufft.library.load(), cufft.library.reason
        yield None
        return
    from .fake_cufft import FakeCufft

    with patch.object(cufft, "library", cufft._Library()) as library:
        library.lib = FakeCufft()
        forget(TRANSFORMS)
        try:
            yield library.lib
        finally:
            forget(TRANSFORMS)
