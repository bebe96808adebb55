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
from typing import Any

from ...core import dtype as dt
from ...core.errors import CudaError
from . import runtime as rt

_TYPE = {
    dt.float32: 0, dt.float64: 1, dt.float16: 2, dt.int8: 3, dt.int32: 10, dt.bfloat16: 14,
    dt.float8_e4m3fn: 28, dt.float8_e5m2: 29, dt.complex64: 4, dt.complex128: 5,
}  # fmt: skip
_COMPUTE = {"f32": 68, "tf32": 77, "f64": 70, "i32": 72}
TRANS_A, TRANS_B, EPILOGUE, BIAS_POINTER = 3, 4, 7, 8
AUX_POINTER, AUX_LD, BIAS_TYPE = 11, 12, 26
A_SCALE, B_SCALE, D_SCALE, FAST_ACCUM = 17, 18, 20, 25
BATCH_COUNT, BATCH_STRIDE = 5, 6
PLAIN, RELU, BIAS, RELU_BIAS, GELU, GELU_BIAS = 1, 2, 4, 6, 32, 36
WORKSPACE = 32 << 20
CANDIDATES = 6
# Products below this many operations take the library's first choice; larger ones are timed.
WORTH_TIMING = 1 << 31


class _Result(c.Structure):
    _fields_ = [
        ("algo", c.c_uint64 * 8), ("workspace", c.c_size_t), ("state", c.c_int),
        ("waves", c.c_float), ("reserved", c.c_int * 4),
    ]  # fmt: skip


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
        return int(block.ptr)


library = _Library()


def check(code: int, what: str) -> None:
    if code:
        raise CudaError(f"{what}: cuBLAS answered {code}.")


class Matrix:
    """One operand: element type, the library's shape and leading dimension, batch distance."""

    __slots__ = ("batch", "cols", "dtype", "ld", "rows", "stride", "trans")

    def __init__(
        self, dtype: dt.dtype, rows: int, cols: int, ld: int, trans: bool, batch: int, stride: int
    ) -> None:
        self.dtype, self.rows, self.cols, self.ld = dtype, rows, cols, max(ld, rows, 1)
        self.trans, self.batch, self.stride = trans, batch, stride

    def layout(self) -> Any:
        out = c.c_void_p()
        check(
            library.lib.cublasLtMatrixLayoutCreate(
                c.byref(out), _TYPE[self.dtype], self.rows, self.cols, self.ld
            ),
            "cublasLtMatrixLayoutCreate",
        )
        if self.batch > 1:
            _set("MatrixLayout", out, BATCH_COUNT, c.c_int32(self.batch))
            _set("MatrixLayout", out, BATCH_STRIDE, c.c_int64(self.stride))
        return out


def _set(kind: str, object_: Any, attribute: int, value: Any) -> None:
    set_ = getattr(library.lib, f"cublasLt{kind}SetAttribute")
    check(
        set_(object_, attribute, c.byref(value), c.sizeof(value)),
        f"cublasLt{kind}SetAttribute {attribute}",
    )


class Product:
    """`d = alpha * left @ right + beta * c (+ bias, activation)`, prepared once, called with
    addresses. `left` and `right` are in the library's order (columns).
    """

    def __init__(
        self, left: Matrix, right: Matrix, out: Matrix, *, compute: str = "f32",
        epilogue: int = PLAIN, bias: dt.dtype | None = None, scales: bool = False,
    ) -> None:  # fmt: skip
        self.left, self.right, self.out = left, right, out
        self.epilogue, self.has_bias, self.scales = epilogue, bias is not None, scales
        number: Any = {"f64": c.c_double, "i32": c.c_int32}.get(compute, c.c_float)
        scale = {"f64": 1, "i32": 10}.get(compute, 0)
        if out.dtype.is_complex:
            number, scale = (_Double if compute == "f64" else _Single), _TYPE[out.dtype]
        self.alpha, self.beta = number(1), number(0)
        self._alpha, self._beta = c.addressof(self.alpha), c.addressof(self.beta)
        desc = c.c_void_p()
        lib = library.lib
        check(
            lib.cublasLtMatmulDescCreate(c.byref(desc), _COMPUTE[compute], scale),
            "cublasLtMatmulDescCreate",
        )
        _set("MatmulDesc", desc, TRANS_A, c.c_int32(int(left.trans)))
        _set("MatmulDesc", desc, TRANS_B, c.c_int32(int(right.trans)))
        if epilogue != PLAIN:
            _set("MatmulDesc", desc, EPILOGUE, c.c_uint32(epilogue))
        if bias is not None:
            _set("MatmulDesc", desc, BIAS_TYPE, c.c_int32(_TYPE[bias]))
        self.desc = desc
        self.layouts = [m.layout() for m in (left, right, out)]
        self.pointer = c.c_uint64(0)
        self._bias_at = 0
        self.algo: Any = None
        self.algo_address = 0
        self.algos: dict[int, Any] = {}  # by the alignment of what is read and written

    def _bias(self, address: int) -> None:
        if address != self._bias_at:
            self.pointer.value = address
            _set("MatmulDesc", self.desc, BIAS_POINTER, self.pointer)
            self._bias_at = address

    def scaled(self, left: int, right: int, out: int) -> None:
        """Addresses of the factors of float8 operands."""
        for attribute, address in ((A_SCALE, left), (B_SCALE, right), (D_SCALE, out)):
            if address:
                _set("MatmulDesc", self.desc, attribute, c.c_uint64(address))

    def _heuristics(self, alignment: int) -> Any:
        lib = library.lib
        preference = c.c_void_p()
        check(
            lib.cublasLtMatmulPreferenceCreate(c.byref(preference)),
            "cublasLtMatmulPreferenceCreate",
        )
        _set("MatmulPreference", preference, 1, c.c_uint64(WORKSPACE))
        for which in (5, 6, 7, 8):
            _set("MatmulPreference", preference, which, c.c_uint32(alignment))
        results = (_Result * CANDIDATES)()
        count = c.c_int()
        a, b, d = self.layouts
        code = lib.cublasLtMatmulAlgoGetHeuristic(
            library.handle(), self.desc, a, b, d, d, preference, CANDIDATES, results, c.byref(count)
        )
        lib.cublasLtMatmulPreferenceDestroy(preference)
        check(code, "cublasLtMatmulAlgoGetHeuristic")
        if not count.value:
            raise CudaError("cuBLASLt has no algorithm for this product.")
        return [results[i] for i in range(count.value) if results[i].state == 0]

    def _choose(self, alignment: int, left: int, right: int, add: int, out: int) -> None:
        found = self._heuristics(alignment)
        self.algo = found[0]
        work = 2 * self.out.rows * self.out.cols * max(self.out.batch, 1)
        work *= self.left.rows if self.left.trans else self.left.cols
        if (
            work >= WORTH_TIMING
            and len(found) > 1
            and not rt.here.capturing
            and not self.beta.value
        ):
            self.algo = self._fastest(found, left, right, add, out)
        self.algos[alignment] = self.algo

    def _fastest(self, found: list[Any], *where: int) -> Any:
        """Time the candidates on the real operands; the results are all the same product."""
        driver, stream = rt.runtime.driver, rt.here.stream
        begin, end = driver.new_event(True), driver.new_event(True)
        best, least = found[0], float("inf")
        for result in found:
            self.algo, self.algo_address = result, c.addressof(result.algo)
            self._run(*where)
            driver.record(begin, stream)
            for _ in range(3):
                self._run(*where)
            driver.record(end, stream)
            driver.wait_event(end)
            took = driver.elapsed(begin, end)
            if took < least:
                best, least = result, took
        driver.end_event(begin)
        driver.end_event(end)
        return best

    def _run(self, left: int, right: int, add: int, out: int) -> None:
        a, b, d = self.layouts
        code = library.lib.cublasLtMatmul(
            library.handle(), self.desc, self._alpha, left, a, right, b, self._beta, add, d, out, d,
            self.algo_address, library.workspace(), WORKSPACE, rt.here.stream,
        )  # fmt: skip
        if code:
            check(code, "cublasLtMatmul")

    def __call__(
        self, left: int, right: int, out: int, *, bias: int = 0, add: int = 0, alpha: float = 1.0,
        beta: float = 0.0,
    ) -> None:  # fmt: skip
        """`add` is what `beta` multiplies; it has the layout of the result."""
        self.alpha.value, self.beta.value = alpha, beta
        if self.has_bias:
            self._bias(bias)
        bits = left | right | out | add
        alignment = 16 if not bits & 15 else (bits & -bits) & 15
        if alignment not in self.algos:
            self._choose(alignment, left, right, add or out, out)
        self.algo_address = c.addressof(self.algos[alignment].algo)
        self._run(left, right, add or out, out)
