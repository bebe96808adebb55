"""Tensors of quantized types: codes with a scale and a zero point, or some of each along one dimension.

They can be viewed, indexed, copied and saved, pass through functions that only choose among values, and become numbers
when asked. Whatever else raises and says to dequantize.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..core import affine
from ..core import dtype as dt
from ..core.affine import qscheme, quantized_dtype
from ..core.errors import received
from ..dispatch.wrapped import OwnSpec
from ..ops.operator import Composite, Op, Operator
from ..ops.registry import F
from ..tensor import Tensor
from . import printing
from .wrapped import Rule, Wrapped


class QuantizedTensor(Wrapped):
    """A tensor whose dtype is `qint8`, `quint8` or `qint32`."""

    _advice = "use .dequantize()."
    _kind = "quantized"
    _precedence = 1
    _traced = ("_codes",)
    _rules: ClassVar[dict[str, Rule]] = {}
    _codes: Tensor
    _kind_of: quantized_dtype
    # One scale and zero, or those of the places along `_axis`.
    _scale: float | Tensor
    _zero: int | Tensor
    _axis: int | None
    is_quantized = True

    def _parts(self) -> tuple[Tensor, ...]:
        return (self._codes,)

    @classmethod
    def _describe(cls, args: tuple[Any, ...]) -> str:
        return next((a._kind_of.name for a in args if isinstance(a, QuantizedTensor)), "quantized")

    def qscheme(self) -> qscheme:
        """How the codes stand for numbers.

        >>> votive.quantize_per_tensor(votive.ones(2), 0.5, 3, votive.quint8).qscheme()
        votive.per_tensor_affine
        """
        if self._axis is None:
            return affine.per_tensor_affine
        floats = isinstance(self._zero, Tensor) and self._zero.dtype.is_floating_point
        return affine.per_channel_affine_float_qparams if floats else affine.per_channel_affine

    def int_repr(self) -> Tensor:
        """The codes, as a tensor of their own.

        >>> votive.quantize_per_tensor(votive.ones(2), 0.5, 3, votive.quint8).int_repr()
        tensor([5, 5], dtype=votive.uint8)
        """
        out: Tensor = self._codes.clone()
        return out

    def q_scale(self) -> float:
        """The scale; an error where there is one for each place of a dimension.

        >>> votive.quantize_per_tensor(votive.ones(2), 0.5, 3, votive.quint8).q_scale()
        0.5
        """
        if not isinstance(self._scale, float):
            raise RuntimeError("q_scale: this tensor has a scale per channel; use q_per_channel_scales().")
        return self._scale

    def q_zero_point(self) -> int:
        """The code of zero.

        >>> votive.quantize_per_tensor(votive.ones(2), 0.5, 3, votive.quint8).q_zero_point()
        3
        """
        if not isinstance(self._zero, int):
            raise RuntimeError("q_zero_point: this tensor has one per channel; use q_per_channel_zero_points().")
        return self._zero

    def q_per_channel_scales(self) -> Tensor:
        """The scales along `q_per_channel_axis()`."""
        return self._channels(self._scale)

    def q_per_channel_zero_points(self) -> Tensor:
        """The codes of zero along `q_per_channel_axis()`."""
        return self._channels(self._zero)

    def q_per_channel_axis(self) -> int:
        """The dimension whose places have scales of their own."""
        self._channels(self._scale)
        return self._axis or 0

    def _channels(self, value: object) -> Tensor:
        if not isinstance(value, Tensor):
            raise RuntimeError("q_per_channel_*: this tensor has one scale and zero point; use q_scale().")
        return value

    def dequantize(self) -> Tensor:
        """The numbers that the codes stand for, in float32.

        >>> votive.quantize_per_tensor(votive.tensor([0.4, 9.0]), 0.5, 3, votive.quint8).dequantize()
        tensor([0.5000, 9.0000])
        """
        # Codes of 32 bits less their zero are exact as integers, not as float32.
        codes = self._codes.to(dt.int64 if self._kind_of is affine.qint32 else dt.float32)
        if self._axis is None:
            out: Tensor = (codes - int(self._zero)).to(dt.float32) * float(_single(float(self._scale)))
            return out
        scale, zero = (_along(v, self._axis, self.ndim) for v in (self._scale, self._zero))
        narrow = zero if zero.dtype.is_floating_point else zero.to(codes.dtype)
        out = (codes - narrow).to(dt.float32) * scale.to(dt.float32)
        return out

    @classmethod
    def _call(cls, name: str, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # What only moves elements, as its declaration says, is done to the codes.
        full = f"{op.namespaces[0]}.{name}" if isinstance(op, Composite) and op.namespaces else name
        moves = op.returns_view or op.indexes or (isinstance(op, Op) and op.moves == (0,))
        if moves and not {name, full} & cls._rules.keys():
            return quantized_rules.on_codes(op.name, args[0], args[1:], kwargs)
        return super()._call(name, op, args, kwargs)

    @property
    def nbytes(self) -> int:
        return self._codes.nbytes

    def detach(self) -> Any:
        return like(self, self._codes)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        if requires_grad:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        return self

    def data_ptr(self) -> int:
        return self._codes.data_ptr()

    def stride(self, dim: int | None = None) -> Any:
        return self._codes.stride() if dim is None else self._codes.stride(dim)

    def storage_offset(self) -> int:
        return self._codes.storage_offset()

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return self._codes.is_contiguous() if memory_format is None else self._codes.is_contiguous(memory_format)

    def is_shared(self) -> bool:
        return self._codes.is_shared()

    def share_memory_(self) -> Any:
        self._codes.share_memory_()
        return self

    def item(self) -> Any:
        return self.dequantize().item()

    def tolist(self) -> Any:
        return self.dequantize().tolist()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return made_of, (self._codes, self._kind_of, self._scale, self._zero, self._axis)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = like(self, self._codes.clone())
        return memo[id(self)]

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        suffixes = [f"size={_tuple(self.shape)}", f"dtype={self._kind_of!r}", f"quantization_scheme={self.qscheme()!r}"]
        if self._axis is None:
            suffixes += [f"scale={self._scale!r}", f"zero_point={self._zero}"]
        else:
            suffixes += [f"scale={self._scale!r}", f"zero_point={self._zero!r}", f"axis={self._axis}"]
        if self.device.type != "cpu":
            suffixes.insert(0, f"device='{self.device}'")
        numbers = None if self.device.type == "meta" else self.dequantize().cpu().numpy()
        return printing.format_tensor(numbers, suffixes=suffixes)


def _tuple(shape: Any) -> str:
    return str(tuple(int(n) for n in shape))


def _single(value: float) -> float:
    """A number as float32 has it."""
    import numpy as np

    return float(np.float32(value))


def _along(value: object, axis: int, ndim: int) -> Tensor:
    """Numbers of channels, so that they meet their dimension."""
    out: Tensor = F.reshape(value, tuple(-1 if d == axis else 1 for d in range(ndim)))
    return out


def made_of(
    codes: Tensor, kind: quantized_dtype, scale: float | Tensor, zero_point: int | Tensor, axis: int | None = None
) -> QuantizedTensor:
    """A quantized tensor over codes, without copying them."""
    if not isinstance(kind, quantized_dtype) or not isinstance(codes, Tensor) or codes.dtype is not kind.codes:
        raise TypeError(f"a quantized tensor is made of codes of its type, got {kind!r} and {received(codes)}.")
    if axis is None:
        scale, zero_point = float(scale), int(zero_point)
    elif not 0 <= axis < codes.ndim:
        raise RuntimeError(f"Channel axis out of range in per channel affine quantization: {axis} of {codes.ndim}.")
    else:
        for value in (scale, zero_point):
            if not isinstance(value, Tensor) or value.ndim != 1 or value.shape[0] != codes.shape[axis]:
                raise RuntimeError(
                    f"length of scales and zero points must equal to channel, expected {codes.shape[axis]}, "
                    f"got {received(value)}."
                )
    out: QuantizedTensor = object.__new__(QuantizedTensor)
    out._codes, out._kind_of, out._scale, out._zero, out._axis = codes, kind, scale, zero_point, axis
    out._begin(tuple(codes.shape), kind, codes.device)
    out._spec = OwnSpec(tuple(codes.shape), kind, codes.device, tuple(codes.stride()))
    return out


def like(x: QuantizedTensor, codes: Tensor, axis: int | None = None) -> QuantizedTensor:
    """A tensor whose codes mean what those of another do; its channels may lie along another dimension."""
    return made_of(codes, x._kind_of, x._scale, x._zero, x._axis if axis is None else axis)


from . import quantized_functions, quantized_rules  # noqa: E402, F401 - declare functions, and fill the table of rules
