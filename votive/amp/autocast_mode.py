"""autocast: switches the casting of arguments on and off for the running thread.

What is cast, and how, is decided by each operator's policy; `votive.explain(op)` shows it.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from ..backends.base import BACKENDS
from ..core import dtype as dt
from ..core.mode import mode
from ..dispatch.autocast import enter, leave, settings, switch
from ..ops.autocast_policy import DEVICES
from ..tensor import Tensor

_ELSEWHERE = frozenset({"mps", "xpu", "hpu", "ipu", "mtia", "maia", "xla", "privateuseone"})


def _check_device(device_type: object) -> str:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type not in DEVICES:
        raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
    return device_type


def is_autocast_available(device_type: str) -> bool:
    """Whether operators have policies for this type of device.

    >>> votive.amp.is_autocast_available("cpu"), votive.amp.is_autocast_available("meta")
    (True, False)
    """
    return device_type in DEVICES


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on for a device type in this thread.

    >>> with votive.autocast("cpu"):
    ...     votive.is_autocast_enabled("cpu")
    True
    """
    # Types of devices that torch knows and nothing runs on here: autocast is never on there.
    return device_type not in _ELSEWHERE and _check_device(device_type) in mode.autocast


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Switch autocast on or off in this thread; `autocast` does it for a block.

    >>> votive.set_autocast_enabled("cpu", True)
    >>> votive.is_autocast_enabled("cpu")
    True
    >>> votive.set_autocast_enabled("cpu", False)
    """
    device = _check_device(device_type)
    on = {d: v for d, v in mode.autocast.items() if d != device}
    if enabled:
        on[device] = settings.dtypes[device]
    switch(on)


def get_autocast_dtype(device_type: str) -> dt.dtype:
    """The dtype that "lower" operators run in under autocast.

    >>> votive.get_autocast_dtype("cpu")
    votive.bfloat16
    """
    return settings.dtypes[_check_device(device_type)]


def set_autocast_dtype(device_type: str, dtype: dt.dtype) -> None:
    """Choose the dtype of autocast in this thread.

    >>> votive.set_autocast_dtype("cpu", votive.float16)
    >>> votive.get_autocast_dtype("cpu")
    votive.float16
    >>> votive.set_autocast_dtype("cpu", votive.bfloat16)
    """
    device = _check_device(device_type)
    settings.dtypes = {**settings.dtypes, device: dtype}
    if device in mode.autocast:
        mode.autocast = {**mode.autocast, device: dtype}


def is_autocast_cache_enabled() -> bool:
    """Whether casts of weights are kept until the outermost autocast ends.

    >>> votive.is_autocast_cache_enabled()
    True
    """
    return settings.caching


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Keep casts of weights, or make each anew.

    >>> votive.set_autocast_cache_enabled(True)
    """
    settings.caching = bool(enabled)


def clear_autocast_cache() -> None:
    """Forget the kept casts of weights.

    >>> votive.clear_autocast_cache()
    """
    settings.cache = None


class autocast:
    """Run products in a 16-bit dtype and what needs it in float32; a block or a decorator.

    Inside, operators cast their arguments by their policy. Weights are cast once and kept until the
    outermost block ends; gradients flow through the casts. Call backward outside the block.

    >>> w = votive.ones(2, 2, requires_grad=True)
    >>> with votive.autocast("cpu", dtype=votive.bfloat16):
    ...     y = w @ w
    ...     with votive.autocast("cpu", enabled=False):
    ...         z = w @ w
    >>> y.dtype, z.dtype
    (votive.bfloat16, votive.float32)
    """

    def __init__(
        self, device_type: str, dtype: dt.dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        self.device = _check_device(device_type)
        self.fast_dtype = settings.dtypes[self.device] if dtype is None else dtype
        self._cache_enabled = settings.caching if cache_enabled is None else cache_enabled
        self._enabled = enabled and self._usable()
        self._before: list[tuple[Any, ...]] = []

    def _usable(self) -> bool:
        if self.device not in BACKENDS:
            why = f"{self.device.upper()} is not available. Disabling autocast."
        elif self.fast_dtype not in dt.HALF:
            name = self.device.upper()
            why = (
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of votive.bfloat16 and votive.float16."
            )
        else:
            return True
        warnings.warn(why, stacklevel=3)
        return False

    def __enter__(self) -> autocast:
        self._before.append((is_autocast_enabled(self.device), settings.dtypes[self.device], settings.caching))
        enter()
        set_autocast_dtype(self.device, self.fast_dtype)
        set_autocast_enabled(self.device, self._enabled)
        settings.caching = self._cache_enabled
        return self

    def __exit__(self, *exc: object) -> None:
        enabled, dtype, caching = self._before.pop()
        set_autocast_dtype(self.device, dtype)
        set_autocast_enabled(self.device, enabled)
        settings.caching = caching
        leave()

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you "
                "mean to use autocast as a context manager?"
            )

        @functools.wraps(func)
        def run(*args: object, **kwargs: object) -> Any:
            with self:
                return func(*args, **kwargs)

        return run


def _cast(value: object, device_type: str, dtype: dt.dtype) -> Any:
    """Floating-point tensors of a device in a dtype, float64 excepted, inside any containers."""
    if isinstance(value, Tensor):
        fits = value.is_floating_point() and value.device.type == device_type
        return value.to(dtype) if fits and value.dtype is not dt.float64 else value
    if isinstance(value, Mapping):
        return {k: _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, device_type, dtype) for v in value)
    return value


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: dt.dtype | None = None
) -> Callable[..., Any]:
    """Decorates `forward` of a `votive.autograd.Function` that shall work under autocast.

    With `cast_inputs` its tensors are cast to that dtype and it runs with autocast off.

    >>> class Double(votive.autograd.Function):
    ...     @staticmethod
    ...     @votive.amp.custom_fwd(device_type="cpu", cast_inputs=votive.float32)
    ...     def forward(ctx, x):
    ...         return x * 2
    ...
    ...     @staticmethod
    ...     @votive.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, g):
    ...         return g * 2
    >>> with votive.autocast("cpu"):
    ...     Double.apply(votive.ones(1, dtype=votive.bfloat16)).dtype
    votive.float32
    """
    _check_device(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    forward = fwd

    @functools.wraps(forward)
    def run(ctx: Any, *args: object, **kwargs: object) -> Any:
        on = is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = on and cast_inputs is None
        if cast_inputs is None or not on:
            return forward(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            args = _cast(args, device_type, cast_inputs)
            return forward(ctx, *args, **_cast(kwargs, device_type, cast_inputs))

    return run


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorates `backward` to go with `custom_fwd`: autocast is what it was in forward.

    >>> votive.amp.custom_bwd(device_type="cpu")(lambda ctx, g: g).__name__
    '<lambda>'
    """
    _check_device(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    backward = bwd

    @functools.wraps(backward)
    def run(ctx: Any, *args: object, **kwargs: object) -> Any:
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return backward(ctx, *args, **kwargs)

    return run
