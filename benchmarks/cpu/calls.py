"""What one eager call costs on tensors so small that only the call itself counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .case import Case, leaf, randn, tensor, uniform

# Of the framework m, plain tensors a, b and a leaf c of 16 floats, and a 4x4 s.
PLAIN: dict[str, Callable[..., Any]] = {
    "a + b": lambda m, a, b, s: lambda: a + b,
    "a * b": lambda m, a, b, s: lambda: a * b,
    "a / b": lambda m, a, b, s: lambda: a / b,
    "a + 1": lambda m, a, b, s: lambda: a + 1,
    "a * 2.0": lambda m, a, b, s: lambda: a * 2.0,
    "1 - a": lambda m, a, b, s: lambda: 1 - a,
    "a ** 2": lambda m, a, b, s: lambda: a**2,
    "a > b": lambda m, a, b, s: lambda: a > b,
    "-a": lambda m, a, b, s: lambda: -a,
    "a.exp()": lambda m, a, b, s: lambda: a.exp(),
    "a.tanh()": lambda m, a, b, s: lambda: a.tanh(),
    "relu(a)": lambda m, a, b, s: lambda: m.relu(a),
    "gelu(a)": lambda m, a, b, s: lambda: m.nn.functional.gelu(a),
    "a.add_(b)": lambda m, a, b, s: lambda: a.add_(b),
    "a.mul_(1.0)": lambda m, a, b, s: lambda: a.mul_(1.0),
    "a.zero_()": lambda m, a, b, s: lambda: a.zero_(),
    "a.sum()": lambda m, a, b, s: lambda: a.sum(),
    "a.mean()": lambda m, a, b, s: lambda: a.mean(),
    "a.max()": lambda m, a, b, s: lambda: a.max(),
    "s.sum(-1)": lambda m, a, b, s: lambda: s.sum(-1),
    "a.argmax()": lambda m, a, b, s: lambda: a.argmax(),
    "s @ s": lambda m, a, b, s: lambda: s @ s,
    "softmax(s, -1)": lambda m, a, b, s: lambda: m.softmax(s, -1),
    "layer_norm(s)": lambda m, a, b, s: lambda: m.nn.functional.layer_norm(s, (4,)),
    "a.view(4, 4)": lambda m, a, b, s: lambda: a.view(4, 4),
    "a.reshape(2, 8)": lambda m, a, b, s: lambda: a.reshape(2, 8),
    "a[3:9]": lambda m, a, b, s: lambda: a[3:9],
    "a[3]": lambda m, a, b, s: lambda: a[3],
    "s[:, 1]": lambda m, a, b, s: lambda: s[:, 1],
    "s[None]": lambda m, a, b, s: lambda: s[None],
    "s.t()": lambda m, a, b, s: lambda: s.t(),
    "s.transpose(0, 1)": lambda m, a, b, s: lambda: s.transpose(0, 1),
    "s.permute(1, 0)": lambda m, a, b, s: lambda: s.permute(1, 0),
    "a.unsqueeze(0)": lambda m, a, b, s: lambda: a.unsqueeze(0),
    "s.expand(3, 4, 4)": lambda m, a, b, s: lambda: s.expand(3, 4, 4),
    "s.t().contiguous()": lambda m, a, b, s: lambda: s.t().contiguous(),
    "cat([a, b])": lambda m, a, b, s: lambda: m.cat([a, b]),
    "stack([a, b])": lambda m, a, b, s: lambda: m.stack([a, b]),
    "a.chunk(2)": lambda m, a, b, s: lambda: a.chunk(2),
    "where(a > b, a, b)": lambda m, a, b, s: lambda: m.where(a > b, a, b),
    "a.clone()": lambda m, a, b, s: lambda: a.clone(),
    "a.to(float64)": lambda m, a, b, s: lambda: a.to(m.float64),
    "a.item()": lambda m, a, b, s: (lambda x: lambda: x.item())(a.sum()),
    "zeros(16)": lambda m, a, b, s: lambda: m.zeros(16),
    "arange(16)": lambda m, a, b, s: lambda: m.arange(16),
}
RECORDED: dict[str, Callable[..., Any]] = {
    "a + c": lambda m, a, c, s: lambda: a + c,
    "a * c": lambda m, a, c, s: lambda: a * c,
    "c * 2.0": lambda m, a, c, s: lambda: c * 2.0,
    "c.tanh()": lambda m, a, c, s: lambda: c.tanh(),
    "c.sum()": lambda m, a, c, s: lambda: c.sum(),
    "c.view(4, 4)": lambda m, a, c, s: lambda: c.view(4, 4),
    "c[3:9]": lambda m, a, c, s: lambda: c[3:9],
    "s @ c.view(4, 4)": lambda m, a, c, s: lambda: s @ c.view(4, 4),
    "(a * c).sum().backward()": lambda m, a, c, s: lambda: (a * c).sum().backward(),
    "grad of tanh": lambda m, a, c, s: lambda: m.autograd.grad(c.tanh().sum(), c),
}


def _plain(make: Any) -> Callable[[Any], Callable[[], object]]:
    x, y, square = randn(16), uniform(16), randn(4, 4)
    return lambda m: make(m, tensor(m, x.copy()), tensor(m, y), tensor(m, square))


def _recorded(make: Any) -> Callable[[Any], Callable[[], object]]:
    x, y, square = randn(16), uniform(16), randn(4, 4)
    return lambda m: make(m, tensor(m, x), leaf(m, y), tensor(m, square))


def network(m: Any) -> Any:
    """4-16-16-2 with ReLU."""
    nn = m.nn
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))


def _forward(m: Any) -> Callable[[], object]:
    net, x = network(m), tensor(m, randn(8, 4))

    def run() -> object:
        with m.no_grad():
            return net(x)

    return run


def _train(m: Any) -> Callable[[], object]:
    net, x = network(m), tensor(m, randn(8, 4))
    optimizer = m.optim.SGD(net.parameters(), lr=1e-6)

    def run() -> None:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    return run


def cases(scale: str) -> Iterator[Case]:
    """Every call, without and with recording for gradients, and a small network."""
    seconds = {"full": 0.35, "quick": 0.12, "tiny": 0.0}[scale]
    for name, make in PLAIN.items():
        yield Case(name, _plain(make), seconds)
    for name, make in RECORDED.items():
        yield Case(f"{name}, grad", _recorded(make), seconds)
    yield Case("small MLP, forward", _forward, seconds)
    yield Case("small MLP, training step", _train, seconds)
