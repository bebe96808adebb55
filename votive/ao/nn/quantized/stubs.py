"""Numbers to codes, codes to numbers, and functions of two tensors, as modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .... import nn
from ....core import dtype as dt
from ....core.affine import quantized_dtype
from ....ops.registry import F
from ....surface.quantized_functions import quantize_per_tensor
from ....tensor import Tensor
from .observed import result_steps


class Quantize(nn.Module):
    """Numbers become codes of a given scale.

    >>> votive.ao.nn.quantized.Quantize(1.0, 2, votive.qint8)(votive.tensor([1.0, -1.0])).int_repr()
    tensor([3, 1], dtype=votive.int8)
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(self, scale: Any, zero_point: Any, dtype: quantized_dtype, factory_kwargs: Any = None) -> None:
        super().__init__()
        where = {k: v for k, v in dict(factory_kwargs or {}).items() if k == "device"}
        self.register_buffer("scale", F.tensor([float(scale)], **where))
        self.register_buffer("zero_point", F.tensor([int(zero_point)], dtype=dt.int64, **where))
        self.dtype = dtype

    def forward(self, X: Tensor) -> Tensor:
        out: Tensor = quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype)
        return out

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Quantize:
        """What an observed `QuantStub` becomes."""
        return Quantize(*result_steps(mod), mod.activation_post_process.dtype)

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(nn.Module):
    """Codes become numbers."""

    def forward(self, Xq: Tensor) -> Tensor:
        from ....surface.quantized_functions import dequantize

        out: Tensor = dequantize(Xq)
        return out

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> DeQuantize:
        """What a `DeQuantStub` becomes."""
        return DeQuantize()


def _numbers(x: Any) -> Any:
    return x.dequantize() if isinstance(x.dtype, quantized_dtype) else x


class FloatFunctional(nn.Module):
    """Functions of two tensors as methods, whose results are observed.

    >>> f = votive.ao.nn.quantized.FloatFunctional()
    >>> f.add_relu(votive.tensor([1.0, -3.0]), votive.tensor([1.0, 1.0]))
    tensor([2., 0.])
    """

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process: Any = nn.Identity()

    def forward(self, x: Any) -> Any:
        raise RuntimeError(f"{type(self).__name__} is not called; use one of its methods, such as add().")

    def _seen(self, x: Tensor) -> Tensor:
        out: Tensor = self.activation_post_process(x)
        return out

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """`x + y`."""
        return self._seen(F.add(x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """`x + y` for a number; not observed, since the scale follows."""
        out: Tensor = F.add(x, y)
        return out

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """`x * y`."""
        return self._seen(F.mul(x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """`x * y` for a number; not observed, since the scale follows."""
        out: Tensor = F.mul(x, y)
        return out

    def cat(self, x: Sequence[Tensor], dim: int = 0) -> Tensor:
        """Tensors joined along a dimension."""
        return self._seen(F.cat(list(x), dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """`relu(x + y)`."""
        return self._seen(F.relu(F.add(x, y)))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """`x @ y`."""
        return self._seen(F.matmul(x, y))


class FXFloatFunctional(FloatFunctional):
    """The same without an observer."""

    def __init__(self) -> None:
        nn.Module.__init__(self)

    def _seen(self, x: Tensor) -> Tensor:
        return x


class QFunctional(nn.Module):
    """Functions of two quantized tensors as methods, with results of a given scale."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.zero_point = 1.0, 0
        self.activation_post_process: Any = nn.Identity()

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = F.tensor(self.scale)
        destination[prefix + "zero_point"] = F.tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        taken = dict(state_dict)
        self.scale = float(taken.pop(prefix + "scale", self.scale))
        self.zero_point = int(taken.pop(prefix + "zero_point", self.zero_point))
        super()._load_from_state_dict(taken, prefix, *rest)

    def _get_name(self) -> str:
        return "QFunctional"

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def forward(self, x: Any) -> Any:
        raise RuntimeError("Functional is not intended to use the forward. Please use the underlying operation")

    def _rounded(self, numbers: Tensor, like: Tensor) -> Tensor:
        kind = like.dtype
        if not isinstance(kind, quantized_dtype):
            raise RuntimeError(f"QFunctional takes quantized tensors, got {kind}; use quantize_per_tensor.")
        made: Tensor = quantize_per_tensor(numbers, self.scale, self.zero_point, kind)
        out: Tensor = self.activation_post_process(made)
        return out

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """`x + y`."""
        return self._rounded(F.add(_numbers(x), _numbers(y)), x)

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """`x + y` for a number: the zero point of `x` moves, and where that leaves the range the steps change."""
        return _with_number(x, _numbers(x) + y, y, multiplied=False)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """`x * y`."""
        return self._rounded(F.mul(_numbers(x), _numbers(y)), x)

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """`x * y` for a number, with the same codes and other steps."""
        return _with_number(x, _numbers(x) * y, y, multiplied=True)

    def cat(self, x: Sequence[Tensor], dim: int = 0) -> Tensor:
        """Tensors joined along a dimension."""
        return self._rounded(F.cat([_numbers(v) for v in x], dim), x[0])

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """`relu(x + y)`."""
        return self._rounded(F.relu(F.add(_numbers(x), _numbers(y))), x)

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """`x @ y`, computed with the numbers that codes stand for."""
        return self._rounded(F.matmul(_numbers(x), _numbers(y)), x)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> QFunctional:
        """What an observed `FloatFunctional` becomes."""
        if type(mod) is not FloatFunctional:
            raise AssertionError("QFunctional.from_float expects an instance of FloatFunctional")
        made = cls()
        made.scale, made.zero_point = result_steps(mod)
        return made


def _with_number(x: Any, numbers: Tensor, y: float, *, multiplied: bool) -> Tensor:
    """A sum or product with a number: steps follow from those of `x`, so nothing is observed."""
    kind, scale, zero = x._kind_of, x.q_scale(), x.q_zero_point()
    low, high = (scale * (end - zero) for end in (kind.low, kind.high))
    if multiplied:
        ends = sorted((low * y, high * y))
    else:
        moved = zero - round(y / scale)
        if kind.low <= moved <= kind.high:
            out: Tensor = quantize_per_tensor(numbers, scale, moved, kind)
            return out
        ends = [low + y, high + y]
    low, high = min(ends[0], 0.0), max(ends[1], 0.0)
    step = (high - low) / (kind.high - kind.low) or 1.0
    start = min(max(kind.low - round(low / step), kind.low), kind.high)
    out = quantize_per_tensor(numbers, step, start, kind)
    return out


__all__ = ["DeQuantize", "FXFloatFunctional", "FloatFunctional", "QFunctional", "Quantize"]
