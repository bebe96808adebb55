"""Work that can be cancelled, and whose turn it is. Knows no actions and no connections."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent

from ..glass.probe import Probe

if TYPE_CHECKING:
    from ..glass.parts import Parts
    from ..glass.probe import Frame
    from .workspace import Workspace


class Cancelled(BaseException):
    """Nobody waits for this any more; not an Exception, so that no model catches it."""


class FairLock:
    """A lock that is given in the order in which it was asked for.

    >>> from votive.studio.jobs import FairLock
    >>> with FairLock() as mine:
    ...     mine.held
    True
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[threading.Event] = deque()
        self.held = False

    def acquire(self, wanted: Callable[[], bool] = lambda: True) -> bool:
        """Wait for the turn; gives up, and gives False, when it is no longer wanted."""
        mine = threading.Event()
        with self._guard:
            if not self.held and not self._waiting:
                self.held = True
                return True
            self._waiting.append(mine)
        while not mine.wait(0.05):
            if not wanted():
                with self._guard:
                    if mine in self._waiting:
                        self._waiting.remove(mine)
                        return False
                break  # it was given in this very moment
        return True

    def release(self) -> None:
        """Give the turn to whoever waits longest."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self.held = False

    @property
    def wanted(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    def __enter__(self) -> FairLock:
        self.acquire()
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


# Seconds between two events that tell in which layer a long run is.
TELLING = 0.3
# Probes are attached to lists that all threads share, so one model call is made at a time.
COMPUTE = FairLock()


class Job:
    """One request while it is done: asks whether to go on, tells how far it is."""

    def __init__(
        self, workspace: Workspace, name: str, tell: Callable[..., None] | None = None, id: int | None = None
    ) -> None:
        self.workspace, self.name, self.id = workspace, name, id
        self.doing = "working"
        self._tell = tell
        self._cancelled = threading.Event()
        self._holds = False

    def cancel(self) -> None:
        """Let it end at the next chance."""
        self._cancelled.set()

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def check(self) -> None:
        """End here if it was cancelled."""
        if self.cancelled:
            raise Cancelled(self.name)

    def yield_turn(self) -> None:
        """Between two steps: end if it was cancelled, and let others have a turn."""
        self.check()
        self.workspace.step_made()
        if self._holds and COMPUTE.wanted:
            self._holds = False
            COMPUTE.release()
            self._take_turn()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Inside, no other job calls a model."""
        try:
            self._take_turn()
            yield
        finally:
            if self._holds:
                self._holds = False
                COMPUTE.release()

    def _take_turn(self) -> None:
        if COMPUTE.held:
            self.busy("waiting: another tab is using the model")
        self._holds = COMPUTE.acquire(lambda: not self.cancelled)
        self.check()
        self.busy(self.doing)

    def tell(self, event: str, data: dict[str, Any], blobs: dict[str, Any] | None = None) -> None:
        """Send an event to the page of this workspace."""
        if self._tell is not None:
            self._tell(event, data, blobs)

    def busy(self, text: str) -> None:
        """Tell what is being done now."""
        self.tell("busy", {"job": self.name, "id": self.id, "text": text})

    def progress(self, done: float, total: float, text: str = "") -> None:
        """Tell how far it is, and end if it was cancelled."""
        self.check()
        event = {"job": self.name, "id": self.id, "done": done, "total": total, "text": text}
        self.tell("progress", event)

    def cancellable(self, parts: Parts) -> CancelProbe:
        """Inside, a call of the model ends at its next layer when the job is cancelled."""
        return CancelProbe(self, parts)


class CancelProbe(Probe):
    """Looks at each layer whether anybody still waits; a debugger's run is left alone."""

    def __init__(self, job: Job, parts: Parts) -> None:
        super().__init__(parts.model, only=parts.layers)
        self._job, self._green = job, getcurrent()
        self._numbers = {id(layer): i for i, layer in enumerate(parts.layers)}
        self._told = time.monotonic()

    @property
    def inactive(self) -> bool:
        return getcurrent() is not self._green or super().inactive

    def entered(self, frame: Frame) -> None:
        self._job.check()
        now, at = time.monotonic(), self._numbers.get(id(frame.subject))
        if at is not None and now - self._told > TELLING:
            self._told = now
            self._job.busy(f"{self._job.doing}: layer {at + 1} of {len(self._numbers)}")
