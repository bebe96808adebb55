"""Convolution, its transpose and its weight gradient: rows of the kernel table.

float32 is multiplied in full precision unless `allow_tf32` of matrix products is set; half types
are added up in float32. What is large enough to be timed takes the fastest of our own kernels and,
where it is installed, cuDNN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .....core.errors import CudaError
from .....core.layout import Spec
from ....common.slot import Slot
from ... import runtime as rt
from ...programs.layouts import contiguous
from ...programs.types import Ints, Run, floats
from ...rows import cuda
from ...runtime.autotune import Autotuned
from ...runtime.views import View
from .depthwise import direct, direct_weight
from .gather import gathered, gathered_weight
from .implicit import Convolve, Weigh, implicit, implicit_weight
from .library import by_library, weight_by_library
from .long_sums import long_sums
from .pixels import pixels, weight_of_pixels

WORTH_TIMING = 1 << 23  # operations; below, the first choice serves
TIMED = 2  # of our own; the first is mostly the fastest, and each is compiled


@dataclass(frozen=True)
class Ways:
    """Who can compute an operator: kernels for few terms, kernels of one launch for little work, those over staged
    inputs, those that take anything, and NVIDIA's libraries. Each gives a function or several, or none.
    """

    few: Callable[..., list[Any]]
    little: Callable[..., list[Any]]
    staged: Callable[..., list[Any]]
    general: Callable[..., Any]
    libraries: tuple[Callable[..., Any], ...]

    def candidates(self, p: Any, out: Spec) -> Autotuned | None:
        """The functions to choose from. Small work takes the first."""
        timed = p.work >= WORTH_TIMING and not rt.runtime.driver.emulated
        found = self.few(p, out)
        if timed and not (found and p.apart):
            found = [*found, *self.staged(p, out, TIMED)]
        elif not found:
            found = self.little(p, out) or self.staged(p, out, 1)
        if not found:
            last = self.general(p)
            found = [] if last is None else [last]
        if timed or not found:
            found = [*found, *(way for make in self.libraries for way in _asked(make, p, out))]
        return Autotuned(found, p.work, WORTH_TIMING) if found else None


def _asked(make: Callable[..., Any], p: Any, out: Spec) -> list[Any]:
    """A library's way, unless the library is not there or has none."""
    try:
        found = make(p, out)
    except CudaError:
        return []
    return [] if found is None else [found]


def _none(p: Any, out: Spec) -> list[Any]:
    return []


FORWARD = Ways(direct, long_sums, implicit, gathered, (pixels, by_library))
WEIGHT = Ways(direct_weight, _none, implicit_weight, gathered_weight, (weight_of_pixels, weight_by_library))


class _Choice:
    """Who computes a plan's operator into results of a spec; the latest is at hand."""

    def __init__(self, ways: Ways, p: Any) -> None:
        self.ways, self.p = ways, p
        self.latest: tuple[Spec | None, Any] = None, None  # one object: other threads may read it
        self.made: dict[Spec, Autotuned] = {}

    def __call__(self, spec: Spec) -> Any:
        found = self.made.get(spec)
        if found is None:
            made = self.ways.candidates(self.p, spec)
            assert made is not None
            found = self.made[spec] = made
        if found.best is not None:  # chosen for good
            self.latest = spec, found.best
        return found


def _forward(p: Convolve) -> Run:
    if any(s.dtype is not p.x.dtype for s in (p.weight,)) or not p.x.numel or not p.weight.numel or 0 in p.size:
        return None
    if gathered(p) is None:  # beyond what any of our kernels counts in
        return None
    choose = _Choice(FORWARD, p)

    def run(outs: list[View], x: View, weight: View, bias: View | None = None) -> None:
        out = outs[0]
        spec, way = choose.latest
        if spec is not out.spec:
            way = choose(out.spec)
        way(out, x, weight, bias if bias is None or bias.spec.contiguous else contiguous(bias))

    return run


@cuda("_convolution", accepts=floats)
def convolution(
    x: Slot, weight: Slot, bias: Slot | None, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Run:
    size = tuple(
        (i + 2 * p - d * (k - 1) - 1) // s + 1
        for i, k, s, p, d in zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
    )
    if bias is not None and bias.dtype is not x.dtype:
        return None
    stride = tuple(1 if o == 1 else s for o, s in zip(size, stride, strict=True))
    return _forward(Convolve(x, weight, bias is not None, size, stride, padding, dilation, groups, False))


@cuda("_convolution_transpose", accepts=floats)
def convolution_transpose(
    x: Slot, weight: Slot, bias: Slot | None, size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Run:
    if bias is not None and bias.dtype is not x.dtype:
        return None
    stride = tuple(1 if o == 1 else s for o, s in zip(x.shape[2:], stride, strict=True))
    return _forward(Convolve(x, weight, bias is not None, size, stride, padding, dilation, groups, True))


@cuda("_convolution_weight", accepts=floats)
def convolution_weight(
    x: Slot, grad: Slot, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Run:
    if grad.dtype is not x.dtype or not x.numel or not grad.numel:
        return None
    stride = tuple(1 if o == 1 else s for o, s in zip(grad.shape[2:], stride, strict=True))
    p = Weigh(x, grad, kernel, stride, padding, dilation, groups)
    if gathered_weight(p) is None:
        return None
    choose = _Choice(WEIGHT, p)

    def run(outs: list[View], x: View, grad: View) -> None:
        out = outs[0]
        spec, way = choose.latest
        if spec is not out.spec:
            way = choose(out.spec)
        way(out, x, grad)

    return run
