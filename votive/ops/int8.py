"""Layers whose weight is int8 and whose input is 8 bits, and numbers as codes of 8 or 32 bits. Knows shapes and dtypes.

A weight comes packed: for panels of 16 rows, then 4 neighbours along a row, those 4 codes of each row (`packed` below).
With it come the sums of its rows, their scales and, where there are some, their zeros. What users see of it is
`surface/quantized_tensor.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, fail
from ..core.layout import Spec
from .registry import F, structured

if TYPE_CHECKING:
    from .types import Tensor

PANEL = 16


def packed(weight: Tensor) -> Tensor:
    """A weight of int8, (rows, columns), in the order in which products read it."""
    rows, columns = weight.shape
    panels, quads = -(-rows // PANEL), -(-columns // 4)
    whole = F.zeros((panels * PANEL, quads * 4), dtype=dt.int8, device=weight.device)
    whole[:rows, :columns].copy_(weight)
    parts = F.reshape(whole, (panels, PANEL, quads, 4))
    out: Tensor = F.contiguous(F.permute(parts, (0, 2, 1, 3)))
    return F.reshape(out, (panels, quads, 4 * PANEL))


def _weight(op: str, packed: Spec, sums: Spec, scales: Spec, zeros: Spec | None, bias: Spec | None) -> int:
    """The rows of a weight whose parts fit one another."""
    n = sums.numel
    if packed.dtype is not dt.int8 or packed.ndim != 3 or packed.shape[2] != 4 * PANEL or not packed.contiguous:
        fail(
            ShapeError, op, f"a packed weight is int8, (panels, quads, {4 * PANEL}), got {packed.dtype} {packed.shape}."
        )
    for name, part, kind in (
        ("sums", sums, dt.int32),
        ("scales", scales, dt.float32),
        ("zeros", zeros, dt.int32),
        ("bias", bias, dt.float32),
    ):
        if part is not None and (part.dtype is not kind or part.shape != (n,) or not part.contiguous):
            fail(ShapeError, op, f"{name} must be {kind} of shape {(n,)}, got {part.dtype} {part.shape}.")
    return n


def _codes(op: str, x: Spec, dtype: dt.dtype) -> None:
    if x.dtype not in (dt.uint8, dt.int8):
        fail(DtypeError, op, f"the input is uint8 or int8, got {x.dtype}.")
    if dtype not in (dt.uint8, dt.int8, dt.float32):
        fail(DtypeError, op, f"the result is uint8, int8 or float32, got {dtype}.")


def _infer_linear(
    x: Spec,
    packed: Spec,
    sums: Spec,
    scales: Spec,
    zeros: Spec | None,
    bias: Spec | None,
    scale: type,
    zero_point: type,
    out_scale: type,
    out_zero_point: type,
    relu: bool,
    dtype: dt.dtype,
) -> Spec:
    _codes("linear", x, dtype)
    return x.like(_rows("linear", x, packed, _weight("linear", packed, sums, scales, zeros, bias)), dtype)


def _infer_dynamic(
    x: Spec, packed: Spec, sums: Spec, scales: Spec, zeros: Spec | None, bias: Spec | None, highest: int, relu: bool
) -> Spec:
    if x.dtype is not dt.float32:
        fail(DtypeError, "linear", f"the input of a dynamic int8 layer is float32, got {x.dtype}.")
    return x.like(_rows("linear", x, packed, _weight("linear", packed, sums, scales, zeros, bias)))


def _rows(op: str, x: Spec, packed: Spec, n: int) -> tuple[int, ...]:
    if x.ndim < 1 or -(-x.shape[-1] // 4) != packed.shape[1] or -(-n // PANEL) != packed.shape[0]:
        fail(ShapeError, op, f"an input of shape {x.shape} does not fit a weight packed as {packed.shape}.")
    return (*x.shape[:-1], n)


def _infer_conv(
    x: Spec,
    packed: Spec,
    sums: Spec,
    scales: Spec,
    zeros: Spec | None,
    bias: Spec | None,
    scale: type,
    zero_point: type,
    out_scale: type,
    out_zero_point: type,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    relu: bool,
    dtype: dt.dtype,
) -> Spec:
    op = "conv"
    _codes(op, x, dtype)
    n = _weight(op, packed, sums, scales, zeros, bias)
    if x.ndim != 5:
        fail(ShapeError, op, f"the input has 5 dimensions here, got shape {x.shape}.")
    if groups < 1 or x.shape[1] % groups or n % groups:
        fail(ShapeError, op, f"groups={groups} does not divide {x.shape[1]} channels in and {n} out.")
    if min(*stride, *dilation, *kernel) < 1 or min(padding) < 0:
        fail(ValueError, op, "kernel, stride and dilation are at least 1 and padding at least 0.")
    columns = x.shape[1] // groups * kernel[0] * kernel[1] * kernel[2]
    want = (groups * -(-(n // groups) // PANEL), -(-columns // 4), 4 * PANEL)
    if packed.shape != want:
        fail(ShapeError, op, f"an input of shape {x.shape} takes a weight packed as {want}, got {packed.shape}.")
    sizes = [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, s, p, d in zip(x.shape[2:], kernel, stride, padding, dilation, strict=True)
    ]
    if min(sizes) < 1:
        fail(ShapeError, op, f"the kernel {kernel} is larger than the padded input {x.shape}.")
    return x.like((x.shape[0], n, *sizes), dtype)


def _infer_quantize(x: Spec, scale: type, zero_point: type, dtype: dt.dtype) -> Spec:
    if x.dtype is not dt.float32:
        fail(DtypeError, "quantize_per_tensor", f"Quantize only works on Float Tensor, got {x.dtype}.")
    return x.like(x.shape, dtype)


structured(
    "_quantize_affine(Tensor input, Scalar scale, Scalar zero_point, dtype dtype)",
    infer=_infer_quantize,
    differentiable=False,
    doc="Codes of numbers: `round(input / scale + zero_point)`, halves to even, within the range of the type.",
)

structured(
    "_int8_linear(Tensor input, Tensor packed, Tensor sums, Tensor scales, Tensor? zeros, Tensor? bias, Scalar scale, "
    "Scalar zero_point, Scalar out_scale, Scalar out_zero_point, bool relu, dtype dtype)",
    infer=_infer_linear,
    differentiable=False,
    doc="A linear layer between codes of 8 bits; as `dtype` float32 the result is not rounded to codes.",
)

structured(
    "_int8_linear_dynamic(Tensor input, Tensor packed, Tensor sums, Tensor scales, Tensor? zeros, Tensor? bias, "
    "int highest, bool relu)",
    infer=_infer_dynamic,
    differentiable=False,
    doc="A linear layer whose input becomes codes from 0 to `highest`, by its least and greatest number.",
)

structured(
    "_int8_conv(Tensor input, Tensor packed, Tensor sums, Tensor scales, Tensor? zeros, Tensor? bias, Scalar scale, "
    "Scalar zero_point, Scalar out_scale, Scalar out_zero_point, int[] kernel, int[] stride, int[] padding, "
    "int[] dilation, int groups, bool relu, dtype dtype)",
    infer=_infer_conv,
    differentiable=False,
    doc="A convolution over three dimensions between codes of 8 bits; weights lie as (out, kernel, channels).",
)
