"""Training with compiled programs goes the way it goes eagerly: whole steps, optimizers, clipping, accumulation."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import votive
from votive import nn
from votive.nn import functional as F

from .compare import close

pytestmark = pytest.mark.usefixtures("interpreted")

STEPS = 20


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Any) -> Any:
        return x + self.drop(self.down(F.gelu(self.up(self.norm(x)))))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).reshape(b, t, c))


class GPT(nn.Module):
    """Written as users write it."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(11, 8), nn.Embedding(6, 8)
        self.blocks = nn.ModuleList([nn.Sequential(Attention(8), Block(8)) for _ in range(2)])
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: Any, targets: Any = None) -> Any:
        x = self.embed(ids) + self.place(votive.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.head(x)
        return logits if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3)
        self.out = nn.Linear(27, 4)

    def forward(self, x: Any, targets: Any) -> Any:
        h = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return F.cross_entropy(self.out(F.dropout(h.flatten(1), 0.2, self.training)), targets)


def gpt_batch() -> tuple[Any, ...]:
    return votive.randint(0, 11, (2, 6)), votive.randint(0, 11, (2, 6))


def net_batch() -> tuple[Any, ...]:
    return votive.randn(4, 1, 8, 8), votive.randint(0, 4, (4,))


MODELS: dict[str, Any] = {"gpt": (GPT, gpt_batch), "net": (Net, net_batch)}
OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda p: votive.optim.SGD(p, lr=0.05, momentum=0.9),
    "adamw": lambda p: votive.optim.AdamW(p, lr=0.01),
}


def step_of(model: Any, optimizer: Any) -> Any:
    """A whole training step, as one function."""

    def step(*batch: Any) -> float:
        optimizer.zero_grad()
        loss = model(*batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return float(loss.item())

    return step


def trained(name: str, optimizer: str, how: str) -> tuple[list[float], Any]:
    """(the losses of some steps, the model after them)."""
    make, batch = MODELS[name]
    votive.manual_seed(0)
    model = make()
    called = votive.compile(model) if how == "model" else model
    opt = OPTIMIZERS[optimizer](model.parameters())
    step = step_of(called, opt)
    if how == "step":
        step = votive.compile(step)
    elif how == "optimizer":
        opt.step = votive.compile(opt.step)
    elif how == "blocks":
        for m in model.modules():
            if isinstance(m, (Block, Attention, nn.Conv2d, nn.BatchNorm2d)):
                m.compile()
    losses = []
    for i in range(STEPS):
        votive.manual_seed(10 + i % 3)
        losses.append(step(*batch()))
    return losses, model


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("how", ["model", "step", "optimizer", "blocks"])
def test_twenty_steps_are_those_of_eager(name: str, optimizer: str, how: str) -> None:
    want, model = trained(name, optimizer, "eager")
    got, other = trained(name, optimizer, how)
    assert want[-1] < want[0]
    assert got == pytest.approx(want, rel=2e-3, abs=2e-4)
    for a, b in zip(model.state_dict().values(), other.state_dict().values(), strict=True):
        close(a.double(), b.double(), 1e7)


def test_gradients_accumulate_over_several_calls() -> None:
    votive.manual_seed(0)
    model = GPT().eval()
    other = copy.deepcopy(model)
    compiled = votive.compile(other)
    for i in range(4):
        votive.manual_seed(i)
        ids, targets = gpt_batch()
        model(ids, targets).backward()
        compiled(ids, targets).backward()
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        close(a.grad, b.grad, 10)


def test_two_calls_before_their_backward() -> None:
    votive.manual_seed(0)
    model = GPT().eval()
    compiled = votive.compile(model)
    batches = [gpt_batch() for _ in range(3)]
    for m in (compiled, compiled):
        model.zero_grad()
        losses = [m(*b) for b in batches]
        sum(losses[1:], losses[0]).backward()
    got = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    for b in batches:
        model(*b).backward()
    for a, p in zip(got, model.parameters(), strict=True):
        close(p.grad, a, 10)


def test_training_in_autocast_with_a_scaler() -> None:
    def run(compiled: bool) -> list[float]:
        votive.manual_seed(0)
        model = Net()
        m = votive.compile(model) if compiled else model
        opt, scaler = votive.optim.SGD(model.parameters(), lr=0.05), votive.amp.GradScaler("cpu")
        losses = []
        for i in range(5):
            votive.manual_seed(10 + i)
            batch = net_batch()
            opt.zero_grad()
            with votive.autocast("cpu", dtype=votive.bfloat16):
                loss = m(*batch)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            losses.append(float(loss.item()))
        return losses

    assert run(True) == pytest.approx(run(False), rel=3e-2)


def test_a_learning_rate_that_is_scheduled_is_seen() -> None:
    def run(compiled: bool) -> list[float]:
        votive.manual_seed(0)
        model = nn.Linear(3, 1)
        opt = votive.optim.SGD(model.parameters(), lr=0.5)
        schedule = votive.optim.lr_scheduler.StepLR(opt, 1, gamma=0.3)
        x, y = votive.randn(8, 3), votive.randn(8, 1)

        def step() -> Any:
            opt.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            opt.step()
            schedule.step()
            return loss.detach()

        f = votive.compile(step) if compiled else step
        return [float(f()) for _ in range(8)]

    assert run(True) == pytest.approx(run(False), rel=1e-5)


def test_a_generation_step_with_a_cache_that_grows() -> None:
    votive.manual_seed(0)
    attention = nn.Linear(4, 12)

    class Cache:
        def __init__(self) -> None:
            self.k: Any = None
            self.v: Any = None

        def update(self, k: Any, v: Any) -> tuple[Any, Any]:
            self.k = k if self.k is None else votive.cat([self.k, k], 1)
            self.v = v if self.v is None else votive.cat([self.v, v], 1)
            return self.k, self.v

    def step(x: Any, cache: Any) -> Any:
        q, k, v = attention(x).chunk(3, -1)
        k, v = cache.update(k, v)
        return F.softmax(q @ k.transpose(1, 2), -1) @ v

    compiled = votive.compile(step)
    one, other = Cache(), Cache()
    with votive.no_grad():
        for i in range(12):
            x = votive.full((1, 1, 4), float(i % 3))
            close(step(x, one), compiled(x, other))
    close(one.k, other.k)
