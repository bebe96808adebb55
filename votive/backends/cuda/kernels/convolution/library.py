"""Convolutions by cuDNN, where it is installed: one more candidate beside our own kernels."""

from __future__ import annotations

import math
from collections.abc import Callable

from .....core.layout import Spec, channels_last_strides, contiguous_strides
from ... import precision
from ...libraries import cudnn
from ...programs.copy import copy_view
from ...programs.types import Ints
from ...runtime.views import View, empty
from .bias import BiasAdder
from .implicit import Convolve, Weigh


def _strides(shape: Ints, last: bool) -> Ints:
    return channels_last_strides(shape) if last and len(shape) > 3 else contiguous_strides(shape)


def _arranged(spec: Spec, last: bool) -> Callable[[View], View]:
    """What brings a tensor into one of the library's orders."""
    strides = _strides(spec.shape, last)
    if all(n == 1 or a == b for n, a, b in zip(spec.shape, spec.strides, strides, strict=True)):
        return lambda v: v
    wanted = spec.like(strides=strides)

    def get(v: View) -> View:
        made = empty(wanted)
        copy_view(made, v)
        return made

    return get


def _small(*shapes: Ints) -> bool:
    """Whether the library can count the elements."""
    return all(math.prod(s) < 2**31 for s in shapes)


def by_library(p: Convolve, out: Spec) -> Callable[..., None] | None:
    """`run(out, x, weight, bias)`, or None."""
    x, w = p.x, p.weight
    geometry = cudnn.Geometry(p.stride, p.padding, p.dilation, p.groups)
    if (
        not precision.convolutions.library
        or not cudnn.library.load()
        or not _small(x.shape, w.shape, out.shape, *[(v,) for v in p.stride + p.dilation])
    ):
        return None
    last = out.strides[1] == 1 and out.ndim > 3
    near, near_weight = _arranged(x.spec, last), _arranged(w.spec, last)
    inside, outside = (x.shape, _strides(x.shape, last)), (out.shape, _strides(out.shape, last))
    if p.transposed:
        inside, outside = outside, inside
    call = cudnn.Convolution(
        "input" if p.transposed else "forward",
        x.dtype,
        inside,
        w.shape,
        outside,
        geometry,
        channels_last=last,
        tf32=precision.convolutions.allow_tf32,
    )
    add = BiasAdder(out) if p.bias else None

    def run(out: View, x: View, w: View, bias: View | None) -> None:
        x, w = near(x), near_weight(w)
        first, second = (w, x) if p.transposed else (x, w)
        call(first.ptr, second.ptr, out.ptr)
        if add is not None and bias is not None:
            add(out, bias)

    run.__name__ = "cuDNN"
    return run


def weight_by_library(p: Weigh, out: Spec) -> Callable[..., None] | None:
    """`run(out, x, grad)`, or None."""
    x, y = p.x, p.grad
    if (
        not precision.convolutions.library
        or not cudnn.library.load()
        or not _small(x.shape, y.shape, out.shape, *[(v,) for v in p.stride + p.dilation])
    ):
        return None
    last = x.ndim > 3 and (x.strides[1] == 1 or y.strides[1] == 1) and x.shape[1] > 1 and y.shape[1] > 1
    near, near_grad = _arranged(x.spec, last), _arranged(y.spec, last)
    made_in = out.like(strides=_strides(out.shape, last))
    call = cudnn.Convolution(
        "weight",
        x.dtype,
        (x.shape, _strides(x.shape, last)),
        out.shape,
        (y.shape, _strides(y.shape, last)),
        cudnn.Geometry(p.stride, p.padding, p.dilation, p.groups),
        channels_last=last,
        tf32=precision.convolutions.allow_tf32,
    )
    direct = made_in.strides == out.strides

    def run(out: View, x: View, y: View) -> None:
        x, y = near(x), near_grad(y)
        made = out if direct else empty(made_in)
        call(x.ptr, y.ptr, made.ptr)
        if not direct:
            copy_view(out, made)

    run.__name__ = "cuDNN"
    return run
