"""One token of a Llama-like decoder by joined operators: the same sums in a third of the launches.

It reads the parameters of the model's own modules and takes over only what it knows to the last
detail; any hook, bias, window or other class leaves the work to the modules.
"""

from __future__ import annotations

from typing import Any

import votive
from votive import nn
from votive.nn.global_hooks import GLOBAL
from votive.ops.registry import F as ops

from .llama import (
    LlamaAttention,
    LlamaDecoderLayer,
    LlamaForCausalLM,
    LlamaMLP,
    LlamaModel,
)
from .pretrained import activation


def watched(model: Any) -> bool:
    """Whether a hook waits for the calls of a module: work that makes no calls would miss it.

    >>> from votive.models.joined import watched
    >>> layer = votive.nn.Linear(2, 2)
    >>> handle = layer.register_forward_hook(lambda module, args, output: None)
    >>> watched(votive.nn.Sequential(layer))
    True
    """
    return bool(GLOBAL) or any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def steady(rope: Any) -> bool:
    """Whether the angles of a rotary embedding stay as they are when the text grows.

    >>> from votive.models.joined import steady
    >>> steady(votive.nn.RotaryEmbedding(4))
    True
    """
    return rope.rope_type not in ("dynamic", "longrope")


def _product(module: Any) -> bool:
    return type(module) is nn.Linear and module.bias is None


def _known(layer: Any) -> bool:
    if (
        not isinstance(layer, LlamaDecoderLayer)
        or type(layer).forward is not LlamaDecoderLayer.forward
    ):
        return False
    at, net = layer.self_attn, getattr(layer, layer.net)
    if type(at).forward is not LlamaAttention.forward or type(net) is not LlamaMLP:
        return False
    norms = [layer.input_layernorm, layer.post_attention_layernorm]
    norms += [at.q_norm, at.k_norm] if at.qk_norm else []
    products = (
        [at.q_proj, at.k_proj, at.v_proj, at.o_proj, net.gate_proj, net.up_proj, net.down_proj]
        if hasattr(at, "q_proj")
        else []
    )
    silu = net.act_fn is activation("silu")
    return bool(
        products and silu and at.window is None and type(at).look is LlamaAttention.look
        and type(at).project is LlamaAttention.project
        and all(_product(p) for p in products) and all(type(n) is nn.RMSNorm for n in norms)
    )  # fmt: skip


class JoinedDecoder:
    """The step of a causal language model whose decoder is a Llama."""

    def __init__(self, model: Any) -> None:
        self.model, self.decoder = model, model.model
        self.head = model.lm_head.weight
        self._counts: Any = None

    @staticmethod
    def of(model: Any) -> JoinedDecoder | None:
        """The joined step of a model, or None when something in it is not known."""
        decoder = getattr(model, "model", None)
        if not isinstance(decoder, LlamaModel) or type(decoder).forward is not LlamaModel.forward:
            return None
        rope = decoder.rotary_emb
        known = (
            all(_known(layer) for layer in decoder.layers)
            and type(decoder.norm) is nn.RMSNorm and type(decoder.embed_tokens) is nn.Embedding
            and type(decoder).rotations is LlamaModel.rotations and type(rope) is nn.RotaryEmbedding
            and not rope.interleaved and steady(rope) and _product(getattr(model, "lm_head", None))
            and getattr(type(model), "scores", None) is LlamaForCausalLM.scores
            and not model.training and not watched(model)
            and 2 * rope.cos.shape[1] == model.config.head_dim
        )  # fmt: skip
        return JoinedDecoder(model) if known else None

    def counts(self, x: Any, heads: int) -> Any:
        """A zero for each head of each row: how the programs of attention tell who is last."""
        n = x.shape[0] * heads
        if self._counts is None or self._counts.numel() != n or self._counts.device != x.device:
            self._counts = votive.zeros(n, dtype=votive.int32, device=x.device)
        return self._counts

    def step(self, token: Any, position: Any, cache: Any) -> Any:
        """Logits (batch, 1, vocabulary) of a token (batch, 1) at `position`, a tensor of one
        index."""
        d = self.decoder
        x = d.embed_tokens(token)
        counts = self.counts(x, cache._kept[0][0].shape[1])
        cos, sin = d.rotary_emb.cos, d.rotary_emb.sin
        for i, layer in enumerate(d.layers):
            at, net = layer.self_attn, getattr(layer, layer.net)
            keys, values = cache._kept[i]
            norm = layer.input_layernorm
            three = [at.q_proj.weight, at.k_proj.weight, at.v_proj.weight]
            qkv = ops._norm_linear(x, norm.weight, norm.eps, three, False)
            scale = at.head_dim**-0.5 if at.scale is None else at.scale
            q_norm, k_norm = (at.q_norm.weight, at.k_norm.weight) if at.qk_norm else (None, None)
            eps = at.q_norm.eps if at.qk_norm else 0.0
            heads = at.q_proj.weight.shape[0] // at.head_dim
            y = ops._turn_and_attend(
                qkv, q_norm, k_norm, eps, cos, sin, keys, values, position, counts, heads, scale
            )
            x = ops._linear_add(y, at.o_proj.weight, x)
            norm = layer.post_attention_layernorm
            h = ops._norm_linear(
                x, norm.weight, norm.eps, [net.gate_proj.weight, net.up_proj.weight], True
            )
            x = ops._linear_add(h, net.down_proj.weight, x)
        return ops._norm_linear(x, d.norm.weight, d.norm.eps, [self.head], False)
