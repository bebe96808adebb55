"""`votive.cpu.amp` and `votive.cuda.amp`: the older names, which fix the device.

Knows nothing but the device to fill in; `votive.amp` has the classes.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from .. import cpu, cuda
from ..core import dtype as dt
from .autocast_mode import autocast, custom_bwd, custom_fwd
from .grad_scaler import GradScaler


def _module(home: types.ModuleType, dtype: dt.dtype) -> types.ModuleType:
    device = home.__name__.rpartition(".")[2]

    class autocast_here(autocast):
        def __init__(self, enabled: bool = True, dtype: dt.dtype = dtype, cache_enabled: bool = True) -> None:
            super().__init__(device, dtype, enabled, cache_enabled)

    class GradScalerHere(GradScaler):
        def __init__(
            self,
            init_scale: float = 2.0**16,
            growth_factor: float = 2.0,
            backoff_factor: float = 0.5,
            growth_interval: int = 2000,
            enabled: bool = True,
        ) -> None:
            super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    made = types.ModuleType(f"{home.__name__}.amp", f"`votive.amp` for {device}.")
    for name, kind in (("autocast", autocast_here), ("GradScaler", GradScalerHere)):
        # Pickles name a class by where it is found.
        kind.__name__ = kind.__qualname__ = name
        kind.__module__ = made.__name__
        kind.__doc__ = f"`votive.amp.{name}` with device {device!r}."
        setattr(made, name, kind)

    def fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: dt.dtype | None = None) -> Any:
        return custom_fwd(fwd, device_type=device, cast_inputs=cast_inputs)

    def bwd(bwd: Callable[..., Any]) -> Any:
        return custom_bwd(bwd, device_type=device)

    vars(made).update(custom_fwd=fwd, custom_bwd=bwd)
    return made


for _home, _dtype in ((cpu, dt.bfloat16), (cuda, dt.float16)):
    vars(_home)["amp"] = _module(_home, _dtype)
    sys.modules[f"{_home.__name__}.amp"] = _home.amp
