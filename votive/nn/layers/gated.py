"""Feed-forward nets with a gate: Shazeer 2020, "GLU Variants Improve Transformer"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import functional as F
from ..fused_linear import gelu_tanh, linear_activation
from ..module import Module
from .linear import Linear


class GatedMLP(Module):
    """`down_proj(activation(gate_proj(x)) * up_proj(x))`.

    `activation` is the name of a function in nn.functional, or a callable. The
    default width, `8 * dim / 3`, has as many weights as a plain net of width `4 * dim`.

    >>> votive.nn.GatedMLP(6, 10, activation="relu")(votive.ones(2, 6)).shape
    votive.Size([2, 6])
    """

    def __init__(
        self,
        dim: int,
        hidden_dim: int | None = None,
        activation: str | Callable[..., Any] = "silu",
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made = {"bias": bias, "device": device, "dtype": dtype}
        hidden_dim = 8 * dim // 3 if hidden_dim is None else hidden_dim
        self.gate_proj = Linear(dim, hidden_dim, **made)
        self.up_proj = Linear(dim, hidden_dim, **made)
        self.down_proj = Linear(hidden_dim, dim, **made)
        if isinstance(activation, str):
            if not hasattr(F, activation):
                raise ValueError(f"GatedMLP: nn.functional has no activation {activation!r}.")
            activation = getattr(F, activation)
        self.activation = activation

    def forward(self, input: Any) -> Any:
        return self.down_proj(self._gate(input) * self.up_proj(input))

    def _gate(self, x: Any) -> Any:
        return linear_activation(self.gate_proj, self.activation, x)


class SwiGLU(GatedMLP):
    """A gated net with SiLU, as in Llama.

    >>> votive.nn.SwiGLU(6, 10)(votive.ones(2, 6)).shape
    votive.Size([2, 6])
    """

    def __init__(
        self, dim: int, hidden_dim: int | None = None, bias: bool = False, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(dim, hidden_dim, "silu", bias, device, dtype)


class GeGLU(GatedMLP):
    """A gated net with GELU, as in Gemma with `approximate="tanh"`.

    >>> votive.nn.GeGLU(6, 10, approximate="tanh")(votive.ones(2, 6)).shape
    votive.Size([2, 6])
    """

    def __init__(
        self,
        dim: int,
        hidden_dim: int | None = None,
        bias: bool = False,
        approximate: str = "none",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(dim, hidden_dim, "gelu", bias, device, dtype)
        self.approximate = approximate

    def _gate(self, x: Any) -> Any:
        known = {"none": F.gelu, "tanh": gelu_tanh}.get(self.approximate)
        if known is None:
            return F.gelu(self.gate_proj(x), approximate=self.approximate)
        return linear_activation(self.gate_proj, known, x)
