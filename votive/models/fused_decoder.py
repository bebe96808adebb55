"""One token of a Llama-like decoder by fused operators: the same sums in a third of the launches.

Its blocks are read once from the model's own modules, and only what is known to the last detail is
read; any hook, bias, window, other class or method leaves the work to the modules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import votive
from votive import nn
from votive.core.mode import mode
from votive.nn.fast_path import can_bypass
from votive.ops.registry import F as ops

from ..tensor import Tensor
from .activations import activation
from .decoder.attention import DecoderAttention
from .decoder.layer import DecoderLayer
from .decoder.model import Decoder, DecoderForCausalLM
from .decoder.nets import GatedMLP

# What the fused kernels take; they would leave the rest to the CPU.
_DTYPES = (votive.float32, votive.float16, votive.bfloat16)
_WIDEST, _WIDEST_HEAD, _MOST_SHARING = 8192, 256, 16
# Half types are multiplied by tensor cores, for so many rows. Other sums are not: with more rows, or
# more to multiply than this in the widest product, the modules' products are ahead.
_STREAMED, _ROWS, _WORK = 64, 8, 1 << 25
_EVEN = 16  # what sizes are multiples of, for tensor cores


class Block(Protocol):
    """What adds to the stream of hidden states."""

    def step(self, x: Tensor, position: Tensor, cache: nn.StaticCache) -> Tensor:
        """The stream behind the block, for tokens (batch, 1) at `position`."""

    def weights(self) -> Iterator[Tensor]:
        """All it multiplies with."""


@dataclass(frozen=True)
class Norm:
    """An RMS norm of rows."""

    weight: Tensor
    eps: float

    @staticmethod
    def of(module: nn.Module, width: int) -> Norm | None:
        """That of rows of `width` numbers, with a weight and an eps of its own."""
        if not can_bypass(module, nn.RMSNorm) or module.eps is None or module.weight is None:
            return None
        fits = module.normalized_shape == (width,) == tuple(module.weight.shape)
        return Norm(module.weight, module.eps) if fits else None


@dataclass(frozen=True)
class Attention:
    """`x + o(attend(rotate(qkv(norm(x)))))`, in three launches."""

    layer: int
    norm: Norm
    qkv: list[Tensor]
    out: Tensor
    head_norms: tuple[Norm, Norm] | None
    cos: Tensor
    sin: Tensor
    heads: int
    scale: float
    counts: dict[int, Tensor]

    @staticmethod
    def of(at: nn.Module, norm: nn.Module, rope: nn.Module, width: int, counts: dict[int, Tensor]) -> Attention | None:
        before = Norm.of(norm, width)
        if before is None or not can_bypass(at, DecoderAttention, "look", "project", "turned", "normed"):
            return None
        if (at.training and at.dropout) or len(at.names) != 3 or at.rope != 0 or at.norm_last:
            return None
        if (
            at.window is not None
            or at.chunk is not None
            or at.clip is not None
            or at.cap is not None
            or at.has_sinks
            or at.tempered
        ):
            return None
        q_proj, k_proj, v_proj = (getattr(at, name) for name in at.names)
        if not all(_is_product(p) for p in (q_proj, k_proj, v_proj, at.product)):
            return None
        head_norms = None
        if at.qk_norm:
            if at.qk_norm != "head":
                return None
            q_norm, k_norm = (Norm.of(norm, at.head_dim) for norm in at.norms())
            if q_norm is None or k_norm is None or q_norm.eps != k_norm.eps:
                return None
            head_norms = q_norm, k_norm
        q, k, v, out = q_proj.weight, k_proj.weight, v_proj.weight, at.product.weight
        heads, shared = q.shape[0], k.shape[0]
        fit = q.shape[1] == k.shape[1] == width and v.shape == k.shape and tuple(out.shape) == (width, heads)
        fit = fit and not heads % shared and not shared % at.head_dim
        fit = fit and at.head_dim <= _WIDEST_HEAD and heads // shared <= _MOST_SHARING
        if not fit or 2 * rope.cos.shape[1] != at.head_dim:
            return None
        scale = at.head_dim**-0.5 if at.scale is None else at.scale
        return Attention(
            at.layer_idx, before, [q, k, v], out, head_norms, rope.cos, rope.sin, heads // at.head_dim, scale, counts
        )

    def weights(self) -> Iterator[Tensor]:
        yield from (self.norm.weight, *self.qkv, self.out)
        yield from (norm.weight for norm in self.head_norms or ())

    def step(self, x: Tensor, position: Tensor, cache: nn.StaticCache) -> Tensor:
        kept = cache._kept[self.layer]
        assert kept is not None, "the prompt was run before"
        keys, values = kept
        qkv = ops._norm_linear(x, self.norm.weight, self.norm.eps, self.qkv, False)
        q_norm: Tensor | None = None
        k_norm: Tensor | None = None
        eps = 0.0
        if self.head_norms is not None:
            q_norm, k_norm = self.head_norms[0].weight, self.head_norms[1].weight
            eps = self.head_norms[0].eps
        counts = self._counters(x, keys.shape[1])
        y = ops._rotate_and_attend(
            qkv, q_norm, k_norm, eps, self.cos, self.sin, keys, values, position, counts, self.heads, self.scale
        )
        return ops._linear_add(y, self.out, x)

    def _counters(self, x: Tensor, heads: int) -> Tensor:
        """A zero for each head of each row: how the programs of attention tell who is last."""
        n = x.shape[0] * heads
        if n not in self.counts:
            self.counts[n] = votive.zeros(n, dtype=votive.int32, device=x.device)
        return self.counts[n]


@dataclass(frozen=True)
class MLP:
    """`x + down(silu(gate(norm(x))) * up(norm(x)))`, in two launches."""

    norm: Norm
    gate_up: list[Tensor]
    down: Tensor

    @staticmethod
    def of(net: nn.Module, norm: nn.Module, width: int) -> MLP | None:
        before = Norm.of(norm, width)
        if before is None or not can_bypass(net, GatedMLP) or net.act_fn is not activation("silu"):
            return None
        products = [getattr(net, name) for name in net.names]
        if not all(map(_is_product, products)):
            return None
        gate, up, down = (p.weight for p in products)
        fits = gate.shape == up.shape and gate.shape[1] == width and tuple(down.shape) == (width, gate.shape[0])
        return MLP(before, [gate, up], down) if fits else None

    def weights(self) -> Iterator[Tensor]:
        yield from (self.norm.weight, *self.gate_up, self.down)

    def step(self, x: Tensor, position: Tensor, cache: nn.StaticCache) -> Tensor:
        h = ops._norm_linear(x, self.norm.weight, self.norm.eps, self.gate_up, True)
        return ops._linear_add(h, self.down, x)


def _is_product(module: nn.Module) -> bool:
    return can_bypass(module, nn.Linear) and module.bias is None and module.weight.dim() == 2


def _blocks(layers: list[nn.Module], rope: nn.Module, width: int) -> list[Block] | None:
    """What the layers add to the stream, one after the other; None if one is not known."""
    found: list[Block | None] = []
    counts: dict[int, Tensor] = {}
    for layer in layers:
        if not can_bypass(layer, DecoderLayer, "deferred", "norms", "added", "added_by_mixer"):
            return None
        if layer.parallel or layer.residual_scale != 1.0 or layer.norm_place != "before":
            return None
        if layer.training and (layer.dropout or layer.mixer_dropout):
            return None
        before, behind, before_net, behind_net = layer.norms()
        if before is None or behind is not None or before_net is None or behind_net is not None:
            return None
        found.append(Attention.of(layer.mixer, before, rope, width, counts))
        found.append(MLP.of(layer.net, before_net, width))
    blocks = [block for block in found if block is not None]
    return blocks if len(blocks) == len(found) else None


def _is_steady(rope: nn.Module) -> bool:
    """Whether it rotates halves of heads by angles from tables that stay as they are."""
    if not can_bypass(rope, nn.RotaryEmbedding, "angles", "rotate", "_fit"):
        return False
    if rope.interleaved or rope.depends_on_length or rope.cos.shape != rope.sin.shape:
        return False
    return rope.cos.stride(1) == rope.sin.stride(1) == 1


class FusedDecoder:
    """The step of a causal language model whose decoder is built as a Llama."""

    def __init__(self, embedding: nn.Module, blocks: list[Block], norm: Norm, head: Tensor) -> None:
        self.embedding, self.blocks, self.norm, self.head = embedding, blocks, norm, head

    @staticmethod
    def of(model: nn.Module) -> FusedDecoder | None:
        """The fused step of a model, or None when something in it is not known."""
        found = FusedDecoder.read(model)
        return found if found is not None and found._runs() else None

    @staticmethod
    def read(model: nn.Module) -> FusedDecoder | None:
        """The same, whatever the type and the place of its weights."""
        if not can_bypass(model, DecoderForCausalLM, "scores", "predictions") or mode.autocast or model.training:
            return None
        decoder: Any = getattr(model, model.base_model_prefix, None)
        if not can_bypass(decoder, Decoder, "rotations", "embedded", "get_input_embeddings", "start", "biased"):
            return None
        d = model.config.design
        plain = d.logit_scale == 1.0 == d.embedding_scale and d.logit_cap is None and d.last_norm
        if not plain or d.places or d.embedding_norm or d.alibi or len(d.ropes) != 1:
            return None
        table, head = model.get_input_embeddings(), getattr(model, d.head)
        if not can_bypass(table, nn.Embedding) or not _is_product(head):
            return None
        layers, width, rope = list(decoder.stack), table.weight.shape[1], getattr(decoder, d.ropes[0].name)
        if not layers or width > _WIDEST or not _is_steady(rope):
            return None
        norm = Norm.of(getattr(decoder.body, d.last_norm), width)
        blocks = _blocks(layers, rope, width)
        if norm is None or blocks is None or head.weight.shape[1] != width:
            return None
        # Each layer has a place of its own in the cache.
        if len({layer.mixer.layer_idx for layer in layers}) != len(layers):
            return None
        return FusedDecoder(table, blocks, norm, head.weight)

    def _runs(self) -> bool:
        """Whether the kernels take the weights as they lie."""
        blocks = [w for block in self.blocks for w in block.weights()]
        weights = [self.embedding.weight, *blocks, self.norm.weight, self.head]
        kinds = {(w.dtype, w.device) for w in weights}
        return len(kinds) == 1 and weights[0].dtype in _DTYPES and all(w.is_contiguous() for w in weights)

    def pays(self, rows: int) -> bool:
        """Whether fewer launches save more than the library's faster sums of many rows would."""
        if rows <= _STREAMED and self.head.dtype is not votive.float32:
            weights = (w for block in self.blocks for w in block.weights() if w.dim() == 2)
            if all(not n % _EVEN for w in weights for n in w.shape):
                return True
        first = next(block for block in self.blocks if isinstance(block, MLP))
        return rows == 1 or (rows <= _ROWS and rows * first.gate_up[0].numel() <= _WORK)

    def step(self, token: Tensor, position: Tensor, cache: nn.StaticCache) -> Tensor:
        """Logits (batch, 1, vocabulary) of a token (batch, 1) at `position`, a tensor of one
        index."""
        x = self.embedding(token)
        for block in self.blocks:
            x = block.step(x, position, cache)
        return ops._norm_linear(x, self.norm.weight, self.norm.eps, [self.head], False)
