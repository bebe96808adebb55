"""A small training run that can be killed: `python -m tests.train.run FOLDER KIND KILL`.

KIND is "plain", "workers" or "accumulate"; KILL is "step N" (SIGKILL after step N), "save N"
(SIGKILL inside the N-th save, before the file gets its name) or "never".
"""

from __future__ import annotations

import os
import random
import signal
import sys
from typing import Any

import numpy as np

import votive
from votive.data import DataLoader, Dataset, TensorDataset
from votive.train import Trainer

STEPS = 17


class Noisy(Dataset[Any]):
    """Samples with noise from every global generator, wherever they are made."""

    def __len__(self) -> int:
        return 22

    def __getitem__(self, i: int) -> Any:
        x = votive.arange(3.0) * i / 22 + 0.1 * votive.randn(3)
        x[0] += random.random() + np.random.rand()
        return x, x.sum(0, keepdim=True)


def make(folder: Any, kind: str, steps: int = STEPS, **options: Any) -> Trainer:
    """The trainer, built as a new process would build it."""
    votive.manual_seed(3)
    model = votive.nn.Sequential(
        votive.nn.Linear(3, 8),
        votive.nn.BatchNorm1d(8),
        votive.nn.Tanh(),
        votive.nn.Dropout(0.2),
        votive.nn.Linear(8, 1),
    )
    optimizer = votive.optim.AdamW(model.parameters(), lr=0.02)
    data = DataLoader(Noisy(), 4, shuffle=True, num_workers=2 if kind == "workers" else 0)
    x = votive.arange(12.0).view(4, 3)
    settings: dict[str, Any] = {
        "scheduler": votive.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps),
        "max_steps": steps,
        "accumulate": 2 if kind == "accumulate" else 1,
        "clip_grad_norm": 1.0,
        "eval_every": 5,
        "folder": folder,
        "checkpoint_every": 3,
        "seed": 7,
        "progress": False,
    }
    loss = votive.nn.functional.mse_loss
    evaluation = DataLoader(TensorDataset(x, x[:, :1]), 2, shuffle=True)
    return Trainer(model, optimizer, loss, data, evaluation, **(settings | options))


def die(*args: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(folder: str, kind: str, kill: str) -> None:
    trainer = make(folder, kind)
    what, _, number = kill.partition(" ")
    saves = iter(range(1, 100))
    if what == "step":
        on_step = lambda t: die() if t.step == int(number) else None
        trainer = make(folder, kind, callbacks=[on_step])
    elif what == "save":
        rename = os.replace

        def replace(source: Any, target: Any) -> None:
            if "step-" in str(target) and next(saves) == int(number):
                die()
            rename(source, target)

        os.replace = replace
    trainer.fit()


if __name__ == "__main__":
    main(*sys.argv[1:])
