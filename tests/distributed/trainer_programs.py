"""Trainers on several ranks: `python -m tests.distributed.trainer_programs FOLDER WAY POINT` dies at a point, or ends.

A point is `step 3 rank 1`, `write 2 rank 0` (within the second checkpoint) or `none`. The first rank prints the losses.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import votive
import votive.distributed as dist
from tests.distributed.training import filled
from votive import nn
from votive.distributed.checkpoint import files
from votive.train import Trainer


def samples(count: int = 48) -> Any:
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((count, 6)).astype("f4"), rng.standard_normal((count, 3)).astype("f4")
    return votive.data.TensorDataset(votive.tensor(x), votive.tensor(y))


def net(dropout: float = 0.0) -> nn.Sequential:
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))
    return filled(model, 4)  # type: ignore[return-value]


def trainer(
    folder: Any, way: str | None, batch: int = 4, dropout: float = 0.2, seed: int | None = 3, **options: Any
) -> Trainer:
    model = net(dropout)
    optimizer = votive.optim.AdamW(model.parameters(), lr=0.05)
    data = votive.data.DataLoader(samples(), batch, shuffle=True)
    return Trainer(
        model, optimizer, nn.functional.mse_loss, data,
        **{"max_steps": 14, "folder": folder, "checkpoint_every": 3, "seed": seed, "distributed": way,
           "clip_grad_norm": 1.0, "scheduler": votive.optim.lr_scheduler.StepLR(optimizer, 4, 0.5), "progress": False,
           "eval_data": votive.data.DataLoader(samples(7), 2), "eval_every": 5, **options},
    )  # fmt: skip


def die_at(point: str, die: Callable[[], None]) -> list[Any]:
    """Callbacks that end a rank at a point; what is done within a checkpoint is patched."""
    if point == "none":
        return []
    where, number, _, rank = point.split()
    if dist.get_rank() != int(rank):
        return []

    def at_step(one: Any) -> None:
        if where == "step" and one.step == int(number):
            die()

    if where == "write":
        count, write = [0], files.Writing.write
        me = dist.get_rank()

        def half(self: Any) -> None:
            if self.rank == me:
                count[0] += 1
                if count[0] == int(number):
                    (self.begun / self.names[me]).write_bytes(b"half of it")
                    die()
            write(self)

        files.Writing.write = half  # type: ignore[method-assign]
    return [at_step]


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    dist.init_process_group("mpi")
    run = trainer(sys.argv[1], sys.argv[2], callbacks=die_at(sys.argv[3], killed))
    history = run.fit()
    if dist.get_rank() == 0:
        sys.stdout.write("LOSSES " + json.dumps(list(history["loss"])) + "\n")
    dist.destroy_process_group()
