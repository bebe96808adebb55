"""The linear layer between codes of 8 bits, and where its packed weight is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .... import nn
from ....core import affine
from ....core.affine import quantized_dtype
from ....nn.layers.linear import NonDynamicallyQuantizableLinear
from ....ops.registry import F
from ....surface.quantized_functions import empty_affine_quantized
from ....surface.quantized_tensor import QuantizedTensor
from ....tensor import Tensor
from ...nn.intrinsic import fused as nni
from .observed import check_source, result_steps, weight_of
from .packed import PackedWeight

if TYPE_CHECKING:
    from ....nn.module import Module


class LinearPackedParams(nn.Module):
    """Weight and bias of a quantized linear layer; a state holds them as a pair."""

    _version = 3

    def __init__(self, dtype: Any = affine.qint8) -> None:
        super().__init__()
        if dtype is not affine.qint8:
            raise RuntimeError(f"weights of linear layers are qint8 here, got {dtype!r}.")
        self.dtype: quantized_dtype = dtype
        self._packed_params = PackedWeight(empty_affine_quantized((1, 1), dtype=dtype), None)

    def set_weight_bias(self, weight: Tensor, bias: Tensor | None) -> None:
        """Pack a weight."""
        self._packed_params = PackedWeight(weight, bias)

    def _weight_bias(self) -> tuple[QuantizedTensor, Tensor | None]:
        return self._packed_params.weight, self._packed_params.bias

    def forward(self, x: Any) -> Any:
        return x

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        taken = dict(state_dict)
        dtype, pair = (taken.pop(prefix + k, None) for k in ("dtype", "_packed_params"))
        missing = rest[2]
        if dtype is None:
            missing.append(prefix + "dtype")
        if pair is None:
            missing.append(prefix + "_packed_params")
        else:
            self.set_weight_bias(*pair)
        super()._load_from_state_dict(taken, prefix, *rest)

    def __repr__(self) -> str:
        return repr(self._weight_bias())


class QuantizedModule(nn.Module):
    """Quantized modules that keep a weight: a scale and a zero point of results, and the weight's accessors."""

    scale: float
    zero_point: int

    def weight(self) -> QuantizedTensor:
        """The weight as codes."""
        return self._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """The bias, as numbers."""
        return self._weight_bias()[1]

    def _weight_bias(self) -> tuple[QuantizedTensor, Tensor | None]:
        raise NotImplementedError(type(self).__name__)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = F.tensor(self.scale)
        destination[prefix + "zero_point"] = F.tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        taken = dict(state_dict)
        for name, kind in (("scale", float), ("zero_point", int)):
            value = taken.pop(prefix + name, None)
            if value is None:
                rest[2].append(prefix + name)
            else:
                setattr(self, name, kind(value))
        super()._load_from_state_dict(taken, prefix, *rest)


class Linear(QuantizedModule):
    """A linear layer from codes to codes.

    >>> layer = votive.ao.nn.quantized.Linear(4, 2)
    >>> layer(votive.quantize_per_tensor(votive.ones(3, 4), 0.5, 0, votive.quint8)).shape
    votive.Size([3, 2])
    """

    _version = 3
    _FLOAT_MODULE: tuple[type, ...] = (nn.Linear, NonDynamicallyQuantizableLinear)
    _RELU = False

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = affine.qint8) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self._packed_params = LinearPackedParams(dtype)
        empty = empty_affine_quantized((out_features, in_features), dtype=dtype)
        self._packed_params.set_weight_bias(empty, F.zeros(out_features) if bias_ else None)
        self.scale, self.zero_point = 1.0, 0

    def _get_name(self) -> str:
        return "QuantizedLinear"

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, "
            f"zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def forward(self, x: Tensor) -> Tensor:
        return self._packed_params._packed_params.linear(x, self.scale, self.zero_point, self._RELU)

    def _weight_bias(self) -> tuple[QuantizedTensor, Tensor | None]:
        return self._packed_params._weight_bias()

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Pack another weight."""
        self._packed_params.set_weight_bias(w, b)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer that an observed or trained one becomes."""
        if not hasattr(mod, "weight_fake_quant"):
            check_source(mod, cls, cls._FLOAT_MODULE)
        scale, zero = result_steps(mod)
        if hasattr(mod, "folded"):
            mod = mod.folded()
        elif isinstance(mod, nni.LinearReLU):
            mod[0].qconfig = mod.qconfig
            mod = mod[0]
        made = cls(mod.in_features, mod.out_features)
        made.set_weight_bias(weight_of(mod, observed=use_precomputed_fake_quant), mod.bias)
        made.scale, made.zero_point = scale, zero
        return made
