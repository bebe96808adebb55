"""Windows that meet NaN and infinities, and windows that lie far apart."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest

from .window_runs import BACKENDS, DTYPES, agree, on
from .windows import CONVOLUTIONS, defined, draw, poisoned


@pytest.mark.filterwarnings("ignore:(invalid value|overflow)")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", [*CONVOLUTIONS, "unfold", "fold"])
@pytest.mark.parametrize("seed", range(4))
def test_nan_and_infinity_reach_only_what_they_are_multiplied_into(kind: str, seed: int, backend: str) -> None:
    rng = random.Random(f"nan {kind} {seed}")
    for turn in range(12):
        call, dtype = draw(rng, kind), DTYPES[turn % 3]
        call.layouts = ["channels_last" if s == "channels_last" else "dense" for s in call.layouts]
        poisoned(call, rng)
        agree(on(backend, call, dtype), defined(call), dtype, call)


@pytest.mark.filterwarnings("ignore:(invalid value|overflow)")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", CONVOLUTIONS)
@pytest.mark.parametrize("which", ["input", "weight", "gradient"])
def test_one_nan_does_not_spread_over_a_tile(kind: str, which: str, backend: str) -> None:
    """3 x 3 with many channels is where fewer products are made out of mixed elements."""
    rng = random.Random(which)
    call = draw(rng, kind)
    while call.n != 2 or len(call.tensors) > 2:
        call = draw(rng, kind)
    numbers = np.random.default_rng(0)
    call.tensors = [numbers.integers(-8, 9, s) / 8 for s in ((2, 16, 13, 14), (16, 16, 3, 3))]
    call.gradient = numbers.integers(-8, 9, (2, 16, 13, 14)) / 8
    call.layouts = ["dense", "dense"]
    once = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
    call.kwargs = once | ({"output_padding": (0, 0)} if kind == "conv_transpose" else {})
    array = {"input": call.tensors[0], "weight": call.tensors[1], "gradient": call.gradient}[which]
    array[1, 2, 0, 1] = np.nan
    array[0, 3, 2, 2] = np.inf
    agree(on(backend, call, "float32"), defined(call), "float32", call)


FAR = """
import resource, votive
from votive.nn import functional as F
x = votive.ones(1, 4, 15, requires_grad=True)
image = votive.ones(1, 4, 15, 15, requires_grad=True)
w, w2 = votive.ones(3, 4, 3, requires_grad=True), votive.ones(3, 4, 3, 3, requires_grad=True)
y, far = votive.ones(1, 3, 3), 10**9
calls = [
    lambda: F.max_pool1d(x, 3, stride=far),
    lambda: F.max_pool1d(x.detach(), 3, stride=far) * x[..., :1],
    lambda: F.max_pool2d(image, 3, stride=far),
    lambda: F.max_pool1d(x, 3, stride=far, dilation=10**8, ceil_mode=True),
    lambda: F.max_pool1d(x, 10**8, stride=far, ceil_mode=True),
    lambda: F.max_pool1d(x, 10**8, stride=4 * 10**7, padding=5 * 10**7, ceil_mode=True),
    lambda: F.avg_pool1d(x, 3, stride=far),
    lambda: F.avg_pool2d(image, far, stride=1, padding=far // 2),
    lambda: F.lp_pool1d(x, 2, 3, stride=far),
    lambda: F.conv1d(x, w, stride=far),
    lambda: F.conv2d(image, w2, stride=far),
    lambda: F.conv1d(x, w, dilation=far, padding=far),
    lambda: F.conv1d(x, w, stride=far, padding=far),
    lambda: F.conv2d(image, w2, stride=10**6, padding=10**6),
    lambda: F.conv_transpose1d(y[..., :1], w, stride=far),
    lambda: F.conv_transpose1d(y, w, stride=far, padding=far),
    lambda: F.conv_transpose1d(y[..., :2], w, dilation=far, padding=far),
    lambda: F.unfold(image, 3, stride=far, padding=far),
    lambda: F.unfold(image, 3, dilation=10**6, padding=10**6),
    lambda: F.fold(votive.ones(1, 36, 9, requires_grad=True), (3, 3), 3, stride=far, padding=far),
]
for call in calls:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    call().sum().backward()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 32 << 10, (calls.index(call), grown)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux")
@pytest.mark.parametrize("backend", BACKENDS)
def test_memory_does_not_grow_with_stride_padding_or_dilation(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if backend == "reference":
        monkeypatch.setenv("VOTIVE_NATIVE", "0")
    done = subprocess.run([sys.executable, "-c", FAR], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
