"""cuDNN through ctypes: the library, a handle per device, descriptors, and convolutions as prepared
calls. Knows addresses and layouts, not tensors.

Only implicit products are asked for. Transforms (Winograd, Fourier) would let a number that is not
finite reach results that it is not multiplied into, and sums by atomic additions would differ
from call to call.
"""

from __future__ import annotations

import ctypes as c
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any

from ....core import dtype as dt
from ....core.errors import CudaError
from .. import runtime as rt
from ..runtime.faults import check_at_once
from . import cublas

TYPE = {dt.float32: 0, dt.float64: 1, dt.float16: 2, dt.int8: 3, dt.int32: 4, dt.uint8: 6, dt.bfloat16: 9, dt.int64: 10}
DEFAULT_MATH, TENSOR_OP_MATH, ALLOW_CONVERSION, FMA_MATH = 0, 1, 2, 3
NCHW, NHWC = 0, 1
CROSS_CORRELATION = 1
MOST_WORK = 1 << 30  # bytes of scratch memory that a convolution may ask for
# What each direction is called, and the algorithms that are implicit products.
DIRECTIONS = {"forward": ("Forward", (1, 0, 2)), "input": ("BackwardData", (1,)), "weight": ("BackwardFilter", (1,))}


class Found(c.Structure):
    """An algorithm as the library describes it."""

    _fields_ = [
        ("algo", c.c_int),
        ("status", c.c_int),
        ("time", c.c_float),
        ("memory", c.c_size_t),
        ("determinism", c.c_int),
        ("math", c.c_int),
        ("reserved", c.c_int * 3),
    ]


class _Library:
    """The loaded library and its handle per device."""

    lib: Any = None
    reason = ""

    def __init__(self) -> None:
        self.handles: dict[int, int] = {}
        self.streams: dict[int, int] = {}  # the stream that each device's handle works on
        self.lock = threading.RLock()  # held from naming a stream to the call that means it

    def load(self) -> bool:
        """Whether there is a library."""
        if self.lib is None and not self.reason:
            if rt.runtime.driver.emulated:
                self.reason = "the GPU is emulated"
                return False
            # It opens these by name; where they are Python packages, the loader finds them only
            # if they are open already.
            for names in (["libcublasLt.so.13", "libcublasLt.so.12"], ["libnvrtc.so.13", "libnvrtc.so.12"]):
                cublas.opened(names)
            lib = cublas.opened(["libcudnn.so.9"], c.PyDLL)
            if lib is None:
                self.reason = "libcudnn is not installed"
                return False
            self.declare(lib)
            self.lib = lib
        return self.lib is not None

    @staticmethod
    def declare(lib: Any) -> None:
        """Tell ctypes what the functions take."""
        p, i, size = c.c_void_p, c.c_int, c.c_size_t
        lib.cudnnGetErrorString.restype = c.c_char_p
        lib.cudnnGetErrorString.argtypes = [i]
        lib.cudnnCreate.argtypes = [p]
        lib.cudnnSetStream.argtypes = [p, p]
        for kind in ("Tensor", "Filter", "Convolution"):
            getattr(lib, f"cudnnCreate{kind}Descriptor").argtypes = [p]
        lib.cudnnSetTensorNdDescriptor.argtypes = [p, i, i, p, p]
        lib.cudnnSetFilterNdDescriptor.argtypes = [p, i, i, i, p]
        lib.cudnnSetConvolutionNdDescriptor.argtypes = [p, i, p, p, p, i, i]
        lib.cudnnSetConvolutionGroupCount.argtypes = [p, i]
        lib.cudnnSetConvolutionMathType.argtypes = [p, i]
        for name, _ in DIRECTIONS.values():
            getattr(lib, f"cudnnGetConvolution{name}Algorithm_v7").argtypes = [p, p, p, p, p, i, p, p]
            getattr(lib, f"cudnnConvolution{name}").argtypes = [p, p, p, p, p, p, p, i, p, size, p, p, p]

    def handle(self) -> int:
        """The handle of the current device, working on the current stream."""
        here = rt.here
        device, stream = here.device, here.stream
        found = self.handles.get(device)
        if found is None:
            out = c.c_void_p()
            check(self.lib.cudnnCreate(c.byref(out)), "cudnnCreate")
            found = self.handles[device] = out.value or 0
        if self.streams.get(device) != stream:
            check(self.lib.cudnnSetStream(found, stream), "cudnnSetStream")
            self.streams[device] = stream
        return found


library = _Library()


def check(code: int, what: str) -> None:
    if code:
        text = library.lib.cudnnGetErrorString(code).decode()
        raise CudaError(f"{what}: cuDNN returned {text}.")


def _line(values: tuple[int, ...]) -> Any:
    return (c.c_int * len(values))(*values)


def _new(kind: str) -> int:
    out = c.c_void_p()
    check(getattr(library.lib, f"cudnnCreate{kind}Descriptor")(c.byref(out)), f"cudnnCreate{kind}Descriptor")
    return out.value or 0


@cache
def tensor_descriptor(dtype: dt.dtype, shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """What a tensor looks like; kept, and never changed."""
    made = _new("Tensor")
    code = library.lib.cudnnSetTensorNdDescriptor(made, TYPE[dtype], len(shape), _line(shape), _line(strides))
    check(code, f"cudnnSetTensorNdDescriptor for shape {shape}, strides {strides}")
    return made


@cache
def filter_descriptor(dtype: dt.dtype, shape: tuple[int, ...], channels_last: bool) -> int:
    """What weights (out, in, *kernel) look like, dense in either order; kept."""
    made = _new("Filter")
    order = NHWC if channels_last else NCHW
    code = library.lib.cudnnSetFilterNdDescriptor(made, TYPE[dtype], order, len(shape), _line(shape))
    check(code, f"cudnnSetFilterNdDescriptor for shape {shape}")
    return made


@dataclass(frozen=True)
class Geometry:
    """How windows lie, and how many groups of channels there are."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


def two_dims(values: tuple[int, ...], fill: int) -> tuple[int, ...]:
    """Signals as pictures of height 1: the library convolves at least two dimensions."""
    return (fill, *values) if len(values) == 1 else values


def _pictured(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A tensor (N, C, *places) with at least two places, and strides as of memory without gaps
    where a size is 1: the library looks at them to recognize an order.
    """
    if len(shape) == 3:
        shape, strides = (*shape[:2], 1, shape[2]), (*strides[:2], shape[2] * strides[2], strides[2])
    return shape, strides


class Convolution:
    """One convolution, or a gradient of one, prepared once and called with addresses.

    `direction`: "forward" computes y of x and w; "input" x of w and y; "weight" w of x and y. The
    tensors are given as (shape, strides), the weight dense, `channels_last` or not.
    """

    def __init__(
        self,
        direction: str,
        dtype: dt.dtype,
        x: tuple[tuple[int, ...], tuple[int, ...]],
        w: tuple[int, ...],
        y: tuple[tuple[int, ...], tuple[int, ...]],
        geometry: Geometry,
        *,
        channels_last: bool,
        tf32: bool,
    ) -> None:
        lib = library.lib
        name, wanted = DIRECTIONS[direction]
        self.x = tensor_descriptor(dtype, *_pictured(*x))
        self.y = tensor_descriptor(dtype, *_pictured(*y))
        self.w = filter_descriptor(dtype, (*w[:2], *two_dims(w[2:], 1)), channels_last)
        self.operands = {
            "forward": (self.x, self.w, self.y),
            "input": (self.w, self.y, self.x),
            "weight": (self.x, self.y, self.w),
        }[direction]
        self.convolution = _new("Convolution")
        # Half types are added up in float32.
        compute = TYPE[dt.float64 if dtype is dt.float64 else dt.float32]
        window = [two_dims(v, f) for v, f in ((geometry.padding, 0), (geometry.stride, 1), (geometry.dilation, 1))]
        code = lib.cudnnSetConvolutionNdDescriptor(
            self.convolution, len(window[0]), *(_line(v) for v in window), CROSS_CORRELATION, compute
        )
        check(code, "cudnnSetConvolutionNdDescriptor")
        check(lib.cudnnSetConvolutionGroupCount(self.convolution, geometry.groups), "cudnnSetConvolutionGroupCount")
        self.name = f"cudnnConvolution{name}"
        self.call = getattr(lib, self.name)
        self.search = getattr(lib, f"cudnnGetConvolution{name}Algorithm_v7")
        exact = dtype is dt.float32 and not tf32
        self.math = FMA_MATH if exact else DEFAULT_MATH if dtype is dt.float64 else TENSOR_OP_MATH
        self._math(self.math)
        number: Any = c.c_double if dtype is dt.float64 else c.c_float
        self.one, self.zero = number(1), number(0)
        self.factors = c.addressof(self.one), c.addressof(self.zero)
        self.choose(self.algorithms(wanted, exact)[0])

    def _math(self, kind: int) -> None:
        check(library.lib.cudnnSetConvolutionMathType(self.convolution, kind), "cudnnSetConvolutionMathType")

    def algorithms(self, wanted: tuple[int, ...], exact: bool) -> list[Found]:
        """Those that compute the convolution, the most promising first."""
        results, count = (Found * 16)(), c.c_int()
        a, b, o = self.operands
        code = self.search(library.handle(), a, b, self.convolution, o, 16, c.byref(count), results)
        check(code, f"{self.name}: choosing an algorithm")
        found = []
        for r in results[: count.value]:
            fits = r.status == 0 and r.algo in wanted and r.memory <= MOST_WORK
            if fits and not (exact and r.math in (TENSOR_OP_MATH, ALLOW_CONVERSION)):
                found.append(r)
        if not found:
            raise CudaError(f"{self.name}: cuDNN has no algorithm for this convolution.")
        return found

    def choose(self, found: Found) -> None:
        """Compute by this algorithm from now on."""
        # The default kind of arithmetic would allow TF32.
        self._math(FMA_MATH if self.math == FMA_MATH else found.math)
        self.algo, self.work = found.algo, found.memory

    def __call__(self, a: int, b: int, out: int) -> None:
        first, second, result = self.operands
        one, zero = self.factors
        block = rt.allocate(self.work) if self.work else None
        with library.lock:
            code = self.call(
                library.handle(),
                one,
                first,
                a,
                second,
                b,
                self.convolution,
                self.algo,
                block.ptr if block is not None else None,
                self.work,
                zero,
                result,
                out,
            )
        if block is not None:
            block.pool.give(block)  # free again in stream order
        if code:
            check(code, self.name)
        if rt.SYNC:
            check_at_once()
