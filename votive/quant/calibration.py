"""What the layers of a model are fed: sums over calibration inputs, collected by hooks. Knows no format.

Inputs are not kept: each layer keeps a sum of squares per column, or the matrix of sums of products of columns, and
those of as many layers at a time as a budget of memory allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..autograd import no_grad
from ..nn import Module
from ..tensor import Tensor
from .grid import Array
from .places import Place, places

# name of a weight -> (sum of squared inputs per column, how many inputs)
Importance = dict[str, tuple[Array, int]]


@dataclass
class Inputs:
    """What a layer was fed: `squares` (columns,), `products` (columns, columns) or None, `absolute` (columns,)."""

    squares: Array
    absolute: Array
    products: Array | None
    count: int = 0

    def add(self, x: Array) -> None:
        """Take in rows of inputs."""
        self.squares += np.square(x, dtype=np.float64).sum(axis=0)
        self.absolute += np.abs(x).sum(axis=0, dtype=np.float64)
        if self.products is not None:
            self.products += x.T @ x
        self.count += len(x)


def call(model: Module, item: Any) -> Any:
    """The model with one item of the data: a tensor, a tuple of arguments, or a mapping of named ones."""
    if isinstance(item, Tensor):
        return model(item)
    if isinstance(item, Mapping):
        return model(**item)
    if isinstance(item, Sequence) and not isinstance(item, str):
        return model(*item)
    raise TypeError(f"calibration data: items are tensors, tuples of arguments or mappings, got {type(item).__name__}.")


@contextmanager
def evaluating(model: Module) -> Iterator[None]:
    """Every module in evaluation mode, without gradients, and then as it was."""
    before = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        with no_grad():
            yield
    finally:
        for module, training in before:
            module.training = training


def collect(model: Module, data: Iterable[Any], wanted: Sequence[Place], *, products: bool) -> list[Inputs]:
    """Run the model on all data and sum up what the products among `wanted` were fed."""
    found = []
    handles = []
    for place in wanted:
        columns = place.shape[1]
        square = np.zeros((columns, columns), np.float32) if products and place.products else None
        sums = Inputs(np.zeros(columns), np.zeros(columns), square)
        found.append(sums)

        def hook(module: Module, args: tuple[Any, ...], sums: Inputs = sums) -> None:
            x = args[0].detach().float().cpu()
            sums.add(np.ascontiguousarray(x.reshape(-1, x.shape[-1]).numpy()))

        handles += [module.register_forward_pre_hook(hook) for _, module in place.products]
    try:
        with evaluating(model):
            for item in data:
                call(model, item)
    finally:
        for handle in handles:
            handle.remove()
    return found


def groups(wanted: Sequence[Place], budget: int) -> Iterator[list[Place]]:
    """The weights in order, as many at a time as their matrices of products fit into `budget` bytes; at least one."""
    group: list[Place] = []
    size = 0
    for place in wanted:
        need = 4 * place.shape[1] ** 2 if place.products else 0
        if group and size + need > budget:
            yield group
            group, size = [], 0
        group.append(place)
        size += need
    if group:
        yield group


def importance(model: Module, data: Iterable[Any], *, skip: Iterable[str] = ()) -> Importance:
    """How much each column of each weight matters: the sum of its squared inputs over `data`, an importance matrix.

    The result maps names of weights to (values, count), for `votive.quantize_(imatrix=...)`; `data` gives inputs of
    the model: tensors, tuples of arguments or mappings of named ones.

    >>> net = votive.nn.Linear(2, 1)
    >>> votive.quant.importance(net, [votive.tensor([[1.0, 2.0], [3.0, 0.0]])])
    {'weight': (array([10.,  4.], dtype=float32), 2)}
    """
    wanted = [p for p in places(model, skip) if p.products]
    found = collect(model, data, wanted, products=False)
    if not any(sums.count for sums in found):
        raise ValueError("importance: the data reached no linear layer; give inputs of the model.")
    out: Importance = {}
    for place, sums in zip(wanted, found):
        name = f"{place.name}.weight" if place.name else "weight"
        out[name] = (sums.squares.astype(np.float32), sums.count)
    return out
