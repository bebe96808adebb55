"""Averaged weights: means, moving averages, buffers, batch-norm statistics, and the rates."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import votive
from votive.optim import swa_utils


class Model(votive.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = votive.nn.Parameter(votive.zeros(2, 3))
        self.narrow = votive.nn.Parameter(votive.zeros(2, dtype=votive.bfloat16))
        self.register_buffer("count", votive.zeros((), dtype=votive.int64))
        self.register_buffer("mean", votive.zeros(2))

    def forward(self, x: Any) -> Any:
        return x @ self.weight

    def fill(self, value: float) -> Model:
        with votive.no_grad():
            for p in [*self.parameters(), *self.buffers()]:
                p.fill_(value)
        return self


def averaged(values: list[float], **options: Any) -> Any:
    model = Model()
    average = swa_utils.AveragedModel(model, **options)
    for v in values:
        average.update_parameters(model.fill(v))
    return average


def test_the_default_is_the_mean() -> None:
    average = averaged([1.0, 2.0, 6.0])
    assert average.module.weight.unique().item() == pytest.approx(3.0)
    assert average.module.narrow.dtype is votive.bfloat16
    assert average.module.narrow.tolist() == [3.0, 3.0]
    assert average.n_averaged.item() == 3


def test_buffers_are_copied_or_averaged() -> None:
    copied = averaged([1.0, 2.0, 6.0]).module
    assert (copied.mean.tolist(), copied.count.item()) == ([6.0, 6.0], 6)
    mean = averaged([1.0, 2.0, 6.0], use_buffers=True).module
    assert mean.mean.tolist() == pytest.approx([3.0, 3.0])


@pytest.mark.parametrize("multi", [False, True])
def test_a_moving_average_forgets(multi: bool) -> None:
    options = (
        {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.75)} if multi else {"avg_fn": swa_utils.get_ema_avg_fn(0.75)}
    )
    average = averaged([0.0, 1.0, 1.0], **options)
    assert average.module.weight.unique().item() == pytest.approx(1 - 0.75**2)


def test_one_function_at_a_time() -> None:
    with pytest.raises(AssertionError, match="Only one of"):
        swa_utils.AveragedModel(
            Model(), avg_fn=swa_utils.get_swa_avg_fn(), multi_avg_fn=swa_utils.get_swa_multi_avg_fn()
        )
    for make in (swa_utils.get_ema_avg_fn, swa_utils.get_ema_multi_avg_fn):
        with pytest.raises(ValueError, match="Invalid decay"):
            make(1.5)


def test_the_average_is_a_model_of_its_own() -> None:
    model = Model().fill(2.0)
    average = swa_utils.AveragedModel(model)
    model.fill(5.0)
    assert average(votive.ones(2)).tolist() == [4.0, 4.0, 4.0]
    state = average.state_dict()
    assert set(state) == {"n_averaged", "module.weight", "module.narrow", "module.count", "module.mean"}
    other = swa_utils.AveragedModel(Model())
    other.load_state_dict(state)
    assert other.module.weight.unique().item() == 2.0


def test_statistics_of_batch_norm_are_computed_anew() -> None:
    norm = votive.nn.BatchNorm1d(3)
    model = votive.nn.Sequential(norm, votive.nn.Linear(3, 1))
    rng = np.random.default_rng(0)
    data = rng.normal(2.0, 3.0, size=(4, 16, 3)).astype(np.float32)
    model(votive.tensor(data[0] * 10))
    model.eval()
    swa_utils.update_bn([(votive.tensor(b), "label") for b in data], model)
    assert norm.running_mean.tolist() == pytest.approx(data.mean((0, 1)).tolist(), rel=1e-4)
    wanted = data.var(1, ddof=1).mean(0).tolist()
    assert norm.running_var.tolist() == pytest.approx(wanted, rel=1e-4)
    assert norm.momentum == 0.1
    assert not model.training


def test_a_model_without_batch_norm_is_not_run() -> None:
    def never() -> Any:
        raise AssertionError
        yield

    swa_utils.update_bn(never(), Model())


OPTIONS: list[dict[str, Any]] = [
    {},
    {"anneal_epochs": 4},
    {"anneal_epochs": 0},
    {"anneal_epochs": 7, "anneal_strategy": "linear"},
]


@pytest.mark.parity
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_swa_rates_are_those_of_torch(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    paths = []
    for lib in (votive, torch):
        opt = lib.optim.SGD([lib.zeros(1, requires_grad=True)], lr=1.0)
        before = lib.optim.lr_scheduler.ExponentialLR(opt, 0.9)
        schedule = lib.optim.swa_utils.SWALR(opt, swa_lr=0.05, **options)
        path = []
        for step in range(30):
            opt.step()
            (before if step < 10 else schedule).step()
            path.append(opt.param_groups[0]["lr"])
        paths.append(path)
    assert paths[0] == pytest.approx(paths[1], rel=1e-13)


def test_swa_rates_go_on_after_loading() -> None:
    opt = votive.optim.SGD([votive.zeros(1)], lr=1.0)
    schedule = swa_utils.SWALR(opt, 0.1, 5)
    for _ in range(2):
        opt.step()
        schedule.step()
    other = votive.optim.SGD([votive.zeros(1)], lr=1.0)
    resumed = swa_utils.SWALR(other, 0.1, 5, "linear")
    other.load_state_dict(opt.state_dict())
    resumed.load_state_dict(copy.deepcopy(schedule.state_dict()))
    for o, s in ((opt, schedule), (other, resumed)):
        for _ in range(5):
            o.step()
            s.step()
    assert schedule.get_last_lr() == resumed.get_last_lr() == [pytest.approx(0.1)]


def test_bad_annealing_is_refused() -> None:
    opt = votive.optim.SGD([votive.zeros(1)], lr=1.0)
    with pytest.raises(ValueError, match="anneal_strategy"):
        swa_utils.SWALR(opt, 0.1, anneal_strategy="x")
    with pytest.raises(ValueError, match="anneal_epochs"):
        swa_utils.SWALR(opt, 0.1, anneal_epochs=-1)
