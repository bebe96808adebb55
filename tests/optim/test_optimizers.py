"""What every optimizer must do, with no reference at hand: converge, resume exactly, fuse."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import votive
from tests.optim.cases import CASES, LION, case_id, start, trajectory
from votive.dispatch import Observer

ALL = [*CASES, *(("Lion", options) for options in LION)]
NAMES = sorted({name for name, _ in ALL})


def made(name: str, options: dict[str, Any], dtype: Any = None) -> tuple[list[Any], Any]:
    params = [votive.tensor(a, dtype=dtype, requires_grad=True) for a in start()]
    return params, getattr(votive.optim, name)(params, **options)


def path(params: list[Any], opt: Any, **kw: Any) -> list[Any]:
    return trajectory(params, opt, lambda p: p.detach().numpy(), votive.tensor, **kw)


@pytest.mark.parametrize(("name", "options"), ALL, ids=case_id)
def test_a_run_that_is_saved_and_loaded_in_the_middle_ends_the_same_bit_for_bit(
    name: str, options: dict[str, Any]
) -> None:
    params, opt = made(name, options)
    path(params, opt, steps=7)
    saved = pickle.loads(pickle.dumps((opt.state_dict(), [p.detach().numpy() for p in params])))
    fresh = [votive.tensor(a, requires_grad=True) for a in saved[1]]
    resumed = getattr(votive.optim, name)(fresh, **options)
    resumed.load_state_dict(saved[0])
    straight = path(params, opt, steps=9, begin=7)
    broken = path(fresh, resumed, steps=9, begin=7)
    for a, b in zip(straight, broken, strict=True):
        for x, y in zip(a, b, strict=True):
            assert x.tobytes() == y.tobytes()
    _assert_same_state(opt.state_dict(), resumed.state_dict())


def _assert_same_state(a: Any, b: Any) -> None:
    assert a["param_groups"] == b["param_groups"]
    assert list(a["state"]) == list(b["state"])
    for key, state in a["state"].items():
        for entry, value in state.items():
            other = b["state"][key][entry]
            assert value.dtype is other.dtype
            assert value.numpy().tobytes() == other.numpy().tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_loaded_state_shares_no_memory_with_what_it_came_from(name: str) -> None:
    params, opt = made(name, {"momentum": 0.9} if name in ("SGD", "RMSprop") else {})
    path(params, opt, steps=2)
    saved = opt.state_dict()
    before = copy.deepcopy(saved)
    others, resumed = made(name, {})
    resumed.load_state_dict(saved)
    path(others, resumed, steps=3)
    _assert_same_state(saved, before)


RATES = {
    "SGD": 0.1,
    "Adam": 0.1,
    "AdamW": 0.1,
    "RMSprop": 0.02,
    "Adagrad": 0.8,
    "Adadelta": 5.0,
    "Adamax": 0.2,
    "NAdam": 0.1,
    "RAdam": 0.2,
    "Lion": 0.05,
    "Rprop": 0.1,
    "ASGD": 0.1,
}


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_quadratic_is_brought_to_its_minimum(name: str, maximize: bool) -> None:
    goal = votive.tensor([1.0, -2.0, 0.5])
    w = votive.zeros(3, requires_grad=True)
    kw = {"weight_decay": 0} if name == "AdamW" else {}
    opt = getattr(votive.optim, name)([w], lr=RATES[name], maximize=maximize, **kw)
    # Lion's steps never shrink by themselves.
    decay = votive.optim.lr_scheduler.ExponentialLR(opt, 0.985 if name == "Lion" else 1.0)
    for _ in range(400):
        opt.zero_grad()
        loss = ((w - goal) ** 2).sum()
        (-loss if maximize else loss).backward()
        opt.step()
        decay.step()
    assert float(((w - goal) ** 2).sum()) < 5e-3


def test_lbfgs_finds_the_minimum_of_rosenbrock() -> None:
    x = votive.tensor([-1.2, 1.0], dtype=votive.float64, requires_grad=True)
    opt = votive.optim.LBFGS([x], line_search_fn="strong_wolfe", tolerance_change=1e-15)

    def closure() -> Any:
        opt.zero_grad()
        loss = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
        loss.backward()
        return loss

    first = opt.step(closure)
    assert first.item() == pytest.approx(24.2)
    for _ in range(5):
        opt.step(closure)
    assert x.tolist() == pytest.approx([1.0, 1.0], abs=1e-6)


@pytest.mark.parametrize("line_search", [None, "strong_wolfe"])
def test_lbfgs_goes_on_bit_for_bit_after_loading(line_search: str | None) -> None:
    def closure_of(x: Any, opt: Any) -> Any:
        def closure() -> Any:
            opt.zero_grad()
            loss = ((x**4 - 3 * x * x) * votive.tensor([1.0, 2.0, 3.0])).sum()
            loss.backward()
            return loss

        return closure

    options = {"lr": 0.05, "max_iter": 3, "history_size": 4, "line_search_fn": line_search}
    x = votive.tensor([0.3, -0.2, 2.0], requires_grad=True)
    opt = votive.optim.LBFGS([x], **options)
    for _ in range(3):
        opt.step(closure_of(x, opt))
    saved = pickle.loads(pickle.dumps((opt.state_dict(), x.detach().numpy())))
    y = votive.tensor(saved[1], requires_grad=True)
    resumed = votive.optim.LBFGS([y], **options)
    resumed.load_state_dict(saved[0])
    for _ in range(4):
        a = opt.step(closure_of(x, opt))
        b = resumed.step(closure_of(y, resumed))
        assert a.item() == b.item()
    assert x.detach().numpy().tobytes() == y.detach().numpy().tobytes()


def test_lbfgs_takes_complex_parameters() -> None:
    z = votive.tensor([2.0 + 1.0j], dtype=votive.complex128, requires_grad=True)
    opt = votive.optim.LBFGS([z], line_search_fn="strong_wolfe")

    def closure() -> Any:
        opt.zero_grad()
        loss = ((z - (1 - 1j)).abs() ** 2).sum()
        loss.backward()
        return loss

    opt.step(closure)
    assert z.tolist()[0] == pytest.approx(1 - 1j, abs=1e-6)


def test_lbfgs_refuses_groups_and_unknown_searches() -> None:
    groups = [{"params": [votive.zeros(1)]}, {"params": [votive.zeros(1)]}]
    with pytest.raises(ValueError, match="per-parameter options"):
        votive.optim.LBFGS(groups)
    x = votive.ones(1, requires_grad=True)
    opt = votive.optim.LBFGS([x], line_search_fn="armijo")

    def closure() -> Any:
        opt.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    with pytest.raises(RuntimeError, match="only 'strong_wolfe'"):
        opt.step(closure)


# The sum of all parameters after 10 and 50 steps, from torch 2.13 in float64.
KNOWN: list[tuple[str, dict[str, Any], tuple[float, float]]] = [
    ("SGD", {"lr": 0.05, "momentum": 0.8, "nesterov": True}, (-9.658178002374871, -8.979511846870771)),
    ("Adam", {"lr": 0.05, "amsgrad": True}, (-6.271953724745648, -9.003321885871998)),
    ("AdamW", {"lr": 0.05}, (-6.265631518939466, -8.984193573330181)),
    (
        "RMSprop",
        {"centered": True, "momentum": 0.9, "weight_decay": 0.1, "lr": 0.003},
        (-7.293541037322676, -8.12010307925499),
    ),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}, (-5.627981489297031, -6.904762547228488)),
    ("Adadelta", {}, (-3.037278286222507, -4.10614238294186)),
    ("Adamax", {"lr": 0.05}, (-6.009006143377996, -9.5680182415113)),
    ("NAdam", {"lr": 0.05}, (-5.695466248803304, -9.217286905810674)),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}, (-2.771247806289737, -2.803247816989001)),
    ("Rprop", {}, (-4.63983889444248, -9.323045024308598)),
    ("ASGD", {"t0": 10, "lr": 0.05}, (-5.5024851179341665, -9.007061706005647)),
]


@pytest.mark.parametrize(("name", "options", "known"), KNOWN, ids=[k[0] for k in KNOWN])
def test_sums_along_the_way_are_known(name: str, options: dict[str, Any], known: tuple[float, float]) -> None:
    steps = path(*made(name, options))
    got = [sum(float(p.sum()) for p in steps[i]) for i in (9, 49)]
    assert got == pytest.approx(known, rel=1e-11, abs=1e-11)


class Names(Observer):
    def __init__(self) -> None:
        self.names: list[str] = []

    def before(self, call: Any) -> None:
        self.names.append(call.op.name)


@pytest.mark.parametrize(("name", "options"), ALL, ids=case_id)
def test_a_group_is_stepped_by_one_call(name: str, options: dict[str, Any]) -> None:
    params, opt = made(name, options)
    path(params, opt, steps=1)
    for p in params:
        p.grad = votive.ones_like(p)
    with Names() as seen:
        opt.step()
    wanted = len(params) if options.get("foreach") is False else 1
    assert len([n for n in seen.names if n.endswith("_step")]) == wanted
    assert len(seen.names) == wanted, seen.names


@pytest.mark.parametrize("name", NAMES)
def test_half_parameters_are_stepped_in_float32_and_rounded_once(name: str) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=40).astype(np.float32)
    p = votive.tensor(values).to(votive.bfloat16).requires_grad_()
    g = votive.tensor(rng.normal(size=40).astype(np.float32)).to(votive.bfloat16)
    q = p.detach().float().requires_grad_()
    p.grad, q.grad = g, g.float()
    for t in (p, q):
        getattr(votive.optim, name)([t], lr=2.0**-7).step()
    assert p.dtype is votive.bfloat16
    assert p.tolist() == q.detach().bfloat16().tolist()
    assert p.tolist() != values.tolist()


def test_stepping_counts_as_writing_in_place() -> None:
    w = votive.ones(2, requires_grad=True)
    y = (w * w).sum()
    w.grad = votive.ones(2)
    votive.optim.SGD([w], lr=0.1).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_parameters_in_any_memory_order_are_written() -> None:
    base = votive.ones(4, 3)
    w = base.t().requires_grad_()
    w.grad = votive.arange(12.0).reshape(3, 4)
    votive.optim.SGD([w], lr=1.0).step()
    assert (1 - base.t()).tolist() == w.grad.tolist()


def test_mixed_dtypes_in_one_group_work() -> None:
    params = [votive.ones(2, dtype=d, requires_grad=True) for d in (votive.float32, votive.float64)]
    opt = votive.optim.Adam(params, lr=0.1)
    for p in params:
        p.grad = votive.ones_like(p)
    opt.step()
    assert [p.dtype for p in params] == [votive.float32, votive.float64]
    assert all(p.tolist() == pytest.approx([0.9, 0.9]) for p in params)


def test_states_are_cast_to_their_parameter_but_counts_are_not() -> None:
    p = votive.ones(2, requires_grad=True)
    opt = votive.optim.Adam([p])
    p.grad = votive.ones(2)
    opt.step()
    half = votive.ones(2, dtype=votive.float16, requires_grad=True)
    other = votive.optim.Adam([half])
    other.load_state_dict(opt.state_dict())
    state = other.state[half]
    assert state["exp_avg"].dtype is votive.float16
    assert state["step"].dtype is votive.float32


def test_an_integer_count_of_an_old_checkpoint_becomes_a_tensor() -> None:
    p = votive.ones(2, requires_grad=True)
    opt = votive.optim.Adam([p])
    p.grad = votive.ones(2)
    opt.step()
    state = opt.state_dict()
    state["state"][0]["step"] = 1
    for group in state["param_groups"]:
        del group["maximize"], group["foreach"]
    opt.load_state_dict(state)
    assert opt.state[p]["step"].item() == 1.0
    opt.step()
    assert opt.state[p]["step"].item() == 2.0


def test_adam_state_loaded_into_adamw_decays_decoupled() -> None:
    p = votive.ones(2, requires_grad=True)
    adam, adamw = votive.optim.Adam([p]), votive.optim.AdamW([p])
    adamw.load_state_dict(adam.state_dict())
    assert adamw.param_groups[0]["decoupled_weight_decay"] is True


def test_step_shapes_are_checked() -> None:
    from votive.ops.registry import F

    p, g = votive.ones(2), votive.ones(3)
    with pytest.raises(RuntimeError, match="gradient of shape"):
        F._sgd_step([p], [g], [], (True,), 0.1, 0, 0, 0, False, False)
    with pytest.raises(RuntimeError, match="1 parameters, but 2 gradients"):
        F._sgd_step([p], [p, p], [], (True,), 0.1, 0, 0, 0, False, False)
