"""Multi-head attention as a layer: torch's parameters around one function; it computes nothing."""

from __future__ import annotations

import functools
import math
import warnings
from importlib import import_module
from typing import Any

import votive

from ...core import dtype as dt
from ...core.device import DeviceLike
from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..module import Module
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear


def additive_mask(
    mask: Tensor | None, name: str, dtype: dt.dtype, other: Tensor | None = None, other_name: str = ""
) -> Tensor | None:
    """A mask as numbers to be added to scores; True in a bool mask hides."""
    if mask is None:
        return None
    if mask.dtype != dt.bool_ and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and other.dtype != mask.dtype:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=3,
        )
    if mask.is_floating_point():
        return mask
    blank = votive.zeros(mask.shape, dtype=dtype, device=mask.device)
    return blank.masked_fill_(mask, -math.inf)


def nested_batches() -> Any:
    """The module that takes nested batches through layers; few need it."""
    return import_module(".nested_batch", __package__)


class MultiheadAttention(Module):
    """Attention of `num_heads` heads with learned projections; gives output and weights.

    >>> attention = votive.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = votive.ones(3, 5, 8)
    >>> output, weights = attention(x, x, x)
    >>> output.shape, weights.shape
    (votive.Size([3, 5, 8]), votive.Size([3, 5, 5]))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, "
                f"got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def empty(*shape: int) -> Parameter:
            return Parameter(votive.empty(shape, device=device, dtype=dtype))

        same = self._qkv_same_embed_dim
        widths = {"q": embed_dim, "k": self.kdim, "v": self.vdim}
        for name, width in widths.items():
            weight = None if same else empty(embed_dim, width)
            self.register_parameter(f"{name}_proj_weight", weight)
        self.register_parameter("in_proj_weight", empty(3 * embed_dim, embed_dim) if same else None)
        self.register_parameter("in_proj_bias", empty(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        self.bias_k = empty(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = empty(1, 1, embed_dim) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in", "q", "k", "v"):
            weight = getattr(self, f"{name}_proj_weight")
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        if query.is_nested:
            if not self.batch_first:
                raise AssertionError("MultiheadAttention: nested tensors need batch_first=True.")
            run = functools.partial(self.forward, need_weights=need_weights, average_attn_weights=average_attn_weights)
            return nested_batches().attended(run, query, key, value, key_padding_mask, attn_mask)
        key_padding_mask = additive_mask(key_padding_mask, "key_padding_mask", query.dtype, attn_mask, "attn_mask")
        attn_mask = additive_mask(attn_mask, "attn_mask", query.dtype)
        transposed = self.batch_first and query.dim() == 3
        if transposed:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (output.transpose(0, 1) if transposed else output), weights

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Both masks as one, and its kind: 1 padding, 2 of all heads, None for none."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        samples, length = query.shape[:2]
        if attn_mask.dim() == 3:
            merged = attn_mask.view(samples, -1, length, length)
        else:
            merged = attn_mask.expand(samples, self.num_heads, length, length)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(samples, 1, 1, length)
        return merged, 2
