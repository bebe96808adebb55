"""A whole training step is one graph: forward, backward, clipping, optimizer, forgetting gradients, schedule."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import nn
from votive.compiler import explain
from votive.nn import functional as F

from .compare import close
from .test_training import GPT, Net, gpt_batch, net_batch

pytestmark = pytest.mark.usefixtures("interpreted")

O = votive.optim
S = O.lr_scheduler
STEPS = 20
OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda p: O.SGD(p, lr=0.05),
    "momentum": lambda p: O.SGD(p, lr=0.05, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "nesterov": lambda p: O.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda p: O.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: O.AdamW(p, lr=0.01),
    "each": lambda p: O.AdamW(p, lr=0.01, foreach=False),
    "rmsprop": lambda p: O.RMSprop(p, lr=0.003, momentum=0.9, centered=True),
    "adagrad": lambda p: O.Adagrad(p, lr=0.03),
    "adadelta": lambda p: O.Adadelta(p, lr=1.0),
    "adamax": lambda p: O.Adamax(p, lr=0.01),
    "nadam": lambda p: O.NAdam(p, lr=0.01),
    "radam": lambda p: O.RAdam(p, lr=0.01),
    "lion": lambda p: O.Lion(p, lr=0.001),
    "asgd": lambda p: O.ASGD(p, lr=0.05, t0=5),
    "rprop": lambda p: O.Rprop(p, lr=0.001),
}
SCHEDULES: dict[str, Any] = {
    "step": lambda o: S.StepLR(o, 3, gamma=0.5),
    "cosine": lambda o: S.CosineAnnealingLR(o, 20),
    "cycle": lambda o: S.OneCycleLR(o, 0.02, total_steps=30),
    "lambda": lambda o: S.LambdaLR(o, lambda i: 1.0 / (1 + i)),
    "chain": lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.1), S.ExponentialLR(o, 0.9)], milestones=[5]),
}


def small() -> Any:
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3))


def small_batch() -> Any:
    return votive.randn(5, 4), votive.randint(0, 3, (5,))


class Training:
    """A model, its optimizer and what trains them; `program(training, *batch)` is one step."""

    def __init__(self, program: Any, make: Any, optimizer: Any, schedule: Any = None, compiled: bool = False) -> None:
        votive.manual_seed(0)
        self.model = make()
        self.optimizer = optimizer(self.model.parameters())
        self.schedule = schedule(self.optimizer) if schedule is not None else None
        me = self

        def step(*batch: Any) -> Any:
            return program(me.model, me.optimizer, me.schedule, *batch)

        self.step = votive.compile(step, fullgraph=True) if compiled else step

    def run(self, batch: Any, steps: int = STEPS, between: Any = None) -> list[float]:
        losses = []
        for i in range(steps):
            votive.manual_seed(10 + i % 3)
            losses.append(float(self.step(*batch())))
            if between is not None:
                between(self, i)
        return losses

    def everything(self) -> list[Any]:
        state = self.optimizer.state_dict()["state"]
        held = [v for of in state.values() for v in of.values() if isinstance(v, votive.Tensor)]
        grads = [p.grad for p in self.model.parameters() if p.grad is not None]
        return [*self.model.state_dict().values(), *held, *grads]


def same(
    program: Any,
    make: Any,
    optimizer: Any,
    batch: Any,
    schedule: Any = None,
    between: Any = None,
    scale: float = 30,
    versions: int = 2,
) -> Training:
    """A program trains a model just as it does when it is compiled, in few versions."""
    one = Training(program, make, optimizer, schedule)
    other = Training(program, make, optimizer, schedule, compiled=True)
    want, got = one.run(batch, between=between), other.run(batch, between=between)
    assert got == pytest.approx(want, rel=1e-3, abs=1e-4)
    for a, b in zip(one.everything(), other.everything(), strict=True):
        close(a.double(), b.double(), scale * 1e5)
    found = explain(other.step)
    assert len(found.versions) <= versions, found.recompilations
    assert sum(v.runs for v in found.versions) >= STEPS - versions
    return other


def plain(model: Any, optimizer: Any, schedule: Any, *batch: Any) -> Any:
    optimizer.zero_grad()
    loss = (
        F.cross_entropy(model(batch[0]), batch[1])
        if len(batch) == 2 and not isinstance(model, (GPT, Net))
        else model(*batch)
    )
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if schedule is not None:
        schedule.step()
    return loss


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_twenty_steps_with_each_optimizer(optimizer: str) -> None:
    same(plain, small, OPTIMIZERS[optimizer], small_batch)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.filterwarnings("ignore:The epoch parameter")
def test_rates_that_change_each_step_are_read_and_compile_nothing(schedule: str) -> None:
    same(plain, small, OPTIMIZERS["adamw"], small_batch, SCHEDULES[schedule])
    same(plain, small, OPTIMIZERS["momentum"], small_batch, SCHEDULES[schedule])


@pytest.mark.parametrize("make, batch", [(GPT, gpt_batch), (Net, net_batch)], ids=["gpt", "net"])
def test_dropout_running_statistics_and_tied_weights(make: Any, batch: Any) -> None:
    same(plain, make, OPTIMIZERS["adamw"], batch, SCHEDULES["cosine"])


def test_gradients_add_up_over_micro_batches() -> None:
    def program(model: Any, optimizer: Any, schedule: Any, x: Any, y: Any) -> Any:
        total = 0.0
        for i in range(3):
            loss = F.cross_entropy(model(x + i), y) / 3
            loss.backward()
            total = total + loss.detach()
        nn.utils.clip_grad_value_(model.parameters(), 0.05)
        optimizer.step()
        optimizer.zero_grad()
        return total

    same(program, small, OPTIMIZERS["adam"], small_batch)


def test_gradients_that_were_there_are_added_to() -> None:
    def program(model: Any, optimizer: Any, schedule: Any, x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss.detach()

    def between(training: Any, i: int) -> None:
        if i % 4 == 3:
            training.optimizer.step()
            training.optimizer.zero_grad(set_to_none=i % 8 == 3)

    same(program, small, OPTIMIZERS["sgd"], small_batch, between=between)


@pytest.mark.parametrize("by", ["optimizer", "model", "hand"])
def test_zeros_instead_of_none(by: str) -> None:
    def program(model: Any, optimizer: Any, schedule: Any, x: Any, y: Any) -> Any:
        if by == "hand":
            for p in model.parameters():
                if p.grad is not None:
                    p.grad.zero_()
        else:
            (optimizer if by == "optimizer" else model).zero_grad(set_to_none=False)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    same(program, small, OPTIMIZERS["adam"], small_batch)


def test_autocast() -> None:
    def program(model: Any, optimizer: Any, schedule: Any, x: Any, y: Any) -> Any:
        model.zero_grad()
        with votive.autocast("cpu", dtype=votive.bfloat16):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    one, other = (Training(program, small, OPTIMIZERS["adam"], None, c) for c in (False, True))
    assert other.run(small_batch) == pytest.approx(one.run(small_batch), rel=3e-2, abs=1e-2)
    assert len(explain(other.step).versions) == 1


def test_an_optimizer_written_by_hand() -> None:
    def program(model: Any, optimizer: Any, schedule: Any, x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        with votive.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
                p.grad = None
        return loss

    same(program, small, OPTIMIZERS["sgd"], small_batch)


def test_gradients_by_hand() -> None:
    def program(model: Any, optimizer: Any, schedule: Any, x: Any, y: Any) -> Any:
        params = list(model.parameters())
        loss = F.cross_entropy(model(x), y)
        grads = votive.autograd.grad(loss, params)
        with votive.no_grad():
            for p, g in zip(params, grads):
                p.sub_(g, alpha=0.1)
        return loss

    same(program, small, OPTIMIZERS["sgd"], small_batch)


def test_a_penalty_on_gradients() -> None:
    def program(model: Any, optimizer: Any, schedule: Any, x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        grads = votive.autograd.grad(loss, [model[0].weight, model[2].weight], create_graph=True)
        loss = loss + 0.1 * sum((g * g).sum() for g in grads)
        loss.backward()
        optimizer.step()
        return loss

    same(program, small, OPTIMIZERS["adam"], small_batch)


def test_two_models_take_turns() -> None:
    def make() -> Any:
        return nn.ModuleList([small(), nn.Linear(3, 4)])

    def program(model: Any, optimizer: Any, schedule: Any, x: Any, y: Any) -> Any:
        first, second = model
        optimizer.zero_grad()
        a = F.cross_entropy(first(x), y)
        a.backward(retain_graph=True)
        b = F.mse_loss(second(first(x).detach()), x)
        b.backward()
        optimizer.step()
        return a.detach() + b.detach()

    same(program, make, OPTIMIZERS["adamw"], small_batch)


def test_several_steps_in_one_graph() -> None:
    def program(model: Any, optimizer: Any, schedule: Any, x: Any, y: Any) -> Any:
        for i in range(3):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x * (i + 1)), y)
            loss.backward()
            optimizer.step()
        return loss

    same(program, small, OPTIMIZERS["adamw"], small_batch)
