"""Whatever changes between two steps of a compiled training program is seen at the next one."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import votive
from votive import nn
from votive.compiler import explain
from votive.nn import functional as F

from .compare import close
from .test_whole_steps import OPTIMIZERS, SCHEDULES, Training, plain, same, small, small_batch

pytestmark = pytest.mark.usefixtures("interpreted")


def at(step: int, change: Any) -> Any:
    return lambda training, i: change(training) if i == step else None


def weight(t: Training) -> None:
    with votive.no_grad():
        t.model[0].weight.mul_(0.5)


def data(t: Training) -> None:
    t.model[0].weight.data = t.model[0].weight.data * 0.5


def parameter(t: Training) -> None:
    t.model[0].weight = nn.Parameter(t.model[0].weight.detach() * 2)


def rate(t: Training) -> None:
    t.optimizer.param_groups[0]["lr"] *= 0.1


def betas(t: Training) -> None:
    t.optimizer.param_groups[0]["betas"] = (0.5, 0.9)


def decay(t: Training) -> None:
    t.optimizer.param_groups[0]["weight_decay"] = 0.3


def option(t: Training) -> None:
    t.optimizer.param_groups[0]["maximize"] = True


def amsgrad(t: Training) -> None:
    for p in t.model.parameters():
        t.optimizer.state[p]["max_exp_avg_sq"] = votive.zeros_like(p)
    t.optimizer.param_groups[0]["amsgrad"] = True


def frozen(t: Training) -> None:
    t.model[0].weight.requires_grad_(False)


def group(t: Training) -> None:
    votive.manual_seed(5)
    t.model.append(nn.Linear(3, 3))
    t.optimizer.add_param_group({"params": list(t.model[3].parameters()), "lr": 0.2})


def loaded(t: Training) -> None:
    state = copy.deepcopy(t.optimizer.state_dict())
    for of in state["state"].values():
        of["exp_avg"].mul_(0.1)
    state["param_groups"][0]["lr"] = 0.003
    t.optimizer.load_state_dict(state)


def forgotten(t: Training) -> None:
    t.optimizer.state.clear()


def moved(t: Training) -> None:
    p = t.model[0].weight
    t.optimizer.state[p]["exp_avg"] = t.optimizer.state[p]["exp_avg"] * 3


def evaluated(t: Training) -> None:
    t.model.eval()


def module_hook(t: Training) -> None:
    t.model[0].register_forward_hook(lambda m, args, out: out * 2)


CHANGES = [weight, data, rate, betas, decay, option, amsgrad, frozen, group, loaded, forgotten, moved, evaluated]


@pytest.mark.parametrize("change", [*CHANGES, module_hook, parameter], ids=lambda c: c.__name__)
def test_a_change_is_seen(change: Any) -> None:
    same(plain, small, OPTIMIZERS["adamw"], small_batch, SCHEDULES["cosine"], at(6, change), versions=3)


@pytest.mark.parametrize("change", [weight, data, rate, loaded], ids=lambda c: c.__name__)
def test_numbers_that_change_compile_nothing(change: Any) -> None:
    same(plain, small, OPTIMIZERS["adamw"], small_batch, between=at(6, change), versions=1)


def test_a_rate_that_is_a_tensor() -> None:
    made = lambda p: votive.optim.Adam(p, lr=votive.tensor(0.01))
    same(plain, small, made, small_batch, SCHEDULES["cosine"], versions=1)


def hook_of_gradient(t: Training) -> Any:
    return t.model[0].weight.register_hook(lambda g: g * 3)


def hook_after(t: Training) -> Any:
    def hook(p: Any) -> None:
        p.grad.mul_(2)

    return t.model[0].weight.register_post_accumulate_grad_hook(hook)


def hook_before_step(t: Training) -> Any:
    def hook(optimizer: Any, args: Any, kwargs: Any) -> None:
        for g in optimizer.param_groups:
            for p in g["params"]:
                p.grad.mul_(0.5)

    return t.optimizer.register_step_pre_hook(hook)


@pytest.mark.parametrize("hook", [hook_of_gradient, hook_after, hook_before_step], ids=lambda h: h.__name__)
def test_hooks_that_come_and_go_run(hook: Any) -> None:
    def make(compiled: bool) -> Training:
        t = Training(plain, small, OPTIMIZERS["adamw"])
        if compiled:
            t.step = votive.compile(t.step)
        return t

    def run(t: Training) -> list[float]:
        handles: list[Any] = []

        def between(t: Training, i: int) -> None:
            if i == 4:
                handles.append(hook(t))
            if i == 9:
                handles.pop().remove()

        return t.run(small_batch, 14, between)

    one, other = make(False), make(True)
    assert run(other) == pytest.approx(run(one), rel=1e-3, abs=1e-4)
    for a, b in zip(one.everything(), other.everything(), strict=True):
        close(a, b, 100)


def test_why_a_step_is_no_graph_is_said() -> None:
    w = votive.ones(3, requires_grad=True)
    x = votive.ones(3, requires_grad=True) * 2
    inner = votive.ones(3)

    def closure(v: Any) -> Any:
        votive.optim.SGD([w], 0.1).step()

    def outside(v: Any) -> None:
        (x * w).sum().backward()

    def made(v: Any) -> Any:
        y = votive.ones(3, requires_grad=True)
        (y * w).sum().backward()
        return y.grad

    def hooked(v: Any) -> None:
        y = v * w
        y.register_hook(lambda g: g * 2)
        y.sum().backward()

    def kept(v: Any) -> None:
        (v * w * w).sum().backward(create_graph=True)

    for fn, why in {
        closure: "made inside",
        outside: "computed outside",
        made: "made inside",
        hooked: "register_hook",
        kept: "gradient itself",
    }.items():
        w.grad = None
        with pytest.raises(RuntimeError, match=why):
            votive.compile(fn, fullgraph=True)(inner)


def test_a_gradient_that_was_computed_cannot_be_computed_again() -> None:
    w = votive.ones(3, requires_grad=True)

    @votive.compile
    def f(x: Any) -> Any:
        loss = (x * w).exp().sum()
        loss.backward()
        return loss

    for _ in range(3):
        loss = f(votive.ones(3))
        assert loss.requires_grad
        assert loss.grad_fn is not None
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()
    close(w.grad, 3 * votive.ones(3).exp())


def test_a_graph_that_is_kept_gives_gradients_outside() -> None:
    def f(x: Any, w: Any) -> Any:
        loss = (x * w).exp().sum()
        loss.backward(retain_graph=True)
        return loss * 2

    compiled = votive.compile(f, fullgraph=True)
    for fn in (f, compiled, compiled):
        w = votive.ones(3, requires_grad=True)
        fn(votive.ones(3), w).backward()
        close(w.grad, 3 * votive.ones(3).exp())


def test_gradients_of_arguments_and_of_values_between() -> None:
    def f(x: Any, w: Any) -> Any:
        h = x * w
        y = (h.tanh() * x).sum()
        gh, gx = votive.autograd.grad(y, [h, x], retain_graph=True)
        (gw,) = votive.autograd.grad(y, w)
        none = votive.autograd.grad((x * 2).sum(), [w, x], allow_unused=True)
        zero = votive.autograd.grad((x * 2).sum(), [w, x], materialize_grads=True)
        return gh, gx, gw, none, zero

    compiled = votive.compile(f, fullgraph=True)
    for _ in range(3):
        x, w = votive.randn(3, requires_grad=True), votive.randn(3, requires_grad=True)
        hx = x * 1.0  # no leaf: what it comes from is outside
        for a in (x, hx):
            want, got = f(a, w), compiled(a, w)
            assert got[3][0] is None
            assert not got[0].requires_grad
            for p, q in zip([*want[:3], want[3][1], *want[4]], [*got[:3], got[3][1], *got[4]], strict=True):
                close(p, q)


def test_gradients_share_memory_with_nobody() -> None:
    def f(x: Any, y: Any, seed: Any) -> Any:
        z = x + y
        z.backward(seed)
        return z.detach()

    compiled = votive.compile(f, fullgraph=True)
    for fn in (f, compiled, compiled):
        x, y, seed = votive.ones(3, requires_grad=True), votive.ones(3, requires_grad=True), votive.ones(3)
        fn(x, y, seed)
        x.grad.mul_(5)
        seed.zero_()
        assert y.grad.tolist() == [1, 1, 1]
        fn(x, y, votive.ones(3))
        assert (x.grad.tolist(), y.grad.tolist()) == ([6, 6, 6], [2, 2, 2])


def test_errors_are_those_of_eager() -> None:
    w = votive.ones(3, requires_grad=True)

    def twice(x: Any) -> None:
        loss = (x * w).exp().sum()
        loss.backward()
        loss.backward()

    def vector(x: Any) -> None:
        (x * w).backward()

    def none(x: Any) -> None:
        x.sum().backward()

    def unused(x: Any) -> Any:
        return votive.autograd.grad((w * 2).sum(), [votive.ones(1, requires_grad=True)])

    for fn in (twice, vector, none, unused):
        said = []
        for f in (fn, votive.compile(fn)):
            for _ in range(2):
                w.grad = None
                with pytest.raises(RuntimeError) as e:
                    f(votive.ones(3))
                said.append((str(e.value), None if w.grad is None else w.grad.tolist()))
        assert said[0] == said[1] == said[2] == said[3]


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
