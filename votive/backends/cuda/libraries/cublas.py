"""cuBLASLt through ctypes: one product of strided matrices as a prepared call. Knows addresses and
layouts, not tensors.

The library thinks in columns. A row-major product D = A B is asked for as D' = B' A', which needs
no copies: a matrix with unit stride along its rows is the transpose of one with unit stride along
columns.
"""

from __future__ import annotations

import ctypes as c
import glob
import importlib.util
import os
import threading
from functools import partial
from typing import Any

from ....core import dtype as dt
from ....core.errors import CudaError
from .. import runtime as rt
from ..runtime import fast_path
from ..runtime.autotune import WORTH_TIMING, fastest
from ..runtime.faults import check_at_once

_TYPE = {
    dt.float32: 0,
    dt.float64: 1,
    dt.float16: 2,
    dt.int8: 3,
    dt.int32: 10,
    dt.bfloat16: 14,
    dt.float8_e4m3fn: 28,
    dt.float8_e5m2: 29,
    dt.complex64: 4,
    dt.complex128: 5,
}
_COMPUTE = {"f32": 68, "tf32": 77, "f64": 70, "i32": 72}
TRANS_A, TRANS_B, EPILOGUE, BIAS_POINTER = 3, 4, 7, 8
AUX_POINTER, AUX_LD, BIAS_TYPE = 11, 12, 26
A_SCALE, B_SCALE, D_SCALE, FAST_ACCUM, A_SCALE_MODE, B_SCALE_MODE = 17, 18, 20, 25, 31, 32
OUTER_VECTORS = 3  # of the scale modes: a factor for each row of A and each column of B
BATCH_COUNT, BATCH_STRIDE = 5, 6
PLAIN, RELU, BIAS, RELU_BIAS, GELU, GELU_BIAS = 1, 2, 4, 6, 32, 36
# AUX: what the activation got is kept (of a ReLU only its sign, a bit each). GRADIENT: the product
# times the slope there. SUMS: of the columns of the result, of the first or of the second operand.
GELU_AUX, GELU_AUX_BIAS, GELU_GRADIENT, GELU_GRADIENT_SUMS = 160, 164, 192, 208
RELU_AUX, RELU_AUX_BIAS, RELU_GRADIENT, RELU_GRADIENT_SUMS = 130, 134, 136, 152
SUMS_LEFT, SUMS_RIGHT = 256, 512
# What a call names, and the attribute that says where it lies.
PLACES = {"bias": BIAS_POINTER, "aux": AUX_POINTER, "a_scale": A_SCALE, "b_scale": B_SCALE, "d_scale": D_SCALE}
WORKSPACE = 32 << 20
CANDIDATES = 6


class _Result(c.Structure):
    _fields_ = [
        ("algo", c.c_uint64 * 8),
        ("workspace", c.c_size_t),
        ("state", c.c_int),
        ("waves", c.c_float),
        ("reserved", c.c_int * 4),
    ]


class _Single(c.Structure):
    """A complex factor of which only the real part is set."""

    _fields_ = [("value", c.c_float), ("imaginary", c.c_float)]


class _Double(c.Structure):
    _fields_ = [("value", c.c_double), ("imaginary", c.c_double)]


def candidates(names: list[str]) -> list[str]:
    """Where a library may lie: the loader's path, then NVIDIA's Python packages."""
    found = list(names)
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations if spec is not None else ():  # type: ignore[union-attr]
        for name in names:
            found += glob.glob(os.path.join(root, "*", "lib", name))
    for root in ("/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"):
        found += [os.path.join(root, n) for n in names]
    return found


def opened(names: list[str], kind: Any = c.CDLL) -> Any:
    """The first of some libraries that can be loaded, or None."""
    for path in candidates(names):
        try:
            return kind(path)
        except OSError:
            continue
    return None


class _Library:
    """The loaded library and its handle per device."""

    lib: Any = None
    reason = ""

    def __init__(self) -> None:
        self.handles: dict[int, int] = {}
        self.spaces: dict[tuple[int, int], Any] = {}

    def load(self) -> bool:
        """Whether there is a library."""
        if self.lib is None and not self.reason:
            if rt.runtime.driver.emulated:
                self.reason = "the GPU is emulated"
                return False
            self.lib = opened(["libcublasLt.so.13", "libcublasLt.so.12"], c.PyDLL)
            if self.lib is None:
                self.reason = "libcublasLt is not installed; install votive[cuda]"
                return False
            p, i64, u64 = c.c_void_p, c.c_int64, c.c_uint64
            lib = self.lib
            lib.cublasLtMatrixLayoutCreate.argtypes = [p, c.c_int, u64, u64, i64]
            lib.cublasLtMatmul.argtypes = [p, p, p, p, p, p, p, p, p, p, p, p, p, p, c.c_size_t, p]
            lib.cublasLtMatmulAlgoGetHeuristic.argtypes = [p, p, p, p, p, p, p, c.c_int, p, p]
            for name in ("MatmulDesc", "MatrixLayout", "MatmulPreference"):
                getattr(lib, f"cublasLt{name}SetAttribute").argtypes = [p, c.c_int, p, c.c_size_t]
            lib.cublasLtMatmulDescCreate.argtypes = [p, c.c_int, c.c_int]
            lib.cublasLtMatmulPreferenceCreate.argtypes = [p]
            lib.cublasLtCreate.argtypes = [p]
        return self.lib is not None

    def handle(self) -> int:
        device = rt.here.device
        found = self.handles.get(device)
        if found is None:
            out = c.c_void_p()
            check(self.lib.cublasLtCreate(c.byref(out)), "cublasLtCreate")
            found = self.handles[device] = out.value or 0
        return found

    def workspace(self) -> int:
        """Scratch memory of the current stream; work on a stream never overlaps."""
        here = rt.here
        key = (here.device, here.stream)
        if here.capturing:
            return int(here.workspace().ptr)
        block = self.spaces.get(key)
        if block is None:
            block = self.spaces[key] = rt.allocate(WORKSPACE)
        if not rt.SYNC:
            fast_path.space(block.ptr)
        return int(block.ptr)


library = _Library()


def check(code: int, what: str) -> None:
    if code:
        raise CudaError(f"{what}: cuBLAS returned error {code}.")


class Matrix:
    """One operand: element type, the library's shape and leading dimension, batch distance."""

    __slots__ = ("batch", "cols", "dtype", "ld", "rows", "stride", "trans")

    def __init__(self, dtype: dt.dtype, rows: int, cols: int, ld: int, trans: bool, batch: int, stride: int) -> None:
        self.dtype, self.rows, self.cols, self.ld = dtype, rows, cols, max(ld, rows, 1)
        self.trans, self.batch, self.stride = trans, batch, stride

    def of(self, dtype: dt.dtype) -> Matrix:
        """The same with elements of another type."""
        return Matrix(dtype, self.rows, self.cols, self.ld, self.trans, self.batch, self.stride)

    def layout(self) -> Any:
        out = c.c_void_p()
        check(
            library.lib.cublasLtMatrixLayoutCreate(c.byref(out), _TYPE[self.dtype], self.rows, self.cols, self.ld),
            "cublasLtMatrixLayoutCreate",
        )
        if self.batch > 1:
            _set("MatrixLayout", out, BATCH_COUNT, c.c_int32(self.batch))
            _set("MatrixLayout", out, BATCH_STRIDE, c.c_int64(self.stride))
        return out


def _set(kind: str, object_: Any, attribute: int, value: Any) -> None:
    set_ = getattr(library.lib, f"cublasLt{kind}SetAttribute")
    check(set_(object_, attribute, c.byref(value), c.sizeof(value)), f"cublasLt{kind}SetAttribute {attribute}")


class Product(fast_path.Product):  # type: ignore[misc]
    """`d = alpha * left @ right + beta * c (+ bias, activation)`, prepared once, called with
    addresses. `left` and `right` are in the library's order (columns).

    `bias`: the type of what the epilogue adds, or of the sums it makes. `aux`: the distance between
    columns of what the epilogue keeps or reads. `add`: the type of c where it is not that of d.

    `product(left, right, out)` takes addresses, and by name: `add`, what `beta` multiplies (it has
    the layout of the result), `alpha`, `beta`, and where the operands of the epilogue and the
    factors lie (`PLACES`).
    """

    def __init__(
        self,
        left: Matrix,
        right: Matrix,
        out: Matrix,
        *,
        compute: str = "f32",
        epilogue: int = PLAIN,
        bias: dt.dtype | None = None,
        aux: int = 0,
        add: dt.dtype | None = None,
        by_rows: bool = False,
        fast: bool = False,
    ) -> None:
        self.left, self.right, self.out = left, right, out
        number: Any = {"f64": c.c_double, "i32": c.c_int32}.get(compute, c.c_float)
        scale = {"f64": 1, "i32": 10}.get(compute, 0)
        if out.dtype.is_complex:
            number, scale = (_Double if compute == "f64" else _Single), _TYPE[out.dtype]
        self.number, self.one, self.zero = number, number(1), number(0)
        desc = c.c_void_p()
        lib = library.lib
        check(lib.cublasLtMatmulDescCreate(c.byref(desc), _COMPUTE[compute], scale), "cublasLtMatmulDescCreate")
        self.desc = desc
        self._set(TRANS_A, c.c_int32(int(left.trans)))
        self._set(TRANS_B, c.c_int32(int(right.trans)))
        if epilogue != PLAIN:
            self._set(EPILOGUE, c.c_uint32(epilogue))
        if bias is not None:
            self._set(BIAS_TYPE, c.c_int32(_TYPE[bias]))
        if aux:
            self._set(AUX_LD, c.c_int64(aux))
        if by_rows:
            for mode, factors in ((A_SCALE_MODE, A_SCALE), (B_SCALE_MODE, B_SCALE)):
                self._set(mode, c.c_int32(OUTER_VECTORS))
                # Algorithms are found only for factors that lie somewhere.
                self._set(factors, c.c_uint64(1 << 20))
        if fast:
            self._set(FAST_ACCUM, c.c_int8(1))
        self.layouts = [m.layout() for m in (left, right, out)]
        self.layouts.insert(2, out.of(add).layout() if add else self.layouts[2])
        self.algos: dict[int, Any] = {}  # by the alignment of what is read and written
        self.lock = threading.Lock()  # the description holds addresses of one call
        self._arrange(
            _address(lib.cublasLtMatmul),
            _address(lib.cublasLtMatmulDescSetAttribute),
            desc.value,
            tuple(layout.value for layout in self.layouts),
            c.addressof(self.one),
            c.addressof(self.zero),
            WORKSPACE,
            tuple(PLACES.items()),
        )

    def _set(self, attribute: int, value: Any) -> None:
        _set("MatmulDesc", self.desc, attribute, value)

    def works(self) -> bool:
        """Whether the library has an algorithm, as far as it says so before it is called."""
        try:
            self._heuristics(16)
        except CudaError:
            return False
        return True

    def _heuristics(self, alignment: int) -> list[Any]:
        lib = library.lib
        preference = c.c_void_p()
        check(lib.cublasLtMatmulPreferenceCreate(c.byref(preference)), "cublasLtMatmulPreferenceCreate")
        _set("MatmulPreference", preference, 1, c.c_uint64(WORKSPACE))
        for which in (5, 6, 7, 8):
            _set("MatmulPreference", preference, which, c.c_uint32(alignment))
        results = (_Result * CANDIDATES)()
        count = c.c_int()
        code = lib.cublasLtMatmulAlgoGetHeuristic(
            library.handle(), self.desc, *self.layouts, preference, CANDIDATES, results, c.byref(count)
        )
        lib.cublasLtMatmulPreferenceDestroy(preference)
        check(code, "cublasLtMatmulAlgoGetHeuristic")
        found = [results[i] for i in range(count.value) if results[i].state == 0]
        if not found:
            raise CudaError("cuBLASLt has no algorithm for this product.")
        return found

    @property
    def work(self) -> int:
        """How many multiplications and additions."""
        inner = self.left.rows if self.left.trans else self.left.cols
        return 2 * self.out.rows * self.out.cols * max(self.out.batch, 1) * inner

    def _choose(self, alignment: int, beta: float, *where: int) -> Any:
        found = self._heuristics(alignment)
        best = 0
        if self.work >= WORTH_TIMING and len(found) > 1 and not beta:
            # All give the same product: time them on the real operands.
            run = partial(self._run, alpha=self.one, beta=self.zero)
            best = fastest([partial(run, r, *where) for r in found])
        self.algos[alignment] = found[best]
        return found[best]

    def _run(self, how: Any, left: int, right: int, add: int, out: int, alpha: Any, beta: Any) -> None:
        a, b, c_, d = self.layouts
        code = library.lib.cublasLtMatmul(
            library.handle(),
            self.desc,
            c.addressof(alpha),
            left,
            a,
            right,
            b,
            c.addressof(beta),
            add,
            c_,
            out,
            d,
            c.addressof(how.algo),
            library.workspace(),
            WORKSPACE,
            rt.here.stream,
        )
        if code:
            self._failed(code)
        if rt.SYNC:
            check_at_once()

    def _failed(self, code: int) -> None:
        check(code, "cublasLtMatmul")

    def _general(
        self, left: int, right: int, out: int, *, add: int = 0, alpha: float = 1, beta: float = 0, **places: int
    ) -> None:
        """A product of any kind; the native module repeats plain ones by itself."""
        bits = left | right | out | add
        alignment = 16 if not bits & 15 else (bits & -bits) & 15
        where = left, right, add or out, out
        with self.lock:
            self._hold(1)
            try:
                for name, address in places.items():
                    if address:
                        self._set(PLACES[name], c.c_uint64(address))
                how = self.algos.get(alignment) or self._choose(alignment, beta, *where)
                self._run(how, *where, self.number(alpha), self.number(beta))
            finally:
                self._hold(-1)
        if alignment == 16:
            self._settle(rt.here.device, library.handle(), c.addressof(how.algo))


def _address(function: Any) -> int:
    return int(c.cast(function, c.c_void_p).value or 0)
