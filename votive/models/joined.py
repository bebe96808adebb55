"""One token of a Llama-like decoder by joined operators: the same sums in a third of the launches.

It reads the parameters of the model's own modules and takes over only what it knows to the last
detail; any hook, bias, window, other class or method leaves the work to the modules.
"""

from __future__ import annotations

from typing import Any

import votive
from votive import nn
from votive.core.mode import mode
from votive.nn.fast_path import can_bypass
from votive.ops.registry import F as ops

from .llama import LlamaAttention, LlamaDecoderLayer, LlamaForCausalLM, LlamaMLP, LlamaModel
from .pretrained import activation

# What the joined kernels take; they would leave the rest to the CPU.
_KINDS = (votive.float32, votive.float16, votive.bfloat16)
_WIDEST, _WIDEST_HEAD, _MOST_SHARING = 8192, 256, 16
# Their sums are not on tensor cores: with more rows, or more to multiply than this in the widest
# product, the modules' products are ahead.
_ROWS, _WORK = 8, 1 << 25


def steady(rope: Any) -> bool:
    """Whether the angles of a rotary embedding stay as they are when the text grows.

    >>> from votive.models.joined import steady
    >>> steady(votive.nn.RotaryEmbedding(4))
    True
    """
    return rope.rope_type not in ("dynamic", "longrope")


def _product(module: Any) -> bool:
    return can_bypass(module, nn.Linear) and module.bias is None and module.weight.dim() == 2


def _norm(module: Any, width: int) -> bool:
    """Whether it is the norm of rows of `width` numbers, with a weight and an eps of its own."""
    if not can_bypass(module, nn.RMSNorm) or module.eps is None or module.weight is None:
        return False
    return module.normalized_shape == (width,) == tuple(module.weight.shape)


def _attention(at: Any, width: int) -> bool:
    if not can_bypass(at, LlamaAttention, "look", "project") or at.window is not None:
        return False
    if (at.training and at.dropout) or not hasattr(at, "q_proj"):
        return False
    if not all(_product(p) for p in (at.q_proj, at.k_proj, at.v_proj, at.o_proj)):
        return False
    if at.qk_norm and not (
        _norm(at.q_norm, at.head_dim) and _norm(at.k_norm, at.head_dim) and at.q_norm.eps == at.k_norm.eps
    ):
        return False
    heads, shared = at.q_proj.weight.shape[0], at.k_proj.weight.shape[0]
    fit = at.q_proj.weight.shape[1] == at.k_proj.weight.shape[1] == width
    fit = fit and at.v_proj.weight.shape == at.k_proj.weight.shape
    fit = fit and not heads % shared and not shared % at.head_dim
    fit = fit and at.head_dim <= _WIDEST_HEAD and heads // shared <= _MOST_SHARING
    return fit and tuple(at.o_proj.weight.shape) == (width, heads)


def _net(net: Any, width: int) -> bool:
    if not can_bypass(net, LlamaMLP) or net.act_fn is not activation("silu"):
        return False
    if not all(_product(p) for p in (net.gate_proj, net.up_proj, net.down_proj)):
        return False
    inner = net.gate_proj.weight.shape
    return inner == net.up_proj.weight.shape and (
        tuple(net.down_proj.weight.shape) == (width, inner[0]) and inner[1] == width
    )


def _layer(layer: Any, width: int) -> bool:
    return (
        can_bypass(layer, LlamaDecoderLayer, "unfinished")
        and _attention(layer.self_attn, width)
        and _net(getattr(layer, layer.net), width)
        and _norm(layer.input_layernorm, width)
        and _norm(layer.post_attention_layernorm, width)
    )


def _weights(model: Any) -> list[Any]:
    """All that the joined step multiplies with, read as the modules read it."""
    d = model.model
    found = [d.embed_tokens.weight, d.norm.weight, model.lm_head.weight]
    for layer in d.layers:
        at, net = layer.self_attn, getattr(layer, layer.net)
        parts = [at.q_proj, at.k_proj, at.v_proj, at.o_proj]
        parts += [at.q_norm, at.k_norm] if at.qk_norm else []
        parts += [net.gate_proj, net.up_proj, net.down_proj]
        parts += [layer.input_layernorm, layer.post_attention_layernorm]
        found += [part.weight for part in parts]
    return found


def _rotation(rope: Any, layers: list[Any]) -> bool:
    if not can_bypass(rope, nn.RotaryEmbedding, "angles", "rotate", "_fit"):
        return False
    if rope.interleaved or not steady(rope) or rope.cos.shape != rope.sin.shape:
        return False
    if rope.cos.stride(1) != 1 or rope.sin.stride(1) != 1:
        return False
    return all(2 * rope.cos.shape[1] == layer.self_attn.head_dim for layer in layers)


def _known(model: Any) -> bool:
    decoder = getattr(model, "model", None)
    if not can_bypass(model, LlamaForCausalLM, "scores") or mode.autocast or model.training:
        return False
    if not can_bypass(decoder, LlamaModel, "rotations", "embedded", "get_input_embeddings"):
        return False
    if not can_bypass(decoder.embed_tokens, nn.Embedding) or not _product(model.lm_head):
        return False
    layers, width = list(decoder.layers), decoder.embed_tokens.weight.shape[1]
    if not _norm(decoder.norm, width) or not all(_layer(layer, width) for layer in layers):
        return False
    # Each layer has a place of its own in the cache.
    places = {layer.self_attn.layer_idx for layer in layers}
    if not layers or len(places) != len(layers) or not _rotation(decoder.rotary_emb, layers):
        return False
    weights = _weights(model)
    if len({(w.dtype, w.device) for w in weights}) > 1 or weights[0].dtype not in _KINDS:
        return False
    dense = all(w.is_contiguous() for w in weights)
    return dense and width <= _WIDEST and model.lm_head.weight.shape[1] == width


class JoinedDecoder:
    """The step of a causal language model whose decoder is a Llama."""

    def __init__(self, model: Any) -> None:
        self.model, self.decoder = model, model.model
        self.head = model.lm_head.weight
        self._counts: dict[int, Any] = {}

    @staticmethod
    def of(model: Any) -> JoinedDecoder | None:
        """The joined step of a model, or None when something in it is not known."""
        return JoinedDecoder(model) if _known(model) else None

    def pays(self, rows: int) -> bool:
        """Whether fewer launches save more than the library's faster sums of many rows would."""
        layer = self.decoder.layers[0]
        net = getattr(layer, layer.net)
        return rows == 1 or (rows <= _ROWS and rows * net.gate_proj.weight.numel() <= _WORK)

    def counts(self, x: Any, heads: int) -> Any:
        """A zero for each head of each row: how the programs of attention tell who is last."""
        n = x.shape[0] * heads
        if n not in self._counts:
            self._counts[n] = votive.zeros(n, dtype=votive.int32, device=x.device)
        return self._counts[n]

    def step(self, token: Any, position: Any, cache: Any) -> Any:
        """Logits (batch, 1, vocabulary) of a token (batch, 1) at `position`, a tensor of one
        index."""
        d = self.decoder
        x = d.embed_tokens(token)
        cos, sin = d.rotary_emb.cos, d.rotary_emb.sin
        for layer in d.layers:
            at, net = layer.self_attn, getattr(layer, layer.net)
            keys, values = cache._kept[at.layer_idx]
            counts = self.counts(x, keys.shape[1])
            norm = layer.input_layernorm
            three = [at.q_proj.weight, at.k_proj.weight, at.v_proj.weight]
            qkv = ops._norm_linear(x, norm.weight, norm.eps, three, False)
            scale = at.head_dim**-0.5 if at.scale is None else at.scale
            q_norm, k_norm = (at.q_norm.weight, at.k_norm.weight) if at.qk_norm else (None, None)
            eps = at.q_norm.eps if at.qk_norm else 0.0
            heads = at.q_proj.weight.shape[0] // at.head_dim
            y = ops._turn_and_attend(qkv, q_norm, k_norm, eps, cos, sin, keys, values, position, counts, heads, scale)
            x = ops._linear_add(y, at.o_proj.weight, x)
            norm = layer.post_attention_layernorm
            h = ops._norm_linear(x, norm.weight, norm.eps, [net.gate_proj.weight, net.up_proj.weight], True)
            x = ops._linear_add(h, net.down_proj.weight, x)
        return ops._norm_linear(x, d.norm.weight, d.norm.eps, [self.head], False)
