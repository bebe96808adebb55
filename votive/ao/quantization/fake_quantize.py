"""Modules that observe and round numbers while a model trains, so that it learns with the error of rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import nn
from ...core import affine
from ...core import dtype as dt
from ...ops.registry import F
from ...quant import fake
from ...tensor import Tensor
from .constructors import Constructible, Constructor
from .histogram import HistogramObserver
from .observer import (
    PER_CHANNEL,
    SYMMETRIC,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    code_range,
)
from .other_observers import (
    FixedQParamsObserver,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)

if TYPE_CHECKING:
    from ...nn.module import Module


class FakeQuantizeBase(Constructible, nn.Module):
    """What every fake quantization is: two switches, for observing and for rounding."""

    fake_quant_enabled: Tensor
    observer_enabled: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", F.tensor([1], dtype=dt.uint8))
        self.register_buffer("observer_enabled", F.tensor([1], dtype=dt.uint8))

    def forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: a fake quantization has to say how it rounds.")

    def calculate_qparams(self, **kwargs: Any) -> Any:
        """The scale and zero point that follow from what was seen."""
        raise NotImplementedError(f"{type(self).__name__}: a fake quantization has to say which scale follows.")

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Round from now on, or not."""
        self.fake_quant_enabled.fill_(int(enabled))

    def disable_fake_quant(self) -> None:
        """Let numbers pass as they are."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Follow the bounds of inputs from now on, or not."""
        self.observer_enabled.fill_(int(enabled))

    def disable_observer(self) -> None:
        """Keep the scale as it is."""
        self.enable_observer(False)


class FakeQuantize(FakeQuantizeBase):
    """Rounds numbers to the codes that an observer's scale gives: `(clamp(round(x/s + z)) - z) * s`.

    >>> fq = votive.ao.quantization.FakeQuantize(quant_min=0, quant_max=255)
    >>> fq(votive.tensor([-1.0, 0.3, 1.0]))
    tensor([-0.9961,  0.2980,  0.9961])
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int | None = None,
        quant_max: int | None = None,
        is_dynamic: bool = False,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError(f"quant_min must not be above quant_max, got {quant_min} and {quant_max}.")
            dtype = observer_kwargs.get("dtype", affine.quint8)
            if isinstance(observer, Constructor):
                dtype = observer.p.keywords.get("dtype", dtype)
            low, high = code_range(dtype)
            if quant_min < low or quant_max > high:
                raise AssertionError(f"{quant_min} to {quant_max} are out of bound for {dtype!r}.")
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        # Observers with a scale of their own are not told.
        if is_dynamic:
            observer_kwargs["is_dynamic"] = True
        made: Any = observer(**observer_kwargs)
        self.activation_post_process = made
        self.quant_min: int = made.quant_min
        self.quant_max: int = made.quant_max
        self.is_dynamic: bool = made.is_dynamic
        self.dtype: dt.dtype = made.dtype
        self.qscheme = made.qscheme
        self.ch_axis: int = getattr(made, "ch_axis", -1)
        self.is_per_channel = self.qscheme in PER_CHANNEL
        floats = self.qscheme is affine.per_channel_affine_float_qparams
        self.register_buffer("scale", F.tensor([1.0], dtype=dt.float32))
        self.register_buffer("zero_point", F.tensor([0], dtype=dt.float32 if floats else dt.int32))

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        found: tuple[Tensor, Tensor] = self.activation_post_process.calculate_qparams()
        return found

    def forward(self, X: Tensor) -> Tensor:
        if int(self.observer_enabled[0]):
            self.activation_post_process(X.detach())
            for kept, value in zip((self.scale, self.zero_point), self.calculate_qparams()):
                if kept.shape != value.shape:
                    kept.resize_(value.shape)
                kept.copy_(value)
        if not int(self.fake_quant_enabled[0]):
            return X
        bounds = (self.quant_min, self.quant_max)
        if self.is_per_channel:
            return fake.fake_quantize_per_channel_affine(X, self.scale, self.zero_point, self.ch_axis, *bounds)
        return fake.fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, *bounds)

    def extra_repr(self) -> str:
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"quant_min={self.quant_min}, quant_max={self.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
            f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name in ("scale", "zero_point"):
            value = state_dict.get(prefix + name)
            if isinstance(value, Tensor):
                getattr(self, name).resize_(value.shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds with a scale and zero point that are given."""

    def __init__(self, observer: Module) -> None:
        super().__init__(observer=observer)
        if type(self.activation_post_process) is not FixedQParamsObserver:
            raise AssertionError(f"{type(self).__name__}'s observer must be a FixedQParamsObserver")
        self._observer_ctr = observer
        self.scale = self.activation_post_process.scale
        self.zero_point = self.activation_post_process.zero_point

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        return self.scale, self.zero_point


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """The same in one function, for observers whose bounds follow by a part of the way."""

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int = 0,
        quant_max: int = 255,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        followers = (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)
        if not isinstance(self.activation_post_process, followers):
            raise AssertionError("Fused observer+fake_quant module only works with MovingAverageMinMaxObserver")
        self.register_buffer("fake_quant_enabled", F.tensor([1], dtype=dt.int64))
        self.register_buffer("observer_enabled", F.tensor([1], dtype=dt.int64))
        self.is_symmetric_quant = self.qscheme in SYMMETRIC

    def forward(self, X: Tensor) -> Tensor:
        seen = self.activation_post_process
        return fake.fused_moving_avg_obs_fake_quant(
            X,
            self.observer_enabled,
            self.fake_quant_enabled,
            seen.min_val,
            seen.max_val,
            self.scale,
            self.zero_point,
            seen.averaging_constant,
            seen.quant_min,
            seen.quant_max,
            self.ch_axis,
            self.is_per_channel,
            self.is_symmetric_quant,
        )


def _each(mod: nn.Module, call: str) -> None:
    if isinstance(mod, FakeQuantizeBase):
        getattr(mod, call)()


def disable_fake_quant(mod: nn.Module) -> None:
    """For `model.apply`: stop rounding."""
    _each(mod, "disable_fake_quant")


def enable_fake_quant(mod: nn.Module) -> None:
    """For `model.apply`: round."""
    _each(mod, "enable_fake_quant")


def disable_observer(mod: nn.Module) -> None:
    """For `model.apply`: keep scales as they are."""
    _each(mod, "disable_observer")


def enable_observer(mod: nn.Module) -> None:
    """For `model.apply`: let scales follow."""
    _each(mod, "enable_observer")


_SIGNED = {"quant_min": -128, "quant_max": 127, "dtype": affine.qint8}
_UNSIGNED = {"quant_min": 0, "quant_max": 255, "dtype": affine.quint8}
_NARROW = {"quant_min": -127, "quant_max": 127, "dtype": affine.qint8, "eps": 2**-12}
_ONE, _SOME = affine.per_tensor_symmetric, affine.per_channel_symmetric
_Follow, _FollowSome = MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver

default_fake_quant = FakeQuantize.with_args(
    observer=_Follow, **_UNSIGNED, qscheme=affine.per_tensor_affine, reduce_range=True
)
default_weight_fake_quant = FakeQuantize.with_args(observer=_Follow, **_SIGNED, qscheme=_ONE, reduce_range=False)
default_dynamic_fake_quant = FakeQuantize.with_args(
    observer=_Follow, **_UNSIGNED, is_dynamic=True, averaging_constant=1
)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=_FollowSome, **_SIGNED, qscheme=_SOME, reduce_range=False, ch_axis=0
)
default_embedding_fake_quant = FakeQuantize.with_args(
    observer=_FollowSome, qscheme=affine.per_channel_affine_float_qparams, **_UNSIGNED, ch_axis=0, averaging_constant=1
)
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=HistogramObserver, **_UNSIGNED, qscheme=affine.per_tensor_affine, reduce_range=True
)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(observer=_Follow, **_UNSIGNED)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(observer=_Follow, **_SIGNED, qscheme=_ONE)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=_FollowSome, **_SIGNED, qscheme=_SOME
)
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=_Follow, **_NARROW, qscheme=_ONE
)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=_FollowSome, **_NARROW, qscheme=_SOME
)
