"""A driver without a GPU: device memory is host memory, kernels run under Triton's interpreter.

It makes every kernel and the whole runtime testable anywhere. Slow: for tests at small sizes.
"""

from __future__ import annotations

import ctypes as c
import time
from typing import Any

import numpy as np

from ...core.errors import CudaError
from .driver import OutOfDeviceMemory, Properties


class Emulated:
    """The methods of `driver.Driver` on host memory; everything is done at once."""

    emulated = True

    def __init__(self, total: int = 1 << 30, count: int = 2) -> None:
        self.count, self.total = count, total
        self.blocks: dict[int, Any] = {}
        self.used = 0
        self._next = 1 << 20
        self._times: dict[int, float] = {}
        self._capturing: set[int] = set()

    def use(self, device: int) -> None:
        pass

    def properties(self, device: int) -> Properties:
        return Properties(
            "Emulated GPU (Triton interpreter)", self.total, 9, 0, 4, 32, 1024, 2048, 65536,
            49152, 232448, 233472, 50 << 20, 0, 0, 0, 0, 0, device,
        )  # fmt: skip

    def can_access_peer(self, device: int, other: int) -> bool:
        return True

    def version(self) -> int:
        return 0

    def synchronize(self) -> None:
        pass

    def alloc(self, nbytes: int) -> int:
        if self.used + nbytes > self.total:
            raise OutOfDeviceMemory
        raw = np.empty(nbytes + 256, np.uint8)
        raw.fill(0xA5)  # nothing may depend on what fresh memory holds
        address = raw.__array_interface__["data"][0]
        address += -address % 256
        self.blocks[address] = (raw, nbytes)
        self.used += nbytes
        return int(address)

    def free(self, address: int) -> None:
        _, nbytes = self.blocks.pop(address)
        self.used -= nbytes

    def memory_info(self) -> tuple[int, int]:
        return self.total - self.used, self.total

    def alloc_pinned(self, nbytes: int) -> int:
        raw = np.empty(max(nbytes, 1), np.uint8)
        address = int(raw.__array_interface__["data"][0])
        self.blocks[address] = (raw, 0)
        return address

    def free_pinned(self, address: int) -> None:
        self.blocks.pop(address)

    def to_device(self, to: int, source: int, nbytes: int, stream: int) -> None:
        c.memmove(to, source, nbytes)

    to_host = to_device
    between = to_device

    def fill_bytes(self, to: int, value: int, nbytes: int, stream: int) -> None:
        c.memset(to, value, nbytes)

    def _handle(self) -> int:
        self._next += 1
        return self._next

    def new_stream(self, priority: int) -> int:
        return self._handle()

    def end_stream(self, stream: int) -> None:
        pass

    def stream_done(self, stream: int) -> bool:
        return True

    def wait_stream(self, stream: int) -> None:
        pass

    def new_event(self, timing: bool) -> int:
        return self._handle()

    def end_event(self, event: int) -> None:
        self._times.pop(event, None)

    def record(self, event: int, stream: int) -> None:
        self._times[event] = time.perf_counter()

    def hold(self, stream: int, event: int) -> None:
        pass

    def event_done(self, event: int) -> bool:
        return True

    def wait_event(self, event: int) -> None:
        pass

    def elapsed(self, begin: int, end: int) -> float:
        if begin not in self._times or end not in self._times:
            raise CudaError("elapsed_time: both events must be recorded first.")
        return (self._times[end] - self._times[begin]) * 1e3

    def begin_capture(self, stream: int) -> None:
        raise CudaError("graphs need a GPU: kernels of the emulated one run when they are called.")

    def capturing(self, stream: int) -> bool:
        return False
