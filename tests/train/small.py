"""A trainer of a line, small enough to run in a moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import votive
from votive.data import DataLoader, TensorDataset
from votive.train import Trainer

mse = votive.nn.functional.mse_loss


def line(n: int = 16) -> TensorDataset:
    x = votive.linspace(-1, 1, n).unsqueeze(1)
    return TensorDataset(x, 3 * x + 1)


def small(lr: float = 0.1, optimizer: Callable[..., Any] = votive.optim.SGD, **options: Any) -> Trainer:
    votive.manual_seed(0)
    model = options.pop("model", None) or votive.nn.Linear(1, 1)
    data = options.pop("data", None)
    data = DataLoader(line(), 4) if data is None else data
    made = optimizer(model.parameters(), lr=lr)
    if "scheduler" in options:
        options["scheduler"] = options["scheduler"](made)
    if "step" not in options:
        options.setdefault("loss_fn", mse)
    options = {"progress": False, "max_steps": 12} | options
    return Trainer(model, made, train_data=data, **options)
