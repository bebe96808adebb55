"""Recurrent networks: the operator, its twin of plain operators, and torch agree, in gradients of two orders too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.backends.common.recurrent import GATES, geometry
from votive.ops import recurrent_twin
from votive.ops.registry import F

Case = dict[str, Any]
CASES: list[Case] = [
    {"mode": "tanh"},
    {"mode": "relu", "layers": 2, "biases": False},
    {"mode": "lstm"},
    {"mode": "lstm", "layers": 2, "bidirectional": True, "out": 2},
    {"mode": "lstm", "sizes": (3, 2, 2, 1), "bidirectional": True},
    {"mode": "gru", "bidirectional": True},
    {"mode": "gru", "layers": 2, "sizes": (3, 3, 1)},
    {"mode": "tanh", "sizes": (2, 1), "bidirectional": True},
]


def label(case: Case) -> str:
    return "-".join(str(v) for v in case.values())


def arguments(case: Case, states: bool = True, dtype: Any = votive.float64, grad: bool = True) -> tuple[Any, ...]:
    """Input, states, weights and options of a random network."""
    mode, layers, two = case["mode"], case.get("layers", 1), case.get("bidirectional", False)
    biases, sizes = case.get("biases", True), case.get("sizes")
    steps, batch = case.get("steps", 4), case.get("batch", 3) if sizes is None else sizes[0]
    features, hidden = case.get("features", 2), case.get("hidden", 3)
    out, n = case.get("out", hidden), GATES[mode] * hidden
    rng = np.random.default_rng(0)

    def make(*shape: int) -> Any:
        return votive.from_numpy(rng.normal(size=shape) * 0.5).to(dtype).requires_grad_(grad)

    weights = []
    for layer in range(layers):
        for _ in range(1 + two):
            weights += [make(n, out * (1 + two) if layer else features), make(n, out)]
            weights += [make(n), make(n)] if biases else []
            weights += [make(out, hidden)] if out != hidden else []
    x = make(steps, batch, features) if sizes is None else make(sum(sizes), features)
    count = layers * (1 + two)
    h = make(count, batch, out) if states else None
    c = make(count, batch, hidden) if states and mode == "lstm" else None
    return x, h, c, weights, (mode, sizes, layers, two, biases)


def results(made: Any, mode: str) -> list[Any]:
    return list(made[: 3 if mode == "lstm" else 2])


@pytest.mark.parametrize("states", [False, True], ids=["zeros", "given"])
@pytest.mark.parametrize("case", CASES, ids=label)
def test_the_operator_and_its_twin_agree(case: Case, states: bool) -> None:
    x, h, c, weights, how = arguments(case, states)
    inputs = [t for t in (x, h, c, *weights) if t is not None]
    ours = results(F._recurrent(x, h, c, weights, *how, True), how[0])
    twin = results(recurrent_twin.network(x, h, c, weights, *how), how[0])
    seeds = [votive.randn(y.shape, dtype=y.dtype) for y in twin]
    for got, want in zip(ours, twin, strict=True):
        np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-10, atol=1e-12)
    given = [votive.autograd.grad(y, inputs, seeds) for y in (ours, twin)]
    by_hand = recurrent_twin.network_backward(*(seeds + [None])[:3], x, h, c, weights, *how)
    flat = [by_hand[0], *[g for g, s in zip(by_hand[1:3], (h, c), strict=True) if s is not None], *by_hand[3]]
    for got, want, hand in zip(*given, flat, strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(hand.detach().numpy(), want.numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("case", CASES, ids=label)
def test_gradients_of_two_orders_are_those_of_differences(case: Case) -> None:
    if case["mode"] == "relu":
        pytest.skip("differences cross the kink")
    x, h, c, weights, how = arguments({**case, "features": 1, "steps": 2, "batch": 2})
    given = [t for t in (x, h, c) if t is not None]

    def run(*values: Any) -> Any:
        states = (*values[1 : len(given)], None)[:2]
        return tuple(results(F._recurrent(values[0], *states, list(values[len(given) :]), *how, True), how[0]))

    assert votive.autograd.gradcheck(run, (*given, *weights))
    few = [*given, weights[1]]  # second order by all weights takes a minute

    def run_few(*values: Any) -> Any:
        return run(*values[:-1], weights[0], values[-1], *weights[2:])

    assert votive.autograd.gradgradcheck(run_few, few)


@pytest.mark.parametrize("wanted", ["x", "h", "weights"])
def test_only_what_is_wanted_gets_a_gradient(wanted: str) -> None:
    x, h, c, weights, how = arguments({"mode": "lstm", "layers": 2}, grad=False)
    for t in {"x": [x], "h": [h], "weights": weights[:2]}[wanted]:
        t.requires_grad_()
    sum(y.sum() for y in results(F._recurrent(x, h, c, weights, *how, True), "lstm")).backward()
    for name, ts in {"x": [x], "h": [h], "weights": weights[:2], "c": [c]}.items():
        assert all((t.grad is not None) == (name == wanted) for t in ts)


def test_without_a_reserve_the_twin_gives_the_gradient() -> None:
    x, h, c, weights, how = arguments({"mode": "gru"})
    grads = [
        votive.autograd.grad(F._recurrent(x, h, c, weights, *how, save)[0].sum(), [x, h]) for save in (True, False)
    ]
    for got, want in zip(*grads, strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-10)


def test_the_reserve_has_a_place_for_everything_once() -> None:
    g = geometry((5, 3, 2), [(12, 2), (12, 3), (12,), (12,)] * 4, "lstm", None, 2, True, True)
    places = [(p, 15 * 12) for b in g.blocks for p in b.gates] + [(p, 15 * 3) for b in g.blocks for p in b.cells]
    places.append((g.blocks[0].output, 15 * 6))
    places.sort()
    assert [p for p, _ in places] == [sum(n for _, n in places[:k]) for k in range(len(places))]
    assert sum(n for _, n in places) == g.reserve_size
    assert g.blocks[1].output == -1


def test_an_empty_batch_gives_empty_results_and_gradients_of_zero() -> None:
    x, h, c, weights, how = arguments({"mode": "lstm", "batch": 0})
    out, h_n, c_n, _ = F._recurrent(x, h, c, weights, *how, True)
    assert out.shape == (4, 0, 3)
    assert h_n.shape == c_n.shape == (1, 0, 3)
    (out.sum() + h_n.sum()).backward()
    assert x.grad.shape == x.shape
    assert not weights[0].grad.any()


def test_a_state_without_its_other_half_is_refused() -> None:
    x, h, c, weights, how = arguments({"mode": "lstm"})
    for states in ((h, None), (None, c)):
        with pytest.raises(RuntimeError, match="both h and c"):
            F._recurrent(x, *states, weights, *how, True)


def test_many_layers_run_in_several_calls() -> None:
    x, h, c, weights, how = arguments({"mode": "gru", "layers": 15, "bidirectional": True})
    net = votive.nn.GRU(2, 3, 15, bidirectional=True, dtype=votive.float64)
    for p, w in zip(net.parameters(), weights, strict=True):
        p.data = w.detach()
    out, end = net(x, h)
    for got, want in zip((out, end), recurrent_twin.network(x, h, c, weights, *how), strict=True):
        np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-10, atol=1e-12)
