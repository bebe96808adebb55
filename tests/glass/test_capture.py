"""Capture: which values are kept, how, and what is result when nothing is."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import votive
from votive import glass, nn
from votive.dispatch.observe import Observer

from .attached import free
from .nets import Recursive, net, x


def clean(model: nn.Module) -> bool:
    """Whether the model has no hooks; those of all modules are looked at after each test."""
    return free(model)


def test_values_are_those_that_a_hook_would_see() -> None:
    model, data = net().eval(), x()
    seen: dict[str, votive.Tensor] = {}
    handles = [
        m.register_forward_hook(lambda m, args, out, n=n: seen.setdefault(n, out))
        for n, m in model.named_modules()
        if n.endswith("lin")
    ]
    with glass.capture(model, "blocks.*.lin") as found:
        model(data)
    for h in handles:
        h.remove()
    assert sorted(found) == sorted(seen)
    assert all(found[n] is seen[n] for n in seen)


def test_calls_of_a_shared_module_have_their_own_addresses() -> None:
    model = net().eval()
    with glass.capture(model, "**.shared") as found:
        model(x())
    assert list(found) == ["blocks.0.shared", "blocks.0.shared#1", "blocks.1.shared", "blocks.1.shared#1"]


def test_a_module_that_calls_itself_is_numbered() -> None:
    model = Recursive()
    with glass.capture(model, "lin") as found:
        model(votive.ones(1, 2))
    assert list(found) == ["lin", "lin#1", "lin#2"]


def test_inputs_parts_and_operators_can_be_chosen() -> None:
    model, data = net().eval(), x()
    with glass.capture(model, ["head:in", "^:out.hidden", "blocks.0/tanh", "^:in"]) as found:
        out = model(data)
    assert found["head:in"] is out["hidden"]
    assert found[":out.hidden"] is out["hidden"]
    assert found[":in"] is data
    assert found["blocks.0/tanh#0"].shape == data.shape


@pytest.mark.parametrize("policy", ["copy", "cpu"])
def test_copies_are_equal_detached_and_apart(policy: str) -> None:
    model, data = net().eval(), x()
    with glass.capture(model, "head", policy=policy) as found:
        out = model(data)["out"]
    kept = found["head"]
    assert votive.equal(kept, out)
    assert not kept.requires_grad
    assert kept.data_ptr() != out.data_ptr()


def test_half_and_stats_keep_less() -> None:
    model, data = net().eval(), x()
    with glass.capture(model, "head", policy="half") as half:
        out = model(data)["out"]
    assert half["head"].dtype == votive.bfloat16
    with glass.capture(model, "head", policy="stats") as stats:
        model(data)
    assert stats["head"].mean == pytest.approx(out.mean().item(), abs=1e-6)
    assert sum(stats["head"].histogram) == out.numel()
    assert stats.bytes == 0


HALVED = [
    (votive.tensor([1e5, -3.0, 1e-9]), votive.bfloat16),
    (votive.tensor([1e5, 1e30], dtype=votive.float64), votive.bfloat16),
    (votive.tensor([float("inf"), float("-inf"), float("nan"), 1.0]), votive.bfloat16),
    (votive.tensor([7e4, 3.0], dtype=votive.bfloat16), votive.bfloat16),
    (votive.tensor([6e-8, 6e4], dtype=votive.float16), votive.float16),
    (votive.tensor([1 << 40, -1]), votive.int64),
    (votive.tensor([True, False]), votive.bool),
    (votive.tensor([1e5 + 2e5j]), votive.complex64),
]


@pytest.mark.parametrize(("value", "dtype"), HALVED, ids=[str(v.dtype) for v, _ in HALVED])
def test_half_keeps_the_size_of_every_number(value: votive.Tensor, dtype: votive.dtype) -> None:
    model = nn.Identity()
    with glass.capture(model, "^", policy="half") as seen:
        model(value)
    kept = seen[""]
    assert kept.dtype == dtype
    assert votive.equal(kept.isfinite(), value.isfinite())
    good = value[value.isfinite()].to(votive.complex128)
    got = kept[kept.isfinite()].to(votive.complex128)
    assert bool(((got - good).abs() <= good.abs() / 256).all())
    assert seen.bytes == glass.predict(model, "^", value, policy="half").bytes


@pytest.mark.parametrize("value", [votive.tensor([1.0, 1e300], dtype=votive.float64), votive.tensor([-3.4e38])])
def test_half_refuses_what_it_would_make_infinite(value: votive.Tensor) -> None:
    model = nn.Identity()
    with pytest.raises(OverflowError, match="policy='cpu'"):
        with glass.capture(model, "^", policy="half"):
            model(value)


def test_a_kept_value_that_was_overwritten_is_an_error() -> None:
    class InPlace(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Identity()

        def forward(self, t: votive.Tensor) -> votive.Tensor:
            return self.inner(t + 1).mul_(2)

    model = InPlace()
    with glass.capture(model, "inner") as found:
        model(votive.ones(2))
    with pytest.raises(RuntimeError, match="policy='copy'"):
        found["inner"]


def test_all_runs_are_kept_in_order() -> None:
    model = nn.Sequential(nn.Identity())
    with glass.capture(model, "0") as found:
        for i in range(3):
            model(votive.full((1,), float(i)))
    assert [v.item() for v in found.all("0")] == [0.0, 1.0, 2.0]


def test_a_pattern_that_matches_nothing_is_an_error_that_helps() -> None:
    model = net()
    with pytest.raises(glass.NoMatch, match=r"Did you mean 'blocks\.0\.lin'"):
        glass.capture(model, "blocks.0.lni")
    with pytest.raises(glass.NoMatch, match="matches no call"):
        with glass.capture(model, "/softmax"):
            model(x())
    assert clean(model)


def test_nothing_stays_attached_after_an_error() -> None:
    model = net()
    with pytest.raises(RuntimeError):
        with glass.capture(model, ["head", "/tanh"]):
            model(votive.ones(2, 7))
    assert clean(model)


def test_a_limit_stops_a_run_that_would_keep_too_much() -> None:
    model = net().eval()
    with pytest.raises(MemoryError, match="limit of 100"):
        with glass.capture(model, "blocks.*", limit=100):
            model(x())
    assert clean(model)


def test_only_the_thread_that_captures_is_seen() -> None:
    model = nn.Sequential(nn.Identity())
    with glass.capture(model, "0") as found:
        thread = threading.Thread(target=lambda: model(votive.ones(1)))
        thread.start()
        thread.join()
        model(votive.zeros(1))
    assert [v.item() for v in found.all("0")] == [0.0]


def test_a_part_that_is_called_by_itself_keeps_its_address() -> None:
    model = net().eval()
    with glass.capture(model, "blocks.1.lin") as found:
        model.blocks[1](x())
    assert list(found) == ["blocks.1.lin"]


def test_a_wrapped_model_keeps_its_addresses() -> None:
    model = net().eval()
    wrapper = nn.Sequential(nn.Identity(), model)
    with glass.capture(model, "blocks.0.lin") as found:
        wrapper(x())
    assert list(found) == ["blocks.0.lin"]


def test_a_tree_tells_calls_shapes_and_bytes() -> None:
    model = net().eval()
    found = glass.tree(model, x(), ops=True)
    by_address = {str(n.address): n for n in found.walk()}
    assert by_address["head"].output == "float32 (2, 5, 3)"
    assert by_address["head"].bytes == 2 * 5 * 3 * 4
    assert "blocks.0.shared#1/linear#0" in by_address
    assert "head: Linear" in str(found)
    assert found.to_dict()["children"][0]["address"] == "blocks.0"


@pytest.mark.parametrize("policy", ["keep", "half", "stats"])
def test_the_bytes_of_a_capture_are_known_before_it_runs(policy: str) -> None:
    model = nn.Sequential(nn.Linear(64, 256), nn.BatchNorm1d(256), nn.Dropout(0.5)).train()
    data, at = votive.randn(100, 64), ["*", "2:in"]
    mean, state = model[1].running_mean.clone(), votive.get_rng_state()
    result = glass.predict(model, at, data, policy=policy)
    assert votive.equal(model[1].running_mean, mean)
    assert bytes(votive.get_rng_state()) == bytes(state)
    with glass.capture(model, at, policy=policy) as found:
        model(data)
    assert result.bytes == found.bytes
    assert list(result.sites) == list(found)
    assert clean(model)


def test_a_prediction_computes_nothing_large() -> None:
    model, ran = nn.Sequential(nn.Linear(64, 256)), {}

    class Times(Observer):
        def after(self, call: Any) -> None:
            # Only what was computed took a time.
            ran[call.op.name] = call.seconds == call.seconds

    with Times():
        glass.predict(model, "0", votive.ones(100, 64))
    assert ran["linear"] is False
    with Times():
        model(votive.ones(100, 64))
    assert ran["linear"] is True


def test_a_kept_value_that_was_written_through_data_is_told() -> None:
    model = net().eval()
    with votive.no_grad(), glass.capture(model, "blocks.0.lin", policy="keep") as found:
        model(x())
        value = found["blocks.0.lin"]
        value.data.add_(1)
        with pytest.raises(RuntimeError, match="changed in place"):
            found["blocks.0.lin"]
