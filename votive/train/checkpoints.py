"""A folder of checkpoints: write whole ones only, keep the last few and the best, find the latest.

Knows files and steps; what is in a checkpoint is the trainer's business.
"""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from pathlib import Path
from typing import Any

from ..serialization import FileFormatError, load, save
from ..serialization.atomic import clear_unfinished

_NAME = re.compile(r"step-(\d{8,})\.safetensors")


class CheckpointError(OSError):
    """A checkpoint could not be written; the message says which are there.

    >>> error = votive.train.CheckpointError(28, "step 20 was not written.")
    >>> isinstance(error, OSError), str(error)
    (True, 'step 20 was not written.')
    """

    def __str__(self) -> str:
        return str(self.strerror)


class Checkpoints:
    """Checkpoints in a folder, one file each.

    >>> import tempfile
    >>> folder = votive.train.Checkpoints(tempfile.mkdtemp(), keep_last=2)
    >>> for step in (1, 2, 3):
    ...     _ = folder.write(step, {"step": step})
    >>> folder.steps(), folder.latest()
    ([2, 3], {'step': 3})
    """

    def __init__(self, folder: str | os.PathLike[str], keep_last: int | None = 2) -> None:
        if keep_last is not None and keep_last < 1:
            raise ValueError(f"Checkpoints: keep_last must be at least 1 or None, got {keep_last}.")
        self.folder = Path(folder)
        self.keep_last = keep_last
        self.folder.mkdir(parents=True, exist_ok=True)
        clear_unfinished(self.folder)

    @property
    def best_path(self) -> Path:
        """Where the best checkpoint lies once there is one."""
        return self.folder / "best.safetensors"

    def path(self, step: int) -> Path:
        """The file of the checkpoint after `step` steps."""
        return self.folder / f"step-{step:08d}.safetensors"

    def steps(self) -> list[int]:
        """The steps of which there are checkpoints, in order."""
        found = (_NAME.fullmatch(p.name) for p in self.folder.iterdir())
        return sorted(int(m[1]) for m in found if m)

    def write(self, step: int, state: object) -> Path:
        """Write a checkpoint; only when it is safe on disk are older ones removed."""
        path = self.path(step)
        self._save(state, path)
        if self.keep_last is not None:
            for old in self.steps()[: -self.keep_last]:
                if old != step:
                    with contextlib.suppress(FileNotFoundError):
                        self.path(old).unlink()
        return path

    def write_best(self, state: object) -> Path:
        """Replace the best checkpoint."""
        self._save(state, self.best_path)
        return self.best_path

    def _save(self, state: object, path: Path) -> None:
        try:
            save(state, path)
        except OSError as e:
            there = self.steps()
            last = f"The last one is {self.path(there[-1])}" if there else "There is none before it"
            raise CheckpointError(
                e.errno,
                f"the checkpoint {path} could not be written: {e.strerror}. {last}. Make room and "
                "call fit() again: it goes on where it stopped, and in a new process from the last "
                "checkpoint.",
            ) from None

    def latest(self) -> Any:
        """The newest checkpoint that can be read, or None; damaged ones are passed over."""
        for step in reversed(self.steps()):
            try:
                return load(self.path(step))
            except (FileFormatError, OSError) as e:
                warnings.warn(f"{self.path(step)} cannot be read, going back: {e}", stacklevel=2)
        return None
