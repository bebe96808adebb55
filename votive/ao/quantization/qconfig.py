"""Configurations: which observers the activations and the weight of a module get. Knows no passes over models."""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import nn
from ...core import affine
from ...core import dtype as dt
from . import fake_quantize as fq
from . import other_observers as seen
from .constructors import Constructor, constructs_same
from .fake_quantize import FakeQuantize, FusedMovingAvgObsFakeQuantize
from .histogram import HistogramObserver
from .observer import MinMaxObserver, MovingAverageMinMaxObserver, PerChannelMinMaxObserver

BACKENDS = ("fbgemm", "x86", "qnnpack", "onednn")


class _Pair(NamedTuple):
    activation: Any
    weight: Any


class QConfig(_Pair):
    """Classes, or classes with arguments, that observe the activations and the weight of a module.

    >>> from votive.ao.quantization import QConfig, MinMaxObserver, default_weight_observer
    >>> QConfig(activation=MinMaxObserver, weight=default_weight_observer).activation().dtype
    votive.quint8
    """

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        for made in (activation, weight):
            if isinstance(made, nn.Module):
                raise ValueError(
                    f"QConfig received observer instance, please pass observer class instead: {type(made).__name__}; "
                    "its with_args(x=1) gives it arguments."
                )
        return super().__new__(cls, activation, weight)


class QConfigDynamic(_Pair):
    """The older name of a configuration for dynamic layers."""

    __slots__ = ()

    def __new__(cls, activation: Any = nn.Identity, weight: Any = nn.Identity) -> QConfigDynamic:
        if isinstance(weight, nn.Module):
            raise ValueError("QConfigDynamic received observer instance, please pass observer class instead.")
        return super().__new__(cls, activation, weight)


QConfigAny = QConfig | None

default_qconfig = QConfig(seen.default_observer, seen.default_weight_observer)
default_debug_qconfig = QConfig(seen.default_debug_observer, seen.default_weight_observer)
default_per_channel_qconfig = QConfig(seen.default_observer, seen.default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(seen.default_dynamic_quant_observer, seen.default_weight_observer)
float16_dynamic_qconfig = QConfig(
    seen.PlaceholderObserver.with_args(dtype=dt.float16, is_dynamic=True),
    seen.PlaceholderObserver.with_args(dtype=dt.float16),
)
float16_static_qconfig = QConfig(
    seen.PlaceholderObserver.with_args(dtype=dt.float16), seen.PlaceholderObserver.with_args(dtype=dt.float16)
)
per_channel_dynamic_qconfig = QConfig(seen.default_dynamic_quant_observer, seen.default_per_channel_weight_observer)
float_qparams_weight_only_qconfig = QConfig(seen.default_placeholder_observer, seen.default_float_qparams_observer)
default_quint8_weight_qconfig = QConfig(HistogramObserver, MinMaxObserver)
default_qat_qconfig = QConfig(fq.default_fake_quant, fq.default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(fq.default_dynamic_fake_quant, fq.default_weight_fake_quant)
default_weight_only_qconfig = QConfig(nn.Identity, fq.default_weight_fake_quant)
default_activation_only_qconfig = QConfig(fq.default_fake_quant, nn.Identity)
default_qat_qconfig_v2 = QConfig(fq.default_fused_act_fake_quant, fq.default_fused_wt_fake_quant)
default_reuse_input_qconfig = QConfig(seen.default_reuse_input_observer, seen.NoopObserver)
_SIGNED_HISTOGRAM = HistogramObserver.with_args(dtype=affine.qint8, reduce_range=False, eps=2**-12)
default_symmetric_qnnpack_qconfig = QConfig(_SIGNED_HISTOGRAM, seen.weight_observer_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    _SIGNED_HISTOGRAM, seen.per_channel_weight_observer_range_neg_127_to_127
)
_SIGNED_FAKE = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=affine.qint8,
    reduce_range=False,
    eps=2**-12,
)
default_symmetric_qnnpack_qat_qconfig = QConfig(_SIGNED_FAKE, fq.fused_wt_fake_quant_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    _SIGNED_FAKE, fq.fused_per_channel_wt_fake_quant_range_neg_127_to_127
)
default_embedding_qat_qconfig = QConfig(seen.NoopObserver.with_args(dtype=dt.float32), fq.default_embedding_fake_quant)


def _backend(name: str) -> str:
    if name not in BACKENDS:
        raise AssertionError(f"backend: {name} not supported. backend must be one of {list(BACKENDS)}")
    return name


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """The configuration for static layers that torch gives for a backend.

    Scales depend on it; products are votive's own, whichever is named.
    """
    kind = _backend(backend)
    if version != 0:
        raise AssertionError(f"get_default_qconfig: version must be 0, got {version}.")
    weight = seen.default_weight_observer if kind == "qnnpack" else seen.default_per_channel_weight_observer
    return QConfig(HistogramObserver.with_args(reduce_range=kind in ("fbgemm", "x86")), weight)


def get_default_qat_qconfig(backend: str = "x86", version: int | None = 1) -> QConfig:
    """The configuration for training with rounding that torch gives for a backend."""
    kind = _backend(backend)
    if version not in (0, 1, None):
        raise AssertionError(f"get_default_qat_qconfig: version must be 0 or 1, got {version}.")
    fused = version != 0
    made: Any = FusedMovingAvgObsFakeQuantize if fused else FakeQuantize
    how: dict[str, Any] = {"observer": MovingAverageMinMaxObserver, "quant_min": 0, "quant_max": 255}
    if kind != "onednn":
        how["reduce_range"] = kind != "qnnpack"
    if kind == "qnnpack":
        weight = fq.default_fused_wt_fake_quant if fused else fq.default_weight_fake_quant
    else:
        weight = fq.default_fused_per_channel_wt_fake_quant if fused else fq.default_per_channel_weight_fake_quant
    return QConfig(made.with_args(**how), weight)


def qconfig_equals(q1: Any, q2: Any) -> bool:
    """Whether two configurations make the same observers."""
    if q1 is None or q2 is None:
        return q1 is q2
    return constructs_same(q1.activation, q2.activation) and constructs_same(q1.weight, q2.weight)


def on_device_of(qconfig: Any, module: nn.Module) -> Any:
    """The configuration, with observers that are made on the device of a module."""
    if qconfig is None:
        return None
    devices = {t.device for t in (*module.parameters(), *module.buffers())}
    if len(devices) != 1 or next(iter(devices)).type == "cpu":
        return qconfig
    where = {"device": next(iter(devices))}

    def placed(made: Any) -> Any:
        base: Any = made.p.func if isinstance(made, Constructor) else made
        takes = issubclass(base, (MinMaxObserver, PerChannelMinMaxObserver, HistogramObserver, FakeQuantize))
        return made.with_callable_args(factory_kwargs=lambda: where) if takes else made

    return QConfig(placed(qconfig.activation), placed(qconfig.weight))


def is_memoryless(qconfig: Any) -> bool:
    """Whether the observer of activations follows each input at once: then it stands in front of the module."""
    made = qconfig.activation()
    inner = getattr(made, "activation_post_process", made)
    return getattr(inner, "averaging_constant", None) == 1
