"""Feed-forward nets with a gate: Shazeer 2020, "GLU Variants Improve Transformer"."""

from __future__ import annotations

from ...core import dtype as dt
from ...core.device import DeviceLike
from ...tensor import Tensor
from .. import functional as F
from ..factory import FactoryKwargs
from ..fused_linear import Activation, gelu_tanh, linear_activation
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
        activation: str | Activation = "silu",
        bias: bool = False,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        super().__init__()
        made = FactoryKwargs(device=device, dtype=dtype)
        hidden_dim = 8 * dim // 3 if hidden_dim is None else hidden_dim
        self.gate_proj = Linear(dim, hidden_dim, bias=bias, **made)
        self.up_proj = Linear(dim, hidden_dim, bias=bias, **made)
        self.down_proj = Linear(hidden_dim, dim, bias=bias, **made)
        if isinstance(activation, str):
            if not hasattr(F, activation):
                raise ValueError(f"GatedMLP: nn.functional has no activation {activation!r}.")
            self.activation: Activation = getattr(F, activation)
        else:
            self.activation = activation

    def forward(self, input: Tensor) -> Tensor:
        return self.down_proj(self._gate(input) * self.up_proj(input))

    def _gate(self, x: Tensor) -> Tensor:
        return linear_activation(self.gate_proj, self.activation, x)


class SwiGLU(GatedMLP):
    """A gated net with SiLU, as in Llama.

    >>> votive.nn.SwiGLU(6, 10)(votive.ones(2, 6)).shape
    votive.Size([2, 6])
    """

    def __init__(
        self,
        dim: int,
        hidden_dim: int | None = None,
        bias: bool = False,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
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
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        super().__init__(dim, hidden_dim, "gelu", bias, device, dtype)
        self.approximate = approximate

    def _gate(self, x: Tensor) -> Tensor:
        known = {"none": F.gelu, "tanh": gelu_tanh}.get(self.approximate)
        if known is None:
            return F.gelu(self.gate_proj(x), approximate=self.approximate)
        return linear_activation(self.gate_proj, known, x)
