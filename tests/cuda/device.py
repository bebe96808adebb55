"""Whether there is a GPU to test, real or emulated, and how arguments get there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import votive
from tests.native.compare import TOLERANCE
from votive.core.errors import CudaError


def _reason() -> str:
    from votive.backends.cuda import runtime as rt

    try:
        rt.begin()
    except CudaError as e:
        return str(e).removeprefix("cuda: ").rstrip(".")
    return ""


REASON = _reason()
EMULATED = False
if not REASON:
    from votive.backends.cuda import runtime as _rt

    EMULATED = bool(_rt.runtime.driver.emulated)
# Needs no GPU: such tests run wherever the suite runs.
anywhere = pytest.mark.anywhere
LAYOUTS = ("", "permuted", "sliced", "shifted", "expanded")


def normal(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> np.ndarray[Any, Any]:
    """Normal numbers of a dtype, complex ones in both parts."""
    x = rng.normal(size=shape)
    if kind.startswith("complex"):
        x = x + 1j * rng.normal(size=shape)
    return x.astype(kind)


def placed(a: np.ndarray[Any, Any], how: str, device: str) -> Any:
    """An array as a tensor of a device, in memory that is plain, permuted, has gaps, begins at an
    odd address or repeats its first row.
    """
    t = votive.from_numpy(np.array(a)).to(device)
    if how == "permuted" and a.ndim >= 2:
        order = tuple(range(a.ndim))[::-1]
        return t.permute(order).contiguous().permute(order)
    if how == "sliced" and a.ndim >= 1:
        shape = (*a.shape[:-1], 2 * a.shape[-1] + 1)
        window = votive.zeros(shape, dtype=t.dtype, device=device)[..., 1::2]
        window.copy_(t)
        return window
    if how == "shifted":
        room = votive.zeros(a.size + 3, dtype=t.dtype, device=device)
        room[3:].copy_(t.reshape(-1))
        return room[3:].view(a.shape)
    if how == "expanded" and a.ndim >= 1 and a.size:
        return t[:1].expand(a.shape)
    return t


@contextmanager
def cpu_fallbacks() -> Iterator[set[str]]:
    """The operators that were computed on the CPU inside the block."""
    from votive.backends.cuda import cpu_fallback

    found: set[str] = set()
    tell: Callable[..., None] = cpu_fallback.warn_once
    cpu_fallback.warn_once = lambda op, why="": found.add(op)  # type: ignore[assignment]
    try:
        yield found
    finally:
        cpu_fallback.warn_once = tell  # type: ignore[assignment]


def agree(ours: Any, theirs: Any, what: str, rtol: float | None = None, scale: float = 0.0) -> None:
    """A tensor of the GPU is the CPU's: dtype, shape, strides and (nearly) values.

    `scale`: how large the terms of a result are at least, where terms cancel.
    """
    assert ours.device.type == "cuda", f"{what}: the result is on {ours.device}"
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), what
    assert not ours.numel() or ours.stride() == theirs.stride(), what
    p, q = ours.numpy(force=True), theirs.numpy(force=True)
    tolerance = TOLERANCE.get(ours.dtype)
    if tolerance is None:
        np.testing.assert_array_equal(p, q, err_msg=what)
        return
    wide = np.complex128 if ours.dtype.is_complex else np.float64
    p, q = p.astype(wide), q.astype(wide)
    finite = np.abs(q[np.isfinite(q)])
    tolerance = max(tolerance, rtol or 0.0)
    atol = tolerance * max(scale, 0.1 * float(finite.max(initial=0.0)))
    np.testing.assert_allclose(p, q, rtol=tolerance, atol=atol, equal_nan=True, err_msg=what)
