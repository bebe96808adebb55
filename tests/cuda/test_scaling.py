"""GradScaler on a GPU: what a CPU does, without the host ever waiting for a fused optimizer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import votive as vt
from votive.backends.cuda import runtime as rt
from votive.ops.registry import F

from .device import cpu_fallbacks
from .late import emulated, late, no_waits

FUSED: list[tuple[str, dict[str, Any]]] = [
    ("Adam", {"amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {}),
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("Adagrad", {"lr_decay": 0.1}),
]
BAD = {0: math.inf, 3: math.nan, 4: -math.inf}  # the steps that must be left out


def _train(
    device: str, name: str, options: dict[str, Any], steps: int = 7, clip: bool = False
) -> tuple[list[Any], dict[str, Any]]:
    shapes = ((3, 2), (5,))
    values = [vt.arange(float(math.prod(s))).reshape(s).to(device) / 7 for s in shapes]
    params = [values[0].t().requires_grad_(), values[1].requires_grad_()]
    optimizer = getattr(vt.optim, name)(params, lr=0.05, **options)
    scaler = vt.amp.GradScaler(device, init_scale=3.0, growth_interval=2, growth_factor=2.5)
    slopes = [vt.ones(p.shape, device=device) * 0.5 for p in params]
    for k in range(steps):
        scaled = scaler.scale(vt.tensor(BAD.get(k, 0.5 + k), device=device))
        for p, slope in zip(params, slopes, strict=True):
            p.grad = slope * scaled
        if clip:
            scaler.unscale_(optimizer)
            vt.nn.utils.clip_grad_norm_(params, 1.0)
        scaler.step(optimizer)
        scaler.update()
    states = [s for p in params for s in optimizer.state[p].values()]
    return [*params, *states], scaler.state_dict()


def _same(ours: Any, theirs: Any) -> None:
    for a, b in zip(ours[0], theirs[0], strict=True):
        np.testing.assert_allclose(a.detach().cpu().numpy(), b.detach().numpy(), rtol=3e-5, atol=1e-6)
    assert ours[1] == theirs[1]


@pytest.mark.parametrize(("name", "options", "clip"), [(*f, False) for f in FUSED] + [("AdamW", {}, True)])
def test_a_fused_optimizer_steps_as_a_plain_one_on_the_cpu(name: str, options: dict[str, Any], clip: bool) -> None:
    with cpu_fallbacks() as left:
        ours = _train("cuda", name, {**options, "fused": True}, clip=clip)
    assert not left
    _same(ours, _train("cpu", name, options, clip=clip))
    assert ours[1]["scale"] != 3.0


def test_a_plain_optimizer_steps_as_on_the_cpu_too() -> None:
    _same(_train("cuda", "AdamW", {}), _train("cpu", "AdamW", {}))


def test_dampening_starts_with_the_first_step_that_happens() -> None:
    options = {"momentum": 0.9, "dampening": 0.4}
    _same(_train("cuda", "SGD", {**options, "fused": True}), _train("cpu", "SGD", options))


@pytest.mark.parametrize("clip", [False, True])
def test_ten_steps_with_a_fused_optimizer_never_let_the_host_wait(clip: bool) -> None:
    vt.manual_seed(0)
    model = vt.nn.Linear(4, 2).to("cuda")
    optimizer = vt.optim.AdamW(model.parameters(), fused=True)
    scaler = vt.amp.GradScaler("cuda", init_scale=1024.0)
    x = vt.randn(3, 4, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        with vt.autocast("cuda", dtype=vt.float16):
            loss = model(x).float().square().mean()
        scaler.scale(loss).backward()
        if clip:
            scaler.unscale_(optimizer)
            vt.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    step()  # kernels and tables are made
    before = model.weight.detach().clone()
    with no_waits():
        for _ in range(10):
            step()
    assert not vt.equal(model.weight, before)
    assert optimizer.state[model.weight]["step"].item() == 11


def test_a_plain_optimizer_lets_the_host_wait_once_a_step() -> None:
    w = vt.ones(3, device="cuda", requires_grad=True)
    optimizer, scaler = vt.optim.SGD([w], lr=0.1), vt.amp.GradScaler("cuda")
    for _ in range(2):
        scaler.scale(w.sum()).backward()
        before = rt.runtime.driver.waits
        scaler.step(optimizer)
        scaler.update()
        assert rt.runtime.driver.waits == before + 1


def test_a_step_with_its_scaler_can_be_a_graph() -> None:
    def trained(graphed: bool) -> tuple[list[float], float]:
        w = vt.full((3,), 2.0, device="cuda").requires_grad_()
        w.grad = vt.zeros(3, device="cuda")
        factor = vt.ones((), device="cuda")
        optimizer = vt.optim.AdamW([w], lr=0.1, fused=True)
        scaler = vt.amp.GradScaler("cuda", init_scale=4.0, growth_interval=3)

        def step() -> None:
            optimizer.zero_grad(set_to_none=False)
            scaler.scale((w * w).sum() * factor).backward()
            scaler.step(optimizer)
            scaler.update()

        run: Any = step
        if graphed:
            run = vt.cuda.make_graphed(step, warmup=2)
        else:
            step(), step()
        for k in range(6):
            factor.fill_(math.inf if k == 2 else 1.0 + k)
            run()
        return w.tolist(), scaler.get_scale()

    assert trained(True) == trained(False)


def test_a_scaler_resumes_on_the_gpu() -> None:
    scaler = vt.amp.GradScaler("cuda", init_scale=8.0, growth_interval=5)
    scaler.load_state_dict(
        {"scale": 16.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2, "_growth_tracker": 1}
    )
    w = vt.ones(2, device="cuda", requires_grad=True)
    optimizer = vt.optim.SGD([w], lr=0.1)
    scaler.scale(w.sum()).backward()
    assert w.grad.tolist() == [16.0, 16.0]
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 32.0
    scaler.update(7.0)
    assert scaler.state_dict()["scale"] == 7.0
    scaler.update(vt.tensor(5.0, device="cuda"))
    assert scaler.get_scale() == 5.0


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_check_marks_what_it_found_and_forgets_nothing(device: str) -> None:
    check = F._amp_foreach_non_finite_check_and_unscale_
    found, half = vt.zeros((), device=device), vt.tensor(0.5, device=device)
    check([vt.ones(3, device=device), vt.ones(2, 2, device=device) * 4], found, half)
    assert found.item() == 0.0
    bad = vt.ones(9000, device=device, dtype=vt.bfloat16)
    bad[8500] = math.inf
    check([vt.ones(1, device=device, dtype=vt.bfloat16), bad], found, half)
    assert found.item() == 1.0
    assert bad[0].item() == 0.5
    check([vt.ones(3, device=device)], found, half)
    check([], found, half)
    assert found.item() == 1.0
    wide = vt.full((3,), 8.0, device=device, dtype=vt.float64)
    check([wide], found, half)
    assert wide.tolist() == [4.0] * 3
    with pytest.raises(RuntimeError, match="found_inf must be a float32 tensor"):
        check([wide], vt.zeros(2, device=device), half)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_scale_grows_shrinks_and_never_becomes_infinite(device: str) -> None:
    scale = vt.tensor(2.0, device=device)
    tracker = vt.zeros((), dtype=vt.int32, device=device)
    seen = []
    for bad in (0.0, 0.0, 1.0, 0.0, 0.0, 0.0):
        F._amp_update_scale_(scale, tracker, vt.tensor(bad, device=device), 3.0, 0.25, 2)
        seen.append((scale.item(), tracker.item()))
    assert seen == [(2.0, 1), (6.0, 0), (1.5, 0), (1.5, 1), (4.5, 0), (4.5, 1)]
    scale.fill_(3e38)
    F._amp_update_scale_(scale, tracker, vt.tensor(0.0, device=device), 3.0, 0.25, 2)
    assert scale.item() == pytest.approx(3e38)
    assert tracker.item() == 0


@emulated
def test_training_gives_the_same_on_a_device_that_works_late() -> None:
    def losses() -> list[float]:
        vt.manual_seed(0)
        model = vt.nn.Sequential(vt.nn.Linear(3, 2), vt.nn.Tanh()).to("cuda", non_blocking=True)
        optimizer = vt.optim.AdamW(model.parameters(), lr=0.1, fused=True)
        scaler = vt.amp.GradScaler("cuda", init_scale=16.0)
        loader = vt.utils.data.DataLoader(vt.arange(18.0).reshape(6, 3), 2, pin_memory=True)
        seen = []
        for x in loader:
            loss = (model(x.to("cuda", non_blocking=True)) - 0.5).square().mean()
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            seen.append(loss.detach().to("cpu", non_blocking=True))
        vt.cuda.synchronize()
        return [s.item() for s in seen]

    plain = losses()
    with late():
        assert losses() == plain


def test_values_saved_in_pinned_memory_return_for_backward() -> None:
    x = vt.arange(4.0, device="cuda").requires_grad_()
    with vt.autograd.graph.save_on_cpu(pin_memory=True):
        y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [0.0, 2.0, 4.0, 6.0]


def test_the_host_can_be_told_when_it_waits() -> None:
    x = vt.ones(2, device="cuda")
    try:
        vt.cuda.set_sync_debug_mode("warn")
        assert vt.cuda.get_sync_debug_mode() == 1
        with pytest.warns(UserWarning, match="synchronizing CUDA operation"):
            x.sum().item()
        vt.cuda.set_sync_debug_mode("error")
        with pytest.raises(vt.cuda.CudaError, match="synchronizing CUDA operation"):
            x.cpu()
        (x + 1).to("cpu", non_blocking=True)
        vt.cuda.synchronize()  # who asks for it gets it
    finally:
        vt.cuda.set_sync_debug_mode(0)
    with pytest.raises(RuntimeError, match="expected one of"):
        vt.cuda.set_sync_debug_mode("loud")
