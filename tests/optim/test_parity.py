"""Every optimizer goes the way torch's goes, step by step, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from tests.optim.cases import CASES, LION, case_id, start, trajectory

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def ours(options: dict[str, Any], name: str) -> tuple[list[Any], Any]:
    params = [votive.tensor(a, requires_grad=True) for a in start()]
    return params, getattr(votive.optim, name)(params, **options)


def theirs(options: dict[str, Any], name: str) -> tuple[list[Any], Any]:
    params = [torch.tensor(a, requires_grad=True) for a in start()]
    return params, getattr(torch.optim, name)(params, **options)


def our_path(params: list[Any], opt: Any, **kw: Any) -> list[Any]:
    return trajectory(params, opt, lambda p: p.detach().numpy(), votive.tensor, **kw)


def their_path(params: list[Any], opt: Any, **kw: Any) -> list[Any]:
    return trajectory(params, opt, lambda p: p.detach().numpy(), torch.tensor, **kw)


@pytest.mark.parametrize(("name", "options"), CASES, ids=case_id)
def test_fifty_steps_lead_where_torch_goes(name: str, options: dict[str, Any]) -> None:
    a = our_path(*ours(options, name))
    b = their_path(*theirs(options, name))
    moved = 0.0
    for step, (mine, other) in enumerate(zip(a, b, strict=True)):
        for x, y in zip(mine, other, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-11, err_msg=f"step {step}")
    for x, y in zip(a[-1], start(), strict=True):
        moved += float(np.abs(x - y).sum())
    assert moved > 1e-2


@pytest.mark.parametrize(("name", "options"), CASES, ids=case_id)
def test_the_repr_and_the_state_are_those_of_torch(name: str, options: dict[str, Any]) -> None:
    params, mine = ours(options, name)
    others, other = theirs(options, name)
    assert repr(mine) == repr(other)
    our_path(params, mine, steps=2)
    their_path(others, other, steps=2)
    a, b = mine.state_dict(), other.state_dict()
    assert a["param_groups"] == b["param_groups"]
    assert list(a["state"]) == list(b["state"])
    for key, state in b["state"].items():
        assert set(a["state"][key]) == set(state)
        for entry, value in state.items():
            got = a["state"][key][entry]
            assert str(got.dtype) == str(value.dtype).replace("torch", "votive")
            np.testing.assert_allclose(got.numpy(), value.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "NAdam", "RAdam", "Adagrad"])
def test_the_state_of_torch_can_be_loaded_and_continued(name: str) -> None:
    options = {"lr": 0.05, **({"momentum": 0.9} if name == "SGD" else {})}
    params, mine = ours(options, name)
    others, other = theirs(options, name)
    their_path(others, other, steps=7)
    saved = other.state_dict()
    saved["state"] = {
        key: {k: votive.from_numpy(v.numpy().copy()) for k, v in state.items()} for key, state in saved["state"].items()
    }
    mine.load_state_dict(saved)
    with votive.no_grad():
        for p, q in zip(params, others, strict=True):
            p.copy_(votive.from_numpy(q.detach().numpy().copy()))
    a = our_path(params, mine, steps=10, begin=7)
    b = their_path(others, other, steps=10, begin=7)
    for x, y in zip(a[-1], b[-1], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


COMPLEX = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {}),
    ("RMSprop", {"centered": True, "momentum": 0.5}),
    ("Adagrad", {}),
    ("Adadelta", {}),
    ("Adamax", {}),
    ("NAdam", {}),
    ("RAdam", {"lr": 0.1}),
    ("Rprop", {}),
    ("ASGD", {}),
]


@pytest.mark.parametrize(("name", "options"), COMPLEX, ids=case_id)
def test_complex_parameters_go_the_same_way(name: str, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    begin = rng.normal(size=(3, 2)) + 1j * rng.normal(size=(3, 2))
    p = votive.tensor(begin, requires_grad=True)
    q = torch.tensor(begin, requires_grad=True)
    a = getattr(votive.optim, name)([p], **options)
    b = getattr(torch.optim, name)([q], **options)
    for _ in range(20):
        g = rng.normal(size=(3, 2)) + 1j * rng.normal(size=(3, 2))
        p.grad, q.grad = votive.tensor(g), torch.tensor(g)
        a.step()
        b.step()
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("options", LION, ids=case_id)
def test_lion_follows_its_paper(options: dict[str, Any]) -> None:
    """torch has no Lion: the other side is algorithm 2 of Chen et al. 2023, line by line."""

    class Paper(torch.optim.Optimizer):
        def __init__(self, params: Any, lr: float = 1e-4, betas: Any = (0.9, 0.99), **kw: Any):
            kw = {"weight_decay": 0, "maximize": False, **kw}
            super().__init__(params, {"lr": lr, "betas": betas, **kw})

        @torch.no_grad()
        def step(self) -> None:  # type: ignore[override]
            for group in self.param_groups:
                b1, b2 = group["betas"]
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    g = -p.grad if group["maximize"] else p.grad
                    m = self.state[p].setdefault("m", torch.zeros_like(p))
                    update = torch.sign(b1 * m + (1 - b1) * g)
                    p.sub_(group["lr"] * (update + group["weight_decay"] * p))
                    m.copy_(b2 * m + (1 - b2) * g)

    others = [torch.tensor(a, requires_grad=True) for a in start()]
    a = our_path(*ours(options, "Lion"))
    b = their_path(others, Paper(others, **options))
    for x, y in zip(a[-1], b[-1], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12)


def bowl(x: Any) -> Any:
    """Convex, with curvatures from 1/2 to 50 and a quartic part."""
    scale = x.detach() * 0
    for i, c in enumerate((0.5, 3.0, 12.0, 50.0)):
        scale[i] = c
    return (scale * (x - 1) ** 2).sum() / 2 + ((x * x).sum() - 2) ** 2


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


WOLFE = "strong_wolfe"
LBFGS = [
    (bowl, {"lr": 0.1}),
    (bowl, {"lr": 0.1, "history_size": 3}),
    (bowl, {"max_iter": 4, "lr": 0.3}),
    (bowl, {"line_search_fn": WOLFE}),
    (rosenbrock, {"line_search_fn": WOLFE}),
    (rosenbrock, {"line_search_fn": WOLFE, "history_size": 2, "max_iter": 5}),
    (rosenbrock, {"line_search_fn": WOLFE, "max_eval": 7, "lr": 0.5}),
]


@pytest.mark.parametrize(("loss_of", "options"), LBFGS, ids=case_id)
def test_lbfgs_takes_the_steps_of_torch(loss_of: Any, options: dict[str, Any]) -> None:
    begin = np.array([-1.2, 1.0, 0.5, 2.0])
    paths = []
    for lib in (votive, torch):
        x = lib.tensor(begin, requires_grad=True)
        opt = lib.optim.LBFGS([x], **options)

        def closure(x: Any = x, opt: Any = opt) -> Any:
            opt.zero_grad()
            loss = loss_of(x)
            loss.backward()
            return loss

        losses = [opt.step(closure).item() for _ in range(8)]
        state = opt.state[x]
        paths.append((losses, x.detach().numpy().copy(), state["n_iter"], state["func_evals"]))
    (la, xa, na, ea), (lb, xb, nb, eb) = paths
    assert (na, ea) == (nb, eb)
    assert lb[-1] < lb[0] / 10
    np.testing.assert_allclose(la, lb, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(xa, xb, rtol=1e-6, atol=1e-9)


def test_tensor_learning_rates_work_as_in_torch() -> None:
    for name in ("SGD", "Adam", "Rprop"):
        a = our_path(*ours({"lr": votive.tensor(0.05, dtype=votive.float64)}, name))
        b = their_path(*theirs({"lr": torch.tensor(0.05, dtype=torch.float64)}, name))
        for x, y in zip(a[-1], b[-1], strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "NAdam", "RAdam"])
def test_float32_steps_agree_to_rounding(name: str) -> None:
    results = []
    for lib in (votive, torch):
        params = [lib.tensor(a.astype(np.float32), requires_grad=True) for a in start()]
        opt = getattr(lib.optim, name)(params, lr=0.01)
        path = trajectory(
            params, opt, lambda p: p.detach().numpy(), lambda g, lib=lib: lib.tensor(g.astype(np.float32)), steps=20
        )
        results.append(path[-1])
    for x, y in zip(*results, strict=True):
        assert x.dtype == np.float32
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6)
