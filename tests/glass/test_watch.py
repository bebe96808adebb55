"""Watching for bad values, and the health of a training."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import votive
from votive import glass, nn
from votive.nn import functional as F

from .session_models import KINDS, model


class Log(nn.Module):
    """Gives NaN for what is negative, inf for zero."""

    def forward(self, x: Any) -> Any:
        return (x.log() + 1).exp()


def net() -> Any:
    votive.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 2), nn.Sequential(Log(), nn.Linear(2, 1)))


def test_the_first_nan_is_found_at_its_operator_with_its_inputs() -> None:
    made = net()
    with votive.no_grad():
        made[0].weight.fill_(-1.0)
    with pytest.raises(glass.BadValue) as caught, glass.watch(made):
        made(votive.ones(3, 2))
    found = caught.value.finding
    assert (found.kind, str(found.address), found.phase) == ("nan", "1.0/log#0", "forward")
    assert found.module == "Log"
    assert found.inputs[0].shape == (3, 2)
    assert found.inputs[0].max < 0
    assert found.output is not None
    assert found.output.nan == 6
    assert "NaN in the forward of 1.0/log#0 (Log), run 1" in str(caught.value)


def test_nothing_stays_attached_after_a_bad_value() -> None:
    made = net()
    with votive.no_grad():
        made[0].weight.fill_(-1.0)
    with pytest.raises(glass.BadValue), glass.watch(made):
        made(votive.ones(3, 2))
    assert bool(made(votive.ones(3, 2)).isnan().all())


def test_infinity_and_nan_are_told_apart_and_can_be_left_out() -> None:
    made = nn.Sequential(Log())
    x = votive.tensor([[0.0, 1.0]])
    with glass.watch(made, action="record") as seen:
        made(x)
    assert seen.first is not None
    assert (seen.first.kind, len(seen.findings)) == ("inf", 1)
    with glass.watch(made, inf=False) as seen:
        made(x)
    assert seen.findings == []
    with glass.watch(made, nan=False) as seen:
        made(-votive.ones(1, 2))
    assert seen.findings == []


def test_a_bad_parameter_and_a_bad_input_are_findings() -> None:
    made = nn.Linear(2, 2)
    with pytest.raises(glass.BadValue, match="in the inputs of") as caught, glass.watch(made):
        made(votive.tensor([[math.nan, 1.0]]))
    assert caught.value.finding.phase == "input"
    with votive.no_grad():
        made.bias.fill_(math.nan)
    with pytest.raises(glass.BadValue) as caught, glass.watch(made):
        made(votive.ones(1, 2))
    assert caught.value.finding.parameters["bias"].nan == 2
    assert caught.value.finding.parameters["weight"].nan == 0


class Masked(nn.Module):
    def forward(self, x: Any) -> Any:
        hidden = x.masked_fill(x > 1, -math.inf)
        hidden = votive.where(x > 1, votive.tensor(-math.inf), hidden)
        return (hidden * 2).softmax(-1)


def test_infinities_of_a_mask_are_no_finding_but_what_comes_of_them_is() -> None:
    made = Masked()
    with glass.watch(made) as seen:
        made(votive.tensor([[1.0, 2.0]]))
    assert seen.checked >= 3
    with pytest.raises(glass.BadValue) as caught, glass.watch(made):
        made(votive.tensor([[2.0, 2.0]]))
    assert str(caught.value.finding.address) == "/softmax#0"


def test_values_near_overflow_are_found() -> None:
    made = nn.Sequential(nn.Identity(), Log())
    x = votive.full((1, 1), 2.0, dtype=votive.float16)
    with votive.no_grad(), glass.watch(made, overflow=0.5) as seen:
        made(x)
    assert not seen.findings
    grows = nn.Linear(1, 1, bias=False).half()
    with votive.no_grad():
        grows.weight.fill_(20000.0)
    with pytest.raises(glass.BadValue, match="near overflow"), glass.watch(grows, overflow=0.5):
        grows(x)
    with pytest.raises(ValueError, match=r"in \(0, 1\]"):
        glass.watch(made, overflow=3)


class Root(nn.Module):
    """A square root, whose slope at zero is infinite."""

    def forward(self, x: Any) -> Any:
        return (x * 0).sqrt()


def test_a_bad_gradient_is_found_at_the_operator_it_belongs_to() -> None:
    made = nn.Sequential(nn.Linear(2, 2), Root())
    with pytest.raises(glass.BadValue) as caught, glass.watch(made):
        made(votive.ones(1, 2)).sum().backward()
    found = caught.value.finding
    assert found.phase == "backward"
    assert str(found.address) == "1/sqrt#0"
    with glass.watch(made, backward=False) as seen:
        made(votive.ones(1, 2)).sum().backward()
    assert not seen.findings


def test_a_warning_is_given_once_and_all_is_recorded() -> None:
    made = nn.Sequential(Log())
    with glass.watch(made, action="warn") as watch:
        with pytest.warns(RuntimeWarning, match="NaN in the forward"):
            made(-votive.ones(1, 2))
        made(-votive.ones(1, 2))  # a warning would be an error
    assert [f.run for f in watch.findings] == [1, 2]


def test_only_each_so_manieth_run_is_looked_at() -> None:
    made = nn.Sequential(Log())
    with glass.watch(made, every=3, action="record") as seen:
        for _ in range(7):
            made(-votive.ones(1, 2))
    assert [f.run for f in seen.findings] == [1, 4, 7]


@pytest.mark.parametrize("kind", KINDS)
def test_sound_models_have_no_findings(kind: str) -> None:
    made = model(kind)
    ids = votive.tensor([[5, 17, 3, 42]])
    with glass.watch(made) as seen:
        made(ids, labels=ids).loss.backward()
    assert seen.checked > 30
    made.zero_grad()


# --- health -------------------------------------------------------------------------------------


class Half(nn.Module):
    """Two of its four units are never on."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(2, 4), nn.Linear(4, 1)
        with votive.no_grad():
            self.up.weight.fill_(0.5)
            self.up.bias.copy_(votive.tensor([1.0, -50.0, 1.0, -50.0]))

    def forward(self, x: Any) -> Any:
        return self.down(F.relu(self.up(x)))


def steps(made: Any, health: glass.Health, count: int) -> None:
    optimizer = votive.optim.SGD(made.parameters(), lr=0.1)
    health.start()
    for _ in range(count):
        optimizer.zero_grad()
        made(votive.rand(8, 2)).square().mean().backward()
        optimizer.step()
        health.step()


def test_update_ratios_and_norms_are_those_of_the_step() -> None:
    votive.manual_seed(1)
    made = Half()
    before = {n: p.detach().clone() for n, p in made.named_parameters()}
    health = glass.Health(made)
    steps(made, health, 1)
    health.close()
    reading = next(r for r in health.readings if r.address == "up")
    old = votive.cat([before["up.weight"].flatten(), before["up.bias"]])
    new = votive.cat([made.up.weight.detach().flatten(), made.up.bias.detach()])
    grad = votive.cat([made.up.weight.grad.flatten(), made.up.bias.grad])
    assert reading.update_ratio == pytest.approx(float((new - old).norm() / old.norm()), rel=1e-5)
    assert reading.grad_norm == pytest.approx(float(grad.norm()), rel=1e-5)
    assert reading.weight_norm == pytest.approx(float(new.norm()), rel=1e-5)


def test_units_that_were_never_on_are_dead() -> None:
    made = Half()
    health = glass.Health(made)
    steps(made, health, 3)
    assert health.dead_units("/relu#0") == [1, 3]
    assert health.series("/relu#0", "dead") == [(1, 0.5), (2, 0.5), (3, 0.5)]
    health.close()
    with pytest.raises(KeyError, match="is not an activation that was seen"):
        health.dead_units("up")


def test_only_each_so_manieth_step_is_measured_and_nothing_stays_attached() -> None:
    made = Half()
    health = glass.Health(made, every=3)
    steps(made, health, 7)
    assert [s for s, _ in health.series("up")] == [3, 6]
    health.close()
    assert health._units is None
    from votive.dispatch.state import state

    assert not state.observers


def test_readings_become_a_table_and_a_picture(tmp_path: Path) -> None:
    made = Half()
    health = glass.Health(made)
    steps(made, health, 4)
    health.close()
    lines = str(health).splitlines()
    assert lines[0].split() == ["address", "step", *glass.health.METRICS]
    assert any(line.startswith("up ") for line in lines)
    root = ET.fromstring(health.svg("grad_norm", tmp_path / "grad.svg"))
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 2
    assert (tmp_path / "grad.svg").read_text().startswith("<svg")
    only = ET.fromstring(health.svg("grad_norm", at="up"))
    assert len(only.findall("{http://www.w3.org/2000/svg}polyline")) == 1
    with pytest.raises(glass.NoMatch, match="'down'"):
        health.svg("grad_norm", at="don")
    with pytest.raises(ValueError, match="metric must be one of"):
        health.svg("loss")


def trainer(made: Any, health: glass.Health, folder: Path, steps: int) -> Any:
    data = [(votive.rand(8, 2), votive.rand(8, 1)) for _ in range(4)]
    optimizer = votive.optim.SGD(made.parameters(), lr=0.01)
    return votive.train.Trainer(
        made, optimizer, F.mse_loss, data, max_steps=steps, callbacks=[health], folder=folder, progress=False
    )


def test_health_runs_along_with_a_trainer_and_goes_on_with_it(tmp_path: Path) -> None:
    made = Half()
    health = glass.Health(made, every=2)
    trainer(made, health, tmp_path, 5).fit()
    assert [s for s, _ in health.series("up")] == [2, 4]
    assert health._units is None
    again = glass.Health(made, every=2)
    trainer(made, again, tmp_path, 8).fit()
    assert [s for s, _ in again.series("up")] == [2, 4, 6, 8]
    assert repr(again.readings[: len(health.readings)]) == repr(health.readings)
