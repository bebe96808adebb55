"""Recurrent networks on the GPU against the CPU's, by both kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from tests.ops.test_recurrent import CASES, Case, arguments, label, results
from votive.backends.cuda.kernels.recurrent import choice
from votive.ops.registry import F

MORE: list[Case] = [
    {"mode": "lstm", "steps": 1, "batch": 1, "hidden": 17, "features": 5},
    {"mode": "lstm", "steps": 1, "batch": 2, "hidden": 5, "out": 3},
    {"mode": "gru", "steps": 1, "bidirectional": True},
    {"mode": "lstm", "steps": 3, "batch": 5, "hidden": 33, "features": 70, "layers": 2},
    {"mode": "gru", "steps": 3, "batch": 18, "hidden": 21, "bidirectional": True, "layers": 2, "biases": False},
    {"mode": "relu", "steps": 5, "batch": 3, "hidden": 40, "bidirectional": True},
    {"mode": "lstm", "sizes": (4, 4, 3, 1, 1), "hidden": 19, "out": 7, "layers": 2, "bidirectional": True},
    {"mode": "gru", "sizes": (5, 2, 1), "hidden": 35, "bidirectional": True},
]
TOLERANCE = {votive.float64: 1e-9, votive.float32: 2e-5, votive.float16: 2e-2, votive.bfloat16: 1e-1}


@pytest.fixture(params=["held", "streamed"])
def kernel(request: Any, monkeypatch: Any) -> Any:
    """Each kernel in turn, where it can serve."""
    if request.param == "streamed":
        monkeypatch.setattr(choice, "held", lambda *sizes: None)
    F._recurrent.plans.clear()
    F._recurrent_backward.plans.clear()
    yield request.param
    F._recurrent.plans.clear()
    F._recurrent_backward.plans.clear()


def _on(device: str, case: Case, states: bool, dtype: Any, wants: Any = None) -> list[Any]:
    x, h, c, weights, how = arguments(case, states, dtype, grad=False)
    x, h, c, *weights = [None if t is None else t.to(device).requires_grad_() for t in (x, h, c, *weights)]
    made = results(F._recurrent(x, h, c, weights, *how, True), how[0])
    inputs = [t for t in (x, h, c, *weights) if t is not None]
    rng = np.random.default_rng(1)
    seeds = [votive.from_numpy(rng.normal(size=y.shape)).to(dtype).to(device) for y in made]
    picked = made if wants is None else [made[wants]]
    seeds = seeds if wants is None else [seeds[wants]]
    return [*made, *votive.autograd.grad(picked, inputs, seeds)]


def _agree(case: Case, states: bool, dtype: Any, wants: Any = None) -> None:
    ours = _on("cuda", case, states, dtype, wants)
    for got, want in zip(ours, _on("cpu", case, states, dtype, wants), strict=True):
        a, b = got.detach().cpu().double().numpy(), want.detach().double().numpy()
        scale = max(np.abs(b).max(initial=0), 1.0)
        np.testing.assert_allclose(a, b, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale)


@pytest.mark.parametrize("states", [False, True], ids=["zeros", "given"])
@pytest.mark.parametrize("case", CASES + MORE, ids=label)
def test_results_and_gradients_are_those_of_the_cpu(kernel: str, case: Case, states: bool) -> None:
    _agree(case, states, votive.float32)


@pytest.mark.parametrize("dtype", [votive.float64, votive.bfloat16, votive.float16])
@pytest.mark.parametrize("case", [CASES[3], CASES[4], MORE[4], MORE[7]], ids=label)
def test_so_they_are_in_other_types(kernel: str, case: Case, dtype: Any) -> None:
    _agree(case, True, dtype)


@pytest.mark.parametrize("wants", [0, 1, 2])
@pytest.mark.parametrize("case", [CASES[2], CASES[3], CASES[4], MORE[6]], ids=label)
def test_results_that_nobody_used_have_no_gradient(kernel: str, case: Case, wants: int) -> None:
    _agree(case, True, votive.float32, wants)
