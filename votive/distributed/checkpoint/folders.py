"""A folder of checkpoints of several ranks, a folder for each step: the last few are kept. Knows steps, not states."""

from __future__ import annotations

import os
import re
import shutil
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from ..group import ProcessGroup
from .background import async_save
from .files import INDEX, group_for, load, opened_index, save, told

_NAME = re.compile(r"step-(\d{8,})(\.old)?")


class StepFolders:
    """Checkpoints by steps: `save` writes one, `latest` finds the newest that is whole, older ones go.

    >>> import tempfile
    >>> from votive.distributed import checkpoint
    >>> with tempfile.TemporaryDirectory() as root:
    ...     kept = checkpoint.StepFolders(root, keep_last=2)
    ...     for step in (10, 20, 30):
    ...         kept.save(step, {"step": step})
    ...     kept.steps(), kept.latest().name
    ([20, 30], 'step-00000030')
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        keep_last: int | None = 2,
        process_group: ProcessGroup | None = None,
        no_dist: bool = False,
    ) -> None:
        if keep_last is not None and keep_last < 1:
            raise ValueError(f"StepFolders: keep_last must be at least 1 or None, got {keep_last}.")
        self.folder, self.keep_last = Path(folder), keep_last
        self.group, self._alone = group_for(process_group, no_dist), no_dist
        self._pending: tuple[int, Future[None]] | None = None
        told(self.group, self._clear)

    def _clear(self) -> None:
        """Remove what was not finished when its writers ended."""
        if self._first:
            self.folder.mkdir(parents=True, exist_ok=True)
            for path in self.folder.glob("step-*.writing"):
                shutil.rmtree(path, ignore_errors=True)

    @property
    def _first(self) -> bool:
        return self.group is None or self.group.rank() == 0

    def path(self, step: int) -> Path:
        """The folder of the checkpoint after `step` steps."""
        return self.folder / f"step-{step:08d}"

    def steps(self) -> list[int]:
        """The steps of which there are whole checkpoints, in order."""
        if not self.folder.is_dir():
            return []
        found = ((_NAME.fullmatch(p.name), p) for p in self.folder.iterdir())
        return sorted({int(m[1]) for m, p in found if m and (p / INDEX).is_file()})

    def latest(self) -> Path | None:
        """The newest whole checkpoint, the same on all ranks, or None."""
        last = told(self.group, lambda: self.steps()[-1:] if self._first else None)[0]
        return self.path(last[0]) if last else None

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write a checkpoint; only when it is there are older ones removed. All ranks call it."""
        self.wait()
        save(state, checkpoint_id=self.path(step), process_group=self.group, no_dist=self._alone)
        self._remove_old(step)

    def async_save(self, step: int, state: dict[str, Any]) -> Future[None]:
        """The same beside the program. Older ones are removed at the next call, once this one is there."""
        self.wait()
        future = async_save(state, checkpoint_id=self.path(step), process_group=self.group, no_dist=self._alone)
        self._pending = step, future
        return future

    def wait(self) -> None:
        """Return when the checkpoint that is under way is there; raises what went wrong."""
        if self._pending is not None:
            (step, future), self._pending = self._pending, None
            future.result()
            self._remove_old(step)

    def load(self, step: int, state: dict[str, Any]) -> None:
        """Read a checkpoint into a state that is there."""
        load(state, checkpoint_id=self.path(step), process_group=self.group, no_dist=self._alone)

    def _remove_old(self, newest: int) -> None:
        if self.keep_last is None or not self._first:
            return
        for step in self.steps()[: -self.keep_last]:
            if step != newest:
                for path in (self.path(step), self.folder / f"{self.path(step).name}.old"):
                    (path / INDEX).unlink(missing_ok=True)  # first: without it nobody takes what is left for whole
                    shutil.rmtree(path, ignore_errors=True)

    def whole(self, path: Path) -> dict[str, Any]:
        """What is in a checkpoint: the names, types and shapes of its tensors."""
        return {n: (e["dtype"], tuple(e["shape"])) for n, e in opened_index(path)[1]["tensors"].items()}
