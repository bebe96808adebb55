"""The device in use and the queue of its work: numbers, groups and pipelines. Knows no kernels.

Dispatches are recorded into one pass and submitted together: when enough have come, or when the host wants to see
something. All work is in order, so memory that is let go of can be handed out again at once.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

from ....core.errors import WebGpuError
from .allocator import Allocator, Buffer
from .gpu import NUMBERS, Gpu

# Dispatches that are submitted together at most.
BATCH = 128
_RING = 1 << 18


class Runtime:
    """The device once it was asked for, and what is recorded for it."""

    gpu: Gpu
    allocator: Allocator

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.started = False
        self.reason: str | None = None
        self.dispatches = 0  # since the start
        self.submits = 0
        self.batch = 1  # which batch is being recorded
        self._recorded = 0
        self._used = 0
        self._groups: dict[tuple[Any, ...], Any] = {}
        self._faulty = False

    def start(self) -> Runtime:
        """This, with a device; or an error that says why there is none."""
        if not self.started:
            with self.lock:
                if not self.started:
                    self._begin()
        return self

    def _begin(self) -> None:
        if self.reason is None:
            if os.environ.get("VOTIVE_WEBGPU") == "0":
                self.reason = "webgpu: switched off by VOTIVE_WEBGPU=0."
            else:
                try:
                    self.gpu = Gpu()
                    self.reason = ""
                except (WebGpuError, ImportError) as e:
                    self.reason = str(e)
        if self.reason:
            raise WebGpuError(self.reason)
        self.allocator = Allocator(self)
        self._ring = self.gpu.buffer(_RING, numbers=True)
        self._numbers = np.zeros(_RING, np.uint8)
        self._memory = memoryview(self._numbers.data)
        self.faults = Buffer(self.gpu.buffer(256), 256)
        self.gpu.write(self.faults.handle, np.zeros(64, np.uint32))
        self.started = True

    def run(self, pipeline: Any, signature: str, buffers: tuple[Buffer, ...], numbers: Any, grid: Any) -> None:
        """Record a kernel: `numbers` packs what it is given into bytes at a place."""
        with self.lock:
            at = self._used
            if at + NUMBERS > _RING or self._recorded >= BATCH:
                self.flush()
                at = 0
            numbers(self._memory, at)
            self._used = at + self.gpu.alignment * -(-NUMBERS // self.gpu.alignment)
            key = (signature, *[b.number for b in buffers])
            group = self._groups.get(key)
            if group is None:
                if len(self._groups) > 8192:
                    self._groups.clear()
                group = self.gpu.group(signature, self._ring, tuple([b.handle for b in buffers]))
                self._groups[key] = group
            batch = self.batch
            for b in buffers:
                b.batch = batch
            self.gpu.dispatch(pipeline, group, at, grid)
            self._recorded += 1
            self.dispatches += 1

    def flush(self) -> None:
        """Submit what was recorded."""
        with self.lock:
            if self._recorded:
                self.gpu.write(self._ring, self._memory[: self._used])
                self.gpu.submit()
                self.submits += 1
                self.batch += 1
            self._recorded = self._used = 0

    def forget_groups(self) -> None:
        """Let go of groups, which keep buffers."""
        self._groups.clear()

    def upload(self, buffer: Buffer, data: Any) -> None:
        """Put bytes, a multiple of 4, into a buffer."""
        with self.lock:
            if buffer.batch == self.batch:
                self.flush()
            self.gpu.write(buffer.handle, data)

    def download(self, buffer: Buffer, offset: int, nbytes: int) -> memoryview:
        """Bytes of a buffer, multiples of 4; waits for the device. Errors that kernels found are raised here."""
        with self.lock:
            self.flush()
            if not self._faulty:
                return self.gpu.read([(buffer.handle, offset, nbytes)])[0]
            data, found = self.gpu.read([(buffer.handle, offset, nbytes), (self.faults.handle, 0, 16)])
            self._check(found)
            return data

    def may_fail(self) -> None:
        """A kernel was recorded that may report an error."""
        self._faulty = True

    def synchronize(self) -> None:
        """Wait for the device."""
        with self.lock:
            self.flush()
            self._check(self.gpu.read([(self.faults.handle, 0, 16)])[0])

    def _check(self, found: memoryview) -> None:
        self._faulty = False
        words = np.frombuffer(found, np.uint32)
        if words[0]:
            self.gpu.write(self.faults.handle, np.zeros(64, np.uint32))
            from .faults import raise_for

            raise_for(int(words[0]), int(words[1:2].view(np.int32)[0]), int(words[2]))


runtime = Runtime()
