"""Observers that follow no bounds: fixed scales, placeholders, recorders, and the predefined choices of all of them."""

from __future__ import annotations

from typing import Any

from ... import nn
from ...core import affine
from ...core import dtype as dt
from ...core.affine import qscheme as Scheme
from ...ops.registry import F
from ...quant.range import EPS
from ...tensor import Tensor
from .histogram import HistogramObserver
from .observer import MinMaxObserver, ObserverBase, PerChannelMinMaxObserver


class FixedQParamsObserver(ObserverBase):
    """Observes nothing: scale and zero point are given."""

    scale: Tensor
    zero_point: Tensor
    dtype: dt.dtype

    def __init__(
        self,
        scale: float,
        zero_point: int,
        dtype: dt.dtype = affine.quint8,
        qscheme: Scheme = affine.per_tensor_affine,
        quant_min: int = 0,
        quant_max: int = 255,
        is_dynamic: bool = False,
    ) -> None:
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(dtype, is_dynamic)
        self.quant_min, self.quant_max, self.qscheme = quant_min, quant_max, qscheme
        self.register_buffer("scale", F.tensor([scale], dtype=dt.float32))
        self.register_buffer("zero_point", F.tensor([zero_point], dtype=dt.int32))

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """Says which type and scheme will be used, and looks at nothing: dynamic layers look for themselves."""

    def __init__(
        self,
        dtype: dt.dtype = dt.float32,
        custom_op_name: str = "",
        compute_dtype: dt.dtype | None = None,
        quant_min: int | None = None,
        quant_max: int | None = None,
        qscheme: Scheme | None = None,
        eps: float | None = None,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype, is_dynamic or compute_dtype is not None)
        self.qscheme = affine.per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max = quant_min, quant_max
        self.eps = EPS if eps is None else eps
        self.custom_op = custom_op_name

    def forward(self, x: Tensor) -> Tensor:
        return x

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"

    def calculate_qparams(self, **kwargs: Any) -> Any:
        raise RuntimeError("PlaceholderObserver has seen nothing, so no scale follows.")


class RecordingObserver(ObserverBase):
    """Keeps copies of all that passes, for debugging."""

    def __init__(self, dtype: dt.dtype = affine.quint8) -> None:
        super().__init__(dtype)
        self.tensor_val: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.tensor_val.append(x.clone())
        return x

    def calculate_qparams(self, **kwargs: Any) -> Any:
        raise RuntimeError("RecordingObserver keeps values; no scale follows.")

    def get_tensor_value(self) -> list[Tensor]:
        """What has passed."""
        return self.tensor_val


class NoopObserver(ObserverBase):
    """Only names a type, such as float16."""

    def __init__(self, dtype: dt.dtype = dt.float16, custom_op_name: str = "") -> None:
        super().__init__(dtype)
        self.custom_op = custom_op_name

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self, **kwargs: Any) -> Any:
        raise RuntimeError("NoopObserver has seen nothing, so no scale follows.")


class ReuseInputObserver(ObserverBase):
    """Stands for the scale of the input, where an operator only moves elements."""

    def __init__(self) -> None:
        super().__init__(affine.quint8)

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self, **kwargs: Any) -> Any:
        raise RuntimeError("ReuseInputObserver has no scale of its own.")


def get_observer_state_dict(mod: nn.Module) -> dict[str, Any]:
    """The part of a model's state that belongs to observers."""
    return {k: v for k, v in mod.state_dict().items() if "observer" in k or "activation_post_process" in k}


def load_observer_state_dict(mod: nn.Module, obs_dict: dict[str, Any]) -> None:
    """Put back what `get_observer_state_dict` gave."""
    own = {k for k in mod.state_dict() if "observer" in k or "activation_post_process" in k}
    missing, unexpected = sorted(own - obs_dict.keys()), sorted(obs_dict.keys() - own)
    if missing or unexpected:
        raise RuntimeError(f"observers do not fit: missing {missing}, unexpected {unexpected}.")
    mod.load_state_dict(obs_dict, strict=False)


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(dtype=affine.qint8, qscheme=affine.per_tensor_symmetric)
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(
    dtype=affine.qint8, qscheme=affine.per_tensor_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=affine.qint8, qscheme=affine.per_channel_symmetric
)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(
    dtype=affine.qint8, qscheme=affine.per_channel_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=affine.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=affine.quint8, qscheme=affine.per_channel_affine_float_qparams, ch_axis=0
)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=affine.quint8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=affine.quint8, quant_min=0, quant_max=255
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver
