"""Whether the other processes still run, and what to do where MPI would wait for one that does not. Knows no MPI.

Processes of one machine are looked up by their numbers; those of others are left to MPI and the launcher.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from ..launched import note_failure

# How often others are looked up, and how long a call may wait for one that has ended.
EVERY, GRACE = 0.2, 1.0


def identity() -> tuple[str, int]:
    """Where this process can be looked up, and its number there.

    >>> votive.distributed.transports.liveness.identity()[1] > 0
    True
    """
    place = socket.gethostname()
    with suppress(OSError):  # processes in containers have numbers of their own
        place += os.readlink("/proc/self/ns/pid")
    return place, os.getpid()


def runs(pid: int) -> bool:
    """Whether a process of this machine runs.

    >>> import os
    >>> votive.distributed.transports.liveness.runs(os.getpid())
    True
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with suppress(OSError, IndexError):
        # One that nobody has waited for yet is there, but dead.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return True


class Watch:
    """Looks after the other processes, and ends this one where it would wait for ever inside of MPI.

    >>> from votive.distributed.transports.liveness import Watch, identity
    >>> Watch([identity()], 0).failure() is None
    True
    """

    def __init__(
        self, everyone: Sequence[tuple[str, int]], rank: int, end: Callable[[str], None] | None = None
    ) -> None:
        here = everyone[rank][0]
        self.rank = rank
        self.others = {r: pid for r, (place, pid) in enumerate(everyone) if place == here and r != rank}
        self._end = last_words if end is None else end
        self._inside: dict[int, tuple[str, float, float]] = {}
        self._looked = 0.0
        self._found: str | None = None
        self._thread: threading.Thread | None = None

    def failure(self, every: float = EVERY) -> str | None:
        """Which processes have ended, if any."""
        now = time.monotonic()
        if self._found is None and now >= self._looked + every:
            self._looked = now
            gone = [f"rank {r} (process {pid})" for r, pid in self.others.items() if not runs(pid)]
            if gone:
                self._found = f"{', '.join(gone)} {'has' if len(gone) == 1 else 'have'} ended unexpectedly"
        return self._found

    def enter(self, what: object, limit: float) -> None:
        """Say that this thread goes into a call which may wait inside of MPI."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._look, name="watch", daemon=True)
            self._thread.start()
        self._inside[threading.get_ident()] = (str(what), time.monotonic(), limit)

    def leave(self) -> None:
        """Say that it is out again."""
        self._inside.pop(threading.get_ident(), None)

    def _look(self) -> None:
        while True:
            time.sleep(EVERY)
            for what, since, limit in list(self._inside.values()):
                waited = time.monotonic() - since
                wrong = self.failure() if waited > GRACE else None
                if wrong is None and waited > limit:
                    wrong = f"not done after {limit:.0f} seconds, the group's timeout"
                if wrong:
                    self._end(f"rank {self.rank} waits in {what}: {wrong}. This process ends, too.")
                    return


def last_words(text: str) -> None:
    """Say why, and end this process: nothing else gets a thread out of MPI.

    >>> votive.distributed.transports.liveness.last_words.__name__
    'last_words'
    """
    sys.stdout.flush()
    sys.stderr.write(f"votive.distributed: {text}\n")
    sys.stderr.flush()
    note_failure(f"was ended: {text.rstrip('.')}", 1, heard=True)
    os._exit(1)
