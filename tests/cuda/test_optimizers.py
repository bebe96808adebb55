"""Optimizer steps on the GPU are those of the CPU, for every rule and option."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive

from .device import EMULATED, cpu_fallbacks

OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("Adadelta", {}),
    ("Adadelta", {"weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {"lr_decay": 0.1}),
    ("Adagrad", {"lr_decay": 0.1, "fused": True}),
    ("Adagrad", {"initial_accumulator_value": 0.5, "weight_decay": 0.1, "maximize": True}),
    ("Adam", {"amsgrad": True}),
    ("AdamW", {"fused": True}),
    ("Adamax", {"weight_decay": 0.1}),
    ("Adamax", {"betas": (0.3, 0.9), "maximize": True}),
    ("ASGD", {"t0": 2}),
    ("ASGD", {"lambd": 0.1, "alpha": 0.5, "t0": 1, "weight_decay": 0.1, "maximize": True}),
    ("Lion", {"weight_decay": 0.1}),
    ("Lion", {"maximize": True, "betas": (0.9, 0.4)}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "maximize": True}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"weight_decay": 0.1}),
    ("RAdam", {"betas": (0.9, 0.6), "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RMSprop", {}),
    ("RMSprop", {"centered": True, "weight_decay": 0.1}),
    ("RMSprop", {"centered": True, "momentum": 0.9, "maximize": True}),
    ("RMSprop", {"momentum": 0.9}),
    ("Rprop", {}),
    ("Rprop", {"etas": (0.4, 1.3), "step_sizes": (1e-3, 0.02), "maximize": True}),
    ("SGD", {"momentum": 0.9, "nesterov": True}),
]
NAMES = ["-".join([name, *options]) for name, options in OPTIMIZERS]
DTYPES = ("float32", "float64", "bfloat16")
# The emulated GPU is slow: there each case meets one dtype.
CASES = [(name, options, (DTYPES[k % 3],) if EMULATED else DTYPES) for k, (name, options) in enumerate(OPTIMIZERS)]
SHAPES = [(3, 5), (), (4, 2), (0,), (37,) if EMULATED else (20_000,)]


def trained(name: str, options: dict[str, Any], device: str, dtype: Any, steps: int = 7) -> tuple[list[Any], list[Any]]:
    """Parameters and their states after some steps; one parameter skips the second step."""
    rng = np.random.default_rng(0)
    params = []
    for k, shape in enumerate(SHAPES):
        w = votive.from_numpy(np.asarray(rng.standard_normal(shape))).to(dtype).to(device)
        params.append((w.t() if k == 2 else w).requires_grad_())
    optimizer = getattr(votive.optim, name)(params, **options)
    for step in range(steps):
        for k, p in enumerate(params):
            g = votive.from_numpy(np.asarray(rng.standard_normal(tuple(p.shape))))
            p.grad = None if k == 0 and step == 1 else g.to(dtype).to(device)
        optimizer.step()
    states = [s for p in params for s in optimizer.state[p].values() if s is not None]
    return params, states


@pytest.mark.parametrize(("name", "options", "dtypes"), CASES, ids=NAMES)
def test_a_rule_steps_as_on_the_cpu(name: str, options: dict[str, Any], dtypes: tuple[str, ...]) -> None:
    for dtype in dtypes:
        hold(name, options, dtype)


def hold(name: str, options: dict[str, Any], dtype: str) -> None:
    kind = getattr(votive, dtype)
    theirs = trained(name, options, "cpu", kind)
    with cpu_fallbacks() as left:
        ours = trained(name, options, "cuda", kind)
    assert not left
    rtol = {"float32": 2e-5, "float64": 1e-12, "bfloat16": 2e-2}[dtype]
    for a, b in zip([*ours[0], *ours[1]], [*theirs[0], *theirs[1]], strict=True):
        a, b = (t.detach().cpu().to(votive.float64).numpy() for t in (a, b))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max(initial=0.1))


def test_step_counts_that_came_with_a_state_may_lie_on_the_gpu() -> None:
    results = []
    for move in (False, True):
        w = votive.arange(6.0, device="cuda").requires_grad_()
        optimizer = votive.optim.NAdam([w])
        for _ in range(3):
            w.grad = votive.ones(6, device="cuda") * 0.5
            optimizer.step()
            if move:
                state = optimizer.state[w]
                state["step"], state["mu_product"] = (state[k].to("cuda") for k in ("step", "mu_product"))
        assert optimizer.state[w]["step"].item() == 3
        results.append(w.detach().cpu().numpy())
    np.testing.assert_array_equal(results[0], results[1])


def test_averages_of_parameters_move_on_the_gpu() -> None:
    averages = [votive.zeros(5, device="cuda"), votive.ones(2, 3, device="cuda")]
    values = [votive.arange(5.0, device="cuda"), votive.zeros(2, 3, device="cuda")]
    with cpu_fallbacks() as left:
        votive.optim.swa_utils.get_ema_multi_avg_fn(0.25)(averages, values, 3)
    assert not left
    np.testing.assert_allclose(averages[0].cpu().numpy(), 0.75 * np.arange(5.0))
    np.testing.assert_allclose(averages[1].cpu().numpy(), np.full((2, 3), 0.25))
