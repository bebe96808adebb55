"""GradScaler: scaling, skipping bad steps, growth, and what it saves."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

import votive
from votive.dispatch import Observer


class Names(Observer):
    def __init__(self) -> None:
        self.names: list[str] = []

    def before(self, call: Any) -> None:
        self.names.append(call.op.name)


def test_gradients_are_scaled_up_and_down_again() -> None:
    w = votive.ones(2, requires_grad=True)
    opt = votive.optim.SGD([w], lr=0.5)
    scaler = votive.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale((w * w).sum()).backward()
    assert w.grad.tolist() == [16.0, 16.0]
    scaler.unscale_(opt)
    assert w.grad.tolist() == [2.0, 2.0]
    scaler.step(opt)
    scaler.update()
    assert w.tolist() == [0.0, 0.0]
    assert scaler.get_scale() == 8.0


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_a_step_with_bad_gradients_is_skipped_and_the_scale_shrinks(bad: float) -> None:
    a, b = votive.ones(2, requires_grad=True), votive.ones(1, requires_grad=True)
    opt = votive.optim.SGD([a, b], lr=0.5)
    scaler = votive.amp.GradScaler("cpu", init_scale=8.0, backoff_factor=0.25)
    scaler.scale(votive.ones(1))
    a.grad, b.grad = votive.ones(2), votive.tensor([bad])
    assert scaler.step(opt) is None
    scaler.update()
    assert (a.tolist(), b.tolist()) == ([1.0, 1.0], [1.0])
    assert scaler.get_scale() == 2.0
    assert scaler._get_growth_tracker() == 0


def test_the_scale_grows_after_enough_good_steps() -> None:
    w = votive.ones(1, requires_grad=True)
    opt = votive.optim.SGD([w], lr=0.0)
    scaler = votive.amp.GradScaler("cpu", init_scale=4.0, growth_factor=3.0, growth_interval=2)
    scales = []
    for _ in range(5):
        opt.zero_grad()
        scaler.scale(w.sum()).backward()
        scaler.step(opt)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [4.0, 12.0, 12.0, 36.0, 36.0]


def test_all_gradients_of_a_dtype_are_unscaled_by_one_call() -> None:
    params = [votive.ones(3, requires_grad=True) for _ in range(5)]
    opt = votive.optim.SGD(params)
    scaler = votive.amp.GradScaler("cpu")
    scaler.scale(sum(p.sum() for p in params)).backward()
    with Names() as seen:
        scaler.unscale_(opt)
    assert seen.names.count("_amp_foreach_non_finite_check_and_unscale_") == 1
    assert all(p.grad.tolist() == [1.0, 1.0, 1.0] for p in params)


def test_calls_in_the_wrong_order_are_errors() -> None:
    w = votive.ones(1, requires_grad=True)
    opt = votive.optim.SGD([w])
    scaler = votive.amp.GradScaler("cpu")
    with pytest.raises(AssertionError, match="Attempted step but _scale is None"):
        scaler.step(opt)
    scaler.scale(w.sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()
    scaler.unscale_(opt)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(opt)
    scaler.step(opt)
    with pytest.raises(RuntimeError, match="being called after step"):
        scaler.unscale_(opt)
    with pytest.raises(RuntimeError, match="already been called since"):
        scaler.step(opt)
    with pytest.raises(RuntimeError, match="Closure"):
        scaler.step(opt, closure=lambda: None)
    scaler.update()
    opt.zero_grad()
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        scaler.step(opt)


def test_float16_gradients_are_refused() -> None:
    w = votive.ones(1, dtype=votive.float16, requires_grad=True)
    scaler = votive.amp.GradScaler("cpu")
    scaler.scale(w.sum()).backward()
    with pytest.raises(ValueError, match="FP16 gradients"):
        scaler.unscale_(votive.optim.SGD([w]))


def test_outputs_in_lists_are_scaled() -> None:
    scaler = votive.amp.GradScaler("cpu", init_scale=2.0)
    a, (b, c) = scaler.scale([votive.ones(1), (votive.ones(1), votive.ones(1))])
    assert [t.item() for t in (a, b, c)] == [2.0, 2.0, 2.0]
    assert scaler.scale(votive.ones((), dtype=votive.float16)).dtype is votive.float32
    with pytest.raises(ValueError, match="outputs must be"):
        scaler.scale(3)


def test_a_disabled_scaler_does_nothing() -> None:
    w = votive.ones(1, requires_grad=True)
    opt = votive.optim.SGD([w], lr=1.0)
    scaler = votive.amp.GradScaler("cpu", enabled=False)
    loss = w.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(opt)
    scaler.step(opt)
    scaler.update()
    assert w.item() == 0.0
    assert (scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()) == (1.0, {}, False)
    enabled = votive.amp.GradScaler("cpu")
    with pytest.raises(RuntimeError, match="empty"):
        enabled.load_state_dict({})


def test_a_scaler_goes_on_after_loading_and_pickling() -> None:
    def run(scaler: Any, steps: int) -> list[float]:
        w = votive.ones(1, requires_grad=True)
        opt = votive.optim.SGD([w], lr=0.0)
        scales = []
        for _ in range(steps):
            opt.zero_grad()
            scaler.scale(w.sum()).backward()
            scaler.step(opt)
            scaler.update()
            scales.append(scaler.get_scale())
        return scales

    scaler = votive.amp.GradScaler("cpu", init_scale=4.0, growth_interval=3)
    run(scaler, 4)
    other = votive.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    pickled = pickle.loads(pickle.dumps(scaler))
    assert run(scaler, 4) == run(other, 4) == run(pickled, 4) == [8.0, 16.0, 16.0, 16.0]


def test_the_scale_can_be_set() -> None:
    scaler = votive.amp.GradScaler("cpu")
    scaler.scale(votive.ones(1))
    scaler.update(new_scale=32.0)
    assert scaler.get_scale() == 32.0
    scaler.update(new_scale=votive.tensor(64.0))
    assert scaler.get_scale() == 64.0
    with pytest.raises(AssertionError, match="1-element"):
        scaler.update(new_scale=votive.ones(2))
    with pytest.raises(AssertionError, match="growth factor"):
        votive.amp.GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="backoff factor"):
        votive.amp.GradScaler("cpu", backoff_factor=1.0)


def test_the_older_names_fix_the_device() -> None:
    from votive.cpu.amp import GradScaler, autocast

    w = votive.ones(2, 2, requires_grad=True)
    with autocast():
        assert (w @ w).dtype is votive.bfloat16
    with autocast(enabled=False):
        assert (w @ w).dtype is votive.float32
    scaler = pickle.loads(pickle.dumps(GradScaler(init_scale=4.0)))
    assert scaler.scale(votive.ones(1)).item() == 4.0
    off = votive.cuda.amp.GradScaler(enabled=False)
    assert off.get_scale() == 1.0
    with votive.cuda.amp.autocast(enabled=False):
        assert (w @ w).dtype is votive.float32


@pytest.mark.parametrize(
    ("name", "options"), [("AdamW", {}), ("SGD", {"momentum": 0.9, "dampening": 0.3}), ("SGD", {}), ("Adagrad", {})]
)
def test_fused_steps_are_left_out_and_scaled_as_plain_ones(name: str, options: Any) -> None:
    def trained(**more: Any) -> tuple[list[Any], Any]:
        params = [votive.ones(2, 3).t().requires_grad_(), votive.ones(4, requires_grad=True)]
        opt = getattr(votive.optim, name)(params, lr=0.1, **options, **more)
        scaler = votive.amp.GradScaler("cpu", init_scale=3.0, growth_interval=2)
        grads: list[Any] = []
        for k, bad in enumerate((math.inf, 1.0, 1.0, math.nan, 1.0, 1.0)):
            scale = scaler.scale(votive.tensor(bad))
            for p in params:
                p.grad = votive.full(p.shape, 0.5 + k) * scale
            scaler.step(opt)
            scaler.update()
            grads += [p.grad.tolist() for p in params] if bad == 1.0 else []
        states = [s.tolist() for p in params for s in opt.state[p].values()]
        return [p.tolist() for p in params] + states + grads, scaler.state_dict()

    ours, theirs = trained(fused=True), trained()
    assert ours[1] == theirs[1]
    for a, b in zip(ours[0], theirs[0], strict=True):
        assert votive.allclose(votive.tensor(a), votive.tensor(b), rtol=1e-6)


def test_an_optimizer_takes_scaling_only_if_all_its_groups_are_fused() -> None:
    w = votive.ones(1, requires_grad=True)
    assert votive.optim.AdamW([w], fused=True)._step_supports_amp_scaling
    assert not votive.optim.AdamW([w])._step_supports_amp_scaling
    mixed = [{"params": [w], "fused": True}, {"params": [votive.ones(1, requires_grad=True)]}]
    assert not votive.optim.AdamW(mixed)._step_supports_amp_scaling
    assert not getattr(votive.optim.RMSprop([w]), "_step_supports_amp_scaling", False)


def test_what_a_scaler_leaves_to_an_optimizer_is_gone_after_the_step() -> None:
    w = votive.ones(2, requires_grad=True)
    opt = votive.optim.SGD([w], lr=0.5, fused=True)
    scaler = votive.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(votive.ones(()))
    w.grad = votive.full((2,), 8.0)
    opt.grad_scale = votive.tensor(2.0)  # of a user who scaled as well
    scaler.step(opt)
    assert w.tolist() == [0.5, 0.5]
    assert not hasattr(opt, "grad_scale")
    assert not hasattr(opt, "found_inf")


@pytest.mark.parametrize("dtype", [votive.float32, votive.bfloat16])
def test_step_operators_divide_gradients_and_leave_steps_out(dtype: votive.dtype) -> None:
    F = votive.ops.registry.F
    for bad in (0.0, 1.0):
        p, g = votive.ones(3, dtype=dtype), votive.full((3,), 8.0, dtype=dtype)
        total, step = votive.zeros(3, dtype=dtype), votive.zeros(())
        scale, found = votive.tensor(4.0), votive.tensor(bad)
        F._adagrad_step([p], [g], [total], [step], 0.5, 0, 0.0, 0.0, False, scale, found)
        F._sgd_step([p], [g], [], (True,), 0.25, 0, 0, 0, False, False, scale, found)
        assert step.item() == 1 - bad
        assert g.tolist() == [8.0 if bad else 0.5] * 3  # divided by each of the two
        assert p.tolist() == [1.0 if bad else 0.375] * 3
