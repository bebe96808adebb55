"""`torch.optim.optimizer`: types and decisions that optimizers outside of torch ask for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import votive

from ....core.mode import mode
from ....tensor import Tensor

__all__ = [
    "ParamsT",
    "_default_to_fused_or_foreach",
    "_get_capturable_supported_devices",
    "_get_value",
    "_use_grad_for_differentiable",
    "_view_as_real",
]

ParamsT = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether to take one kernel for all, and functions over lists: as torch decides, on GPUs only."""
    if differentiable:
        return False, False
    on_gpu = all(type(p) is not None and p.device.type == "cuda" for p in params if p is not None)
    fused = use_fused and on_gpu and all(p.is_floating_point() for p in params)
    return fused, not fused and on_gpu and bool(params)


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The types of devices whose steps can be captured in a graph."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _get_value(x: Any) -> Any:
    """A tensor of one element as a number; numbers as they are."""
    return x.item() if isinstance(x, Tensor) else x


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Put pairs of reals in the place of complex tensors, list by list."""
    for i, p in enumerate(params):
        if p.is_complex():
            for values in (params, *state_and_grads):
                values[i] = votive.view_as_real(values[i])


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """A step without recording, unless the optimizer's `differentiable` asks for it."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        before, mode.grad = mode.grad, bool(self.defaults.get("differentiable", False))
        try:
            return func(self, *args, **kwargs)
        finally:
            mode.grad = before

    return step
