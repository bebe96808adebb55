"""Whether WebGPU has an adapter to test with, and how arguments get there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import votive
from tests.native.compare import TOLERANCE
from votive.backends.webgpu.shaders.types import NUMBERS
from votive.core.errors import WebGpuError


def _reason() -> str:
    from votive.backends.webgpu.runtime import runtime

    try:
        runtime.start()
    except WebGpuError as e:
        return str(e).removeprefix("webgpu: ").rstrip(".")
    return ""


REASON = _reason()
LAYOUTS = ("", "permuted", "sliced", "shifted", "expanded")


def placed(a: np.ndarray[Any, Any], how: str, device: str) -> Any:
    """An array as a tensor of a device, in memory that is plain, permuted, has gaps, begins inside a buffer or repeats
    its first row.
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


class Left(Counter[str]):
    """Operators that left the device; `plain`: those that had only numbers that kernels compute with."""

    def __init__(self) -> None:
        super().__init__()
        self.plain: set[str] = set()


@contextmanager
def cpu_fallbacks() -> Iterator[Left]:
    """The operators that were computed on the CPU inside the block, and how often."""
    from votive.backends.webgpu import cpu_fallback

    found = Left()
    tell = cpu_fallback.warn_once

    def count(op: str, why: str = "", kinds: frozenset[Any] = frozenset()) -> None:
        found[op] += 1
        if kinds <= NUMBERS:
            found.plain.add(op)

    cpu_fallback.warn_once = count  # type: ignore[assignment]
    try:
        yield found
    finally:
        cpu_fallback.warn_once = tell  # type: ignore[assignment]


def agree(
    ours: Any, theirs: Any, what: str, rtol: float | None = None, scale: float = 0.0, strides: bool = True
) -> None:
    """A tensor of the device is the CPU's: dtype, shape, strides and (nearly) values.

    `scale`: how large the terms of a result are at least, where terms cancel.
    """
    assert ours.device.type == "webgpu", f"{what}: the result is on {ours.device}"
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), what
    if strides and ours.numel():
        assert ours.stride() == theirs.stride(), f"{what}: {ours.stride()} {theirs.stride()}"
    with cpu_fallbacks():  # complex numbers may wait to be conjugated
        p, q = (t.detach().cpu().resolve_conj().numpy() for t in (ours, theirs))
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
