"""A convolutional network whose batches are cut over ranks trains as in one process."""

from __future__ import annotations

from typing import Any

import pytest

import votive
import votive.distributed as dist
from votive import nn
from votive.distributed.tensor import Shard, distribute_module, distribute_tensor


def train(ranks: int) -> list[float]:
    votive.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3), nn.ReLU(),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(32, 5),
    )  # fmt: skip
    mesh: Any = None
    if ranks > 1:
        mesh = dist.init_device_mesh("cpu", (ranks,))
        distribute_module(model, mesh)
    optimizer = votive.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    g, found = votive.Generator().manual_seed(2), []
    votive.manual_seed(3)
    for _ in range(4):
        x, y = votive.randn(6, 1, 8, 8, generator=g), votive.randint(0, 5, (6,), generator=g)
        if ranks > 1:
            x, y = (distribute_tensor(t, mesh, [Shard(0)]) for t in (x, y))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("ranks", [2, 4])
def test_batches_over_ranks_train_a_network_as_in_one_process(ranks: int) -> None:
    wanted = dist.simulate(train, 1, 1)[0]
    for found in dist.simulate(train, ranks, ranks):
        assert found == pytest.approx(wanted, rel=1e-5)
