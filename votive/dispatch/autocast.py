"""Autocast: casts arguments as the operator's policy says, before anything else sees the call.

Nothing here runs unless autocast is on in some thread. Knows policies and dtypes, no kernels.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.mode import mode
from ..ops.autocast_policy import Policies, policed
from ..ops.operator import Composite
from ..ops.registry import F
from .observe import refresh
from .state import state

if TYPE_CHECKING:
    from ..tensor import Tensor


class Settings(threading.local):
    """What the running thread has set, beside `mode.autocast`: the devices that are on."""

    dtypes: dict[str, dt.dtype] = {"cpu": dt.bfloat16, "cuda": dt.float16, "remote": dt.bfloat16, "webgpu": dt.float16}
    caching: bool = True
    nesting: int = 0
    # (id of a leaf, recording or not) -> (the leaf, its version, target dtype, the cast)
    cache: dict[tuple[int, bool], tuple[Any, int, dt.dtype, Any]] | None = None


settings = Settings()


def cast(policies: Policies, values: Any) -> Any:
    """Arguments, in whatever containers, as the policies ask for them."""
    for device, lower in mode.autocast.items():
        policy = policies.get(policed(device))
        if policy is None or policy == "off":
            continue
        if policy == "refused":
            _refuse(values, device)
            continue
        if policy == "lower":
            target = lower
        elif policy == "float32":
            target = dt.float32
        else:
            target = _widest(values, device, lower)
        values = _cast(values, device, target, lower)
    return values


def _refuse(values: Any, device: str) -> None:
    if any(_eligible(t, device) for t in _tensors(values)):
        raise RuntimeError(
            "autocast: this operator is unsafe in 16 bits and its result would not fit what "
            "comes next; binary_cross_entropy_with_logits takes logits and is safe."
        )


def _eligible(v: object, device: str) -> bool:
    # float64 was chosen on purpose; nobody wants it cut down.
    return (
        isinstance(v, state.tensor)
        and v._spec.dtype.is_floating_point
        and v._spec.dtype is not dt.float64
        and v._spec.device.type == device
    )


def _widest(values: Any, device: str, lower: dt.dtype) -> dt.dtype:
    found = {t._spec.dtype for t in _tensors(values) if _eligible(t, device)}
    return lower if found <= {lower} else dt.float32


def _tensors(values: Any) -> Iterator[Any]:
    for v in values.values() if values.__class__ is dict else values:
        if v.__class__ in (tuple, list):
            yield from _tensors(v)
        elif isinstance(v, state.tensor):
            yield v


def _cast(v: Any, device: str, target: dt.dtype, lower: dt.dtype) -> Any:
    if v.__class__ in (tuple, list):
        return v.__class__([_cast(x, device, target, lower) for x in v])
    if v.__class__ is dict:
        return {k: _cast(x, device, target, lower) for k, x in v.items()}
    if not _eligible(v, device) or v._spec.dtype is target:
        return v
    if target is lower and settings.caching and _is_weight(v):
        return _cached(v, target)
    return F._to_dtype(v, target)


def _is_weight(t: Tensor) -> bool:
    return t._rg and t._edge is None and t._base is None and t._spec.dtype is dt.float32


def _cached(t: Tensor, target: dt.dtype) -> Any:
    """One cast of a weight serves all its uses; its gradient flows through it."""
    if settings.cache is None:
        settings.cache = {}
    # A cast made under no_grad has no history: it must not stand in where one is needed.
    key = (id(t), mode.grad)
    found = settings.cache.get(key)
    version = t._storage.writes
    if found is not None and found[0] is t and found[1] == version and found[2] is target:
        return found[3]
    made = F._to_dtype(t, target)
    settings.cache[key] = (t, version, target, made)
    return made


def switch(devices: dict[str, dt.dtype]) -> None:
    """Let just these devices be under autocast in this thread."""
    change = bool(devices) - bool(mode.autocast)
    mode.autocast = devices
    if change:
        refresh(autocast=change)


def enter() -> None:
    """One more block; casts of weights live until the outermost ends."""
    settings.nesting += 1


def leave() -> None:
    """The end of a block."""
    settings.nesting -= 1
    if settings.nesting == 0:
        settings.cache = None


@contextmanager
def resumed(devices: dict[str, dt.dtype]) -> Iterator[None]:
    """The autocast of an earlier moment again, for running something a second time."""
    before = mode.autocast
    enter()
    switch(devices)
    try:
        yield
    finally:
        switch(before)
        leave()


def _run(policies: Policies, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A composite as one operator: cast once at its door, nothing inside."""
    before = mode.autocast
    if not any(policed(device) in policies for device in before):
        return fn(*args, **kwargs)
    args, kwargs = cast(policies, (args, kwargs))
    mode.autocast = {}
    try:
        return fn(*args, **kwargs)
    finally:
        mode.autocast = before


Composite.run_cast = staticmethod(_run)
