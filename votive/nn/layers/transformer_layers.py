"""One layer of a transformer's encoder and of its decoder. Knows nothing of stacks."""

from __future__ import annotations

from collections.abc import Callable

from ...core import dtype as dt
from ...core.device import DeviceLike
from ...tensor import Tensor
from .. import functional as F
from ..factory import FactoryKwargs
from ..fast_path import can_bypass
from ..fused_linear import feed_forward, linear_activation
from ..module import Module
from .activation import GELU, ReLU
from .attention import MultiheadAttention, additive_mask, nested_batches
from .dropout import Dropout
from .linear import Linear
from .normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]


def _activation(given: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return F.relu if given == "relu" else F.gelu


class TransformerLayer(Module):
    """Attentions and a feed-forward net, each with a norm and a dropout, in torch's order."""

    _attentions: tuple[str, ...] = ("self_attn",)

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        super().__init__()
        made = FactoryKwargs(device=device, dtype=dtype)
        for name in self._attentions:
            attention = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **made)
            self.add_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
        self.norm_first = norm_first
        places = range(1, len(self._attentions) + 2)
        for i in places:
            self.add_module(f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made))
        for i in places:
            self.add_module(f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def _residual(self, x: Tensor, norm: Module, block: Callable[[Tensor], Tensor]) -> Tensor:
        """`x + block(norm(x))`, or `norm(x + block(x))`: Xiong et al. 2020, figure 1."""
        return x + block(norm(x)) if self.norm_first else norm(x + block(x))

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        out, _ = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )
        return self.dropout1(out)

    def _feed_forward(self, x: Tensor) -> Tensor:
        between = self.dropout
        if can_bypass(between, Dropout) and not (between.p and between.training):
            return feed_forward(self.linear1, self.activation, self.linear2, x)
        return self.linear2(between(linear_activation(self.linear1, self.activation, x)))


class TransformerEncoderLayer(TransformerLayer):
    """Self-attention and a feed-forward net, each with a residual and a norm.

    >>> layer = votive.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16)
    >>> layer(votive.ones(10, 32, 8)).shape
    votive.Size([10, 32, 8])
    """

    @property
    def activation_relu_or_gelu(self) -> int:
        """1 for relu, 2 for gelu, 0 for any other activation."""
        if self.activation is F.relu or isinstance(self.activation, ReLU):
            return 1
        return 2 if self.activation is F.gelu or isinstance(self.activation, GELU) else 0

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        if src.is_nested:
            if not self.self_attn.batch_first:
                raise AssertionError("TransformerEncoderLayer: nested tensors need batch_first=True.")
            run = lambda x, padding: self.forward(x, src_key_padding_mask=padding)
            return nested_batches().encoded(src, "TransformerEncoderLayer", run, src_mask, src_key_padding_mask)
        padding = additive_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype, src_mask, "src_mask")
        mask = additive_mask(src_mask, "src_mask", src.dtype)
        attend = lambda x: self._sa_block(x, mask, padding, is_causal)
        return self._residual(self._residual(src, self.norm1, attend), self.norm2, self._ff_block)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._feed_forward(x))


class TransformerDecoderLayer(TransformerLayer):
    """Self-attention, attention to the encoder's output, and a feed-forward net.

    >>> layer = votive.nn.TransformerDecoderLayer(8, 2, dim_feedforward=16)
    >>> layer(votive.ones(20, 32, 8), votive.ones(10, 32, 8)).shape
    votive.Size([20, 32, 8])
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        attend = lambda x: self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        recall = lambda x: self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        x = self._residual(tgt, self.norm1, attend)
        x = self._residual(x, self.norm2, recall)
        return self._residual(x, self.norm3, self._ff_block)

    def _mha_block(
        self, x: Tensor, mem: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        out, _ = self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )
        return self.dropout2(out)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self._feed_forward(x))
