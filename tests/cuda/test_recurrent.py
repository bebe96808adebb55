"""Recurrent networks on the GPU against the CPU's, by both kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from tests.ops.test_recurrent import CASES, Case, arguments, label, results
from votive.ops.registry import F

from .device import EMULATED

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
# More units than one program holds: on a GPU, programs tell each other.
WIDE: list[Case] = [
    {"mode": "lstm", "steps": 4, "batch": 3, "hidden": 70},
    {"mode": "gru", "steps": 3, "batch": 2, "hidden": 66, "bidirectional": True},
    {"mode": "tanh", "steps": 4, "batch": 3, "hidden": 130},
    {"mode": "lstm", "sizes": (4, 2, 1), "hidden": 65, "bidirectional": True},
]
TOLERANCE = {votive.float64: 1e-9, votive.float32: 2e-5, votive.float16: 2e-2, votive.bfloat16: 1e-1}


def few(all_: list[Any], *picked: int) -> list[Any]:
    """A GPU takes seconds to compile each kernel: there a few cases stand for all."""
    return all_ if EMULATED else [all_[k] for k in picked]


@pytest.fixture(params=["held", "streamed"])
def kernel(request: Any, monkeypatch: Any) -> Any:
    """Each kernel in turn, where it can serve."""
    if request.param == "streamed":
        from votive.backends.cuda.kernels.recurrent import choice

        monkeypatch.setattr(choice, "held", lambda *sizes: None)
    F._recurrent.plans.clear()
    F._recurrent_backward.plans.clear()
    yield request.param
    F._recurrent.plans.clear()
    F._recurrent_backward.plans.clear()


def _on(device: str, case: Case, states: bool, dtype: Any, wants: Any = None) -> list[Any]:
    x, h, c, weights, how = arguments(case, states, dtype, grad=False)
    # Wide layers of large weights are chaotic: rounding errors would grow from step to step.
    weights = [w * min(1.0, 2 * case.get("hidden", 3) ** -0.5) for w in weights]
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


@pytest.mark.parametrize("states", few([False, True], 1))
@pytest.mark.parametrize("case", few(CASES + MORE, 12, 14), ids=label)
def test_results_and_gradients_are_those_of_the_cpu(kernel: str, case: Case, states: bool) -> None:
    _agree(case, states, votive.float32)


@pytest.mark.parametrize("dtype", few([votive.float64, votive.bfloat16, votive.float16], 1))
@pytest.mark.parametrize("case", few([CASES[3], CASES[4], MORE[7]], 2), ids=label)
def test_so_they_are_in_other_types(kernel: str, case: Case, dtype: Any) -> None:
    _agree(case, True, dtype)


@pytest.mark.parametrize("wants", few([0, 1, 2], 1))
@pytest.mark.parametrize("case", few([CASES[2], CASES[3], CASES[4]], 1), ids=label)
def test_results_that_nobody_used_have_no_gradient(kernel: str, case: Case, wants: int) -> None:
    _agree(case, True, votive.float32, wants)


@pytest.mark.parametrize("case", WIDE, ids=label)
def test_wide_layers_are_those_of_the_cpu_too(case: Case) -> None:
    _agree(case, True, votive.float32)


def test_a_layer_gives_the_same_numbers_every_time(kernel: str) -> None:
    case = {
        "mode": "gru",
        "steps": 2 if EMULATED else 50,
        "batch": 2 if EMULATED else 32,
        "hidden": 70 if EMULATED else 128,
    }
    first, *more = [_on("cuda", case, False, votive.float32) for _ in range(2 if EMULATED else 10)]
    for other in more:
        for a, b in zip(first, other, strict=True):
            assert (a == b).all()


def test_input_of_any_layout_gives_the_same(kernel: str) -> None:
    x, h, c, weights, how = arguments({"mode": "lstm", "batch": 4, "features": 6}, True, votive.float32, grad=False)
    on = [None if t is None else t.to("cuda") for t in (x, h, c, *weights)]
    want = F._recurrent(*on[:3], on[3:], *how, True)[0].cpu()
    strided = votive.zeros(4, 4, 12, device="cuda")[..., ::2]
    strided.copy_(on[0])
    for x in (on[0].transpose(0, 1).contiguous().transpose(0, 1), strided):
        got = F._recurrent(x, *on[1:3], [w.t().contiguous().t() if w.ndim == 2 else w for w in on[3:]], *how, True)[0]
        np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), rtol=1e-6, atol=1e-6)


def test_an_empty_batch_gives_empty_results_and_gradients_of_zero(kernel: str) -> None:
    made = _on("cuda", {"mode": "lstm", "batch": 0}, True, votive.float32)
    assert made[0].shape == (4, 0, 3)
    assert not any(t.any() for t in made[3:])


def test_rows_beyond_one_launch_take_a_launch_per_step(monkeypatch: Any) -> None:
    from votive.backends.cuda.kernels.recurrent import choice, walk

    monkeypatch.setattr(choice, "held", lambda *sizes: None)
    monkeypatch.setattr(walk._Walk, "may_wait", property(lambda self: False), raising=False)
    F._recurrent.plans.clear()
    F._recurrent_backward.plans.clear()
    for case in (MORE[4], MORE[7]) if EMULATED else (WIDE[3],):
        _agree(case, True, votive.float32)
    F._recurrent.plans.clear()
    F._recurrent_backward.plans.clear()
