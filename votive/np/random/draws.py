"""What all distributions share: a stream of Philox numbers, parameters as tensors, and sizes."""

from __future__ import annotations

from typing import Any

import numpy

from ...core import dtype as dt
from ...core.device import get_default_device
from ...ops.registry import F
from ...random import Generator as Source
from ..array import ndarray, wrap
from ..convert import Tensor, cast, place_of, result, to_tensor
from ..element_types import FLOAT64, as_dtype
from ..layout import shape_of
from ..ufunc import store


class Draws:
    """The stream of one generator; on another device than the CPU each has a stream of its own."""

    def __init__(self, seed: Any = None) -> None:
        words = numpy.random.SeedSequence(_entropy(seed)).generate_state(1, numpy.uint64)
        self._seed = int(words[0]) >> 1
        self._sources: dict[Any, Source] = {}
        self._children = 0

    def _source(self, device: Any) -> Source:
        if device not in self._sources:
            self._sources[device] = Source(device)
            self._sources[device].manual_seed(self._seed)
        return self._sources[device]

    def _uniform(self, shape: tuple[int, ...], device: Any, dtype: Any = FLOAT64) -> Tensor:
        d = dt.from_numpy(as_dtype(dtype))
        return F.rand(shape, dtype=d, device=device, generator=self._source(device))

    def _open(self, shape: tuple[int, ...], device: Any) -> Tensor:
        """Uniform numbers above 0, for logarithms."""
        return 1.0 - self._uniform(shape, device)

    def _normal(self, shape: tuple[int, ...], device: Any, dtype: Any = FLOAT64) -> Tensor:
        d = dt.from_numpy(as_dtype(dtype))
        return F.randn(shape, dtype=d, device=device, generator=self._source(device))

    def _gamma(self, shape_parameter: Tensor) -> Tensor:
        t = shape_parameter.contiguous()
        return F._standard_gamma(t, generator=self._source(t.device))

    def _host(self) -> numpy.random.Generator:
        """A NumPy generator seeded from this stream, for what has no sampler of its own."""
        word = F.randint(0, 2**62, (1,), generator=self._source(get_default_device())).item()
        return numpy.random.default_rng(word)


def _entropy(seed: Any) -> Any:
    if isinstance(seed, ndarray):
        return seed.tolist()
    if isinstance(seed, numpy.random.SeedSequence):
        return int(seed.generate_state(1, numpy.uint64)[0])
    return seed


def parameters(size: Any, *values: Any) -> tuple[tuple[int, ...], Any, list[Tensor]]:
    """The shape of the samples, their device, and parameters broadcast to it."""
    device = place_of(*values)
    ts = [cast(to_tensor(v, device=device), FLOAT64) for v in values]
    common = numpy.broadcast_shapes(*[tuple(t.shape) for t in ts])
    shape = common if size is None else shape_of(size)
    if size is not None and numpy.broadcast_shapes(common, shape) != shape:
        raise ValueError(f"Output size {shape} is not compatible with broadcast dimensions of inputs {common}.")
    return shape, device, [t.expand(shape) for t in ts]


def check(name: str, condition: Tensor, what: str) -> None:
    """Refuse parameters outside of their range."""
    if not bool(condition.all()):
        raise ValueError(f"{name}: {what}")


def drawn(value: Tensor, out: Any = None) -> Any:
    """Samples as an array; into `out` where it is given."""
    return result(value) if out is None else store("random", value, out)


def counted(value: Tensor) -> Any:
    """Samples that are integers."""
    return result(value.to(dt.int64))


__all__ = ["Draws", "check", "counted", "drawn", "parameters", "wrap"]
