"""The CUDA driver through ctypes: memory, copies, streams, events, modules, graphs. Knows addresses
and handles, not tensors.

The driver's library comes with every NVIDIA installation, so nothing has to be installed to reach
it. Handles and addresses are plain integers. `host.Emulated` offers the same methods without a GPU.
"""

from __future__ import annotations

import ctypes as c
import os
from typing import Any

from ....core.errors import CudaError
from .signatures import ATTRIBUTES, COOPERATIVE, DEPENDENT, OLDER, SIGNATURES, SLOW, Launch, Properties

_OUT_OF_MEMORY = 2
_NOT_READY = 600


class OutOfDeviceMemory(Exception):
    """The driver has no more memory to give; the allocator decides what that means."""


class _On:
    """Inside the block the calling thread's context is a device's."""

    __slots__ = ("device", "driver")

    def __init__(self, driver: Any, device: int) -> None:
        self.driver, self.device = driver, device

    def __enter__(self) -> None:
        self.driver.push(self.device)

    def __exit__(self, *exc: object) -> None:
        self.driver.pop()


class Driver:
    """The driver's calls with errors as exceptions."""

    emulated = False
    waits = 0  # how often the host waited for a device

    def __init__(self) -> None:
        try:
            # PyDLL keeps the interpreter's lock: calls are shorter than handing it over, and the
            # argument buffers of a launch stay ours.
            lib = c.PyDLL("libcuda.so.1")
            waiting = c.CDLL("libcuda.so.1")
        except OSError:
            raise CudaError("no CUDA driver: libcuda.so.1 cannot be loaded") from None
        self._fn: dict[str, Any] = {}
        for name, types in SIGNATURES.items():
            # What waits for the device or for memory lets other threads run meanwhile.
            source = waiting if "Synchronize" in name or name in SLOW else lib
            fn = getattr(source, name, None) or getattr(source, OLDER.get(name, name))
            fn.argtypes, fn.restype = types, c.c_int
            self._fn[name] = fn
        code = self._fn["cuInit"](0)
        if code:
            raise CudaError(f"the CUDA driver failed to start: {self._error(code)}")
        count = c.c_int()
        self._call("cuDeviceGetCount", c.byref(count))
        self.count = count.value
        if not self.count:
            raise CudaError("the CUDA driver sees no GPU")
        self._contexts: dict[int, int] = {}
        self.launch_kernel = self._fn["cuLaunchKernel"]
        self.launch_address = int(c.cast(self.launch_kernel, c.c_void_p).value or 0)

    def _error(self, code: int) -> str:
        name, text = c.c_char_p(), c.c_char_p()
        self._fn["cuGetErrorName"](code, c.byref(name))
        self._fn["cuGetErrorString"](code, c.byref(text))
        return f"{(name.value or b'?').decode()} ({(text.value or b'?').decode()})"

    def fail(self, what: str, code: int) -> None:
        """Raise what the driver answered."""
        raise CudaError(
            f"{what}: {self._error(code)}. Kernels run asynchronously: an earlier one may be the "
            "cause; set VOTIVE_CUDA_SYNC=1 to see it at the call that fails."
        )

    def _call(self, name: str, *args: Any) -> None:
        code = self._fn[name](*args)
        if code:
            self.fail(name, code)

    def _get(self, name: str, *args: Any) -> int:
        out = c.c_uint64()
        self._call(name, c.byref(out), *args)
        return out.value

    # Devices

    def _context(self, device: int) -> int:
        found = self._contexts.get(device)
        if found is None:
            found = self._contexts[device] = self._get("cuDevicePrimaryCtxRetain", device)
        return found

    def use(self, device: int) -> None:
        """Make the device's context the calling thread's."""
        self._call("cuCtxSetCurrent", self._context(device))

    def push(self, device: int) -> None:
        self._call("cuCtxPushCurrent_v2", self._context(device))

    def pop(self) -> None:
        self._get("cuCtxPopCurrent_v2")

    def on(self, device: int) -> _On:
        """A block in which a device's context is the thread's, whatever it was before."""
        return _On(self, device)

    def somewhere(self) -> _On:
        """A block with the context of a device in use: what is about the host needs any."""
        return _On(self, next(iter(self._contexts), 0))

    def properties(self, device: int) -> Properties:
        name = c.create_string_buffer(256)
        self._call("cuDeviceGetName", name, 256, device)
        found = {}
        for key, number in ATTRIBUTES.items():
            value = c.c_int()
            self._call("cuDeviceGetAttribute", c.byref(value), number, device)
            found[key] = value.value
        total = self._get("cuDeviceTotalMem_v2", device)
        return Properties(name=name.value.decode(), total_memory=total, **found)

    def can_access_peer(self, device: int, other: int) -> bool:
        answer = c.c_int()
        self._call("cuDeviceCanAccessPeer", c.byref(answer), device, other)
        return bool(answer.value)

    def version(self) -> int:
        return self._get("cuDriverGetVersion")

    def profile(self, on: bool) -> None:
        """Let a profiler that waits for it begin or stop to collect."""
        self._call("cuProfilerStart" if on else "cuProfilerStop")

    def synchronize(self) -> None:
        self.waits += 1
        self._call("cuCtxSynchronize")

    # Memory

    def alloc(self, nbytes: int) -> int:
        out = c.c_uint64()
        code = self._fn["cuMemAlloc_v2"](c.byref(out), nbytes)
        if code == _OUT_OF_MEMORY:
            raise OutOfDeviceMemory
        if code:
            self.fail("cuMemAlloc", code)
        return out.value

    def free(self, address: int) -> None:
        self._call("cuMemFree_v2", address)

    def memory_info(self) -> tuple[int, int]:
        """(free, total) bytes of the current device."""
        free, total = c.c_size_t(), c.c_size_t()
        self._call("cuMemGetInfo_v2", c.byref(free), c.byref(total))
        return free.value, total.value

    def alloc_pinned(self, nbytes: int) -> int:
        out = c.c_uint64()
        # Seen by every context and device.
        code = self._fn["cuMemHostAlloc"](c.byref(out), max(nbytes, 1), 3)
        if code == _OUT_OF_MEMORY:
            raise OutOfDeviceMemory
        if code:
            self.fail("cuMemHostAlloc", code)
        return out.value

    def free_pinned(self, address: int) -> None:
        self._call("cuMemFreeHost", address)

    def is_pinned(self, address: int) -> bool:
        """Whether anybody has page-locked the memory of the host at an address."""
        kind = c.c_uint()
        return self._fn["cuPointerGetAttribute"](c.byref(kind), 2, address) == 0 and kind.value == 1

    def device_of(self, address: int) -> int | None:
        """The device that memory lies on; None if the driver did not hand it out."""
        found = c.c_int()
        code = self._fn["cuPointerGetAttribute"](c.byref(found), 9, address)
        return None if code else found.value

    def to_device(self, to: int, source: int, nbytes: int, stream: int) -> None:
        self._call("cuMemcpyHtoDAsync_v2", to, source, nbytes, stream)

    def to_host(self, to: int, source: int, nbytes: int, stream: int) -> None:
        self._call("cuMemcpyDtoHAsync_v2", to, source, nbytes, stream)

    def between(self, to: int, source: int, nbytes: int, stream: int) -> None:
        self._call("cuMemcpyDtoDAsync_v2", to, source, nbytes, stream)

    def across(self, to: int, there: int, source: int, here: int, nbytes: int, stream: int) -> None:
        """Copy from device `here` to device `there`; `stream` is one of `here`."""
        self._call("cuMemcpyPeerAsync", to, self._context(there), source, self._context(here), nbytes, stream)

    def fill_bytes(self, to: int, value: int, nbytes: int, stream: int) -> None:
        self._call("cuMemsetD8Async", to, value, nbytes, stream)

    # Streams and events

    def new_stream(self, priority: int) -> int:
        return self._get("cuStreamCreateWithPriority", 1, priority)  # does not wait for stream 0

    def end_stream(self, stream: int) -> None:
        self._call("cuStreamDestroy_v2", stream)

    def stream_done(self, stream: int) -> bool:
        return self._done("cuStreamQuery", stream)

    def wait_stream(self, stream: int) -> None:
        self.waits += 1
        self._call("cuStreamSynchronize", stream)

    def priority(self, stream: int) -> int:
        found = c.c_int()
        self._call("cuStreamGetPriority", stream, c.byref(found))
        return found.value

    def priorities(self) -> tuple[int, int]:
        """(least, greatest) priority that streams of the current device may have."""
        least, greatest = c.c_int(), c.c_int()
        self._call("cuCtxGetStreamPriorityRange", c.byref(least), c.byref(greatest))
        return least.value, greatest.value

    def new_event(self, timing: bool, blocking: bool = False) -> int:
        """`blocking`: who waits for it sleeps, instead of asking again and again."""
        return self._get("cuEventCreate", (0 if timing else 2) | blocking)

    def end_event(self, event: int) -> None:
        self._call("cuEventDestroy_v2", event)

    def record(self, event: int, stream: int) -> None:
        self._call("cuEventRecord", event, stream)

    def hold(self, stream: int, event: int) -> None:
        """Let a stream wait for an event."""
        self._call("cuStreamWaitEvent", stream, event, 0)

    def event_done(self, event: int) -> bool:
        return self._done("cuEventQuery", event)

    def wait_event(self, event: int) -> None:
        self.waits += 1
        self._call("cuEventSynchronize", event)

    def elapsed(self, begin: int, end: int) -> float:
        """Milliseconds between two events."""
        out = c.c_float()
        self._call("cuEventElapsedTime_v2", c.byref(out), begin, end)
        return out.value

    def _done(self, name: str, handle: int) -> bool:
        code = self._fn[name](handle)
        if code not in (0, _NOT_READY):
            self.fail(name, code)
        return code == 0

    # Kernels

    def load(self, binary: bytes, name: str, shared: int) -> int:
        """The kernel `name` of a compiled module."""
        module = self._get("cuModuleLoadData", c.cast(c.c_char_p(binary), c.c_void_p))
        function = self._get("cuModuleGetFunction", module, name.encode())
        if shared > 48 << 10:
            self._call("cuFuncSetAttribute", function, 8, shared)
        return function

    def _launch_as(
        self,
        attribute: Any,
        function: int,
        x: int,
        y: int,
        z: int,
        bx: int,
        by: int,
        bz: int,
        shared: int,
        stream: int,
        params: Any,
        extra: Any,
    ) -> int:
        config = Launch((x, y, z), (bx, by, bz), shared, stream, c.pointer(attribute), 1)
        code: int = self._fn["cuLaunchKernelEx"](c.byref(config), function, params, extra)
        return code

    def launch_dependent(self, *how: Any) -> int:
        """`launch_kernel` for a kernel that itself waits for the one before it."""
        return self._launch_as(DEPENDENT, *how)

    def launch_cooperative(self, *how: Any) -> int:
        """`launch_kernel` for a kernel whose programs wait for each other."""
        return self._launch_as(COOPERATIVE, *how)

    # Graphs

    def begin_capture(self, stream: int) -> None:
        self._call("cuStreamBeginCapture_v2", stream, 2)  # memory may be asked for meanwhile

    def end_capture(self, stream: int) -> int:
        graph = c.c_uint64()
        self._call("cuStreamEndCapture", stream, c.byref(graph))
        return graph.value

    def capturing(self, stream: int) -> bool:
        state = c.c_int()
        self._call("cuStreamIsCapturing", stream, c.byref(state))
        return state.value != 0

    def instantiate(self, graph: int) -> int:
        return self._get("cuGraphInstantiateWithFlags", graph, 0)

    def graph_size(self, graph: int) -> int:
        """How many nodes a graph has."""
        count = c.c_size_t()
        self._call("cuGraphGetNodes", graph, None, c.byref(count))
        return count.value

    def launch_graph(self, executable: int, stream: int) -> None:
        self._call("cuGraphLaunch", executable, stream)

    def draw_graph(self, graph: int, path: str) -> None:
        """Write a graph as a DOT file, with all that is known of its nodes."""
        self._call("cuGraphDebugDotPrint", graph, os.fsencode(path), 1)

    def end_executable(self, executable: int) -> None:
        self._call("cuGraphExecDestroy", executable)

    def end_graph(self, graph: int) -> None:
        self._call("cuGraphDestroy", graph)
