"""Triton functions as launchable programs: compiled once for given types and constants, launched
with plain addresses and numbers. Knows Triton and the driver, not tensors.

Compiling goes through Triton's compiler alone; launching through the driver alone. Triton's own
launcher would compile a C file per signature and needs a framework to be told the stream.
"""

from __future__ import annotations

import ctypes as c
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton

from ....core import dtype as dt
from ....core.errors import CudaError
from .. import runtime as rt
from ..runtime.fast_path import Launcher
from ..runtime.faults import check_at_once

# Triton's names of element types. Truth values are bytes to a kernel.
TYPE = {
    dt.float64: "fp64",
    dt.float32: "fp32",
    dt.float16: "fp16",
    dt.bfloat16: "bf16",
    dt.int64: "i64",
    dt.int32: "i32",
    dt.int16: "i16",
    dt.int8: "i8",
    dt.uint8: "u8",
    dt.uint16: "u16",
    dt.uint32: "u32",
    dt.uint64: "u64",
    dt.bool_: "u8",
    dt.float8_e4m3fn: "fp8e4nv",
    dt.float8_e5m2: "fp8e5",
}


def pointer(dtype: dt.dtype) -> str:
    """Triton's type of a pointer to elements of a dtype."""
    return "*" + TYPE[dtype]


_FLOAT, _WORD, _DOUBLE, _LONG = (struct.Struct(f) for f in ("<f", "<I", "<d", "<Q"))


def _single(v: float) -> int:
    """The bits of a float32; numbers beyond become infinities, as a conversion would make them."""
    try:
        return _WORD.unpack(_FLOAT.pack(v))[0]
    except OverflowError:
        return _WORD.unpack(_FLOAT.pack(float(np.float32(v))))[0]


_ENCODE: dict[str, Callable[[Any], int]] = {"fp32": _single, "fp64": lambda v: _LONG.unpack(_DOUBLE.pack(v))[0]}


_KIND = {"fp32": "f", "fp64": "d"}


class Program(Launcher):  # type: ignore[misc]  # the native one, or its stand-in
    """A Triton function with its constants fixed. `program(grid, *arguments)` launches it on the
    current stream.

    `types` names the type of each argument in order: "*fp32" for addresses, "i32", "i64", "fp32",
    "fp64" for numbers. The function's remaining parameters are `constants`.
    """

    __slots__ = (
        "_aligned",
        "_buffer",
        "_encode",
        "_lock",
        "_params",
        "_plain",
        "_pointers",
        "constants",
        "divisible",
        "fn",
        "multiples",
        "options",
        "types",
    )

    dependent = False  # started while the launch before it still runs
    cooperative = False  # programs wait for each other, so all must run at the same time

    def __init__(
        self,
        fn: Any,
        types: Sequence[str],
        constants: dict[str, Any] | None = None,
        *,
        warps: int = 4,
        stages: int = 3,
        **options: Any,
    ) -> None:
        self.fn, self.types, self.constants = fn, tuple(types), dict(constants or {})
        self.options = {"num_warps": warps, "num_stages": stages, **options}
        self._pointers = tuple(i for i, t in enumerate(self.types) if t[0] == "*")
        self._encode = tuple((i, _ENCODE[t]) for i, t in enumerate(self.types) if t in _ENCODE)
        self.divisible: tuple[int, ...] = ()  # numbers that are multiples of 16 in every launch
        self.multiples: tuple[tuple[int, int], ...] = ()  # numbers that are multiples of something else
        self._aligned: Loaded | None = None
        self._plain: Loaded | None = None
        self._lock = threading.Lock()
        n = len(self.types) + 2
        self._buffer = (c.c_uint64 * n)()
        first, width = c.addressof(self._buffer), c.sizeof(c.c_uint64)
        self._params = (c.c_void_p * n)(*[first + i * width for i in range(n)])
        self._arrange("".join("p" if t[0] == "*" else _KIND.get(t, "i") for t in self.types))

    def _general(self, grid: tuple[int, ...], *args: Any) -> None:
        """A launch of any kind; the native module repeats plain ones by itself."""
        if rt.runtime.driver.emulated:
            _interpret(self, grid, args)
            return
        bits = 0
        for i in self._pointers:
            bits |= args[i]
        loaded = self._plain if bits & 15 else self._aligned
        if loaded is None:
            loaded = self._load(not bits & 15)
        if self._encode:
            args = list(args)  # type: ignore[assignment]
            for i, encode in self._encode:
                args[i] = encode(args[i])  # type: ignore[index]
        with self._lock:  # another thread may launch the same program
            buffer = self._buffer
            buffer[: len(args)] = args  # type: ignore[call-overload]  # ctypes takes any sequence
            here = rt.here
            if loaded.scratch:
                buffer[len(args)] = loaded.workspace(grid)
            x, y, z = grid if len(grid) == 3 else (*grid, 1, 1)[:3]
            driver = rt.runtime.driver
            function = loaded.function[here.device]
            launch = driver.launch_kernel
            if self.dependent or self.cooperative:
                launch = driver.launch_dependent if self.dependent else driver.launch_cooperative
            code = launch(function, x, y, z, loaded.threads, 1, 1, loaded.shared, here.stream, self._params, None)
        if code:
            self._failed(grid, code)
        if rt.SYNC:
            check_at_once()
        if not (self.dependent or self.cooperative or loaded.scratch):
            self._settle(not bits & 15, here.device, function, loaded.threads, loaded.shared)

    def _failed(self, grid: tuple[int, ...], code: int) -> None:
        rt.runtime.driver.fail(f"launch of {self.fn.__name__} with grid {grid}", code)

    def _load(self, aligned: bool) -> Loaded:
        p = rt.runtime.property(rt.here.device)
        # Other sizes often need the same kernel: what was compiled and loaded for them serves.
        key = (
            self.fn,
            self.types,
            tuple(sorted(self.constants.items())),
            tuple(sorted(self.options.items())),
            self.divisible,
            self.multiples,
            aligned,
            p.major,
            p.minor,
        )
        loaded = _LOADED.get(key)
        if loaded is None:
            loaded = _LOADED[key] = Loaded(self.compile(aligned))
        if aligned:
            self._aligned = loaded
        else:
            self._plain = loaded
        return loaded

    def compile(self, aligned: bool = True, target: Any = None) -> Any:
        """Triton's compiled kernel. `aligned`: every address is a multiple of 16."""
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        if target is None:
            p = rt.runtime.property(rt.here.device)
            target = GPUTarget("cuda", p.major * 10 + p.minor, 32)
        names = self.fn.arg_names
        signature = dict(zip(names, self.types, strict=False))
        for name in self.constants:
            signature[name] = "constexpr"
        missing = [n for n in names if n not in signature]
        if missing or len(self.types) + len(self.constants) != len(names):
            raise TypeError(
                f"{self.fn.__name__}: takes {names}; got types {self.types} and constants {sorted(self.constants)}."
            )
        even = (*self.divisible, *(self._pointers if aligned else ()))
        attrs = {(i,): [["tt.divisibility", 16]] for i in sorted(even)}
        attrs |= {(i,): [["tt.divisibility", by]] for i, by in self.multiples}
        source = ASTSource(self.fn, signature, self.constants, attrs)
        return triton.compile(source, target=target, options=self.options)


_LOADED: dict[Any, Loaded] = {}


class Loaded:
    """A compiled kernel in the memory of the devices that used it."""

    __slots__ = ("function", "kernel", "scratch", "shared", "threads")

    def __init__(self, kernel: Any) -> None:
        meta = kernel.metadata
        self.kernel, self.shared = kernel, meta.shared
        self.threads, self.scratch = 32 * meta.num_warps, meta.global_scratch_size
        limit = rt.runtime.property(rt.here.device).shared_memory_per_block_optin
        if self.shared > limit:
            raise CudaError(f"{kernel.name}: needs {self.shared:,} bytes of shared memory; there are {limit:,}.")
        self.function = _Functions(kernel)

    def workspace(self, grid: tuple[int, ...]) -> int:
        """Memory for descriptors that a kernel makes while it runs; free again in stream order."""
        count = 1
        for n in grid:
            count *= n
        block = rt.allocate(count * self.scratch)
        block.pool.give(block)
        return block.ptr


class _Functions(dict[int, int]):
    """Device -> function handle, loaded when first used there."""

    def __init__(self, kernel: Any) -> None:
        super().__init__()
        self.kernel = kernel

    def __missing__(self, device: int) -> int:
        k = self.kernel
        found = self[device] = rt.runtime.driver.load(k.asm["cubin"], k.metadata.name, k.metadata.shared)
        return found


def _interpret(program: Program, grid: tuple[int, ...], args: tuple[Any, ...]) -> None:
    from ..emulated.interpreter import run

    driver = rt.runtime.driver
    driver.check(*[args[i] for i in program._pointers])
    driver.enqueue(rt.here.stream, lambda: run(program, grid, args))
    if rt.SYNC:
        check_at_once()
