"""Schedules: torch's values at every step, checkpoints in the middle, warnings and errors."""

from __future__ import annotations

import copy
import math
import warnings
from typing import Any

import numpy as np
import pytest

import votive
from tests.optim.schedules import SCHEDULES, Power
from votive.optim import lr_scheduler as schedulers


def optimizer(lib: Any, name: str = "SGD") -> Any:
    momentum = {"momentum": 0.9} if name == "SGD" else {}
    a, b = (lib.zeros(1, requires_grad=True) for _ in range(2))
    return getattr(lib.optim, name)([{"params": [a]}, {"params": [b], "lr": 0.2}], 0.5, **momentum)


def values(opt: Any) -> list[Any]:
    return [(g["lr"], g.get("momentum"), g.get("betas")) for g in opt.param_groups]


def walk(opt: Any, schedule: Any, steps: int) -> list[Any]:
    out = [values(opt)]
    for _ in range(steps):
        opt.step()
        schedule.step()
        out.append(values(opt))
    return out


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_gives_the_rates_of_torch(name: str, kind: str) -> None:
    torch = pytest.importorskip("torch")
    mine, other = optimizer(votive, kind), optimizer(torch, kind)
    a = SCHEDULES[name](schedulers, mine)
    b = SCHEDULES[name](torch.optim.lr_scheduler, other)
    for x, y in zip(walk(mine, a, 50), walk(other, b, 50), strict=True):
        for (lr, m, betas), (lr2, m2, betas2) in zip(x, y, strict=True):
            assert lr == pytest.approx(lr2, rel=1e-13, abs=1e-16)
            assert (m is None) == (m2 is None)
            assert m is None or m == pytest.approx(m2, rel=1e-13)
            assert betas is None or betas == pytest.approx(betas2, rel=1e-13)
    assert a.get_last_lr() == [g["lr"] for g in mine.param_groups]


@pytest.mark.parity
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_saves_the_fields_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    mine, other = optimizer(votive), optimizer(torch)
    a = SCHEDULES[name](schedulers, mine)
    b = SCHEDULES[name](torch.optim.lr_scheduler, other)
    walk(mine, a, 5)
    walk(other, b, 5)
    ours, theirs = a.state_dict(), b.state_dict()
    assert set(ours) == set(theirs)
    fresh = optimizer(votive)
    c = SCHEDULES[name](schedulers, fresh)
    fresh.load_state_dict(mine.state_dict())
    c.load_state_dict(theirs)
    for x, y in zip(walk(fresh, c, 20), walk(mine, a, 20), strict=True):
        assert x == y


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_goes_on_exactly_after_loading(name: str) -> None:
    opt = optimizer(votive)
    schedule = SCHEDULES[name](schedulers, opt)
    walk(opt, schedule, 11)
    saved = copy.deepcopy((opt.state_dict(), schedule.state_dict()))
    again = optimizer(votive)
    resumed = SCHEDULES[name](schedulers, again)
    again.load_state_dict(saved[0])
    resumed.load_state_dict(saved[1])
    assert walk(again, resumed, 25) == walk(opt, schedule, 25)


@pytest.mark.parametrize(
    "name", ["step", "multistep", "linear", "exponential", "polynomial", "cosine", "lambda", "constant"]
)
def test_jumping_to_an_epoch_gives_the_rate_that_steps_lead_to(name: str) -> None:
    opt, jumping = optimizer(votive), optimizer(votive)
    walk(opt, SCHEDULES[name](schedulers, opt), 9)
    schedule = SCHEDULES[name](schedulers, jumping)
    jumping.step()
    with pytest.warns(UserWarning, match="epoch parameter"):
        schedule.step(9)
    assert schedule.get_last_lr() == pytest.approx([v[0] for v in values(opt)], rel=1e-12)


def test_the_values_of_a_few_schedules_are_known() -> None:
    # From torch 2.13, at the steps 1, 10 and 25 of a group that starts with 0.5.
    known = {
        "cosine": [0.4916518274408217, 0.04282377607281252, 0.4916518274408215],
        "onecycle": [0.033721038506209, 0.4559507646642198, 0.6391838142763141],
        "polynomial": [0.4719983361972581, 0.25096598565707906, 0.023774581380690354],
        "restarts longer": [0.42970562748477137, 0.09029437251522861, 0.06044729304738912],
        "sequential": [0.10625000000000001, 0.4877641290737884, 0.027248368952908053],
        "chained": [0.13299999999999998, 0.2993684696191893, 0.13869478656091683],
    }
    for name, wanted in known.items():
        opt = optimizer(votive)
        path = walk(opt, SCHEDULES[name](schedulers, opt), 25)
        got = [path[i][0][0] for i in (1, 10, 25)]
        assert got == pytest.approx(wanted, rel=1e-12), name


PLATEAU: list[dict[str, Any]] = [
    {},
    {"patience": 2},
    {"patience": 1, "factor": 0.5, "cooldown": 3},
    {"mode": "max"},
    {"patience": 0, "threshold_mode": "abs", "threshold": 0.05, "min_lr": [0.01, 0.1]},
    {"patience": 0, "min_lr": 0.05, "mode": "max", "threshold_mode": "abs"},
]


@pytest.mark.parity
@pytest.mark.parametrize("options", PLATEAU, ids=str)
def test_a_plateau_is_seen_where_torch_sees_it(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    metrics = np.random.default_rng(0).normal(size=60).cumsum() * 0.1 + 5
    paths, states = [], []
    for lib in (votive, torch):
        opt = optimizer(lib)
        schedule = lib.optim.lr_scheduler.ReduceLROnPlateau(opt, **options)
        path = []
        for m in metrics:
            schedule.step(m)
            path.append([g["lr"] for g in opt.param_groups])
        paths.append(path)
        states.append(schedule.state_dict())
    assert paths[0] == paths[1]
    assert states[0] == states[1]


def test_a_plateau_goes_on_after_loading() -> None:
    paths = []
    for split in (False, True):
        opt = optimizer(votive)
        schedule = schedulers.ReduceLROnPlateau(opt, patience=1, factor=0.5)
        for i, m in enumerate([5.0, 5.0, 4.0, 4.0, 4.0, 4.0, 4.0]):
            if split and i == 4:
                saved = copy.deepcopy((opt.state_dict(), schedule.state_dict()))
                opt = optimizer(votive)
                schedule = schedulers.ReduceLROnPlateau(opt)
                opt.load_state_dict(saved[0])
                schedule.load_state_dict(saved[1])
            schedule.step(votive.tensor(m))
        paths.append([g["lr"] for g in opt.param_groups])
    assert paths[0] == paths[1] == [0.125, 0.05]


def test_a_plateau_notices_added_groups() -> None:
    opt = optimizer(votive)
    schedule = schedulers.ReduceLROnPlateau(opt, patience=0, min_lr=[0.0, 0.0])
    opt.add_param_group({"params": [votive.zeros(1)]})
    schedule.step(1.0)
    with pytest.raises(RuntimeError, match="number of param groups"):
        schedule.step(1.0)


@pytest.mark.parametrize("min_lr", [0.0, 0.1])
def test_warmup_is_a_line_and_then_a_cosine(min_lr: float) -> None:
    opt = votive.optim.SGD([votive.zeros(1)], lr=2.0)
    schedule = schedulers.CosineWithWarmup(opt, 5, 25, min_lr)
    rates = [opt.param_groups[0]["lr"]]
    for _ in range(30):
        opt.step()
        schedule.step()
        rates.append(opt.param_groups[0]["lr"])
    assert rates[:6] == pytest.approx([0.0, 0.4, 0.8, 1.2, 1.6, 2.0])
    for i in range(5, 26):
        cosine = 0.5 * (1 + math.cos(math.pi * (i - 5) / 20))
        assert rates[i] == pytest.approx(min_lr + (2.0 - min_lr) * cosine)
    assert rates[26:] == [pytest.approx(min_lr)] * 5


def test_the_function_for_warmup_takes_the_arguments_of_transformers() -> None:
    a, b = optimizer(votive), optimizer(votive)
    first = schedulers.get_cosine_schedule_with_warmup(a, num_warmup_steps=3, num_training_steps=20, num_cycles=1.5)
    second = schedulers.CosineWithWarmup(b, 3, 20, cycles=1.5)
    assert walk(a, first, 25) == walk(b, second, 25)


def test_stepping_a_schedule_first_warns() -> None:
    opt = optimizer(votive)
    schedule = schedulers.StepLR(opt, 3)
    with pytest.warns(UserWarning, match="before `optimizer.step\\(\\)`"):
        schedule.step()
    opt = optimizer(votive)
    schedule = schedulers.StepLR(opt, 3)
    opt.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()


def test_replacing_the_step_of_an_optimizer_warns() -> None:
    opt = optimizer(votive)
    schedule = schedulers.StepLR(opt, 3)
    opt.step()
    opt.step = lambda: None
    with pytest.warns(UserWarning, match="overridden after"):
        schedule.step()


def test_asking_for_the_next_rates_warns() -> None:
    opt = optimizer(votive)
    schedule = schedulers.ExponentialLR(opt, 0.5)
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()


def test_an_epoch_argument_is_deprecated() -> None:
    opt = optimizer(votive)
    schedule = schedulers.ExponentialLR(opt, 0.5)
    opt.step()
    with pytest.warns(UserWarning, match="epoch parameter"):
        schedule.step(3)
    assert schedule.get_last_lr() == [0.5 * 0.5**3, 0.2 * 0.5**3]


@pytest.mark.parity
def test_restarts_may_jump_to_fractions_of_epochs() -> None:
    torch = pytest.importorskip("torch")
    paths = []
    for lib in (votive, torch):
        opt = optimizer(lib)
        schedule = lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, 3, 2)
        path = []
        for epoch in (0.5, 2.9, 3.1, 8.7, 9.0, 20.3, 1.0):
            schedule.step(epoch)
            path.append(opt.param_groups[0]["lr"])
        paths.append(path)
    assert paths[0] == pytest.approx(paths[1], rel=1e-13)


def test_a_rate_that_is_a_tensor_stays_the_same_tensor() -> None:
    rate = votive.tensor(0.5, dtype=votive.float64)
    opt = votive.optim.SGD([votive.zeros(1)], lr=rate)
    schedule = schedulers.ExponentialLR(opt, 0.5)
    opt.step()
    schedule.step()
    assert opt.param_groups[0]["lr"] is rate
    assert rate.item() == 0.25
    assert schedule.base_lrs[0].item() == 0.5
    assert schedule.get_last_lr()[0].item() == 0.25


def test_functions_are_not_saved_but_objects_are() -> None:
    opt = optimizer(votive)
    state = schedulers.LambdaLR(opt, [Power(0.5), lambda e: 1.0]).state_dict()
    assert state["lr_lambdas"] == [{"base": 0.5}, None]
    other = optimizer(votive)
    resumed = schedulers.LambdaLR(other, [Power(0.1), lambda e: 1.0])
    resumed.load_state_dict(state)
    other.step()
    resumed.step()
    assert other.param_groups[0]["lr"] == 0.25


ERRORS: dict[str, Any] = {
    "no optimizer": (TypeError, lambda o: schedulers.StepLR(object(), 1)),
    "lambdas": (ValueError, lambda o: schedulers.LambdaLR(o, [lambda e: 1.0])),
    "no function": (TypeError, lambda o: schedulers.MultiplicativeLR(o, 0.5)),
    "factor": (ValueError, lambda o: schedulers.ConstantLR(o, 1.5)),
    "start factor": (ValueError, lambda o: schedulers.LinearLR(o, 0.0)),
    "end factor": (ValueError, lambda o: schedulers.LinearLR(o, 0.5, 1.5)),
    "T_0": (ValueError, lambda o: schedulers.CosineAnnealingWarmRestarts(o, 0)),
    "T_mult": (ValueError, lambda o: schedulers.CosineAnnealingWarmRestarts(o, 1, 1.5)),
    "mode": (ValueError, lambda o: schedulers.CyclicLR(o, 0.1, 0.2, mode="square")),
    "lengths": (ValueError, lambda o: schedulers.CyclicLR(o, [0.1], 0.2)),
    "one cycle": (ValueError, lambda o: schedulers.OneCycleLR(o, 0.1)),
    "pct": (ValueError, lambda o: schedulers.OneCycleLR(o, 0.1, 10, pct_start=1.5)),
    "strategy": (ValueError, lambda o: schedulers.OneCycleLR(o, 0.1, 10, anneal_strategy="x")),
    "plateau mode": (ValueError, lambda o: schedulers.ReduceLROnPlateau(o, "best")),
    "plateau factor": (ValueError, lambda o: schedulers.ReduceLROnPlateau(o, factor=1.0)),
    "plateau min": (ValueError, lambda o: schedulers.ReduceLROnPlateau(o, min_lr=[0.1])),
    "nothing": (ValueError, lambda o: schedulers.SequentialLR(o, [], [])),
    "milestones": (ValueError, lambda o: schedulers.SequentialLR(o, [schedulers.StepLR(o, 1)], [3])),
    "another": (
        ValueError,
        lambda o: schedulers.ChainedScheduler([schedulers.StepLR(o, 1), schedulers.StepLR(optimizer(votive), 1)]),
    ),
    "plateau inside": (ValueError, lambda o: schedulers.ChainedScheduler([schedulers.ReduceLROnPlateau(o)])),
    "resuming": (KeyError, lambda o: schedulers.StepLR(o, 1, last_epoch=3)),
    "warmup": (ValueError, lambda o: schedulers.CosineWithWarmup(o, 5, 3)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_bad_arguments_raise_what_torch_raises(name: str) -> None:
    kind, make = ERRORS[name]
    with pytest.raises(kind):
        make(optimizer(votive))


def test_momentum_cannot_cycle_where_there_is_none() -> None:
    opt = votive.optim.Adagrad([votive.zeros(1)])
    for make in (lambda: schedulers.CyclicLR(opt, 0.1, 0.2), lambda: schedulers.OneCycleLR(opt, 0.1, 10)):
        with pytest.raises(ValueError, match="must support momentum"):
            make()


def test_one_cycle_ends() -> None:
    opt = optimizer(votive)
    schedule = schedulers.OneCycleLR(opt, 0.1, 3)
    walk(opt, schedule, 3)
    with pytest.raises(ValueError, match="Tried to step 4 times"):
        walk(opt, schedule, 1)
