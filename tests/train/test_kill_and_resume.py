"""A run that was killed and resumed has the losses of one that was not, bit by bit."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import votive
from votive.train import History

from .run import STEPS, make

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs signals and forks"),
]
ROOT = Path(__file__).parent.parent.parent


def killed(folder: Path, kind: str, kill: str) -> None:
    """Run in a process of its own until it kills itself."""
    path = os.pathsep.join([str(Path(votive.__file__).parent.parent), str(ROOT)])
    run = subprocess.run(
        [sys.executable, "-m", "tests.train.run", str(folder), kind, kill],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == -signal.SIGKILL, run.stderr


def weights(trainer: Any) -> list[bytes]:
    state = trainer.model.state_dict()
    return [t.numpy().tobytes() for t in state.values()]


def finished(folder: Path, kind: str) -> tuple[History, list[bytes]]:
    trainer = make(folder, kind)
    return trainer.fit(), weights(trainer)


@pytest.mark.parametrize("kind", ["plain", "workers", "accumulate"])
def test_a_killed_run_ends_as_if_it_had_not_been(kind: str, tmp_path: Path) -> None:
    want, want_weights = finished(tmp_path / "whole", kind)
    assert len(want) == STEPS
    assert len(want.evals) == 4
    assert len(set(want["loss"])) == STEPS

    folder = tmp_path / "killed"
    first = random.randint(1, STEPS - 2)
    second = random.randint(max(first, 4), STEPS - 1)
    killed(folder, kind, f"step {first}")
    if kind == "plain":
        killed(folder, kind, f"step {second}")
    got, got_weights = finished(folder, kind)
    assert got["loss"] == want["loss"], f"killed at step {first}, {second}"
    assert got == want
    assert got_weights == want_weights
    assert (folder / "history.json").read_bytes() == (tmp_path / "whole" / "history.json").read_bytes()


def test_a_run_killed_while_it_saves_leaves_only_whole_checkpoints(tmp_path: Path) -> None:
    want, _ = finished(tmp_path / "whole", "plain")
    folder = tmp_path / "killed"
    killed(folder, "plain", "save 2")
    assert len(list(folder.glob(".*.tmp"))) == 1
    trainer = make(folder, "plain")
    assert list(folder.glob(".*.tmp")) == []
    assert trainer.checkpoints is not None
    assert trainer.checkpoints.steps() == [3]
    assert trainer.fit() == want
