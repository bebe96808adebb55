"""NCCL on host memory, among the threads of a process: computed by NumPy from addresses alone, in place of the library
where the GPU is emulated. It is stricter than the library where that finds mistakes: ranks that call differently, and
messages of other sizes, are errors instead of a hang or wrong numbers.
"""

from __future__ import annotations

import ctypes as c
import itertools
import threading
from collections import deque
from typing import Any

import ml_dtypes
import numpy as np

KINDS = {
    0: np.int8, 1: np.uint8, 2: np.int32, 3: np.uint32, 4: np.int64, 5: np.uint64, 6: np.float16, 7: np.float32,
    8: np.float64, 9: ml_dtypes.bfloat16,
}  # fmt: skip
LIMIT = 60.0
BAD_ARGUMENT, BAD_USE = 4, 5


class Wire:
    """What the ranks of a communicator share."""

    def __init__(self, size: int) -> None:
        self.size, self.places = size, [None] * size
        self.barrier = threading.Barrier(size, timeout=LIMIT)
        self.letters: dict[tuple[int, int], deque[bytes]] = {}
        self.changed = threading.Condition()

    def exchange(self, rank: int, mine: Any) -> list[Any]:
        self.places[rank] = mine
        self.barrier.wait()
        found = list(self.places)
        self.barrier.wait()
        return found


def numbers(address: int, count: int, kind: int) -> Any:
    dtype = np.dtype(KINDS[kind])
    if not count:
        return np.empty(0, dtype)
    return np.frombuffer((c.c_uint8 * (count * dtype.itemsize)).from_address(address), dtype)


class FakeNccl:
    """The library. `calls` are the names of what was called; `broken` is what the next call answers."""

    def __init__(self) -> None:
        self.wires: dict[bytes, Wire] = {}
        self.comms: dict[int, tuple[Wire, int]] = {}
        self.count = itertools.count(1)
        self.lock = threading.Lock()
        self.held = threading.local()
        self.calls: list[str] = []
        self.broken = self.later = 0
        self.ended: list[str] = []

    # Communicators

    def ncclGetVersion(self, version: Any) -> int:
        version._obj.value = 22703
        return 0

    def ncclGetErrorString(self, code: int) -> bytes:
        return {BAD_ARGUMENT: b"invalid argument", BAD_USE: b"invalid usage"}.get(code, b"unhandled system error")

    def ncclGetLastError(self, comm: Any) -> bytes:
        return b"a word more\n"

    def ncclGetUniqueId(self, made: Any) -> int:
        # Zeros within must not end it, as they would a C string.
        text = b"id\0" + str(next(self.count)).encode()
        c.memmove(c.addressof(made._obj), text.ljust(128, b"\0"), 128)
        return 0

    def ncclCommInitRank(self, handle: Any, size: int, unique_id: Any, rank: int) -> int:
        key = c.string_at(c.addressof(unique_id), 128)
        with self.lock:
            wire = self.wires.setdefault(key, Wire(size))
            number = next(self.count)
            self.comms[number] = wire, rank
        assert wire.size == size
        wire.barrier.wait()
        handle._obj.value = number
        return 0

    def ncclCommDestroy(self, comm: int) -> int:
        del self.comms[comm]
        self.ended.append("destroy")
        return 0

    def ncclCommAbort(self, comm: int) -> int:
        del self.comms[comm]
        self.ended.append("abort")
        return 0

    def ncclCommGetAsyncError(self, comm: int, code: Any) -> int:
        code._obj.value = self.later
        return 0

    # Collectives

    def _said(self, name: str) -> int:
        with self.lock:
            self.calls.append(name)
        broken, self.broken = self.broken, 0
        return broken

    def _reduced(self, wire: Wire, rank: int, x: Any, op: int, call: Any) -> Any:
        rows = wire.exchange(rank, (call, x.copy()))
        assert len({row[0] for row in rows}) == 1, rows
        parts = np.stack([row[1] for row in rows])
        if op in (2, 3):
            return (parts.max if op == 2 else parts.min)(0)
        wide = parts.astype(np.float64) if parts.dtype.kind not in "iu" else parts
        total = wide.prod(0) if op == 1 else wide.sum(0)
        if op == 4:
            total = np.trunc(total / wire.size) if parts.dtype.kind in "iu" else total / wire.size
        return total.astype(parts.dtype)

    def ncclAllReduce(self, source: int, target: int, count: int, kind: int, op: int, comm: int, stream: int) -> int:
        code = self._said("all_reduce")
        if code:
            return code
        wire, rank = self.comms[comm]
        x = numbers(source, count, kind)
        numbers(target, count, kind)[...] = self._reduced(wire, rank, x, op, ("all_reduce", count, kind, op))
        return 0

    def ncclReduce(
        self, source: int, target: int, count: int, kind: int, op: int, root: int, comm: int, stream: int
    ) -> int:
        self._said("reduce")
        wire, rank = self.comms[comm]
        total = self._reduced(wire, rank, numbers(source, count, kind), op, ("reduce", count, kind, op, root))
        if rank == root:
            numbers(target, count, kind)[...] = total
        return 0

    def ncclBroadcast(self, source: int, target: int, count: int, kind: int, root: int, comm: int, stream: int) -> int:
        self._said("broadcast")
        wire, rank = self.comms[comm]
        rows = wire.exchange(rank, numbers(source, count, kind).copy())
        numbers(target, count, kind)[...] = rows[root]
        return 0

    def ncclAllGather(self, source: int, target: int, count: int, kind: int, comm: int, stream: int) -> int:
        self._said("all_gather")
        wire, rank = self.comms[comm]
        rows = wire.exchange(rank, numbers(source, count, kind).copy())
        numbers(target, wire.size * count, kind)[...] = np.concatenate(rows)
        return 0

    def ncclReduceScatter(
        self, source: int, target: int, count: int, kind: int, op: int, comm: int, stream: int
    ) -> int:
        self._said("reduce_scatter")
        wire, rank = self.comms[comm]
        x = numbers(source, wire.size * count, kind)
        total = self._reduced(wire, rank, x, op, ("reduce_scatter", count, kind, op))
        numbers(target, count, kind)[...] = total[rank * count : (rank + 1) * count]
        return 0

    # Messages: within a group, what is sent goes first

    def ncclGroupStart(self) -> int:
        self.held.calls = []
        return 0

    def ncclGroupEnd(self) -> int:
        calls, self.held.calls = self.held.calls, None
        for sends in (True, False):
            for is_send, arguments in calls:
                if is_send == sends:
                    code = (self._send if is_send else self._take)(*arguments)
                    if code:
                        return code
        return 0

    def ncclSend(self, source: int, count: int, kind: int, peer: int, comm: int, stream: int) -> int:
        self._said("send")
        return self._now_or_later(True, (source, count, kind, peer, comm))

    def ncclRecv(self, target: int, count: int, kind: int, peer: int, comm: int, stream: int) -> int:
        self._said("recv")
        return self._now_or_later(False, (target, count, kind, peer, comm))

    def _now_or_later(self, is_send: bool, arguments: Any) -> int:
        held = getattr(self.held, "calls", None)
        if held is not None:
            held.append((is_send, arguments))
            return 0
        return self._send(*arguments) if is_send else self._take(*arguments)

    def _send(self, source: int, count: int, kind: int, peer: int, comm: int) -> int:
        wire, rank = self.comms[comm]
        if not 0 <= peer < wire.size or peer == rank:
            return BAD_ARGUMENT
        with wire.changed:
            wire.letters.setdefault((rank, peer), deque()).append(numbers(source, count, kind).tobytes())
            wire.changed.notify_all()
        return 0

    def _take(self, target: int, count: int, kind: int, peer: int, comm: int) -> int:
        wire, rank = self.comms[comm]
        if not 0 <= peer < wire.size or peer == rank:
            return BAD_ARGUMENT
        with wire.changed:
            box = wire.letters.setdefault((peer, rank), deque())
            if not wire.changed.wait_for(lambda: box, LIMIT):
                return BAD_USE
            found = np.frombuffer(box.popleft(), KINDS[kind])
        if found.size != count:
            return BAD_USE
        numbers(target, count, kind)[...] = found
        return 0
