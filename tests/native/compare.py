"""Running an operator on native kernels and on the reference, and holding the two together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import votive
from votive.backends.base import switch
from votive.backends.cpu import native
from votive.core import dtype as dt
from votive.ops.registry import OPS

needs_native = pytest.mark.skipif(not native.available, reason=f"no native kernels: {native.reason}")

# Relative tolerances: the two add up in different orders and round once.
TOLERANCE = {
    dt.float64: 1e-10,
    dt.float32: 2e-5,
    dt.float16: 2e-3,
    dt.bfloat16: 2e-2,
    dt.complex64: 2e-5,
    dt.complex128: 1e-10,
}
INTEGERS = [dt.bool_, dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64]
DTYPES = [*INTEGERS, dt.float16, dt.bfloat16, dt.float32, dt.float64, dt.complex64, dt.complex128]


@contextmanager
def reference_only() -> Iterator[None]:
    """Run on the reference kernels."""
    was = switch("native", False)
    try:
        yield
    finally:
        switch("native", was)


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in _flat(v)]
    return [value]


def same(ours: Any, theirs: Any, rtol: float | None = None, atol: float | None = None) -> None:
    """Both results have the same types, layouts and (nearly) the same values."""
    a, b = _flat(ours), _flat(theirs)
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        if not isinstance(x, votive.Tensor):
            assert x == y or (x != x and y != y)
            continue
        assert (x.dtype, x.shape, x.stride()) == (y.dtype, y.shape, y.stride())
        tolerance = TOLERANCE.get(x.dtype, 0.0) if rtol is None else rtol
        wide = np.complex128 if x.dtype.is_complex else np.float64
        exact = not x.dtype.is_floating_point and not x.dtype.is_complex
        p, q = x.numpy(force=True), y.numpy(force=True)
        if exact:
            np.testing.assert_array_equal(p, q)
            continue
        p, q = p.astype(wide), q.astype(wide)
        if atol is None:
            finite = np.abs(q[np.isfinite(q)])
            atol_now = tolerance * float(finite.max(initial=0.0)) * 0.1
        else:
            atol_now = atol
        np.testing.assert_allclose(p, q, rtol=tolerance, atol=atol_now, equal_nan=True)


def agree(fn: Callable[..., Any], *args: Any, rtol: float | None = None, atol: float | None = None) -> Any:
    """`fn(*args)` on native kernels agrees with the reference; gives the native result."""
    ours = fn(*args)
    with reference_only():
        theirs = fn(*args)
    same(ours, theirs, rtol, atol)
    return ours


def served_by_native(op: str, fn: Callable[[], Any]) -> bool:
    """Whether the last plan that `fn` makes for the operator has a native row."""
    OPS[op].forget()
    fn()
    plans = list(OPS[op].plans.values())
    return bool(plans) and all(p.row is not None and p.row.label == "native" for p in plans)


def layouts(x: Any) -> list[Any]:
    """The same values in several layouts: dense, transposed memory, gaps, offset."""
    out = [x]
    if x.ndim >= 2:
        out.append(x.transpose(0, -1).contiguous().transpose(0, -1))
    if x.ndim >= 1 and x.numel():
        wide = votive.zeros(*x.shape[:-1], 2 * x.shape[-1] + 1, dtype=x.dtype)
        part = wide[..., 1::2]
        part.copy_(x)
        out.append(part)
    return out


def memory_orders(x: Any) -> list[Any]:
    """Images or sounds dense, channels last, every second element."""
    out = [x]
    if x.ndim == 4:
        out.append(x.contiguous(memory_format=votive.channels_last))
    elif x.ndim == 5:
        out.append(x.contiguous(memory_format=votive.channels_last_3d))
    else:
        out.append(x.transpose(-1, -2).contiguous().transpose(-1, -2))
    wide = votive.zeros(*x.shape[:-1], 2 * x.shape[-1] + 1, dtype=x.dtype)
    out.append(wide[..., 1::2])
    out[-1].copy_(x)
    return out
