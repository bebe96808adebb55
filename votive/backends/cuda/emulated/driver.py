"""A driver without a GPU: device memory is host memory, kernels run under Triton's interpreter.

It makes every kernel and the whole runtime testable anywhere. Slow: for tests at small sizes. It is
stricter than a GPU where that finds mistakes: work may touch memory of the current device alone.
"""

from __future__ import annotations

import ctypes as c
import threading
import time
from bisect import bisect_right, insort
from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.errors import CudaError
from ..runtime.driver import OutOfDeviceMemory, _On
from ..runtime.signatures import Properties

Work = Callable[[], None]


class _Current(threading.local):
    """The devices that a thread has made its own, the latest last; none to begin with."""

    def __init__(self) -> None:
        self.stack: list[int | None] = [None]


class Emulated:
    """The methods of `driver.Driver` on host memory. Work is done when it is given, or, with
    `late`, when somebody waits for it: then it shows who reads or writes too early.
    """

    emulated = True
    launch_address = 0  # nothing to launch by
    waits = 0

    def __init__(self, total: int = 1 << 30, count: int = 2) -> None:
        self.count, self.total = count, total
        self.late = False
        self.blocks: dict[int, tuple[Any, int, int]] = {}  # address -> memory, size, device
        self.pinned: dict[int, Any] = {}
        self.used = [0] * count
        self._starts: list[int] = []
        self._next = 1 << 20
        self._times: dict[int, float] = {}
        self._at: dict[int, tuple[int, list[Work] | None]] = {}  # event -> device, graph
        self._pending: dict[int, int] = {}  # event -> how often it is still to come
        self._queue: list[Work] = []
        self._graphs: dict[int, list[Work]] = {}  # stream that is captured -> what it was given
        self._made: dict[int, list[Work]] = {}
        self._priorities: dict[int, int] = {}
        self._current = _Current()

    # Devices

    @property
    def device(self) -> int:
        found = self._current.stack[-1]
        if found is None:
            raise CudaError("this thread has no current device.")
        return found

    def _some_device(self) -> None:
        """The driver refuses all calls of a thread that has no device."""
        _ = self.device

    def use(self, device: int) -> None:
        self._current.stack[-1] = device

    def push(self, device: int) -> None:
        self._current.stack.append(device)

    def pop(self) -> None:
        self._current.stack.pop()

    def on(self, device: int) -> _On:
        return _On(self, device)

    def somewhere(self) -> _On:
        return _On(self, 0)

    def properties(self, device: int) -> Properties:
        return Properties(
            "Emulated GPU (Triton interpreter)",
            self.total,
            9,
            0,
            4,
            32,
            1024,
            2048,
            65536,
            49152,
            232448,
            233472,
            50 << 20,
            0,
            0,
            0,
            0,
            0,
            device,
        )

    def can_access_peer(self, device: int, other: int) -> bool:
        return device != other

    def version(self) -> int:
        return 0

    def profile(self, on: bool) -> None:
        self._some_device()

    # Work

    def enqueue(self, stream: int, work: Work) -> None:
        """Do something in the order of a stream."""
        graph = self._graphs.get(stream)
        if graph is not None:
            graph.append(work)
        elif self.late:
            self._queue.append(work)
        else:
            work()

    def flush(self) -> None:
        """Do what is still to be done."""
        queue, self._queue = self._queue, []
        for work in queue:
            work()

    def synchronize(self) -> None:
        self._some_device()
        self.waits += 1
        self.flush()

    def wait_stream(self, stream: int) -> None:
        self._some_device()
        if stream in self._graphs:
            raise CudaError("a stream that is being captured cannot be waited for.")
        self.waits += 1
        self.flush()

    def check(self, *addresses: int) -> None:
        """Raise when device memory is another device's."""
        for address in addresses:
            device = self.device_of(address)
            if device not in (None, self.device):
                raise CudaError(f"cuda:{self.device} was given memory of cuda:{device}.")

    # Memory

    def alloc(self, nbytes: int) -> int:
        if self.used[self.device] + nbytes > self.total:
            raise OutOfDeviceMemory
        raw = np.empty(nbytes + 256, np.uint8)
        raw.fill(0xA5)  # nothing may depend on what fresh memory holds
        address = int(raw.__array_interface__["data"][0])
        address += -address % 256
        self.blocks[address] = (raw, nbytes, self.device)
        insort(self._starts, address)
        self.used[self.device] += nbytes
        return address

    def free(self, address: int) -> None:
        self.flush()
        _, nbytes, device = self.blocks.pop(address)
        self._starts.remove(address)
        self.used[device] -= nbytes

    def memory_info(self) -> tuple[int, int]:
        return self.total - self.used[self.device], self.total

    def alloc_pinned(self, nbytes: int) -> int:
        self._some_device()
        raw = np.empty(max(nbytes, 1) + 4096, np.uint8)
        raw.fill(0xA5)
        address = int(raw.__array_interface__["data"][0])
        address += -address % 4096
        self.pinned[address] = (raw, nbytes)
        return address

    def free_pinned(self, address: int) -> None:
        self.flush()
        self.pinned.pop(address)

    def is_pinned(self, address: int) -> bool:
        return any(a <= address < a + max(n, 1) for a, (_, n) in self.pinned.items())

    def device_of(self, address: int) -> int | None:
        at = bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        _, nbytes, device = self.blocks[self._starts[at]]
        return device if address < self._starts[at] + nbytes else None

    def to_device(self, to: int, source: int, nbytes: int, stream: int) -> None:
        self.check(to)
        if self.late and stream not in self._graphs and not self.is_pinned(source):
            kept = c.string_at(source, nbytes)  # ordinary memory is read before the call returns
            self.enqueue(stream, lambda: _move(to, kept, nbytes))
        else:
            self.enqueue(stream, lambda: _move(to, source, nbytes))

    def to_host(self, to: int, source: int, nbytes: int, stream: int) -> None:
        self.check(source)
        self.enqueue(stream, lambda: _move(to, source, nbytes))
        if self.late and stream not in self._graphs and not self.is_pinned(to):
            self.flush()

    def between(self, to: int, source: int, nbytes: int, stream: int) -> None:
        self.check(to, source)
        self.enqueue(stream, lambda: _move(to, source, nbytes))

    def across(self, to: int, there: int, source: int, here: int, nbytes: int, stream: int) -> None:
        for address, device in ((to, there), (source, here)):
            with self.on(device):
                self.check(address)
        self.enqueue(stream, lambda: _move(to, source, nbytes))

    def fill_bytes(self, to: int, value: int, nbytes: int, stream: int) -> None:
        self.check(to)
        self.enqueue(stream, lambda: _fill(to, value, nbytes))

    # Streams and events

    def _handle(self) -> int:
        self._next += 1
        return self._next

    def new_stream(self, priority: int) -> int:
        stream = self._handle()
        self._priorities[stream] = priority
        return stream

    def end_stream(self, stream: int) -> None:
        pass

    def stream_done(self, stream: int) -> bool:
        return not self._queue

    def priority(self, stream: int) -> int:
        return self._priorities.get(stream, 0)

    def priorities(self) -> tuple[int, int]:
        self._some_device()
        return 0, -5

    def new_event(self, timing: bool, blocking: bool = False) -> int:
        event = self._handle()
        self._at[event] = (self.device, None)
        return event

    def end_event(self, event: int) -> None:
        self._some_device()
        self._times.pop(event, None)
        self._at.pop(event, None)

    def record(self, event: int, stream: int) -> None:
        if self._at[event][0] != self.device:
            raise CudaError(f"an event of cuda:{self._at[event][0]} on cuda:{self.device}.")
        graph = self._graphs.get(stream)
        self._at[event] = (self.device, graph)
        if graph is None:
            self._pending[event] = self._pending.get(event, 0) + 1
            self.enqueue(stream, lambda: self._reach(event))

    def _reach(self, event: int) -> None:
        self._times[event] = time.perf_counter()
        self._pending[event] -= 1
        if not self._pending[event]:
            del self._pending[event]

    def hold(self, stream: int, event: int) -> None:
        graph = self._at[event][1]
        if graph is not None:  # the stream joins what is being captured
            self._graphs[stream] = graph

    def event_done(self, event: int) -> bool:
        self._some_device()
        return event not in self._pending

    def wait_event(self, event: int) -> None:
        self._some_device()
        self.waits += 1
        self.flush()

    def elapsed(self, begin: int, end: int) -> float:
        self._some_device()
        if begin not in self._times or end not in self._times:
            raise CudaError("elapsed_time: both events must be recorded first.")
        return (self._times[end] - self._times[begin]) * 1e3

    # Graphs

    def begin_capture(self, stream: int) -> None:
        self._graphs[stream] = []

    def end_capture(self, stream: int) -> int:
        graph = self._graphs[stream]
        self._graphs = {s: g for s, g in self._graphs.items() if g is not graph}
        made = self._handle()
        self._made[made] = graph
        return made

    def capturing(self, stream: int) -> bool:
        return stream in self._graphs

    def instantiate(self, graph: int) -> int:
        self._some_device()
        return graph

    def graph_size(self, graph: int) -> int:
        return len(self._made[graph])

    def launch_graph(self, executable: int, stream: int) -> None:
        self._some_device()
        for work in self._made[executable]:
            self.enqueue(stream, work)

    def draw_graph(self, graph: int, path: str) -> None:
        with open(path, "w") as file:
            nodes = "".join(f"  n{i};\n" for i in range(len(self._made[graph])))
            file.write(f"digraph {{\n{nodes}}}\n")

    def end_executable(self, executable: int) -> None:
        self._some_device()
        self.flush()

    def end_graph(self, graph: int) -> None:
        del self._made[graph]


def _move(to: int, source: Any, nbytes: int) -> None:
    c.memmove(to, source, nbytes)


def _fill(to: int, value: int, nbytes: int) -> None:
    c.memset(to, value, nbytes)
