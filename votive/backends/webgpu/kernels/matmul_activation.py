"""Products that end in an activation. The sum is rounded to the result's type first, as operators would."""

from __future__ import annotations

from ....core import dtype as dt
from ...common.slot import Slot
from ..rows import Run, webgpu
from ..shaders import types
from .matmul import ending

ACTIVATIONS = {
    "relu": "f_maximum(u, 0.0)",
    "gelu": "0.5 * u * (1.0 + f_erf(u * 0.70710678))",
    "gelu_tanh": "0.5 * u * (1.0 + f_tanh(0.79788456 * (u + 0.044715 * (u * u * u))))",
    "silu": "u * f_sigmoid(u)",
}


def rounded(text: str, d: dt.dtype) -> str:
    """An f32 as memory of a dtype would give it back."""
    if d is dt.float16:
        return f"h_widened(h_narrowed({text}))"
    return f"bitcast<f32>(b_narrowed({text}) << 16u)" if d is dt.bfloat16 else text


@webgpu("_linear_activated", accepts=types.floats)
def linear_activated(x: Slot, weight: Slot, bias: Slot | None, activation: str) -> Run:
    text = ACTIVATIONS.get(activation)
    if text is None:
        return None
    head = f"fn activated(v: f32, n: u32) -> f32 {{ let u = {rounded('SUM', x.dtype)}; return {text}; }}\n"
    return ending("linear_activated", x, weight, bias, "activated(v, n)", head)
