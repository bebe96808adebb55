"""Kinds of compiled training programs: optimizers of others, scalers, steps alone, gradients of several results."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import nn
from votive.compiler import explain
from votive.nn import functional as F

from .compare import close
from .test_whole_steps import OPTIMIZERS, Training, small, small_batch

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_alone(name: str) -> None:
    def run(compiled: bool) -> Any:
        votive.manual_seed(0)
        model = small()
        optimizer = OPTIMIZERS[name](model.parameters())
        step = votive.compile(optimizer.step, fullgraph=True) if compiled else optimizer.step
        for _ in range(6):
            for p in model.parameters():
                p.grad = votive.randn_like(p)
            step()
        return step, [p.detach() for p in model.parameters()]

    (_, want), (step, got) = run(False), run(True)
    for a, b in zip(want, got, strict=True):
        close(a, b)
    assert len(explain(step).versions) <= 2
    assert sum(v.runs for v in explain(step).versions) >= 4


def test_modules_are_changed_in_each_run() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))

    @votive.compile
    def f(x: Any) -> Any:
        model.train()
        y = model(x)
        model.eval()
        return y

    for _ in range(3):
        f(votive.ones(1, 2))
        assert not model.training
        assert not model[1].training

    @votive.compile
    def g(x: Any) -> Any:
        model.requires_grad_(False)
        return model(x)

    for _ in range(3):
        model.requires_grad_(True)
        assert not g(votive.ones(1, 2)).requires_grad
        assert not model[0].weight.requires_grad


def test_results_are_those_of_a_loss_that_is_read() -> None:
    def program(model: Any, optimizer: Any, x: Any, y: Any) -> float:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        return float(loss) + float((logits.argmax(-1) == y).float().mean())

    found = []
    for compiled in (False, True):
        votive.manual_seed(0)
        model = small()
        optimizer = OPTIMIZERS["adamw"](model.parameters())
        step = votive.compile(program) if compiled else program
        batch = small_batch()
        found.append([step(model, optimizer, *batch) for _ in range(6)])
    assert found[0] == pytest.approx(found[1], rel=1e-4)
    pieces = explain(step).pieces
    assert any("_adamw" in str(v.forward) or "_adam_step" in v.text() for p in pieces for v in p.versions)


def test_gradients_of_several_results_are_computed_one_after_the_other() -> None:
    def f(x: Any, w: Any) -> Any:
        return (x * w).exp().sum(), (x + w).sin().sum(), (x * 2).cos().sum()

    compiled = votive.compile(f)
    for fn in (f, compiled, compiled):
        x, w = votive.ones(3, requires_grad=True), votive.ones(3, requires_grad=True)
        a, b, c = fn(x, w)
        a.backward()
        b.backward()
        c.backward()
        close(x.grad, votive.ones(3).exp() + (votive.ones(3) * 2).cos() - 2 * (votive.ones(3) * 2).sin())
        for r in (a, b, c):
            with pytest.raises(RuntimeError, match="second time"):
                r.backward()


def test_optimizers_of_others_run_as_they_are() -> None:
    class Half(votive.optim.AdamW):
        def step(self, closure: Any = None) -> Any:
            for group in self.param_groups:
                for p in group["params"]:
                    p.grad.mul_(0.5)
            return super().step(closure)

    class Sign(votive.optim.SGD):
        def _update(self, group: Any, params: Any, grads: Any, states: Any) -> None:
            for p, g in zip(params, grads, strict=True):
                p.sub_(g.sign(), alpha=group["lr"])

    class Own(votive.optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {"lr": 0.1})

        @votive.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    p.sub_(p.grad, alpha=group["lr"])
                group["lr"] *= 0.9

    def lbfgs(p: Any) -> Any:
        return votive.optim.LBFGS(p, max_iter=2)

    def program(model: Any, optimizer: Any, schedule: Any, x: Any, y: Any) -> Any:
        def closure() -> Any:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        if type(optimizer).__name__ == "LBFGS":
            return optimizer.step(closure).detach()
        loss = closure()
        optimizer.step()
        return loss.detach()

    for make in (Half, lambda p: Sign(p, lr=0.01), Own, lbfgs):
        one, other = Training(program, small, make), Training(program, small, make)
        other.step = votive.compile(other.step)
        assert other.run(small_batch, 6) == pytest.approx(one.run(small_batch, 6), rel=1e-3)
        for a, b in zip(one.everything(), other.everything(), strict=True):
            close(a, b, 100)


@pytest.mark.parametrize("enabled", [False, True])
def test_a_scaler_that_is_off_is_part_of_the_graph(enabled: bool) -> None:
    scalers = {
        True: votive.amp.GradScaler("cpu", enabled=enabled),
        False: votive.amp.GradScaler("cpu", enabled=enabled),
    }

    def program(model: Any, optimizer: Any, schedule: Any, x: Any, y: Any) -> Any:
        scaler = scalers[optimizer.param_groups[0]["foreach"] is None]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    one = Training(program, small, lambda p: votive.optim.SGD(p, lr=0.1, foreach=True))
    other = Training(program, small, lambda p: votive.optim.SGD(p, lr=0.1))
    other.step = votive.compile(other.step, fullgraph=not enabled)

    def between(training: Training, i: int) -> None:
        training.optimizer.param_groups[0]["lr"] *= 0.8

    assert other.run(small_batch, 8, between) == pytest.approx(one.run(small_batch, 8, between), rel=1e-4)
    for a, b in zip(one.everything(), other.everything(), strict=True):
        close(a, b, 10)
    assert enabled or len(explain(other.step).versions) == 1


def test_memory_that_parameters_are_given_is_given_in_each_run() -> None:
    model = small()
    vector = nn.utils.parameters_to_vector(model.parameters()).detach()

    @votive.compile
    def f(v: Any) -> Any:
        nn.utils.vector_to_parameters(v * 2, model.parameters())
        return v + 1

    for i in range(3):
        f(vector + i)
        close(nn.utils.parameters_to_vector(model.parameters()).detach(), (vector + i) * 2)


def test_results_that_are_detached_stay_so_when_gradients_are_computed_inside() -> None:
    def f(x: Any, w: Any) -> Any:
        h = (x * w).relu()
        h.sum().backward(retain_graph=True)
        return x * 2 + w, h.detach()

    compiled = votive.compile(f, fullgraph=True)
    for fn in (f, compiled, compiled):
        w = votive.ones(3, requires_grad=True)
        live, detached = fn(votive.ones(3), w)
        assert live.requires_grad
        assert not detached.requires_grad
        live.sum().backward()
        assert w.grad.tolist() == [2, 2, 2]


def test_arguments_of_grad_keep_their_places() -> None:
    x, unused = votive.ones(3, requires_grad=True), votive.ones(2, requires_grad=True)

    def slopes(x: Any, unused: Any) -> Any:
        # ..., retain_graph, create_graph, only_inputs, allow_unused
        first, second = votive.autograd.grad((x * x).sum(), (x, unused), None, None, False, True, True)
        assert second is None
        return first

    fast = votive.compile(slopes, fullgraph=True)
    for _ in range(3):
        assert fast(x, unused).tolist() == [2.0, 2.0, 2.0]
