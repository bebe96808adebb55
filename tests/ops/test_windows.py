"""Pools, convolutions, fold and unfold agree with their definition: values and all gradients."""

from __future__ import annotations

import itertools
import math
import random
from contextlib import nullcontext

import numpy as np
import pytest

import votive
from tests.native.compare import reference_only
from votive.nn import functional as F

from .window_runs import BACKENDS, DTYPES, agree, on, run
from .windows import KINDS, defined, draw


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_values_and_gradients_at_awkward_sizes(kind: str, seed: int, backend: str) -> None:
    rng = random.Random(f"{kind} {seed}")
    for turn in range(12):
        call, dtype = draw(rng, kind), DTYPES[turn % 3]
        agree(on(backend, call, dtype), defined(call), dtype, call)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_values_and_gradients_of_planes_of_one_element_or_two(kind: str, backend: str) -> None:
    rng = random.Random(f"small {kind}")
    for turn in range(20):
        call, dtype = draw(rng, kind, (1, 1, 1, 2)), DTYPES[turn % 3]
        agree(on(backend, call, dtype), defined(call), dtype, call)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("spatial", [2, 3])
def test_windows_over_one_element_count_their_padding(spatial: int, backend: str) -> None:
    """Every result reads the same element, and divides by the size of its own window."""
    pool = F.avg_pool2d if spatial == 2 else F.avg_pool3d
    for kernel in itertools.product((1, 2, 3), repeat=spatial):
        padding = tuple(k // 2 for k in kernel)
        for include in (True, False):
            x = votive.full((2, 3, *(1,) * spatial), 8.0, requires_grad=True)
            with reference_only() if backend == "reference" else nullcontext():
                y = pool(x, kernel, 1, padding, count_include_pad=include)
                y.sum().backward()
            wanted = 8.0 / math.prod(kernel) if include else 8.0
            assert (y.detach().numpy() == np.float32(wanted)).all(), (kernel, include)
            np.testing.assert_allclose(x.grad.numpy(), wanted * math.prod(y.shape[2:]) / 8, 1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("shape", "kernel"), [((1, 1, 3, 2), 2), ((4, 8, 8, 7), 7), ((1, 2, 3, 2, 2), 2)])
def test_elements_that_no_window_covers_get_no_gradient(shape: tuple[int, ...], kernel: int, backend: str) -> None:
    x = votive.ones(*shape, requires_grad=True)
    pool = F.avg_pool2d if len(shape) == 4 else F.avg_pool3d

    with reference_only() if backend == "reference" else nullcontext():
        pool(x, kernel).sum().backward()
    covered = np.zeros(shape)
    covered[(..., *(slice(i // kernel * kernel) for i in shape[2:]))] = kernel ** -(len(shape) - 2)
    np.testing.assert_allclose(x.grad.numpy(), covered, rtol=1e-6)


@pytest.mark.parity
@pytest.mark.parametrize("kind", KINDS)
def test_torch_follows_the_same_definition(kind: str) -> None:
    torch = pytest.importorskip("torch")
    rng = random.Random(f"torch {kind}")
    for turn in range(20):
        call, dtype = draw(rng, kind), DTYPES[turn % 2]
        if kind in ("avg_pool", "lp_pool") and call.n == 3:
            continue  # torch wants no window larger than the input there
        agree(run(torch, call, dtype), defined(call), dtype, call)
