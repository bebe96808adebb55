"""Gradients: the graph, the backward pass, and what is built on them."""

from . import functional, graph
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

graph.saved_tensors_hooks = saved_tensors_hooks  # type: ignore[attr-defined]
graph.save_on_cpu = save_on_cpu  # type: ignore[attr-defined]

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
