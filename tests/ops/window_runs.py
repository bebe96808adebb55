"""Running a call of `windows` on votive or torch, in its layouts and a dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from tests.native.compare import reference_only
from votive.backends.cpu import native

from .windows import Call, arguments

DTYPES = ("float64", "float32", "bfloat16")
BACKENDS = ("native", "reference")
TOLERANCE = {"float64": 1e-10, "float32": 2e-5, "bfloat16": 2e-2}


def _tensor(library: Any, a: Any, dtype: str, device: str) -> Any:
    t = library.tensor(np.ascontiguousarray(a), dtype=library.float64)
    return t.to(device=device, dtype=getattr(library, dtype))


def placed(library: Any, a: Any, layout: str, dtype: str, device: str) -> Any:
    """The array as a tensor whose memory is laid out as named."""
    if layout == "channels_last":
        moved = _tensor(library, np.moveaxis(a, 1, -1), dtype, device)
        return moved.permute(0, a.ndim - 1, *range(1, a.ndim - 1))
    if layout == "every_second":
        wide = np.full((*a.shape[:-1], 2 * a.shape[-1] + 1), 77.0)
        wide[..., 1::2] = a
        return _tensor(library, wide, dtype, device)[..., 1::2]
    if layout == "transposed":
        return _tensor(library, np.swapaxes(a, -1, -2), dtype, device).transpose(-1, -2)
    if layout == "expanded":
        return _tensor(library, a[:1], dtype, device).expand(*a.shape)
    return _tensor(library, a, dtype, device)


def run(library: Any, call: Call, dtype: str, device: str = "cpu") -> list[Any]:
    """The result and the gradients of all tensors, as float64 arrays."""
    given = [
        placed(library, a, layout, dtype, device).detach().requires_grad_()
        for a, layout in zip(call.tensors, call.layouts, strict=True)
    ]
    y = getattr(library.nn.functional, call.function)(*given, **arguments(call))
    y.backward(_tensor(library, call.gradient, dtype, device))
    return [t.detach().cpu().to(library.float64).numpy() for t in (y, *(t.grad for t in given))]


def on(backend: str, call: Any, dtype: str) -> list[Any]:
    """`run` on native kernels or on the reference."""
    if backend == "reference":
        with reference_only():
            return run(votive, call, dtype)
    if not native.available:
        pytest.skip(f"no native kernels: {native.reason}")
    return run(votive, call, dtype)


def agree(got: list[Any], wanted: list[Any], dtype: str, call: Call) -> None:
    """Both are equal up to rounding; NaN and infinities stand at the same places."""
    assert len(got) == len(wanted)
    for which, (a, b) in enumerate(zip(got, wanted, strict=True)):
        finite = np.abs(b[np.isfinite(b)])
        largest = max(1.0, finite.max() if finite.size else 1.0)
        np.testing.assert_allclose(
            a,
            b,
            rtol=TOLERANCE[dtype],
            atol=TOLERANCE[dtype] * largest,
            err_msg=f"result {which} of {call.function}({dtype}, {call.layouts}, "
            f"{[t.shape for t in call.tensors]}, {arguments(call)})",
        )
