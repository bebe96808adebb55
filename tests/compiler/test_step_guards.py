"""Whatever changes between two steps of a compiled training program is seen at the next one."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import votive
from votive import nn

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
