"""Whether all ranks are about to do the same: a short word from each before the data, so that nobody waits for ever.

The first rank of a group hears what every other one calls, at which line, and answers that all agree or who does not.
Knows transports and calls, not tensors.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

from .errors import DistBackendError
from .transports.base import Transport
from .work import SAID_AFTER

# Said, with the reason, instead of a call by ranks that have left the group; with who is missing, before an answer.
LEFT, MISSED = b"\0left", b"\0missed"
# After so long the first rank says who is missed to those that have come.
MISSED_AFTER = 0.5
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@cache
def checking() -> bool:
    """Whether calls are compared; VOTIVE_DISTRIBUTED_CHECK=0, set for all ranks, leaves it out.

    >>> votive.distributed.check.checking()
    True
    """
    return os.environ.get("VOTIVE_DISTRIBUTED_CHECK", "1") != "0"


@dataclass(frozen=True)
class Call:
    """A collective as one rank calls it: what must agree, and what is shown."""

    op: str
    agrees: str = ""  # type, count, root, reduction
    shown: str = ""
    where: str = ""

    def __str__(self) -> str:
        return f"{self.op}{self.shown and ' '}{self.shown} at {self.where or 'an unknown line'}"


def line_of_caller() -> str:
    """The line outside of votive that led here.

    >>> votive.distributed.check.line_of_caller()[:1] != ""
    True
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def level_of_caller() -> int:
    """The `stacklevel` by which a warning shows that line.

    >>> votive.distributed.check.level_of_caller() >= 1
    True
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame, level = frame.f_back, level + 1
    return level


class Checker:
    """One rank's side of the agreement of a group."""

    def __init__(self, transport: Transport, ranks: Sequence[int], timeout: float) -> None:
        self.transport, self.ranks, self.timeout = transport, list(ranks), timeout
        self.count = 0
        self.last = ["nothing so far"] * len(self.ranks)

    def meet(self, call: Call, timeout: float | None = None) -> None:
        """Return when every rank is about to do this; raise on all ranks where they are not."""
        self.count += 1
        if self.transport.size == 1:
            return
        limit = self.timeout if timeout is None else timeout
        message = json.dumps([self.count, f"{call.op} {call.agrees}", str(call)]).encode()
        if self.transport.rank == 0:
            self._lead(call, message, limit)
        else:
            self._follow(call, message, limit)

    def leave(self, why: str = "has left the group") -> None:
        """Tell whoever waits for this rank that it will not come."""
        others = range(1, self.transport.size) if self.transport.rank == 0 else [0]
        for r in others if self.transport.size > 1 else ():
            self.transport.tell(r, LEFT + why.encode())

    def _follow(self, call: Call, message: bytes, limit: float) -> None:
        self.transport.tell(0, message)
        wait = _Wait(self, call, limit + 1)
        text = f"rank {self.ranks[0]}, the first of the group, is not there"
        while True:
            found = self._heard(0, call)
            if found is None:
                wait.on(partial(str, text))
            elif found.startswith(MISSED):
                text = found[len(MISSED) :].decode()
                wait.warned = True  # by the first rank
            elif found:
                raise DistBackendError(found.decode())
            else:
                return

    def _lead(self, call: Call, message: bytes, limit: float) -> None:
        heard: dict[int, tuple[int, str, str]] = {0: tuple(json.loads(message))}
        missing = list(range(1, self.transport.size))
        told: dict[int, bytes] = {}
        wait = _Wait(self, call, limit)

        def missed() -> str:
            return "; ".join(f"rank {self.ranks[r]} is not there, its last call was {self.last[r]}" for r in missing)

        try:
            while missing:
                for r in missing:
                    found = self._heard(r, call)
                    if found is not None:
                        heard[r] = tuple(json.loads(found))
                missing = [r for r in missing if r not in heard]
                if missing and wait.on(missed) > MISSED_AFTER:
                    word = MISSED + missed().encode()
                    for r in [r for r in heard if r > 0 and told.get(r) != word]:
                        self.transport.tell(r, word)
                        told[r] = word
        except DistBackendError as e:
            self._tell_all(str(e))
            raise
        for r, (_, _, text) in heard.items():
            self.last[r] = text
        if len({found[:2] for found in heard.values()}) == 1:
            self._tell_all("")
            return
        lines = "\n".join(f"  rank {self.ranks[r]}, call {n}: {text}" for r, (n, _, text) in sorted(heard.items()))
        wrong = (
            f"the ranks of the group do not call the same:\n{lines}\n"
            "All ranks of a group must make the same calls, with tensors of the same type and size, in the same order."
        )
        self._tell_all(wrong)
        raise DistBackendError(wrong)

    def _tell_all(self, text: str) -> None:
        for r in range(1, self.transport.size):
            self.transport.tell(r, text.encode())

    def _heard(self, source: int, call: Call) -> bytes | None:
        """The next word of a rank, if there is one; an error if it says that the rank has left."""
        found = self.transport.heard(source)
        if found is not None and found.startswith(LEFT):
            why = found[len(LEFT) :].decode()
            last = f", its last call was {self.last[source]}" if self.transport.rank == 0 else ""
            raise DistBackendError(f"{call}: rank {self.ranks[source]} {why}{last}.")
        return found


class _Wait:
    """A rank's waiting for others: at first without pause, then with more and more; bounded, and not silent."""

    def __init__(self, checker: Checker, call: Call, limit: float) -> None:
        self.checker, self.call, self.limit = checker, call, limit
        self.start, self.pause, self.tries = time.monotonic(), 0.0, 0
        self.warned = False

    def on(self, text: Callable[[], str]) -> float:
        """Wait a little; says after a while who is missing, and raises when it has taken too long. Gives the time."""
        self.tries += 1
        if self.tries < 50:
            return 0.0
        waited, wrong = time.monotonic() - self.start, self.checker.transport.failure()
        if wrong:
            raise DistBackendError(f"{self.call}: {wrong}.")
        if waited > self.limit:
            raise DistBackendError(f"{self.call}: Timed out after {self.limit:.1f} seconds; {text()}.")
        if waited > SAID_AFTER and not self.warned:
            self.warned = True
            warnings.warn(
                f"rank {self.checker.ranks[self.checker.transport.rank]} has waited {SAID_AFTER:.0f} seconds in "
                f"{self.call}: {text()}. It goes on waiting until {self.limit:.0f} seconds are over.",
                RuntimeWarning,
                stacklevel=level_of_caller(),
            )
        time.sleep(self.pause)
        self.pause = min(self.pause + 1e-5, 1e-3)
        return waited
