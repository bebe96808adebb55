"""cuFFT through ctypes: plans of batched transforms, kept while they are used. Knows addresses and
layouts, not tensors.
"""

from __future__ import annotations

import ctypes as c
import itertools
import threading
from typing import Any

from ....core import dtype as dt
from ....core.errors import CudaError
from .. import runtime as rt
from . import cublas

FORWARD, INVERSE = -1, 1
# (kind, double) -> the library's name of a transform and its number.
KINDS = {
    ("c2c", False): ("C2C", 0x29),
    ("r2c", False): ("R2C", 0x2A),
    ("c2r", False): ("C2R", 0x2C),
    ("c2c", True): ("Z2Z", 0x69),
    ("r2c", True): ("D2Z", 0x6A),
    ("c2r", True): ("Z2D", 0x6C),
}
KEPT = 64  # plans; each holds tables in device memory
RANK = 3  # dimensions that one plan can transform


class _Library:
    """The loaded library and its plans."""

    lib: Any = None
    reason = ""

    def __init__(self) -> None:
        self.plans: dict[Any, Plan] = {}
        self.clock = itertools.count()
        self.lock = threading.RLock()

    def load(self) -> bool:
        """Whether there is a library."""
        if self.lib is None and not self.reason:
            if rt.runtime.driver.emulated:
                self.reason = "the GPU is emulated"
                return False
            self.lib = cublas.opened(["libcufft.so.12", "libcufft.so.11"])
            if self.lib is None:
                self.reason = "libcufft is not installed; install votive[cuda]"
                return False
            p, i64, handle = c.c_void_p, c.c_longlong, c.c_int
            lib = self.lib
            lib.cufftCreate.argtypes = [p]
            lib.cufftDestroy.argtypes = [handle]
            lib.cufftSetAutoAllocation.argtypes = [handle, c.c_int]
            lib.cufftSetWorkArea.argtypes = [handle, p]
            lib.cufftSetStream.argtypes = [handle, p]
            lib.cufftMakePlanMany64.argtypes = [handle, c.c_int, p, p, i64, i64, p, i64, i64, c.c_int, i64, p]
            for name, _ in KINDS.values():
                both = name in ("C2C", "Z2Z")
                getattr(lib, f"cufftExec{name}").argtypes = [handle, p, p] + [c.c_int] * both
        return self.lib is not None

    def plan(self, key: Any) -> Plan:
        """The plan of a layout on the current device; the one that rested longest makes room."""
        whole = (rt.here.device, *key)
        found = self.plans.get(whole)
        if found is None:
            found = self.plans[whole] = Plan(*key)
            found.used = next(self.clock)
            # Freeing memory while launches are recorded would break the recording.
            while len(self.plans) > KEPT and not rt.here.capturing:
                oldest = min(self.plans, key=lambda k: self.plans[k].used)
                self.plans.pop(oldest).end()
        return found


library = _Library()


def check(code: int, what: str) -> None:
    if code:
        raise CudaError(f"{what}: cuFFT returned error {code}.")


class Plan:
    """One batched transform: sizes, the step between numbers and the distance between transforms of
    input and output. `embed`: sizes of the arrays that the dimensions lie in.
    """

    def __init__(
        self,
        kind: str,
        double: bool,
        sizes: tuple[int, ...],
        batch: int,
        given: tuple[tuple[int, ...], int, int],
        made: tuple[tuple[int, ...], int, int],
    ) -> None:
        lib = library.lib
        name, number = KINDS[kind, double]
        self.directed = kind == "c2c"
        self.exec = getattr(lib, f"cufftExec{name}")
        handle, work = c.c_int(), c.c_size_t()
        check(lib.cufftCreate(c.byref(handle)), "cufftCreate")
        self.handle = handle.value
        # Scratch memory comes from the caching allocator, when the plan runs.
        check(lib.cufftSetAutoAllocation(self.handle, 0), "cufftSetAutoAllocation")
        line = c.c_longlong * len(sizes)
        (embed, step, distance), (embed_to, step_to, distance_to) = given, made
        code = lib.cufftMakePlanMany64(
            self.handle,
            len(sizes),
            line(*sizes),
            line(*embed),
            step,
            distance,
            line(*embed_to),
            step_to,
            distance_to,
            number,
            batch,
            c.byref(work),
        )
        if code:
            lib.cufftDestroy(self.handle)
            check(code, f"cufftMakePlanMany64 for {batch} {name} transforms of sizes {sizes}")
        self.work, self.device = work.value, rt.here.device
        self.stream, self.area = -1, 0  # what the library was told last
        self.used, self.ended = 0, False

    def __call__(self, given: int, made: int, direction: int) -> None:
        self.used = next(library.clock)
        stream = rt.here.stream
        if stream != self.stream:
            check(library.lib.cufftSetStream(self.handle, stream), "cufftSetStream")
            self.stream = stream
        # Small scratch memory is what products of the stream use too; they never overlap.
        block = rt.allocate(self.work) if self.work > cublas.WORKSPACE else None
        if self.work:
            area = cublas.library.workspace() if block is None else block.ptr
            if area != self.area:
                check(library.lib.cufftSetWorkArea(self.handle, area), "cufftSetWorkArea")
                self.area = area
        more = (direction,) if self.directed else ()
        code = self.exec(self.handle, given, made, *more)
        if block is not None:
            block.pool.give(block)  # free again in stream order
        check(code, "cufftExec")

    def end(self) -> None:
        self.ended = True
        library.lib.cufftDestroy(self.handle)


class Transform:
    """Transforms of one layout: `transform(source, to, direction)`. Its plan is made when it is first
    used, and again where it had to make room for others.
    """

    def __init__(
        self,
        kind: str,
        real: dt.dtype,
        sizes: tuple[int, ...],
        batch: int,
        given: tuple[tuple[int, ...], int, int],
        made: tuple[tuple[int, ...], int, int],
    ) -> None:
        self.key = (kind, real is dt.float64, sizes, batch, given, made)
        self.plan: Plan | None = None

    def __call__(self, source: int, to: int, direction: int = FORWARD) -> None:
        with library.lock:  # nobody may end the plan meanwhile, and it holds its stream and scratch
            plan = self.plan
            if plan is None or plan.ended or plan.device != rt.here.device:
                plan = self.plan = library.plan(self.key)
            plan(source, to, direction)


def run(
    kind: str,
    real: dt.dtype,
    sizes: tuple[int, ...],
    batch: int,
    given: tuple[tuple[int, ...], int, int],
    made: tuple[tuple[int, ...], int, int],
    source: int,
    to: int,
    direction: int = FORWARD,
) -> None:
    """Transform `batch` arrays at an address."""
    Transform(kind, real, sizes, batch, given, made)(source, to, direction)
