"""Gradients: the graph, the backward pass, and what is built on them."""

from . import edges, functional, graph, multi_grad_hooks, saved_hooks
from .engine import backward, grad
from .function import Function, FunctionCtx
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .modes import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
)
from .saved_hooks import save_on_cpu, saved_tensors_hooks

for _home in (edges, saved_hooks, multi_grad_hooks):
    for _name in _home.__all__:
        setattr(graph, _name, getattr(_home, _name))

__all__ = [
    "Function",
    "FunctionCtx",
    "GradcheckError",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_detect_anomaly",
    "set_grad_enabled",
]


def __getattr__(name: str) -> object:
    # Found when first asked for.
    if name in ("anomaly_mode", "forward_ad", "grad_mode", "profiler", "profiler_util"):
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
