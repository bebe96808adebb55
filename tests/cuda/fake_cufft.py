"""cuFFT's functions on host memory, computed by NumPy from addresses alone: what an emulated GPU is
given in place of the library, so that layouts and arguments are checked without one.
"""

from __future__ import annotations

import ctypes as c
from typing import Any

import numpy as np

_INPUT = {
    0x29: np.complex64,
    0x2A: np.float32,
    0x2C: np.complex64,
    0x69: np.complex128,
    0x6A: np.float64,
    0x6C: np.complex128,
}
_OUTPUT = {
    0x29: np.complex64,
    0x2A: np.complex64,
    0x2C: np.float32,
    0x69: np.complex128,
    0x6A: np.complex128,
    0x6C: np.float64,
}
WORK = 4096


def array(address: int, dtype: Any, shape: Any, steps: Any) -> np.ndarray[Any, Any]:
    """Memory at an address as an array; steps in elements."""
    size = np.dtype(dtype).itemsize
    reach = 1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
    memory = (c.c_char * (reach * size)).from_address(address)
    return np.ndarray(shape, dtype, memory, 0, [s * size for s in steps])


class FakeCufft:
    """The library; `made` and `ended` count its plans."""

    def __init__(self) -> None:
        self.plans: dict[int, Any] = {}
        self.made = self.ended = 0
        for name in ("C2C", "Z2Z", "R2C", "D2Z", "C2R", "Z2D"):
            setattr(self, f"cufftExec{name}", self._exec)

    def cufftCreate(self, handle: Any) -> int:
        self.made += 1
        handle._obj.value = self.made
        self.plans[self.made] = {}
        return 0

    def cufftSetAutoAllocation(self, handle: int, on: int) -> int:
        assert on == 0
        self.plans[handle]["own"] = True
        return 0

    def cufftMakePlanMany64(
        self,
        handle: int,
        rank: int,
        n: Any,
        inembed: Any,
        istride: int,
        idist: int,
        onembed: Any,
        ostride: int,
        odist: int,
        kind: int,
        batch: int,
        work: Any,
    ) -> int:
        assert self.plans[handle]["own"], "the plan would allocate by itself"
        assert 1 <= rank <= 3
        assert batch >= 1
        self.plans[handle].update(
            n=list(n),
            given=(list(inembed), istride, idist),
            kind=kind,
            batch=batch,
            made=(list(onembed), ostride, odist),
        )
        work._obj.value = WORK
        return 0

    def cufftSetStream(self, handle: int, stream: int) -> int:
        self.plans[handle]["stream"] = stream
        return 0

    def cufftSetWorkArea(self, handle: int, address: int) -> int:
        c.memset(address, 0xFF, WORK)  # must be memory of the plan's size
        self.plans[handle]["work"] = address
        return 0

    def cufftDestroy(self, handle: int) -> int:
        del self.plans[handle]
        self.ended += 1
        return 0

    def _exec(self, handle: int, given: int, made: int, direction: int = 0) -> int:
        p = self.plans[handle]
        assert "stream" in p
        assert "work" in p
        n, kind, batch = p["n"], p["kind"], p["batch"]
        half = [*n[:-1], n[-1] // 2 + 1]
        sizes_in = half if kind in (0x2C, 0x6C) else n
        sizes_out = half if kind in (0x2A, 0x6A) else n
        # As the library demands: addresses of whole complex numbers.
        pair = np.dtype(_INPUT[kind]).itemsize * (1 if kind not in (0x2A, 0x6A) else 2)
        assert given % pair == 0
        assert made % pair == 0
        x = array(given, _INPUT[kind], *_steps(batch, sizes_in, *p["given"]))
        y = array(made, _OUTPUT[kind], *_steps(batch, sizes_out, *p["made"]))
        axes = tuple(range(1, len(n) + 1))
        if kind in (0x29, 0x69):
            assert direction in (-1, 1)
            f = np.fft.fftn if direction == -1 else np.fft.ifftn
            y[...] = f(np.array(x), axes=axes, norm="backward" if direction == -1 else "forward")
        elif kind in (0x2A, 0x6A):
            y[...] = np.fft.rfftn(np.array(x), axes=axes)
        else:
            assert len(n) == 1
            value = np.fft.irfftn(np.array(x), s=n, axes=axes, norm="forward")
            # Imaginary parts that should be zero leak into the library's results.
            value = value + x[..., :1].imag
            if n[-1] % 2 == 0:
                value = value + x[..., -1:].imag
            x[...] = np.nan  # the library overwrites its input
            y[...] = value
        return 0


def _steps(batch: int, sizes: list[int], embed: list[int], step: int, distance: int) -> Any:
    steps = [step]
    for k in range(len(sizes) - 1, 0, -1):
        assert embed[k] >= sizes[k]
        steps.insert(0, steps[0] * embed[k])
    return (batch, *sizes), (distance, *steps)
