"""Adafactor and Muon: the steps of torch, their options and states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive

SHAPES = [(4, 3), (2, 6), (5,), (), (2, 3, 4)]
CASES: list[tuple[str, dict[str, Any]]] = [
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.5, "weight_decay": 0.1, "maximize": True}),
    ("Adafactor", {"beta2_decay": -0.5, "eps": (1e-4, 0.1), "d": 2.0, "foreach": False}),
    ("Muon", {}),
    ("Muon", {"lr": 0.1, "weight_decay": 0.0, "nesterov": False, "momentum": 0.5}),
    ("Muon", {"lr": 0.1, "adjust_lr_fn": "match_rms_adamw", "ns_steps": 3}),
    ("Muon", {"adjust_lr_fn": "original", "eps": 1e-3}),
]


def trained(lib: Any, name: str, options: dict[str, Any]) -> Any:
    rng = np.random.default_rng(0)
    shapes = SHAPES if name == "Adafactor" else SHAPES[:2]
    params = [lib.tensor(np.asarray(rng.standard_normal(s), "f4"), requires_grad=True) for s in shapes]
    opt = getattr(lib.optim, name)(params, **options)
    for _ in range(4):
        opt.zero_grad()
        sum((p.cos() * (i + 1)).sum() for i, p in enumerate(params)).backward()
        opt.step()
    return params, opt


@pytest.mark.parity
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_steps_and_states_are_torchs(name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    mine, theirs = trained(votive, name, options), trained(torch, name, options)
    loose = {"rtol": 2e-5, "atol": 2e-6} if name == "Adafactor" else {"rtol": 2e-2, "atol": 4e-3}  # bfloat16
    for a, b in zip(mine[0], theirs[0], strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), **loose)
    a, b = mine[1].state_dict(), theirs[1].state_dict()
    for key, state in b["state"].items():
        assert list(a["state"][key]) == list(state)
        for k, v in state.items():
            np.testing.assert_allclose(np.asarray(a["state"][key][k]), v.numpy(), rtol=1e-4, atol=1e-5)
    ours = set(a["param_groups"][0]) - {"differentiable", "capturable", "foreach", "maximize"}
    assert ours == set(b["param_groups"][0]) - {"differentiable", "capturable", "foreach", "maximize"}


@pytest.mark.parametrize("name", ["Adafactor", "Muon"])
def test_a_state_dict_goes_on_where_it_was(name: str) -> None:
    params, opt = trained(votive, name, {})
    again = [p.detach().clone().requires_grad_() for p in params]
    other = getattr(votive.optim, name)(again)
    other.load_state_dict(opt.state_dict())
    for group, one in ((params, opt), (again, other)):
        one.zero_grad()
        sum(p.sin().sum() for p in group).backward()
        one.step()
    for a, b in zip(params, again, strict=True):
        assert (a == b).all()


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("Adafactor", {"lr": -1.0}, "learning rate"),
        ("Adafactor", {"beta2_decay": 0.1}, "beta2_decay should be <= 0"),
        ("Adafactor", {"d": 0.5}, "threshold d should be >= 1"),
        ("Muon", {"adjust_lr_fn": "mine"}, "mine is not supported"),
        ("Muon", {"ns_coefficients": (1.0, 2.0)}, "exactly 3"),
    ],
)
def test_wrong_options_raise(name: str, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        getattr(votive.optim, name)([votive.ones(2, 2, requires_grad=True)], **options)


def test_muon_takes_matrices_only() -> None:
    with pytest.raises(ValueError, match="only supports 2D"):
        votive.optim.Muon([votive.ones(2, requires_grad=True)])
