"""Programs under Triton's interpreter on host memory. Knows the interpreter's insides."""

from __future__ import annotations

import threading
from typing import Any

import ml_dtypes
import numpy as np
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from ....core.errors import CudaError

_NUMPY = {"i32": np.int32, "i64": np.int64, "fp32": np.float32, "fp64": np.float64}
_patch_tensor = interpreter._patch_lang_tensor


def _patched(tensor: Any, scope: Any) -> None:
    """Scalars are arrays of one element there, which NumPy no longer turns into numbers."""
    _patch_tensor(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.flat[0]))
    scope.set_attr(
        tensor, "__bool__", lambda self: bool(self.handle.data.flat[0]) if self.handle.data.size == 1 else True
    )


interpreter._patch_lang_tensor = _patched

# The interpreter cuts digits off where hardware rounds, and takes bfloat16 for the integers it
# stores it as; ml_dtypes knows better.
_STORED = {tl.bfloat16: ml_dtypes.bfloat16, tl.float8e4nv: ml_dtypes.float8_e4m3fn, tl.float8e5: ml_dtypes.float8_e5m2}


def _cast(self: Any, src: Any, dst_type: Any, rounding: Any = None) -> Any:
    have, want = src.dtype.scalar, dst_type.scalar
    data = src.data
    if have in _STORED:
        data = data.view(_STORED[have]).astype(np.float32)
    if want in _STORED:
        if want == tl.float8e4nv:  # without infinity: hardware saturates
            data = np.clip(data, -448.0, 448.0)
        data = data.astype(_STORED[want])
    return TensorHandle(data.astype(_np(dst_type)) if want not in _STORED else data.view(_np(dst_type)), want)


def _wide(handle: Any) -> Any:
    kind = handle.dtype.scalar
    return handle.data.view(_STORED[kind]).astype(np.float32) if kind in _STORED else handle.data


def _dot(self: Any, a: Any, b: Any, d: Any, *precision: Any) -> Any:
    product = np.matmul(_wide(a).astype(d.data.dtype), _wide(b).astype(d.data.dtype))
    return TensorHandle(product + d.data, d.dtype.scalar)


_np = interpreter._get_np_dtype
interpreter.InterpreterBuilder.create_dot = _dot
interpreter.InterpreterBuilder.cast_impl = _cast
interpreter.InterpreterBuilder.create_fp_to_fp = _cast


def _splat(self: Any, ret_ty: Any, arg: Any) -> Any:
    """Truth values of one element know the type of what was compared, not their own."""
    return TensorHandle(np.full(ret_ty.shape, arg.data.flat[0], arg.data.dtype), arg.dtype.scalar)


interpreter.InterpreterBuilder.create_splat = _splat


_reduced = interpreter.ReduceOps.apply_impl


def _reduce(self: Any, input: Any) -> Any:
    """Sorting networks exchange by exclusive or, for which the interpreter goes element by element."""
    if self.combine_fn == tl.standard._xor_combine:
        found = np.bitwise_xor.reduce(input[0].handle.data, axis=self.axis, keepdims=self.keep_dims)
        return self.to_tensor(found, input[0].dtype)
    return _reduced(self, input)


interpreter.ReduceOps.apply_impl = _reduce


_one_at_a_time = threading.Lock()
_LIMITS = (2**31 - 1, 65535, 65535)  # of a grid, as hardware has them


def run(program: Any, grid: tuple[int, ...], args: tuple[Any, ...]) -> None:
    """Run a program on host memory."""
    if not all(1 <= n <= most for n, most in zip(grid, _LIMITS, strict=False)):
        raise CudaError(f"launch of {program.fn.__name__} with grid {grid}: beyond the limits of a GPU.")
    values = []
    for type_, v in zip(program.types, args, strict=True):
        ty = tl.str_to_ty(type_, None)
        array = np.array([v], np.uint64 if type_[0] == "*" else _NUMPY[type_])
        values.append(tl.tensor(TensorHandle(array, ty), ty))
    # The interpreter changes Triton's own functions while it runs.
    with _one_at_a_time, np.errstate(all="ignore"):
        program.fn[(*grid, 1, 1)[:3]](*values, **program.constants)
