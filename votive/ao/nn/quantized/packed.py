"""A weight of 8 bits in the order in which products read it, with what belongs to it. Knows tensors, no modules."""

from __future__ import annotations

from typing import Any

from ....backends import quantized
from ....core import affine
from ....core import dtype as dt
from ....core.errors import ShapeError, received
from ....ops.int8 import packed
from ....ops.registry import F
from ....surface.quantized_tensor import QuantizedTensor, made_of
from ....tensor import Tensor

_switches: dict[str, str] = quantized._values  # type: ignore[attr-defined]


class PackedWeight:
    """A weight of `qint8`, (out, in) or (out, in / groups, kernel), packed once, and a bias of float32."""

    def __init__(self, weight: Tensor, bias: Tensor | None, groups: int = 1) -> None:
        if not isinstance(weight, QuantizedTensor) or weight.dtype is not affine.qint8:
            raise RuntimeError(f"a weight of 8 bits is a qint8 tensor, got {received(weight)}.")
        if weight._axis not in (None, 0):
            raise RuntimeError(f"scales of a weight lie along its first dimension, got axis={weight._axis}.")
        if isinstance(weight._zero, Tensor) and weight._zero.dtype.is_floating_point:
            raise RuntimeError("a weight of 8 bits has whole zero points; floating ones are for tables.")
        rows = weight.shape[0]
        if groups < 1 or rows % groups:
            raise RuntimeError(f"groups={groups} does not divide {rows} channels.")
        self.weight, self.bias, self.groups = weight, None if bias is None else bias.detach(), groups
        if self.bias is not None and (self.bias.dtype is not dt.float32 or tuple(self.bias.shape) != (rows,)):
            raise RuntimeError(f"a bias is float32 of shape {(rows,)}, got {received(self.bias)}.")
        self.inputs = int(weight.shape[1]) * groups
        codes = weight._codes
        # Channels last, so that a tap of a convolution is a run of bytes.
        flat = F.movedim(codes, 1, -1).reshape(rows, -1) if codes.ndim > 2 else codes
        each = rows // groups
        parts = [packed(flat[g * each : (g + 1) * each]) for g in range(groups)]
        self.panels: Tensor = parts[0] if groups == 1 else F.cat(parts)
        self.sums: Tensor = flat.sum(1, dtype=dt.int32)
        scale = weight._scale
        steps = scale if isinstance(scale, Tensor) else F.full((rows,), scale, dtype=dt.float64, device=codes.device)
        self.scales: Tensor = steps.to(dt.float32)
        zero = weight._zero if isinstance(weight._zero, Tensor) else F.full((rows,), weight._zero, device=codes.device)
        zeros = zero.to(dt.int32)
        self.zeros: Tensor | None = zeros if codes.device.type != "meta" and bool((zeros != 0).any()) else None
        self._bias: Tensor | None = None if self.bias is None else self.bias.contiguous()

    @property
    def parts(self) -> tuple[Any, ...]:
        """What operators are given of a weight."""
        return self.panels, self.sums, self.scales, self.zeros, self._bias

    def check(self, x: Tensor, dim: int = -1) -> None:
        """Raise where an input has other columns or channels: packed ones are filled up, and would seem to fit."""
        shape = tuple(x.shape)
        if len(shape) < abs(dim) or shape[dim] != self.inputs:
            what = f"rows of {self.inputs}" if dim == -1 else f"{self.inputs} channels"
            raise ShapeError(f"a weight of shape {tuple(self.weight.shape)} takes {what}, got shape {shape}.")

    def linear(self, x: Tensor, scale: float, zero_point: int, relu: bool = False) -> QuantizedTensor:
        """A linear layer between codes."""
        codes = _codes("linear", x)
        self.check(x)
        steps = (codes.q_scale(), codes.q_zero_point(), float(scale), int(zero_point))
        out = F._int8_linear(codes._codes, *self.parts, *steps, relu, codes._codes.dtype)
        return made_of(out, codes._kind_of, scale, zero_point)

    def linear_dynamic(self, x: Tensor, reduce_range: bool = True, relu: bool = False) -> Tensor:
        """A linear layer whose input is rounded by its own bounds; half types are computed in float32."""
        if isinstance(x, QuantizedTensor):
            raise RuntimeError("a dynamic layer takes numbers; use .dequantize().")
        wide = x if x.dtype is dt.float32 else x.to(dt.float32) if x.dtype in dt.HALF else None
        if wide is None:
            raise RuntimeError(f"a dynamic int8 layer takes float32, float16 or bfloat16, got {x.dtype}.")
        self.check(x)
        highest = 127 if reduce_range and _switches["engine"] != "qnnpack" else 255
        out: Tensor = F._int8_linear_dynamic(wide.detach(), *self.parts, highest, relu)
        return out if wide is x else out.to(x.dtype)

    def conv(
        self, x: Tensor, stride: Any, padding: Any, dilation: Any, scale: float, zero_point: int, relu: bool = False
    ) -> QuantizedTensor:
        """A convolution between codes over as many dimensions as the kernel has."""
        codes = _codes("conv", x)
        data, n = codes._codes, self.weight.ndim - 2
        if data.ndim not in (n + 1, n + 2):
            raise RuntimeError(f"conv{n}d: the input has {n + 1} or {n + 2} dimensions, got shape {tuple(x.shape)}.")
        self.check(x, -n - 1)
        alone = data.ndim == n + 1
        batch = data.unsqueeze(0) if alone else data
        shape = (*batch.shape[:2], *[1] * (3 - n), *batch.shape[2:])
        ones, none = (1,) * (3 - n), (0,) * (3 - n)
        sizes = ((*ones, *self.weight.shape[2:]), (*ones, *stride), (*none, *padding), (*ones, *dilation))
        steps = (codes.q_scale(), codes.q_zero_point(), float(scale), int(zero_point))
        out = F._int8_conv(batch.reshape(shape), *self.parts, *steps, *sizes, self.groups, relu, data.dtype)
        seen = out.reshape((*out.shape[:2], *out.shape[5 - n :]))
        return made_of(seen.squeeze(0) if alone else seen, codes._kind_of, scale, zero_point)

    def __deepcopy__(self, memo: dict[int, Any]) -> PackedWeight:
        from copy import deepcopy

        return PackedWeight(deepcopy(self.weight, memo), deepcopy(self.bias, memo), self.groups)

    def __reduce__(self) -> tuple[Any, ...]:
        return PackedWeight, (self.weight, self.bias, self.groups)

    def __repr__(self) -> str:
        return f"({self.weight!r}, {self.bias!r})"


def _codes(op: str, x: Tensor) -> QuantizedTensor:
    if not isinstance(x, QuantizedTensor) or x._kind_of not in (affine.quint8, affine.qint8):
        raise RuntimeError(
            f"{op}: takes a quantized tensor (quint8, qint8), got {received(x)}; use quantize_per_tensor."
        )
    return x
