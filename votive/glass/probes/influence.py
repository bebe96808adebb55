"""Which training examples moved a model towards an answer: TracIn, from gradients at checkpoints. Knows losses.

Pruthi et al. 2020, equation 1: the sum over checkpoints of `rate * grad(example) . grad(test)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import votive

from ...nn import Module
from ...tensor import Tensor
from ..heatmap import Heatmap
from ..plots import Plottable
from ..table import Table


@dataclass(frozen=True)
class Influence(Plottable):
    """How much each training example (columns) lowered the loss of each test example (rows), to first order.

    >>> found = votive.glass.probes.Influence(votive.tensor([[1.0, -2.0, 3.0]]))
    >>> found.helped(0, 2), found.harmed(0, 1)
    ([(2, 3.0), (0, 1.0)], [(1, -2.0)])
    """

    values: Tensor

    def helped(self, test: int, many: int = 10) -> list[tuple[int, float]]:
        """The training examples that lowered a test example's loss most."""
        return self._ordered(test, many, True)

    def harmed(self, test: int, many: int = 10) -> list[tuple[int, float]]:
        """Those that raised it most."""
        return self._ordered(test, many, False)

    def _ordered(self, test: int, many: int, descending: bool) -> list[tuple[int, float]]:
        row = self.values[test]
        order = row.argsort(descending=descending)[:many].tolist()
        return [(int(i), float(row[int(i)])) for i in order]

    def table(self, test: int = 0, many: int = 10) -> Table:
        """The examples that helped a test example most, and harmed it most."""
        rows = [["helped", i, v] for i, v in self.helped(test, many)] + [
            ["harmed", i, v] for i, v in self.harmed(test, many)
        ]
        return Table(["", ">example", ">influence"], rows, f"test example {test}")

    def figure(self) -> Heatmap:
        """A map of all pairs."""
        tests, examples = self.values.shape
        rows, columns = (list(map(str, range(n))) for n in (tests, examples))
        return Heatmap(self.values.tolist(), rows, columns, title="influence", x_name="training example", signed=True)

    def pictures(self) -> Any:
        return {"influence": lambda: [self.figure()], "table": lambda: [self.table()]}

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain values."""
        return {"values": self.values.tolist()}


def tracin(
    model: Module,
    loss: Callable[[Module, Any], Tensor],
    train: Sequence[Any],
    test: Sequence[Any],
    *,
    checkpoints: Sequence[Mapping[str, Tensor]] | None = None,
    rates: Sequence[float] | float = 1.0,
    parameters: Callable[[str], bool] | None = None,
) -> Influence:
    """The influence of training examples on test examples, of models small enough for a gradient per example.

    `loss(model, example)` gives the loss of one example. `checkpoints` are state dicts, of which `rates` has the
    learning rates; without them the model counts as it is. `parameters` chooses by name, such as the last layer alone.
    The model is left as it was.

    >>> net = votive.nn.Linear(1, 1, bias=False)
    >>> examples = [(votive.tensor([1.0]), votive.tensor([5.0])), (votive.tensor([1.0]), votive.tensor([-5.0]))]
    >>> found = votive.glass.probes.tracin(net, lambda m, e: (m(e[0]) - e[1]).square().sum(), examples, examples[:1])
    >>> [i for i, _ in found.helped(0)]
    [0, 1]
    """
    if not train or not test:
        raise ValueError("tracin: give at least one training and one test example.")
    states: list[Mapping[str, Tensor] | None] = list(checkpoints) if checkpoints else [None]
    steps = [float(rates)] * len(states) if isinstance(rates, (int, float)) else list(rates)
    if len(steps) != len(states):
        raise ValueError(f"tracin: {len(states)} checkpoints have {len(steps)} rates.")
    named = [(n, p) for n, p in model.named_parameters() if parameters is None or parameters(n)]
    if not named:
        raise ValueError("tracin: no parameter is left; parameters= is asked for each name.")
    kept = {n: t.detach().clone() for n, t in model.state_dict().items()} if checkpoints else {}
    required = [p.requires_grad for _, p in named]
    total = votive.zeros(len(test), len(train), dtype=votive.float64)
    try:
        for _, p in named:
            p.requires_grad_(True)
        for state, rate in zip(states, steps, strict=True):
            if state is not None:
                model.load_state_dict(dict(state))
            rows = votive.stack([_gradient(model, loss, e, [p for _, p in named]) for e in test])
            for j, example in enumerate(train):
                total[:, j] += rate * (rows @ _gradient(model, loss, example, [p for _, p in named]))
    finally:
        for (_, p), was in zip(named, required, strict=True):
            p.requires_grad_(was)
        if kept:
            model.load_state_dict(kept)
    return Influence(total)


def _gradient(model: Module, loss: Callable[[Module, Any], Tensor], example: Any, wanted: list[Any]) -> Tensor:
    with votive.enable_grad():
        value = loss(model, example)
        grads = votive.autograd.grad(value, wanted, allow_unused=True)
    flat = [
        (votive.zeros_like(p) if g is None else g).flatten().double().cpu() for g, p in zip(grads, wanted, strict=True)
    ]
    return votive.cat(flat)
