"""Two runs side by side."""

from __future__ import annotations

import copy
import gc
import math
import weakref
from typing import Any

import pytest

import votive
from votive import glass, nn

from .session_models import KINDS, model

IDS = votive.tensor([[5, 17, 3, 42]])


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_agrees_with_itself_at_every_address(kind: str) -> None:
    made = model(kind)
    with votive.no_grad(), glass.lockstep(made, copy.deepcopy(made), IDS, ops=True) as found:
        assert found.agrees
        assert not found.unmatched
        assert all(r.error == 0 and r.max == 0 for r in found.rows)
        addresses = [str(n.address) for n in glass.tree(made, IDS, ops=True).walk()]
        assert sorted(r.address for r in found.rows) == sorted(a for a in addresses if a)


def test_it_stops_at_the_first_call_that_differs() -> None:
    made = model("llama")
    other = copy.deepcopy(made)
    with votive.no_grad():
        other.model.layers[1].mlp.up_proj.weight[0, 0] += 1.0
    with votive.no_grad(), glass.lockstep(made, other, IDS) as found:
        assert found.first is not None
        assert found.first.address == "model.layers.1.mlp.up_proj"
        assert found.rows[-1] is found.first
        # Both wait there, and can be looked at.
        assert str(found.a.address) == str(found.b.address) == found.first.address
        off = (found.a.value - found.b.value).abs().max()
        assert float(off) == pytest.approx(found.first.max)
        assert "<- diverges" in str(found)
    with votive.no_grad(), glass.lockstep(made, other, IDS, stop=False) as found:
        assert found.first is not None
        assert found.first.address == "model.layers.1.mlp.up_proj"
        assert found.rows[-1].address == "lm_head"
        assert dict(found.growth)["lm_head"] > 0


def test_the_numbers_are_those_of_the_values() -> None:
    a, b = nn.Identity(), nn.Identity()
    pair = nn.Sequential(a)
    x, y = votive.tensor([[3.0, 4.0]]), votive.tensor([[3.0, 4.5]])
    with glass.lockstep(pair, nn.Sequential(b), x, inputs_b=(y,)) as found:
        (row,) = found.rows
    assert row.max == 0.5
    assert row.relative == pytest.approx(0.1)
    cosine = 1 - float((x * y).sum()) / (float(x.norm()) * float(y.norm()))
    assert row.cosine == pytest.approx(cosine, abs=1e-7)
    for metric, want in (("max", 0.5), ("relative", 0.1), (lambda p, q: 7.0, 7.0)):
        with glass.lockstep(pair, pair, x, inputs_b=(y,), metric=metric, limit=1.0) as found:
            assert found.rows[0].error == pytest.approx(want)
            assert found.agrees == (want <= 1.0)


def test_two_types_drift_apart_slowly() -> None:
    made = model("llama")
    low = copy.deepcopy(made).bfloat16()
    with votive.no_grad(), glass.lockstep(made, low, IDS, rtol=0.3, atol=1.0, stop=False) as found:
        errors = dict(found.growth)
        assert 0 < errors["model.layers.0.input_layernorm"] < 0.02
        assert len(errors) > 15
    with votive.no_grad(), glass.lockstep(made, low, IDS, rtol=0, atol=0) as found:
        assert found.first is not None
        assert found.first.address == "model.embed_tokens"


def test_inputs_with_decimals_get_the_type_of_the_second_model() -> None:
    made = nn.Sequential(nn.Linear(3, 3))
    double = copy.deepcopy(made).double()
    with glass.lockstep(made, double, votive.ones(1, 3)) as found:
        assert found.agrees
        found.b.finish()
        assert found.b.result.dtype == votive.float64


def test_a_run_is_compared_with_one_that_was_stored() -> None:
    made = model("llama")
    with votive.no_grad(), glass.capture(made, "layers.*.mlp", policy="copy") as seen:
        made(IDS)
    with votive.no_grad(), glass.lockstep(made, seen, IDS, at="layers.*.mlp") as found:
        assert [r.address for r in found.rows] == [f"model.layers.{i}.mlp" for i in (0, 1)]
        assert found.agrees
    stored = {a: seen[a] + 1 for a in seen}
    with votive.no_grad(), glass.lockstep(made, stored, IDS, at="layers.*.mlp") as found:
        assert found.first is not None
        assert found.first.max == pytest.approx(1.0, rel=1e-5)


class Renamed(nn.Module):
    """The same layers by other names, the second half called in another order."""

    def __init__(self, first: Any, second: Any) -> None:
        super().__init__()
        self.front, self.back = first, second

    def forward(self, x: Any) -> Any:
        return self.back(self.front(x))


def test_other_names_are_mapped() -> None:
    first, second = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), nn.Linear(2, 2)
    made, other = nn.Sequential(first, second), Renamed(first, second)
    x = votive.ones(1, 2)
    with glass.lockstep(made, other, x, map_b={"0": "front", "1": "back"}) as found:
        assert [(r.address, r.other) for r in found.rows] == [
            ("0.0", "front.0"),
            ("0.1", "front.1"),
            ("0", "front"),
            ("1", "back"),
        ]
    rename = {"0": "front", "1": "back"}
    with glass.lockstep(made, other, x, at="^*", map_b=rename.__getitem__) as found:
        assert [r.other for r in found.rows] == ["front", "back"]
    with pytest.raises(LookupError, match="no address in common"):
        glass.lockstep(made, other, x)


def test_calls_that_only_one_model_makes_are_told() -> None:
    made = nn.Sequential(nn.Identity(), nn.Tanh(), nn.Tanh())
    other = nn.Sequential(nn.Identity(), nn.Tanh())
    with glass.lockstep(made, other, votive.ones(2)) as found:
        assert [r.address for r in found.rows] == ["0", "1"]
        assert found.unmatched == ["2"]
        assert "only one of them has: 2" in str(found)


def test_shapes_and_nan_count_as_differences() -> None:
    wide, narrow = nn.Sequential(nn.Linear(2, 3)), nn.Sequential(nn.Linear(2, 4))
    with glass.lockstep(wide, narrow, votive.ones(1, 2)) as found:
        assert found.first is not None
        assert found.first.note == "shapes differ"
    same = nn.Sequential(nn.Identity())
    x = votive.tensor([1.0, math.nan, math.inf])
    with glass.lockstep(same, same, x) as found:
        assert found.agrees
        assert found.rows[0].max == 0
    with glass.lockstep(same, same, x, inputs_b=(votive.tensor([1.0, 2.0, math.inf]),)) as found:
        assert not found.agrees
        assert found.rows[0].error == math.inf


def test_an_error_in_one_model_is_raised() -> None:
    with pytest.raises(RuntimeError):
        glass.lockstep(nn.Sequential(nn.Linear(3, 3)), nn.Sequential(nn.Linear(2, 2)), votive.ones(1, 3))


def test_a_cache_for_both_is_refused() -> None:
    made = model("llama")
    with pytest.raises(ValueError, match="the same cache"):
        glass.lockstep(made, made, IDS, past_key_values=nn.DynamicCache())
    with pytest.raises(ValueError, match="metric must be one of"):
        glass.lockstep(made, made, IDS, metric="mean")


def test_runs_that_are_left_at_a_divergence_are_freed() -> None:
    made, other = nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 2))
    found = glass.lockstep(made, other, votive.ones(1, 2))
    assert not found.agrees
    waiting = weakref.ref(found.a)
    del found
    gc.collect()
    assert waiting() is None
    assert made(votive.ones(1, 2)).shape == (1, 2)
