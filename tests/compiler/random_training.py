"""Random programs that train: gradients, clipping, optimizers and schedules among views, writes and branches."""

from __future__ import annotations

from typing import Any

from .random_programs import HEAD, Writer, made_of

TRAINING = """
V = votive.tensor(0.7, requires_grad=True)
U = votive.full((1,), 0.3, requires_grad=True)
PARAMS = [V, U]
OPT = votive.optim.Adam(PARAMS, lr=0.05)
MOMENTUM = votive.optim.SGD(PARAMS, lr=0.05, momentum=0.9)
SCHEDULE = votive.optim.lr_scheduler.ExponentialLR(OPT, 0.9)
"""
STATEMENTS = [
    "{n} = {a} * V + U",
    "{n} = {a} * V",
    "(({a} * V + U) ** 2).mean().backward()",
    "OPT.step()",
    "MOMENTUM.step()",
    "votive.autograd.backward(({a} * V).sin().sum())",
    "{n} = votive.autograd.grad(({a} * V).tanh().sum(), V)[0]",
    "{n} = votive.autograd.grad(({a} * V * V).sum(), V, create_graph=True)[0] * {a}.sin()",
    "OPT.zero_grad()",
    "MOMENTUM.zero_grad(set_to_none=False)",
    "votive.nn.utils.clip_grad_norm_(PARAMS, 0.3)",
    "SCHEDULE.step()",
    "votive.nn.utils.clip_grad_value_([V, U], 0.1)",
    "if V.grad is not None:\n    {n} = V.grad * 2 + {a}",
    "V.grad = None",
    "U.grad = V.grad",
    "with votive.no_grad():\n    V.mul_(0.9)",
    "{n} = {a} + V.detach()",
    "{n} = ({a} * V).relu()\n{n}.sum().backward(retain_graph=True)",
    "({a}.sin() + U).exp().mean().backward()",
    "for p in PARAMS:\n    if p.grad is not None:\n        p.grad.mul_(0.5)",
    "{n} = ({a} * U).cos().mean()\n{n}.backward()",
    "with votive.no_grad():\n    for p in PARAMS:\n        if p.grad is not None:\n            p -= 0.1 * p.grad",
    "for i in range(2):\n    OPT.zero_grad()\n    (({a} * V + U - i) ** 2).mean().backward()\n    OPT.step()",
]


class TrainingWriter(Writer):
    """Writes one program that trains `V` and `U`, which live as long as the program."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        exec(TRAINING, self.scope)

    def statement(self) -> None:
        if self.r.random() < 0.5:
            return super().statement()
        name = self.new()
        text = self.r.choice(STATEMENTS).format(a=self.pick(), n=name)
        self.tried(text, name if f"{name} =" in text else None)


def make(seed: int) -> Any:
    """As `random_programs.make`."""
    return made_of(TrainingWriter(seed), HEAD + TRAINING, f"<training {seed}>")


def held(fn: Any) -> list[Any]:
    """What a program has made of the tensors that it trains."""
    scope = fn.__globals__
    found: list[Any] = []
    for p in scope["PARAMS"]:
        found += [p.detach(), p.grad]
        for opt in (scope["OPT"], scope["MOMENTUM"]):
            found += opt.state.get(p, {}).values()
    return found


def rates(fn: Any) -> list[float]:
    """The learning rate that its schedule has come to."""
    return [g["lr"] for g in fn.__globals__["OPT"].param_groups]
