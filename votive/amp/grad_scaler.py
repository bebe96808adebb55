"""GradScaler: keeps small float16 gradients from vanishing. Knows optimizers, no policies.

The scale, the count of good steps and what was found in gradients stay on the device. An optimizer
that takes them there (`fused=True`) never lets the host wait; for any other the host must be told
whether to step.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

from ..autograd import no_grad
from ..core import dtype as dt
from ..core.device import device as Device
from ..cuda import is_available
from ..ops.registry import F
from ..optim import Optimizer
from ..tensor import Tensor


class OptState(Enum):
    """How far an optimizer has come since the last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class _Progress:
    """What is known of one optimizer in this iteration."""

    def __init__(self) -> None:
        self.stage = OptState.READY
        self.found_inf: dict[Any, Tensor] = {}


class GradScaler:
    """Scales the loss up before backward and the gradients down before the step.

    Steps whose gradients hold inf or NaN are skipped, and the scale shrinks by `backoff_factor`;
    after `growth_interval` good steps in a row it grows by `growth_factor`.

    >>> w = votive.ones(2, requires_grad=True)
    >>> opt = votive.optim.SGD([w], lr=0.5)
    >>> scaler = votive.amp.GradScaler("cpu")
    >>> scaler.scale((w * w).sum()).backward()
    >>> scaler.step(opt)
    >>> scaler.update()
    >>> w, scaler.get_scale()
    (tensor([0., 0.], requires_grad=True), 65536.0)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        if enabled and device == "cuda" and not is_available():
            warnings.warn("GradScaler is enabled, but CUDA is not available. Disabling.", stacklevel=2)
            enabled = False
        self._enabled = enabled
        if not enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._init_growth_tracker = 0
        # A tensor: a 0-d float16 loss times a float32 tensor is float32, times a number it is inf.
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._progress: defaultdict[int, _Progress] = defaultdict(_Progress)

    def _begin(self, device: Device) -> None:
        self._scale = F.full((), self._init_scale, dtype=dt.float32, device=device)
        self._growth_tracker = F.full((), self._init_growth_tracker, dtype=dt.int32, device=device)

    def _known_scale(self, what: str) -> tuple[Tensor, Tensor]:
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError(
                f"Attempted {what} but _scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration."
            )
        return self._scale, self._growth_tracker

    def scale(self, outputs: Any) -> Any:
        """The outputs, a tensor or tensors in lists and tuples, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._begin(outputs.device)
            return outputs * _on(self._scale, outputs.device)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients by the scale now, to clip or look at them before the step."""
        if not self._enabled:
            return
        scale, _ = self._known_scale("unscale_")
        progress = self._progress[id(optimizer)]
        if progress.stage is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if progress.stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        # The reciprocal of a float32 scale that is no power of two is rounded once, from float64.
        inverse = F.float(F.reciprocal(F.double(scale)))
        progress.found_inf = _unscale(optimizer, inverse, allow_half=False)
        progress.stage = OptState.UNSCALED

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Unscale unless that was done, and step unless a gradient is inf or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        scale, _ = self._known_scale("step")
        progress = self._progress[id(optimizer)]
        if progress.stage is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._leave(optimizer, scale, progress, *args, **kwargs)
        if progress.stage is OptState.READY:
            self.unscale_(optimizer)
        if not progress.found_inf:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        progress.stage = OptState.STEPPED
        if any(found.item() for found in progress.found_inf.values()):
            return None
        return optimizer.step(*args, **kwargs)

    def _leave(self, optimizer: Any, scale: Tensor, progress: _Progress, *args: object, **kwargs: object) -> Any:
        """Step with an optimizer that takes the scale and what was found on the device."""
        before = getattr(optimizer, "grad_scale", None)  # of a user who scales as well
        if progress.stage is OptState.READY:
            one = F.full((), 1.0, dtype=dt.float32, device=scale.device)
            progress.found_inf = _unscale(optimizer, one, allow_half=True)
            optimizer.grad_scale = scale if before is None else scale * before
        if not progress.found_inf:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        optimizer.found_inf = _together(list(progress.found_inf.values()), scale.device)
        try:
            result = optimizer.step(*args, **kwargs)
        finally:
            progress.stage = OptState.STEPPED
            for name in ("grad_scale", "found_inf"):
                optimizer.__dict__.pop(name, None)
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Grow or shrink the scale after this iteration's steps, or set it."""
        if not self._enabled:
            return
        scale, tracker = self._known_scale("update")
        if new_scale is not None:
            self._set_scale(scale, new_scale)
        else:
            checks = [f for p in self._progress.values() for f in p.found_inf.values()]
            if not checks:
                raise AssertionError("No inf checks were recorded prior to update.")
            F._amp_update_scale_(
                scale,
                tracker,
                _together(checks, scale.device),
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        self._progress = defaultdict(_Progress)

    def _set_scale(self, scale: Tensor, value: Any) -> None:
        if isinstance(value, Tensor) and (
            value.device.type != self._device or value.numel() != 1 or value.requires_grad
        ):
            raise AssertionError(
                "new_scale should be a float or a 1-element float tensor on the scaler's device "
                "with requires_grad=False."
            )
        F.copy_(scale, value)

    def get_scale(self) -> float:
        """The scale as a Python number; 1.0 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else int(tracker.item())

    def get_growth_factor(self) -> float:
        """By how much the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set by how much the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """By how much the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set by how much the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many good steps the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many good steps the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether anything is scaled at all."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Scale, factors and the count of good steps; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            F.fill_(self._scale, state_dict["scale"])
        if self._growth_tracker is not None:
            F.fill_(self._growth_tracker, state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._progress:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, "
                    "or at the end after scaler.update()."
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state


def _on(t: Tensor | None, device: Device) -> Tensor:
    """A tensor, or a copy of it on another device."""
    assert t is not None
    return t if t.device == device else F.to(t, device, non_blocking=True)


def _together(found: list[Tensor], device: Device) -> Tensor:
    """What was found on several devices or by several optimizers: not zero if any is not."""
    total = _on(found[0], device)
    for other in found[1:]:
        total = total + _on(other, device)
    return total


@no_grad()
def _unscale(optimizer: Optimizer, inverse: Tensor, *, allow_half: bool) -> dict[Any, Tensor]:
    """Multiply all gradients, one call per device and dtype; gives what was found per device."""
    lists: dict[Any, list[Tensor]] = {}
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p.grad is None:
                continue
            if p.grad.dtype is dt.float16 and not allow_half:
                raise ValueError("Attempting to unscale FP16 gradients.")
            lists.setdefault((p.grad.device, p.grad.dtype), []).append(p.grad)
    found: dict[Any, Tensor] = {}
    for (device, _), grads in lists.items():
        if device not in found:
            found[device] = F.full((), 0.0, dtype=dt.float32, device=device)
        F._amp_foreach_non_finite_check_and_unscale_(grads, found[device], _on(inverse, device))
    # Ranks that hold shards of one gradient must all see what one of them finds, or some would step.
    gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    for spread in {s.key: s for g in gradients if (s := g.__dict__.get("_sharding")) is not None}.values():
        for value in found.values():
            spread.largest_(value)
    return found
