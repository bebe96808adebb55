"""Which requests wait and which are under way, within bounds of texts and of memory. Knows no model."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable

from .blocks import BlockStore
from .events import Busy, Closing, TextRequest
from .rows_cache import SPARE, laid_rows
from .text import Need, Text, Ticket


def need_of(request: TextRequest, alone: bool) -> Need:
    """What a request needs."""
    lengths = [len(p) + request.max_new_tokens for p in request.prompts for _ in range(request.n)]
    longest_prompt = max(map(len, request.prompts))
    if alone:  # a cache that grows has room for twice what is in it
        return Need(0, 0, sum(2 * n + SPARE for n in lengths), longest_prompt)
    return Need(len(lengths), max(lengths), 0, longest_prompt)


def positions_of(needs: Iterable[Need]) -> int:
    """For how many positions there must be memory: all rows are as wide as the longest, and a prompt is being read.

    >>> from votive.serve.admission import positions_of
    >>> from votive.serve.text import Need
    >>> positions_of([Need(rows=2, longest=100, prompt=50)])
    492
    """
    given = list(needs)
    if not given:
        return 0
    width = max(n.longest for n in given) + SPARE
    reading = 2 * max(n.prompt for n in given) + SPARE
    return laid_rows(sum(n.rows for n in given)) * width + sum(n.alone for n in given) + reading


class Admission:
    """A bounded queue in front of a bounded number of texts.

    `allocated` tells for how many positions memory is taken by rows, and `shrink` gives back what can be.
    """

    def __init__(
        self,
        store: BlockStore,
        max_texts: int,
        max_waiting: int,
        allocated: Callable[[], int],
        shrink: Callable[[], None],
    ) -> None:
        self.store, self.max_texts, self.max_waiting = store, max_texts, max_waiting
        self._allocated, self._shrink = allocated, shrink
        self.open: dict[int, Ticket] = {}
        self.waiting: deque[tuple[Ticket, list[Text]]] = deque()
        self._lock = threading.Lock()
        self._closed = False

    def waiting_texts(self) -> int:
        """How many texts have not begun."""
        with self._lock:
            return sum(t.request.texts for t, _ in self.waiting)

    def check(self, texts: int, patience: int) -> None:
        """Raise `Busy` where so many texts more are too many."""
        with self._lock:
            self._check(texts, patience)

    def _check(self, texts: int, patience: int) -> None:
        if self._closed:
            raise Closing
        # A request that need not wait is never one too many.
        waiting = sum(t.request.texts for t, _ in self.waiting)
        running = sum(t.open for t in self.open.values())
        if waiting + texts > self.max_waiting and (waiting or running + texts > self.max_texts):
            raise Busy(f"{waiting} texts wait already; ask again later.", patience)

    def add(self, ticket: Ticket, texts: list[Text], patience: int) -> None:
        """Let a request wait for its turn."""
        with self._lock:
            self._check(ticket.request.texts, patience)
            self.waiting.append((ticket, texts))

    def take(self) -> tuple[Ticket, list[Text]] | None:
        """The next request, if there is room for it."""
        with self._lock:
            if not self.waiting:
                return None
            ticket, texts = self.waiting[0]
            running = sum(t.open for t in self.open.values())
            if running + ticket.request.texts > self.max_texts or not self._holds(ticket):
                return None
            self.waiting.popleft()
            self.open[ticket.number] = ticket
            return ticket, texts

    def _holds(self, ticket: Ticket) -> bool:
        needs = [t.need for t in (*self.open.values(), ticket)]
        wanted = positions_of(needs)
        if self._allocated() > wanted:
            self._shrink()
        return self.store.hold(max(wanted, self._allocated()))

    def release(self, ticket: Ticket) -> bool:
        """Give back what a request held; whether it held anything."""
        with self._lock:
            if self.open.pop(ticket.number, None) is None:
                return False
            self.store.hold(max(positions_of(t.need for t in self.open.values()), self._allocated()))
        return True

    def drop_cancelled(self) -> list[Ticket]:
        """Take out what waits and nobody wants any more."""
        with self._lock:
            gone = [t for t, _ in self.waiting if t.cancelled]
            if gone:
                self.waiting = deque((t, x) for t, x in self.waiting if not t.cancelled)
        return gone

    def empty(self) -> list[Ticket]:
        """Take out all that waits."""
        with self._lock:
            waiting, self.waiting = list(self.waiting), deque()
        return [t for t, _ in waiting]

    def close(self) -> None:
        """Take nothing more."""
        with self._lock:
            self._closed = True
