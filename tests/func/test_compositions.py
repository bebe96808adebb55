"""Transformations compose in any order and agree with torch's."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import votive
from votive import func

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4))
W = RNG.standard_normal((4, 4))


def programs(t: Any) -> list[Any]:
    """Functions of a vector, written once for both libraries."""
    w = (torch if t is torch else votive).tensor(W)
    return [
        lambda x: (x.sin() * x).sum(),
        lambda x: t.tanh(w @ x).pow(2).sum(),
        lambda x: t.nn.functional.softmax(x * 2, 0)[1] * x.sum(),
        lambda x: t.logsumexp(w.T @ x.cos(), 0),
        lambda x: (x[:2] * x[2:]).sum() / (1 + x.exp().mean()),
        lambda x: (x / x.square().sum().sqrt()).pow(3).sum() + x.clone().mul_(2).prod(),
        lambda x: t.stack([x, x.flip(0)]).matmul(x).norm(),
        lambda x: t.where(x > 0, x, x * x).cumsum(0).sum(),
    ]


def wrap(f: Any, steps: tuple[str, ...], transforms: Any) -> Any:
    for step in steps:
        f = getattr(transforms, step)(f)
    return f


def chain(rng: random.Random) -> tuple[str, ...]:
    """A first derivative or none, Jacobians, and vmaps around them where a dimension is left."""
    steps: list[str] = []
    if rng.random() < 0.8:
        steps.append("grad")
    steps += rng.choices(["jacrev", "jacfwd", "hessian"], k=rng.randint(0, 1))
    steps.append("vmap")
    steps += rng.choices(["jacrev", "jacfwd"], k=rng.randint(0, 1))
    return tuple(steps)


@pytest.mark.parametrize("seed", range(40))
def test_random_chains_of_transformations_agree_with_torch(seed: int) -> None:
    rng = random.Random(seed)
    k, steps = rng.randrange(8), chain(rng)
    got = wrap(programs(votive)[k], steps, func)(votive.tensor(X))
    want = wrap(programs(torch)[k], steps, torch.func)(torch.tensor(X))
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-7, atol=1e-9, err_msg=f"{k} {steps}")
    assert not got.requires_grad


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4, 5, 7])  # torch itself fails with 6
def test_results_stay_differentiable_by_what_is_outside(k: int) -> None:
    found = []
    for lib in (votive, torch):
        f = programs(lib)[k]
        x = lib.tensor(X, requires_grad=True)
        y = lib.func.vmap(lib.func.grad(f))(x).pow(2).sum() + lib.func.vmap(lib.func.hessian(f))(x).sum()
        y.backward()
        found.append(x.grad.numpy())
    np.testing.assert_allclose(*found, rtol=1e-7, atol=1e-9)


def test_closures_take_part_in_outer_gradients() -> None:
    def by_weight(lib: Any) -> Any:
        w = lib.tensor(W, requires_grad=True)
        x = lib.tensor(X)
        g = lib.func.vmap(lib.func.grad(lambda v: lib.tanh(w @ v).sum()))(x)
        _, t = lib.func.jvp(lambda v: lib.tanh(w @ v), (x[0],), (x[1],))
        (g.sum() + t.pow(2).sum()).backward()
        return w.grad.numpy()

    np.testing.assert_allclose(by_weight(votive), by_weight(torch), rtol=1e-9)


def model(lib: Any) -> Any:
    nn = lib.nn
    net = nn.Sequential(
        nn.Conv2d(1, 3, 3),
        nn.GroupNorm(3, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.LayerNorm(12),
        nn.Linear(12, 5),
    )
    g = np.random.default_rng(1)
    with lib.no_grad():
        for p in net.parameters():
            p.copy_(lib.tensor(g.standard_normal(tuple(p.shape)).astype(np.float32)))
    return net


def test_gradients_per_sample_of_a_network_agree_with_torch() -> None:
    images = np.random.default_rng(2).standard_normal((4, 1, 6, 6)).astype(np.float32)
    found = []
    for lib in (votive, torch):
        net = model(lib)
        weights = {k: v.detach() for k, v in net.named_parameters()}

        def loss(p: Any, x: Any, y: Any, lib: Any = lib, net: Any = net) -> Any:
            out = lib.func.functional_call(net, (p,), (x[None],))
            return lib.nn.functional.cross_entropy(out, y[None])

        grads = lib.func.vmap(lib.func.grad(loss), in_dims=(None, 0, 0))(
            weights, lib.tensor(images), lib.tensor([0, 1, 2, 3])
        )
        found.append({k: v.numpy() for k, v in grads.items()})
    for name, value in found[0].items():
        np.testing.assert_allclose(value, found[1][name], rtol=2e-4, atol=2e-5, err_msg=name)


def test_an_ensemble_is_one_call() -> None:
    models = [votive.nn.Linear(3, 2) for _ in range(4)]
    params, buffers = func.stack_module_state(models)
    base = votive.nn.Linear(3, 2)
    x = votive.randn(5, 3)
    out = func.vmap(lambda p, b: func.functional_call(base, (p, b), (x,)))(params, buffers)
    np.testing.assert_allclose(out.detach().numpy(), np.stack([m(x).detach().numpy() for m in models]), rtol=1e-5)
    assert params["weight"].requires_grad
