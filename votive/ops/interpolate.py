"""Resizing by nearest, linear, cubic or smoothed samples. Knows shapes, dtypes and gradients.

Resizing is linear and works on one dimension after the other; its gradient is its transpose.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import UnsupportedError, fail
from ..core.layout import Shape
from .adaptive_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from .fold import NN, like_input
from .registry import OPS, F, composite, structured
from .sizes import ints

if TYPE_CHECKING:
    from .declaration import Resolved
    from .types import Ints, Sequence, Tensor

structured(
    "_resample(Tensor input, int[] size, str mode, bool align, bool smooth, float[] scales)",
    placement="samples and channels",
    batch="fold",
    infer=lambda x, size, *rest: like_input(x, (*x.shape[:2], *size)),
    grad={"input": lambda c, g: F._resample_transpose(g, c.shape("input")[2:], c.mode, c.align, c.smooth, c.scales)},
    doc="Each output a weighted sum of few inputs per dimension; a scale of 0 means out / in.",
)

structured(
    "_resample_transpose(Tensor input, int[] size, str mode, bool align, bool smooth, float[] scales)",
    batch="fold",
    infer=lambda x, size, *rest: like_input(x, (*x.shape[:2], *size)),
    grad={"input": lambda c, g: F._resample(g, c.shape("input")[2:], c.mode, c.align, c.smooth, c.scales)},
    doc="The transpose of `_resample`: every value given back to the inputs it was made of.",
)

# How the samples of each mode are weighted, and the rank of the tensors it takes.
_MODES = {
    "nearest": ("nearest", (3, 4, 5)),
    "nearest-exact": ("nearest-exact", (3, 4, 5)),
    "area": ("area", (3, 4, 5)),
    "linear": ("linear", (3,)),
    "bilinear": ("linear", (4,)),
    "trilinear": ("linear", (5,)),
    "bicubic": ("cubic", (4,)),
    "lanczos": ("lanczos", (4,)),
}
_AREA = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)


def _wanted(
    op: str, x: Tensor, size: Ints | None, factor: float | Sequence[float] | None, recompute: bool
) -> tuple[Shape, Any]:
    """(output size, scales) from whichever of size and scale_factor was given."""
    sizes = tuple(x.shape)[2:]
    if (size is None) == (factor is None):
        fail(ValueError, op, "needs either size or scale_factor, and only one of them.")
    given = size if factor is None else factor
    listed: tuple[Any, ...] = tuple(given) if isinstance(given, (list, tuple)) else (given,) * len(sizes)
    if len(listed) != len(sizes):
        fail(ValueError, op, f"an input with spatial dimensions {sizes} needs as many sizes or scales, got {given}.")
    if factor is None:
        if recompute:
            fail(ValueError, op, "recompute_scale_factor is not meaningful with an explicit size.")
        return ints(op, "size", listed), (0.0,) * len(sizes)
    scales = tuple(float(s) for s in listed)
    out = tuple(math.floor(n * s) for n, s in zip(sizes, scales, strict=True))
    return out, (0.0,) * len(sizes) if recompute else scales


def _check_mode(op: str, x: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> str:
    """The kind of weights that `mode` means for this input."""
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and x.ndim == 4):
        fail(ValueError, op, "antialias needs mode bilinear, bicubic or lanczos and a 4-d input.")
    kind, ranks = _MODES.get(mode, ("", ()))
    if x.ndim not in ranks:
        fail(
            UnsupportedError,
            op,
            f"mode {mode!r} does not take a {x.ndim}-d input; modes and their ranks are "
            f"{ {m: r for m, (_, r) in _MODES.items()} }.",
        )
    if mode == "lanczos" and (align_corners or not antialias):
        fail(ValueError, op, "mode 'lanczos' needs antialias=True and align_corners=False.")
    byte = x.dtype is dt.uint8 and (kind.startswith("nearest") or x.ndim == 4)
    if not (x.dtype.is_floating_point or byte) or x.dtype in dt.FLOAT8:
        fail(UnsupportedError, op, f"mode {mode!r} is not implemented for {x.dtype}.")
    return kind


def _resolve(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Resolved:
    """The operator that `interpolate` comes down to, and its arguments; None for an area, which is a pool."""
    op = "interpolate"
    if mode in ("nearest", "nearest-exact", "area") and align_corners is not None:
        fail(ValueError, op, f"align_corners has no meaning for mode {mode!r}; leave it out.")
    recompute = bool(recompute_scale_factor) or (mode == "area" and size is None)
    out, scales = _wanted(op, input, size, scale_factor, recompute)
    kind = _check_mode(op, input, mode, align_corners, antialias)
    if kind == "area":
        return None
    shape = tuple(input.shape)
    if min(*out, *shape[2:]) < 1 or shape[1] == 0:
        fail(
            RuntimeError,
            op,
            f"sizes must be positive and only the batch may be empty, got shape {shape} and output size {out}.",
        )
    return OPS["_resample"], (input, out, kind, bool(align_corners), antialias, scales)


@composite(namespaces=NN, method=False, autocast={"cuda": "float32"}, shortcut=_resolve)
def interpolate(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize the dimensions after (N, C) to `size`, or by `scale_factor`.

    Modes: nearest, nearest-exact, linear, bilinear, trilinear, bicubic, lanczos, area.
    `antialias` widens the filter when the result is smaller than the input.

    >>> x = votive.tensor([[[0.0, 1.0]]])
    >>> votive.nn.functional.interpolate(x, size=4, mode="linear")
    tensor([[[0.0000, 0.2500, 0.7500, 1.0000]]])
    """
    found = _resolve(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
    if found is None:
        out, _ = _wanted("interpolate", input, size, scale_factor, size is None)
        return _AREA[len(out) - 1](input, out)
    op, given = found
    assert op is not None
    result: Tensor = op(*given)
    return result


@composite(namespaces=NN, method=False)
def upsample(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate` under its old name.

    >>> votive.nn.functional.upsample(votive.tensor([[[1.0, 2.0]]]), 4)
    tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


@composite(namespaces=NN, method=False)
def upsample_nearest(
    input: Tensor, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """`interpolate` by the nearest element, under an old name.

    >>> votive.nn.functional.upsample_nearest(votive.tensor([[[1.0, 2.0]]]), 4)
    tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, "nearest")


@composite(namespaces=NN, method=False)
def upsample_bilinear(
    input: Tensor, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """`interpolate` by two linear steps with aligned corners, under an old name.

    >>> votive.nn.functional.upsample_bilinear(votive.tensor([[[[1.0, 2.0]]]]), (1, 3))
    tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """
    return interpolate(input, size, scale_factor, "bilinear", True)
