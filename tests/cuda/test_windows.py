"""Pools, convolutions, fold and unfold on the GPU agree with their definition, also where windows
meet NaN and where they lie far apart.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import votive
from tests.ops.window_runs import DTYPES, agree, run
from tests.ops.windows import CONVOLUTIONS, KINDS, defined, draw, poisoned
from votive.nn import functional as F


@pytest.mark.parametrize("kind", KINDS)
def test_values_and_gradients_at_awkward_sizes(kind: str) -> None:
    rng = random.Random(f"cuda {kind}")
    for turn in range(6):
        call, dtype = draw(rng, kind), DTYPES[turn % 3]
        agree(run(votive, call, dtype, "cuda"), defined(call), dtype, call)


@pytest.mark.filterwarnings("ignore:(invalid value|overflow)")
@pytest.mark.parametrize("kind", [*CONVOLUTIONS, "unfold", "fold"])
def test_nan_and_infinity_reach_only_what_they_are_multiplied_into(kind: str) -> None:
    rng, turn = random.Random(f"cuda nan {kind}"), 0
    while turn < 8:
        call, dtype = draw(rng, kind), DTYPES[turn % 3]
        if max(a.size for a in (*call.tensors, call.gradient)) > 80:
            continue  # term by term takes long in an emulation
        poisoned(call, rng)
        call.layouts = ["dense"] * len(call.tensors)
        agree(run(votive, call, dtype, "cuda"), defined(call), dtype, call)
        turn += 1


X, IMAGE = votive.arange(60.0).reshape(1, 4, 15) % 7, votive.arange(900.0).reshape(1, 4, 15, 15) % 7
W, W2 = votive.arange(36.0).reshape(3, 4, 3) % 5, votive.arange(108.0).reshape(3, 4, 3, 3) % 5
FAR = 3 * 10**9  # more than 32 bits hold


@pytest.mark.filterwarnings("ignore::votive.backends.cuda.cpu_fallback.CpuFallbackWarning")
@pytest.mark.parametrize(
    "call",
    [
        lambda to: F.max_pool1d(to(X), 3, stride=FAR),
        lambda to: F.max_pool1d(to(X), 4, stride=2 * FAR, dilation=2**30, ceil_mode=True),
        lambda to: F.max_pool1d(to(X), 10**8, stride=4 * 10**7, padding=5 * 10**7, ceil_mode=True),
        lambda to: F.max_pool2d(to(IMAGE), (3, 10**9), stride=1, padding=(1, 5 * 10**8)),
        lambda to: F.avg_pool1d(to(X), 3, stride=FAR),
        lambda to: F.avg_pool2d(to(IMAGE), 10**9, stride=1, padding=5 * 10**8),
        lambda to: F.conv1d(to(X), to(W), stride=FAR),
        lambda to: F.conv1d(to(X), to(W), dilation=FAR, padding=FAR),
        lambda to: F.conv1d(to(X), to(W), dilation=2**30, padding=2**30),
        lambda to: F.conv2d(to(IMAGE), to(W2), stride=FAR, padding=FAR),
        lambda to: F.conv_transpose1d(to(X)[:, :3], to(W), stride=FAR, padding=7 * FAR),
        lambda to: F.unfold(to(IMAGE), 3, stride=FAR, padding=FAR),
        lambda to: F.unfold(to(IMAGE), 3, dilation=2**31, padding=2**31),
    ],
)
def test_windows_far_apart_agree_with_the_cpu(call) -> None:
    def run_on(device: str) -> list[Any]:
        given = []

        def to(x):
            given.append(x.to(device).detach().requires_grad_())
            return given[-1]

        y = call(to)
        y.sum().backward()
        return [t.detach().cpu().numpy() for t in (y, *(t.grad for t in given))]

    for ours, cpu in zip(run_on("cuda"), run_on("cpu"), strict=True):
        np.testing.assert_allclose(ours, cpu, rtol=1e-5)


def test_offsets_of_bags_rise_from_0_to_the_last_index() -> None:
    at, table = votive.tensor([0, 1, 2, 3], device="cuda"), votive.ones(5, 2, device="cuda")
    for offsets in ([0, 3, 2], [0, -1], [0, 9, 4], [1, 2], [0, 5]):
        for mode in ("sum", "mean", "max"):
            with pytest.raises(RuntimeError, match="embedding_bag: "):
                F.embedding_bag(at, table, votive.tensor(offsets, device="cuda"), mode=mode).cpu()
