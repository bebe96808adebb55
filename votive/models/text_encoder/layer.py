"""The layers of encoders: attention and a net, each added to what came in and normed. Knows no family."""

from __future__ import annotations

from typing import Any

import votive
from votive import nn
from votive.nn.fused_linear import feed_forward, linear_activation

from ...tensor import Tensor
from ..activations import activation
from ..attention import AttentionMask, Weights
from ..decoder.norms import made_norm
from ..encoder import Intermediate
from .attention import EncoderAttention
from .design import EncoderDesign
from .relative import Disentangled


def attention_of(d: EncoderDesign, layer_idx: int) -> nn.Module:
    """What mixes positions in a layer."""
    return EncoderAttention(d, layer_idx) if d.relative is None else Disentangled(d, layer_idx)


class AddedOutput(nn.Module):
    """A product, of which dropout leaves a part, added to what came in before; normed, unless layers norm before."""

    def __init__(self, d: EncoderDesign, inputs: int, dropout: float) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, d.width)
        if not d.pre_norm:
            self.LayerNorm = nn.LayerNorm(d.width, eps=d.eps)
        self.dropout = nn.Dropout(dropout)

    def forward(self, y: Tensor, x: Tensor) -> Tensor:
        y = self.dropout(self.dense(y)) + x
        return self.LayerNorm(y) if "LayerNorm" in self._modules else y


class NestedAttention(nn.ModuleDict):
    """Attention, and what it says added to what came in."""

    def __init__(self, d: EncoderDesign, layer_idx: int) -> None:
        found: dict[str, nn.Module] = {}
        if d.pre_norm:
            found["self_attn_layer_norm"] = nn.LayerNorm(d.width, eps=d.eps)
        found["self"] = attention_of(d, layer_idx)
        found["output"] = AddedOutput(d, d.width, d.dropout)
        super().__init__(found)

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None, places: Any = None) -> Tensor:
        read = self["self_attn_layer_norm"](x) if "self_attn_layer_norm" in self else x
        return self["output"](self["self"](read, mask, weights, places), x)


class NormedAttention(nn.ModuleDict):
    """Attention that has its product inside, added to what came in and normed."""

    def __init__(self, d: EncoderDesign, layer_idx: int) -> None:
        self.inner = d.wrapped
        norm = nn.LayerNorm(d.width, eps=d.eps)
        super().__init__({d.wrapped: attention_of(d, layer_idx), "LayerNorm": norm, "dropout": nn.Dropout(d.dropout)})

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None, places: Any = None) -> Tensor:
        return self["LayerNorm"](self["dropout"](self[self.inner](x, mask, weights, places)) + x)


class NestedLayer(nn.Module):
    """Attention, then the net, in modules that each add and norm, as BERT has them."""

    def __init__(self, d: EncoderDesign, layer_idx: int) -> None:
        super().__init__()
        self.attention = (NormedAttention if d.wrapped else NestedAttention)(d, layer_idx)
        self.intermediate = Intermediate(d.width, d.inner, d.act)
        self.output = AddedOutput(d, d.inner, d.dropout if d.net_end_dropout is None else d.net_end_dropout)
        if d.pre_norm:
            self.LayerNorm = nn.LayerNorm(d.width, eps=d.eps)

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None, places: Any = None) -> Tensor:
        x = self.attention(x, mask, weights, places)
        read = self.LayerNorm(x) if "LayerNorm" in self._modules else x
        return self.output(self.intermediate(read), x)


class Net(nn.Module):
    """Two products with an activation between, or three of which one is a gate; "fused" has the first two in one."""

    def __init__(self, d: EncoderDesign) -> None:
        super().__init__()
        self.kind, self.names, self.act_fn = d.net_kind, d.net_names, activation(d.act)
        gate, up, down = d.net_names
        if d.net_kind == "gated":
            setattr(self, gate, nn.Linear(d.width, d.inner, bias=d.net_bias))
        setattr(self, up, nn.Linear(d.width, d.inner * (2 if d.net_kind == "fused" else 1), bias=d.net_bias))
        setattr(self, down, nn.Linear(d.inner, d.width, bias=d.net_out_bias))
        self.dropout = nn.Dropout(d.net_dropout)

    def forward(self, x: Tensor) -> Tensor:
        parts: list[Any] = [getattr(self, name) if name else None for name in self.names]
        gate, up, down = parts
        if self.kind == "plain":
            if self.training and self.dropout.p:
                return down(self.dropout(linear_activation(up, self.act_fn, x)))
            return feed_forward(up, self.act_fn, down, x)
        if self.kind == "gated":
            y = linear_activation(gate, self.act_fn, x) * up(x)
        else:
            first, second = up(x).chunk(2, -1)
            y = self.act_fn(first) * second
        return down(self.dropout(y))


class FlatLayer(nn.Module):
    """Attention and a net, with their norms beside them."""

    def __init__(self, d: EncoderDesign, layer_idx: int) -> None:
        super().__init__()
        self.pre_norm, self.names = d.pre_norm, (d.attention, d.norms[0], d.net, d.norms[1])
        setattr(self, d.attention, attention_of(d, layer_idx))
        skips = d.pre_norm and d.skips_first_norm and layer_idx == 0
        setattr(self, d.norms[0], nn.Identity() if skips else made_norm(d.norm, d.width, d.eps))
        setattr(self, d.net, Net(d))
        setattr(self, d.norms[1], made_norm(d.norm, d.width, d.eps))
        self.out_dropout = nn.Dropout(d.dropout if d.out_dropout is None else d.out_dropout)
        self.net_dropout = nn.Dropout(d.dropout if d.net_end_dropout is None else d.net_end_dropout)

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None, places: Any = None) -> Tensor:
        attention, norm, net, net_norm = (getattr(self, name) for name in self.names)
        if self.pre_norm:
            x = x + self.out_dropout(attention(norm(x), mask, weights, places))
            return x + self.net_dropout(net(net_norm(x)))
        x = norm(self.out_dropout(attention(x, mask, weights, places)) + x)
        return net_norm(self.net_dropout(net(x)) + x)


class GroupedAttention(EncoderAttention):
    """ALBERT's attention, which holds its norm."""

    def __init__(self, d: EncoderDesign, layer_idx: int) -> None:
        super().__init__(d, layer_idx)
        self.LayerNorm = nn.LayerNorm(d.width, eps=d.eps)
        self.output_dropout = nn.Dropout(d.dropout)

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None, places: Any = None) -> Tensor:
        return self.LayerNorm(x + self.output_dropout(super().forward(x, mask, weights, places)))


class GroupedLayer(nn.Module):
    """ALBERT's layer: the net's products are its own."""

    def __init__(self, d: EncoderDesign, layer_idx: int) -> None:
        super().__init__()
        self.full_layer_layer_norm = nn.LayerNorm(d.width, eps=d.eps)
        self.attention = GroupedAttention(d, layer_idx)
        self.ffn = nn.Linear(d.width, d.inner)
        self.ffn_output = nn.Linear(d.inner, d.width)
        self.act_fn = activation(d.act)

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None, places: Any = None) -> Tensor:
        x = self.attention(x, mask, weights, places)
        return self.full_layer_layer_norm(feed_forward(self.ffn, self.act_fn, self.ffn_output, x) + x)


class Group(nn.ModuleDict):
    """Layers that stand together; they are used again and again."""

    def __init__(self, d: EncoderDesign, group: int) -> None:
        made = (GroupedLayer(d, group * d.groups[1] + i) for i in range(d.groups[1]))
        super().__init__({"albert_layers": nn.ModuleList(made)})

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights, states: list[Tensor]) -> Tensor:
        """What each layer gives is appended to `states`."""
        for layer in self["albert_layers"]:
            x = layer(x, mask, weights)
            states.append(x)
        return x


KINDS: dict[str, Any] = {"nested": NestedLayer, "flat": FlatLayer}


def first_of(x: Tensor, attention_mask: Tensor | None) -> Tensor:
    """The state of each text's first position that is no padding, (batch, features).

    >>> from votive.models.text_encoder.layer import first_of
    >>> first_of(votive.tensor([[[1.0], [2.0]]]), votive.tensor([[0, 1]]))
    tensor([[2.]])
    """
    if attention_mask is None:
        return x[:, 0]
    return x[votive.arange(x.shape[0], device=x.device), attention_mask.argmax(-1)]
