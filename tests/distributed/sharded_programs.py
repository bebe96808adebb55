"""What every rank does with states and parameters that are spread over ranks, on threads and on processes.

`python -m tests.distributed.sharded_programs` runs them one after the other on MPI.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive
import votive.distributed as dist
from tests.distributed.training import (
    alone,
    data,
    mine,
    mlp,
    run_on_mpi,
    same_on_all_ranks,
    same_state,
    squares,
    together,
)  # fmt: skip
from votive import nn
from votive.distributed.optim import ZeroRedundancyOptimizer
from votive.nn.parallel import DistributedDataParallel

STEPS = 10
SIZE = 12  # divides among 1 to 4 ranks


def shares_of_an_optimizer_step_as_one() -> None:
    batches = data("mlp", STEPS, SIZE)
    for kind, options in ((votive.optim.AdamW, {"lr": 0.01}), (votive.optim.SGD, {"lr": 0.1, "momentum": 0.9})):
        wanted, plain = alone("mlp", batches, lambda p, k=kind, o=options: k(p, **o))  # type: ignore[misc]
        losses, model = together(
            "mlp", batches, DistributedDataParallel,
            lambda p, k=kind, o=options: ZeroRedundancyOptimizer(p, k, **o),  # type: ignore[misc]
        )  # fmt: skip
        np.testing.assert_allclose(losses, wanted, rtol=2e-5)
        same_state({k.removeprefix("module."): v for k, v in model.state_dict().items()}, plain.state_dict())
        same_on_all_ranks(model.parameters())


def shares_hold_each_state_once() -> None:
    model = DistributedDataParallel(mlp())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), votive.optim.Adam, lr=0.01)
    squares(model, mine(data("mlp", 1, SIZE)[0])).backward()
    optimizer.step()
    held = votive.tensor([len(optimizer.state), sum(s["exp_avg"].numel() for s in optimizer.state.values())])
    most = held.clone()
    dist.all_reduce(held)
    dist.all_reduce(most, dist.ReduceOp.MAX)
    sizes = [p.numel() for p in model.parameters()]
    assert held.tolist() == [len(sizes), sum(sizes)]
    assert most[1].item() <= max(max(sizes), sum(sizes) // dist.get_world_size() + max(sizes))
    with pytest.raises(RuntimeError, match="has not been consolidated on this rank"):
        optimizer.state_dict()


def groups_and_schedules_reach_all_shares() -> None:
    batches = data("mlp", 6, SIZE)

    def groups(model: nn.Module) -> list[dict[str, Any]]:
        named = list(model.named_parameters())
        return [
            {"params": [p for n, p in named if n.endswith("weight")], "lr": 0.02, "weight_decay": 0.1},
            {"params": [p for n, p in named if n.endswith("bias")]},
        ]

    def train(model: nn.Module, make: Callable[[Any], Any], part: Callable[[Any], Any]) -> nn.Module:
        optimizer = make(groups(model)[:1])
        optimizer.add_param_group(groups(model)[1])
        schedule = votive.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        for batch in batches:
            optimizer.zero_grad()
            squares(model, part(batch)).backward()
            optimizer.step()
            schedule.step()
        assert [g["lr"] for g in optimizer.param_groups] == [0.02 / 8, 0.01 / 8]
        return model

    plain = train(mlp(), lambda g: votive.optim.AdamW(g, lr=0.01), lambda b: b)
    found = train(
        DistributedDataParallel(mlp()), lambda g: ZeroRedundancyOptimizer(g, votive.optim.AdamW, lr=0.01), mine
    )
    same_state({k.removeprefix("module."): v for k, v in found.state_dict().items()}, plain.state_dict())


PROGRAMS: dict[str, Callable[[], None]] = {
    fn.__name__: fn
    for fn in (
        shares_of_an_optimizer_step_as_one, shares_hold_each_state_once, groups_and_schedules_reach_all_shares,
    )
}  # fmt: skip


if __name__ == "__main__":
    run_on_mpi(PROGRAMS)
