"""What every launch looks at: the driver in use, and this thread's device, stream and pool. Knows
no kernels.
"""

from __future__ import annotations

import os
import threading
import warnings
from typing import Any

from ....core import device as core_device
from ....core.errors import CudaError
from . import fast_path
from .allocator import Allocator, Pool
from .blocks import Block

SYNC = os.environ.get("VOTIVE_CUDA_SYNC", "") not in ("", "0")


class _Runtime:
    """The driver, once it was asked for, and what belongs to each device."""

    driver: Any = None
    reason: str | None = None
    allocators: dict[int, Allocator]
    properties: dict[int, Any]
    sync_mode = 0  # what happens when the host waits: 0 nothing, 1 a warning, 2 an error
    forked = False  # this process is a fork of one that used the GPU

    def __init__(self) -> None:
        self.allocators, self.properties = {}, {}
        self.lock = threading.RLock()

    def start(self) -> Any:
        """The driver, or an error that says why there is none."""
        if self.forked:
            raise CudaError("cuda: cannot be used in a forked subprocess; start it with the 'spawn' method.")
        if self.driver is None:
            with self.lock:
                if self.driver is None:
                    if self.reason is None:
                        self.reason = self._look()
                    if self.reason:
                        raise CudaError(f"cuda: {self.reason}.")
        return self.driver

    def _look(self) -> str:
        """Find a driver; the reason why there is none, or ''."""
        wanted = os.environ.get("VOTIVE_CUDA", "")
        if wanted == "0":
            return "switched off by VOTIVE_CUDA=0"
        try:
            import triton
        except ImportError:
            return "Triton is not installed; install votive[cuda]"
        interpreted = triton.knobs.runtime.interpret
        if wanted.partition(":")[0] == "emulated":
            if not interpreted:
                return "an emulated GPU needs TRITON_INTERPRET=1"
            from ..emulated.driver import Emulated

            count = wanted.partition(":")[2] or "2"
            if not count.isdigit() or not int(count):
                return f"VOTIVE_CUDA={wanted}: write emulated:2 for two devices"
            self.driver = Emulated(count=int(count))
            return ""
        if interpreted:
            return "TRITON_INTERPRET=1 is set; VOTIVE_CUDA=emulated uses it on host memory"
        from .driver import Driver

        try:
            self.driver = Driver()
        except CudaError as e:
            return str(e)
        return ""

    def allocator(self, device: int) -> Allocator:
        found = self.allocators.get(device)
        if found is None:
            self.check(device)
            with self.lock:
                found = self.allocators.get(device)
                if found is None:
                    found = self.allocators[device] = Allocator(self.driver, device)
        return found

    def check(self, device: int) -> None:
        """Raise when there is no such device."""
        if not 0 <= device < self.start().count:
            raise CudaError(f"cuda:{device}: no such device; this machine has {self.driver.count}.")

    def property(self, device: int) -> Any:
        found = self.properties.get(device)
        if found is None:
            found = self.properties[device] = self.start().properties(device)
        return found


runtime = _Runtime()


def _fork() -> None:
    """A driver does not survive a fork; what the child lets go of is the parent's."""
    runtime.forked = runtime.driver is not None and not runtime.driver.emulated
    if runtime.forked:
        fast_path.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fork)


class _Held:
    """A block that goes back to its pool when the graph lets go of it."""

    def __init__(self, block: Block) -> None:
        self.block = block

    def __del__(self) -> None:
        self.block.pool.give(self.block)


class Here(threading.local):
    """The current device, stream and pool of a thread."""

    def __init__(self) -> None:
        self.device = 0
        self.streams: dict[int, int] = {}  # device -> stream
        self.stream = 0
        self.pool: Pool | None = None
        self.private: dict[int, Pool] = {}  # device -> pool of the graph that is being captured
        self.capturing = False
        driver = runtime.start()
        driver.use(0)
        self._refresh()

    def _refresh(self) -> None:
        self.stream = self.streams.get(self.device, 0)
        self.pool = self.pool_of(self.device)
        fast_path.say(self.device, self.stream, self.pool)

    def pool_of(self, device: int) -> Pool:
        """Where memory of a device comes from."""
        found = self.private.get(device)
        return found or runtime.allocator(device).pool(self.streams.get(device, 0))

    def set_device(self, device: int) -> None:
        """Make a device the thread's."""
        if device == self.device:
            return
        runtime.check(device)
        runtime.driver.use(device)
        self.device = device
        self._refresh()

    def stream_of(self, device: int) -> int:
        """The stream that work on a device goes to."""
        return self.streams.get(device, 0)

    def set_stream(self, stream: int) -> None:
        """Let the thread's work on the current device go to a stream."""
        self.streams[self.device] = stream
        self._refresh()

    def set_pool(self, pool: Pool) -> None:
        """Take memory of the current device from a graph's own pool."""
        self.private[self.device] = self.pool = pool
        fast_path.say(self.device, self.stream, pool)

    def begin_capture(self) -> None:
        """Launches are recorded from here on; scratch memory then belongs to the graph."""
        self.capturing = True
        fast_path.say(self.device, self.stream, self.pool)
        self.kept: list[Any] = []
        self._workspace: Block | None = None
        self._generator: Any = None

    def end_capture(self) -> list[Any]:
        """Launches run again; gives what the graph must keep alive."""
        self.capturing = False
        self.private = {}
        self._refresh()
        if self._generator is not None:
            self._generator.end()
        return self.kept

    def generator(self) -> Any:
        """The generator state of the graph being captured."""
        return self._generator

    def workspace(self) -> Block:
        """Scratch memory of the graph being captured."""
        if self._workspace is None:
            self._workspace = self.pool.take(32 << 20)  # type: ignore[union-attr]
            self.kept.append(_Held(self._workspace))
        return self._workspace


# The state of the calling thread, once `begin` was called.
here: Any = None


class on:
    """`with on(1):` work inside goes to another device, on its current stream."""

    __slots__ = ("before", "device")

    def __init__(self, device: int) -> None:
        self.device = device

    def __enter__(self) -> None:
        self.before = here.device
        here.set_device(self.device)

    def __exit__(self, *exc: object) -> None:
        here.set_device(self.before)


def guarded(fn: Any, device: int) -> Any:
    """A function that runs on a device, whichever is current. With one device it stays as it is."""
    if fn is None or runtime.driver.count == 1:
        return fn

    def run(*args: Any) -> Any:
        if here.device == device:
            return fn(*args)
        with on(device):
            return fn(*args)

    return run


def begin() -> Here:
    """Start the runtime, or say why that cannot be."""
    global here
    if here is None:
        runtime.start()
        with runtime.lock:
            if here is None:
                from . import views as _data  # noqa: F401 - says how memory looks

                fast_path.launching(0 if SYNC else runtime.driver.launch_address)
                here = Here()
                core_device.current_cuda = lambda: here.device
    return here


def waiting() -> None:
    """Say, where that was asked for, that the host is about to wait for a device."""
    if runtime.sync_mode == 1:
        warnings.warn("called a synchronizing CUDA operation", stacklevel=6)
    elif runtime.sync_mode == 2:
        raise CudaError("called a synchronizing CUDA operation")


def here_count() -> int:
    """How many multiprocessors the current device has."""
    return int(runtime.property(here.device).multi_processor_count)


def allocate(nbytes: int) -> Block:
    """Device memory on this thread's device and stream."""
    return here.pool.take(nbytes)
