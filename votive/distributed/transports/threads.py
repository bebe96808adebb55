"""Ranks that are threads of one process: for tests, for teaching, and to see a mesh on a laptop."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from ..errors import DistBackendError
from ..reduce_op import ReduceOp, reduced
from .base import Array
from .liveness import Watch


class Board:
    """What the threads of a group share: a place for each rank's array, and letters between any two."""

    def __init__(self, size: int, root: Board | None = None) -> None:
        self.size = size
        self.places: list[Any] = [None] * size
        self.changed = threading.Condition()
        self.arrived = self.round = 0
        self.letters: dict[tuple[str, int, int, int], deque[Any]] = {}
        self.groups: dict[str, Board] = {}
        self.root = self if root is None else root
        self.broken: str | None = None  # why a rank has ended before its time

    def meet(self) -> None:
        """Return when every rank has called this."""
        with self.changed:
            mine = self.round
            self.arrived += 1
            if self.arrived == self.size:
                self.arrived, self.round = 0, mine + 1
                self.changed.notify_all()
            while self.round == mine:
                if self.root.broken:
                    raise DistBackendError(self.root.broken)
                self.changed.wait(0.05)

    def part(self, name: str, size: int) -> Board:
        """The board of some of the ranks."""
        with self.changed:
            return self.groups.setdefault(name, Board(size, self.root))

    def box(self, kind: str, source: int, to: int, tag: int) -> deque[Any]:
        """Letters from one rank to another."""
        with self.changed:
            return self.letters.setdefault((kind, source, to, tag), deque())


class _Sent:
    def __init__(self, source: int) -> None:
        self.source = source

    def done(self) -> bool:
        return True


class _Awaited:
    """A message that a thread waits for."""

    def __init__(self, transport: ThreadTransport, x: Array, source: int | None, tag: int) -> None:
        self.transport, self.x, self.tag = transport, x, tag
        self.sources = range(transport.size) if source is None else [source]
        self.source = -1

    def done(self) -> bool:
        if self.source >= 0:
            return True
        for source in self.sources:
            box = self.transport.board.box("data", source, self.transport.rank, self.tag)
            if box:
                found = box.popleft()
                if len(found) != self.x.nbytes:
                    raise DistBackendError(
                        f"recv: rank {source} sent {len(found):,} bytes, and the tensor of rank "
                        f"{self.transport.rank} takes {self.x.nbytes:,}."
                    )
                self.x.reshape(-1).view("u1")[...] = memoryview(found)
                self.source = source
                return True
        return False


class ThreadTransport:
    """One thread's end of a board."""

    watch: Watch | None = None

    def __init__(self, board: Board, rank: int) -> None:
        self.board, self.rank, self.size = board, rank, board.size

    def _exchange(self, mine: Any) -> list[Any]:
        """What all ranks have put down; nobody takes its thing away before all have looked."""
        self.board.places[self.rank] = mine
        self.board.meet()
        return list(self.board.places)

    def barrier(self) -> None:
        self.board.meet()

    def broadcast(self, x: Array, root: int) -> None:
        found = self._exchange(x)[root]
        if self.rank != root:
            x[...] = found
        self.board.meet()

    def all_reduce(self, x: Array, op: ReduceOp) -> None:
        total = reduced(self._exchange(x), op)
        self.board.meet()
        x[...] = total
        self.board.meet()

    def reduce(self, x: Array, root: int, op: ReduceOp) -> None:
        parts = self._exchange(x)
        if self.rank == root:
            x[...] = reduced(parts, op)
        self.board.meet()

    def all_gather(self, out: Array, x: Array) -> None:
        for row, part in zip(out, self._exchange(x.copy()), strict=True):
            row[...] = part
        self.board.meet()

    def reduce_scatter(self, out: Array, x: Array, op: ReduceOp) -> None:
        total = reduced([part[self.rank] for part in self._exchange(x)], op)
        self.board.meet()
        out[...] = total

    def all_to_all(self, outs: Sequence[Array], parts: Sequence[Array]) -> None:
        found = self._exchange([part.copy() for part in parts])
        for out, theirs in zip(outs, found, strict=True):
            out[...] = theirs[self.rank]
        self.board.meet()

    def gather(self, out: Array | None, x: Array, root: int) -> None:
        parts = self._exchange(x)
        if out is not None and self.rank == root:
            for row, part in zip(out, parts, strict=True):
                row[...] = part
        self.board.meet()

    def scatter(self, out: Array, x: Array | None, root: int) -> None:
        out[...] = self._exchange(x)[root][self.rank]
        self.board.meet()

    def send(self, x: Array, to: int, tag: int) -> _Sent:
        self.board.box("data", self.rank, to, tag).append(x.tobytes())
        return _Sent(self.rank)

    def receive(self, x: Array, source: int | None, tag: int) -> _Awaited:
        return _Awaited(self, x, source, tag)

    def tell(self, to: int, message: bytes) -> None:
        self.board.box("word", self.rank, to, 0).append(message)

    def heard(self, source: int) -> bytes | None:
        box = self.board.box("word", source, self.rank, 0)
        if box:
            return box.popleft()
        time.sleep(0)  # the others are threads, too
        return None

    def failure(self) -> str | None:
        return self.board.root.broken

    def split(self, ranks: Sequence[int], name: str) -> ThreadTransport:
        return ThreadTransport(self.board.part(name, len(ranks)), list(ranks).index(self.rank))

    def close(self) -> None:
        return
