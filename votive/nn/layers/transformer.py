"""Stacks of transformer layers, and the encoder-decoder of Vaswani et al. 2017."""

from __future__ import annotations

import copy
import math
import warnings
from typing import TypeVar

import votive

from ...core import dtype as dt
from ...core.device import DeviceLike
from ...tensor import Tensor
from .. import init
from ..containers import ModuleList
from ..factory import FactoryKwargs
from ..module import Module
from .attention import additive_mask, nested_batches
from .normalization import LayerNorm
from .transformer_layers import Activation, TransformerDecoderLayer, TransformerEncoderLayer, TransformerLayer

LayerType = TypeVar("LayerType", bound=TransformerLayer)


def _causal_mask(size: int, device: DeviceLike = None, dtype: dt.dtype | None = None) -> Tensor:
    blank = votive.full((size, size), -math.inf, dtype=dtype, device=device)
    return blank.triu(1)


def _is_causal(mask: Tensor | None, hint: bool | None, x: Tensor, batch_first: bool) -> bool:
    """The caller's word on whether a mask is the causal one, or what the mask itself says."""
    if hint is not None or mask is None:
        return bool(hint)
    length = x.shape[1 if batch_first and x.dim() == 3 else 0]
    if tuple(mask.shape) != (length, length):
        return False
    return bool((mask == _causal_mask(length, mask.device, mask.dtype)).all())


def _copies(layer: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


def _against_nesting(layer: Module) -> str:
    """Why torch would not pack the padding away for such layers, in its words; "" if it would."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    reasons = {
        "encoder_layer.norm_first was True": layer.norm_first,
        "encoder_layer.self_attn.batch_first was not True"
        "(use batch_first for better inference performance)": not attention.batch_first,
        "encoder_layer.self_attn._qkv_same_embed_dim was not True": not attention._qkv_same_embed_dim,
        "encoder_layer.self_attn was passed bias=False": attention.in_proj_bias is None,
        "encoder_layer.activation_relu_or_gelu was not True": not layer.activation_relu_or_gelu,
        "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps": layer.norm1.eps != layer.norm2.eps,
        "encoder_layer.self_attn.num_heads is odd": attention.num_heads % 2 == 1,
    }
    return next((text for text, holds in reasons.items() if holds), "")


class TransformerEncoder(Module):
    """Copies of one encoder layer in a row.

    In evaluation without gradients, torch packs padding away if `enable_nested_tensor` allows it,
    which leaves zeros in padded places; they are zeros here under the same conditions.

    >>> layer = votive.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> votive.nn.TransformerEncoder(layer, num_layers=2)(votive.ones(3, 5, 8)).shape
    votive.Size([3, 5, 8])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        reason = _against_nesting(encoder_layer)
        if enable_nested_tensor and reason:
            warnings.warn(
                f"enable_nested_tensor is True, but self.use_nested_tensor is False because {reason}", stacklevel=2
            )
            self.use_nested_tensor = False

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        if src.is_nested:
            run = lambda x, padding: self.forward(x, src_key_padding_mask=padding)
            return nested_batches().encoded(src, "TransformerEncoder", run, mask, src_key_padding_mask)
        padding = additive_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype, mask, "mask")
        mask = additive_mask(mask, "mask", src.dtype)
        causal = _is_causal(mask, is_causal, src, self.layers[0].self_attn.batch_first)
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if padding is not None and mask is None and self._drops_padding(src, padding == 0):
            output = output.masked_fill((padding != 0).unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)

    def _drops_padding(self, src: Tensor, kept: Tensor) -> bool:
        """Whether torch would run this input without its padding."""
        first = self.layers[0]
        if not self.use_nested_tensor or first.training or src.dim() != 3:
            return False
        tracked = src.requires_grad or any(p.requires_grad for p in first.parameters())
        if votive.is_grad_enabled() and tracked:
            return False
        if not self.mask_check:
            return True
        return not bool((kept[:, 1:] & ~kept[:, :-1]).any())


class TransformerDecoder(Module):
    """Copies of one decoder layer in a row.

    >>> layer = votive.nn.TransformerDecoderLayer(8, 2, 16)
    >>> decoder = votive.nn.TransformerDecoder(layer, num_layers=2)
    >>> decoder(votive.ones(20, 3, 8), votive.ones(10, 3, 8)).shape
    votive.Size([20, 3, 8])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch_first = self.layers[0].self_attn.batch_first
        causal = _is_causal(tgt_mask, tgt_is_causal, tgt, batch_first)
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder of the source and a decoder of the target that attends to it.

    >>> model = votive.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    >>> model(votive.ones(3, 10, 8), votive.ones(3, 20, 8)).shape
    votive.Size([3, 20, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        super().__init__()
        made = FactoryKwargs(device=device, dtype=dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)

        def layer(kind: type[LayerType]) -> LayerType:
            sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)
            return kind(*sizes, bias=bias, **made)

        if custom_encoder is None:
            custom_encoder = TransformerEncoder(layer(TransformerEncoderLayer), num_encoder_layers, norm())
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(layer(TransformerDecoderLayer), num_decoder_layers, norm())
        self.encoder = custom_encoder
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        samples = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(samples) != tgt.size(samples):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: DeviceLike = None, dtype: dt.dtype | None = None) -> Tensor:
        """The causal mask of a sequence: -inf above the diagonal, 0 elsewhere.

        >>> votive.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return _causal_mask(sz, device, dtype)
