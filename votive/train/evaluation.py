"""Means of a loss and of metrics over a dataset, without gradients and without a trace.

Knows models by what they can do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import votive
from votive import nn

from ..autograd import no_grad
from ..data.randomness import kept_random_state
from .feed import moved, size_of

Values = dict[str, Any]


def evaluate(
    model: nn.Module, data: Iterable[Any], measure: Callable[[Any, Any], Values], device: votive.device | str
) -> dict[str, float]:
    """The mean of what `measure(model, batch)` gives, each batch weighted by its number of items.

    A batch counts as much as a value called "weight" says, where `measure` gives one.

    The model is in evaluation mode meanwhile, and the random state is afterwards as it was, so
    that evaluating more or less often does not change training.

    >>> from votive.train.evaluation import evaluate
    >>> model = votive.nn.Identity()
    >>> data = [votive.zeros(3), votive.ones(1)]
    >>> evaluate(model, data, lambda model, x: {"mean": model(x).mean()}, votive.device("cpu"))
    {'mean': 0.25}
    """
    sums: dict[str, float] = {}
    count = 0.0
    training = getattr(model, "training", True)
    model.eval()
    try:
        with kept_random_state(), no_grad():
            for batch in data:
                batch = moved(batch, device)
                found = dict(measure(model, batch))
                n = float(found.pop("weight", size_of(batch, "items")))
                for name, value in found.items():
                    sums[name] = sums.get(name, 0.0) + float(value) * n
                count += n
    finally:
        model.train(training)
    if count == 0:
        raise ValueError("evaluate: the data gave no batch.")
    return {name: total / count for name, total in sums.items()}
