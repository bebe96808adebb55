"""Random numbers into memory: kernels draw row-major by the rule in `common/sampling.py`, then copy."""

from __future__ import annotations

import numpy as np

from ....core.dtype import dtype
from ...base import kernel
from ...common import sampling
from ..arrays import Array, Ints


def _register(name: str) -> None:
    sample = getattr(sampling, name)

    @kernel(f"_{name}", into=True, widen=False)
    def run(x: Array, key: int, counter: int, *parameters: float, out: Array) -> None:
        out[...] = sample(key, counter, out.shape, *parameters, dtype=out.dtype)


for _name in (
    "bernoulli",
    "binomial",
    "cauchy",
    "exponential",
    "geometric",
    "log_normal",
    "poisson",
    "random",
    "uniform",
):
    _register(_name)


def _register_new(name: str) -> None:
    sample = getattr(sampling, name)

    @kernel(f"_new_{name}", into=True, widen=False)
    def run(size: Ints, dtype: dtype, device: object, key: int, counter: int, *parameters: float, out: Array) -> None:
        out[...] = sample(key, counter, out.shape, *parameters, dtype=out.dtype)


for _name in ("uniform", "normal", "random"):
    _register_new(_name)


@kernel("_new_randperm", into=True, widen=False)
def new_randperm(size: Ints, dtype: dtype, device: object, key: int, counter: int, out: Array) -> None:
    out[...] = sampling.randperm(key, counter, len(out), out.dtype)


@kernel("_normal", into=True, widen=False)
def normal(x: Array, key: int, counter: int, mean: Array | complex, std: Array | complex, out: Array) -> None:
    if np.iscomplexobj(mean):  # the sampler draws the two parts as real numbers
        out[...] = sampling.normal(key, counter, out.shape, 0.0, std, out.dtype) + mean
    else:
        out[...] = sampling.normal(key, counter, out.shape, mean, std, out.dtype)


@kernel("_randperm", into=True, widen=False)
def randperm(x: Array, key: int, counter: int, out: Array) -> None:
    out[...] = sampling.randperm(key, counter, len(out), out.dtype)


@kernel("_multinomial", widen=False)
def multinomial(x: Array, key: int, counter: int, num_samples: int, replacement: bool) -> Array:
    return sampling.multinomial(key, counter, x, num_samples, replacement)
