"""The catalog of `votive.audio`: calls that run alike on votive and on torchaudio.

A case is a function of a `Side`, which makes inputs and holds the functionals and transforms of one
library. What torchaudio gives is compared live where it is installed, and stored in `golden.npz`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Side:
    """One library: its package, functionals and transforms, and the float type of inputs."""

    lib: Any
    F: Any
    T: Any
    float: str = "float64"
    rounded: bool = False  # inputs have the digits of float32 only
    inputs: list[Any] = field(default_factory=list)

    def array(self, array: Any, dtype: str | None = None) -> Any:
        """A tensor of these values that needs no gradient."""
        array = np.asarray(array)
        if self.rounded and array.dtype.kind in "fc":
            array = array.astype({"f": np.float32, "c": np.complex64}[array.dtype.kind])
        if dtype is None and array.dtype.kind == "f":
            dtype = self.float
        if dtype is None and array.dtype.kind == "c":
            dtype = "complex128" if self.float == "float64" else "complex64"
        return self.lib.from_numpy(np.array(array, dtype or array.dtype))

    def x(self, *shape: int, scale: float = 0.3, seed: int = 0) -> Any:
        """Normal random numbers, of which gradients are taken."""
        rng = np.random.default_rng(zlib.crc32(repr((shape, seed)).encode()))
        return self.leaf(rng.standard_normal(shape) * scale)

    def leaf(self, array: Any) -> Any:
        """A tensor of these values, of which gradients are taken."""
        self.inputs.append(self.array(array).requires_grad_())
        return self.inputs[-1]

    def tone(self, *shape: int, rate: int = 8000) -> Any:
        """Voices with harmonics and a little noise, a pitch for each channel."""
        rng = np.random.default_rng(7)
        n = int(np.prod(shape[:-1], dtype=int))
        t = np.arange(shape[-1]) / rate
        pitch = 110 * (1 + np.arange(n))[:, None]
        wave = sum(np.sin(2 * np.pi * pitch * k * t) / k for k in (1, 2, 3)) * 0.2
        return self.leaf((wave + 0.01 * rng.standard_normal(wave.shape)).reshape(shape))

    def spectra(self, *shape: int, seed: int = 1) -> Any:
        """Complex random numbers, of which gradients are taken."""
        rng = np.random.default_rng(zlib.crc32(repr((shape, seed)).encode()))
        z = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
        return self.leaf(z)

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Random numbers that are the same on both sides."""
        rng = np.random.default_rng(3)
        lib, was = self.lib, (self.lib.rand, self.lib.randint)

        def rand(*size: Any, dtype: Any = None, device: Any = None, **_: Any) -> Any:
            size = size[0] if size and not isinstance(size[0], int) else size
            made = lib.from_numpy(np.asarray(rng.random(tuple(size))))
            name = str(dtype or "float32").rsplit(".", 1)[-1]
            if name.startswith("complex"):
                raise AssertionError("draw the parts")
            return made.to(getattr(lib, name))

        def randint(high: int, size: Any, **_: Any) -> Any:
            return lib.from_numpy(np.asarray(rng.integers(0, high, tuple(size))))

        lib.rand, lib.randint = rand, randint
        try:
            yield
        finally:
            lib.rand, lib.randint = was


@dataclass(frozen=True)
class Case:
    """A call by its name, and how closely results agree, relative to the largest."""

    name: str
    run: Callable[[Side], Any]
    grad: bool = True
    tol: float = 1e-5  # float32
    fine: float = 1e-9  # float64
    against64: bool = False  # float32 is held against torchaudio's float64, which is exact enough
    label: str = ""

    @property
    def id(self) -> str:
        return f"{self.name}-{self.label}" if self.label else self.name


CASES: list[Case] = []

# torchaudio makes some numbers in float32 whatever the signal is.
BUFFER = {"fine": 1e-5}


def case(name: str, run: Callable[[Side], Any], label: str = "", **how: Any) -> None:
    CASES.append(Case(name, run, label=label, **how))


def speech(m: Side, seconds: float = 3.0, rate: int = 16000, channels: int = 1) -> Any:
    rng = np.random.default_rng(11)
    n = int(seconds * rate)
    t = np.arange(n) / rate
    voice = sum(np.sin(2 * np.pi * 140 * k * t) / k for k in range(1, 12)) * (t > 1.2)
    noise = rng.standard_normal((channels, n)) * 0.002
    return m.leaf(0.2 * voice * np.linspace(1, 0.5, channels)[:, None] + noise)
