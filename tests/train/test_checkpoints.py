"""Checkpoints of the trainer: which are kept, and that a run goes on as if it had not stopped."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import votive
from votive.data import DataLoader
from votive.optim import lr_scheduler
from votive.serialization import load
from votive.train import Trainer

from .small import line, small

mse = votive.nn.functional.mse_loss

# --- checkpoints ------------------------------------------------------------------------------


def test_the_last_few_and_the_best_checkpoints_are_kept(tmp_path: Path) -> None:
    data = DataLoader(line(), 16)
    values = iter([3.0, 5.0, 4.0, 1.0])
    trainer = small(
        folder=tmp_path,
        checkpoint_every=1,
        keep_last=2,
        max_steps=4,
        eval_data=data,
        eval_every=1,
        metrics={"score": lambda o, t: next(values)},
        best="score",
        best_mode="max",
    )
    trainer.fit()
    assert trainer.checkpoints is not None
    assert trainer.checkpoints.steps() == [3, 4]
    assert load(tmp_path / "best.safetensors")["step"] == 2
    names = {p.name for p in tmp_path.iterdir()}
    assert {"history.json", "curve.svg", "best.safetensors"} < names
    again = small(max_steps=3)
    again.fit(resume=tmp_path / "best.safetensors")
    assert again.history["step"] == [1, 2, 3]


def test_a_damaged_checkpoint_is_passed_over_with_a_warning(tmp_path: Path) -> None:
    want = small(max_steps=6).fit()
    trainer = small(folder=tmp_path, checkpoint_every=2, max_steps=4)
    trainer.fit()
    assert trainer.checkpoints is not None
    path = trainer.checkpoints.path(4)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.warns(UserWarning, match="cannot be read"):
        got = small(folder=tmp_path, max_steps=6).fit()
    assert got["loss"] == want["loss"]


def test_a_folder_in_use_is_resumed_or_refused_and_a_finished_run_stays_finished(tmp_path: Path) -> None:
    first = small(folder=tmp_path).fit()
    with pytest.raises(FileExistsError, match="step 12"):
        small(folder=tmp_path).fit(resume=False)
    steps: list[int] = []
    again = small(folder=tmp_path, callbacks=[lambda t: steps.append(t.step)]).fit()
    assert again == first
    assert steps == []


OPTIMIZERS = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "Lion"]
SCHEDULERS: dict[str, Callable[[Any], Any]] = {
    "step": lambda o: lr_scheduler.StepLR(o, 2),
    "milestones": lambda o: lr_scheduler.MultiStepLR(o, [2, 5]),
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, 9),
    "restarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3),
    "one cycle": lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=20),
    "cyclic": lambda o: lr_scheduler.CyclicLR(o, 0.01, 0.1, 3, cycle_momentum=False),
    "linear": lambda o: lr_scheduler.LinearLR(o, total_iters=6),
    "polynomial": lambda o: lr_scheduler.PolynomialLR(o, 9),
    "exponential": lambda o: lr_scheduler.ExponentialLR(o, 0.8),
    "lambda": lambda o: lr_scheduler.LambdaLR(o, lambda n: 1 / (n + 1)),
    "sequence": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.ConstantLR(o, 0.1, 2), lr_scheduler.ExponentialLR(o, 0.9)], [3]
    ),
    "chain": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ConstantLR(o, 0.1, 2), lr_scheduler.ExponentialLR(o, 0.9)]
    ),
    "plateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=0, threshold=10),
}


@pytest.mark.parametrize(
    ("optimizer", "scheduler"), [*((o, "cosine") for o in OPTIMIZERS), *(("SGD", s) for s in SCHEDULERS)]
)
def test_every_optimizer_and_scheduler_resumes_exactly(optimizer: str, scheduler: str, tmp_path: Path) -> None:
    def run(folder: Path | None, callbacks: Any = ()) -> Any:
        return small(
            lr=0.05,
            optimizer=getattr(votive.optim, optimizer),
            max_steps=9,
            folder=folder,
            scheduler=SCHEDULERS[scheduler],
            eval_data=DataLoader(line(), 8),
            eval_every=2,
            data=DataLoader(line(), 4, shuffle=True),
            seed=5,
            checkpoint_every=5,
            callbacks=callbacks,
        ).fit()

    def crash(trainer: Trainer) -> None:
        if trainer.step == 6:
            raise InterruptedError

    want = run(None)
    with pytest.raises(InterruptedError):
        run(tmp_path, [crash])
    assert run(tmp_path) == want


def test_data_without_a_state_is_resumed_by_skipping(tmp_path: Path) -> None:
    data = [tuple(b) for b in DataLoader(line(), 4)]
    want = small(data=data, max_steps=7).fit()
    small(data=data, max_steps=3, folder=tmp_path).fit()
    assert small(data=data, max_steps=7, folder=tmp_path).fit() == want


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_signal_waits_for_the_step_and_a_checkpoint(number: int, tmp_path: Path) -> None:
    def stop(trainer: Trainer) -> None:
        if trainer.step == 3:
            signal.raise_signal(number)

    want = small().fit()
    before = signal.getsignal(number)
    trainer = small(folder=tmp_path, callbacks=[stop])
    if number == signal.SIGINT:
        with pytest.raises(KeyboardInterrupt):
            trainer.fit()
    else:
        # What SIGTERM would do after the checkpoint is to end this process.
        deliver = signal.raise_signal
        calls: list[int] = []

        def raise_signal(n: int) -> None:
            calls.append(n)
            if len(calls) == 1:
                deliver(n)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(signal, "raise_signal", raise_signal)
            trainer.fit()
        assert calls == [number, number]
    assert signal.getsignal(number) is before
    assert trainer.checkpoints is not None
    assert trainer.checkpoints.steps() == [3]
    assert small(folder=tmp_path).fit() == want
