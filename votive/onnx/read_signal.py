"""What ONNX's operators on signals mean."""

from __future__ import annotations

import math
from typing import Any

from ..core import dtype as dt
from ..ops.registry import F
from ..tensor import Tensor
from .read import Attributes, reads

A = Attributes
_WINDOWS = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}


@reads(*_WINDOWS)
def window(a: A, size: Tensor) -> Any:
    from .load import dtype_of

    first, second, third = _WINDOWS[a.op]
    n = int(size)
    angle = F.arange(n, dtype=dt.float64) * (2 * math.pi / (n if a("periodic", 1) else max(n - 1, 1)))
    return F.to(first - second * F.cos(angle) + third * F.cos(2 * angle), dtype_of(a("output_datatype", 1)))


@reads("DFT")
def dft(a: A, x: Tensor, size: Tensor | None = None, axis: Tensor | None = None) -> Any:
    dim = int(axis) if axis is not None else a("axis", 1 if a.opset < 20 else -2)
    dim = dim % x.ndim
    n = None if size is None else int(size)
    if a("inverse", 0) and a("onesided", 0):
        half = F.view_as_complex(x.contiguous())
        return getattr(F, "fft.irfft")(half, n, dim).unsqueeze(-1)
    values = F.view_as_complex(x.contiguous()) if x.shape[-1] == 2 else F.complex(x[..., 0], F.zeros_like(x[..., 0]))
    found = getattr(F, "fft.ifft")(values, n, dim) if a("inverse", 0) else getattr(F, "fft.fft")(values, n, dim)
    if a("onesided", 0):
        found = F.narrow(found, dim, 0, found.shape[dim] // 2 + 1)
    return F.view_as_real(found)


@reads("STFT")
def stft(a: A, x: Tensor, step: Tensor, frame: Tensor | None = None, length: Tensor | None = None) -> Any:
    size = int(length) if length is not None else frame.shape[0] if frame is not None else x.shape[1]
    hop, signal = int(step), x[..., 0] if x.ndim == 3 and x.shape[-1] == 1 else x
    values = F.view_as_complex(signal.contiguous()) if signal.ndim == 3 else signal
    pieces = values.unfold(1, size, hop)
    pieces = pieces if frame is None else pieces * frame
    whole = getattr(F, "fft.fft")(pieces if pieces.is_complex() else F.complex(pieces, F.zeros_like(pieces)), size, -1)
    if a("onesided", 1) and not values.is_complex():
        whole = whole[..., : size // 2 + 1]
    return F.view_as_real(whole)
