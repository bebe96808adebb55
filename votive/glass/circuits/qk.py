"""What makes a head look where it looks: its score as a sum over pairs of what query and key are made of.

With the norm before attention held fast, query and key are sums over what was written at their positions, and the score
is a sum over pairs: Kamath et al. 2025, "Tracing attention computation through feature interactions". Knows no family.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import votive

from ...nn import Module
from ...tensor import Tensor
from ..frozen_norm import freeze
from ..head_weights import _rotated
from ..labelled import Labelled
from .frozen_decoder import FrozenDecoder, FrozenLayer
from .net_units import Units, all_units, left_over

if TYPE_CHECKING:
    from ..features.coder import SAE

_KEPT = ("layers.*.attn.{q,k,rot_q,rot_k}",)


def qk_attribution(
    model: Module,
    given: object,
    layer: int,
    head: int,
    *,
    query: int = -1,
    key: int,
    coders: Mapping[int, SAE] | Iterable[SAE] | None = None,
) -> Labelled:
    """A head's score for one query and one key, split by what both are made of: (query parts, key parts).

    Parts are what was written into the stream at the position: "embed", heads, nets ("layers.2.mlp", or where there is
    one of `coders`, a transcoder, each feature that fires and "layers.2.error"), and "bias", all biases. They add up
    to the product of query and key, scaled; what a model adds for the distance, and a cap, come on top.

    >>> _ = votive.manual_seed(0)
    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=16, num_hidden_layers=2,
    ...     num_attention_heads=2)
    >>> model, ids = votive.models.LlamaForCausalLM(config).eval(), votive.tensor([[1, 2, 3]])
    >>> found = votive.glass.circuits.qk_attribution(model, ids, 1, 0, key=1)
    >>> found.dims["key part"]
    ['embed', 'layers.0.head.0', 'layers.0.head.1', 'layers.0.mlp', 'bias']
    >>> with votive.glass.capture(model, "layers.1.attn.scores") as seen:
    ...     _ = model(ids)
    >>> votive.allclose(found.values.sum(), seen["layers.1.attn.scores"][0, 0, -1, 1], atol=1e-5)
    True
    """
    frozen = FrozenDecoder(model, given, _KEPT)
    if not -len(frozen.layers) <= layer < len(frozen.layers):
        raise IndexError(f"qk_attribution: layer {layer} is outside 0..{len(frozen.layers) - 1}.")
    layer %= len(frozen.layers)
    if any(f.place != "before" for f in frozen.layers):
        raise ValueError("qk_attribution: norms of the stream itself leave it no sum of what was written.")
    for name, at in (("query", query), ("key", key)):
        if not -frozen.positions <= at < frozen.positions:
            raise IndexError(f"qk_attribution: {name} {at} is outside 0..{frozen.positions - 1}.")
    query, key = query % frozen.positions, key % frozen.positions
    attention = frozen.weights._attention(layer)
    shared = frozen.weights.key_head(layer, head)
    head %= attention.counts[0]
    with votive.no_grad():
        units = all_units(frozen, coders, "error", "half")
        sides = []
        for kind, at, number in (("q", query, head), ("k", key, shared)):
            names, parts = _parts(frozen, units, layer, at)
            sides.append((names, _projected(frozen, layer, kind, parts, at, number)))
        (names, q), (key_names, k) = sides
        scale = attention.head_dim**-0.5 if attention.scale is None else attention.scale
        values = q @ k.t() * scale
    return Labelled(values, {"query part": names, "key part": key_names}, "score")


def _parts(frozen: FrozenDecoder, units: list[Units], layer: int, at: int) -> tuple[list[str], Tensor]:
    """What was written into the stream before a layer at a position, and the rest, which is the same for all texts."""
    start = frozen.layers[0].start[at]
    names, parts = ["embed"], [start]
    for i in range(layer):
        for h, y in enumerate(_heads(frozen.layers[i], at)):
            names.append(f"layers.{i}.head.{h}")
            parts.append(y)
        u = units[i]
        here = (u.positions == at).nonzero().flatten()
        if not u.kind:
            names.append(f"layers.{i}.mlp")
            parts.append(frozen.layers[i].net[at])
            continue
        names += [f"layers.{i}.feature.{n}" for n in u.numbers[here].tolist()]
        parts += list(u.writes(here).unbind(0))
        names.append(f"layers.{i}.error")
        every = votive.arange(len(u), device=frozen.device)
        # A way around the units is no feature: it goes with what they leave over.
        around = frozen.layers[i].net - u.constant - u.rest
        parts.append((left_over(u, every) + around)[at])
    found = votive.stack(parts)
    return [*names, "bias"], votive.cat([found, (frozen.layers[layer].start[at] - found.sum(0)).unsqueeze(0)])


def _heads(layer: FrozenLayer, at: int) -> list[Tensor]:
    """What each head of a layer adds at a position."""
    before, behind = layer.norms[:2]
    x = layer.start if before is None else before.part(layer.start) + before.bias
    heads, T = layer.pattern.shape[:2]
    width = layer.O.shape[0] // heads
    v = x @ layer.V
    v = (v if layer.v_free is None else v * layer.v_free) + layer.v_bias
    v = v.view(T, -1, width).transpose(0, 1)
    v = v.repeat_interleave(heads // v.shape[0], 0)  # (H, T, D)
    z = (layer.pattern[:, at].unsqueeze(1) @ v).squeeze(1)  # (H, D)
    y = (z.unsqueeze(1) @ layer.O.view(heads, width, -1)).squeeze(1)  # (H, C)
    if behind is not None:
        y = behind.at(slice(at, at + 1)).part(y)
    return list((y * layer.scale).unbind(0))


def _projected(frozen: FrozenDecoder, layer: int, kind: str, parts: Tensor, at: int, head: int) -> Tensor:
    """Parts of the stream as a head's query or key, rotated: (parts, head features); the last gets the constants."""
    w, frozen_layer = frozen.weights, frozen.layers[layer]
    attention = w._attention(layer)
    if attention.qk_norm not in ("", "head") or attention.norm_last or attention.clip is not None:
        raise LookupError(
            "qk_attribution: queries and keys are clipped, or normed over all heads at once, so that one head's score "
            "is not a sum over parts."
        )
    norm = frozen_layer.norms[0]
    W, b = (w.W_Q, w.b_Q) if kind == "q" else (w.W_K, w.b_K)
    matrix, bias = W[layer, head].to(frozen.dtype), b[layer, head].to(frozen.dtype)
    constant = votive.zeros_like(parts[0])
    if norm is not None:
        parts, constant = norm.at(slice(at, at + 1)).part(parts), norm.bias
    found = parts @ matrix
    found[-1] += constant @ matrix + bias
    if attention.qk_norm:
        own = attention.norms()[0 if kind == "q" else 1]
        whole = found.sum(0, keepdim=True)
        held = freeze(own, whole.to(own.weight.dtype) if own.weight is not None else whole)
        last = held.bias.to(frozen.dtype)
        found = held.part(found.double()).to(frozen.dtype)
        found[-1] += last
    rotary = w._rotary(layer)
    if rotary is not None:
        found = _rotated(rotary, found, at)
    name = f"layers.{layer}.attn.{'rot_' if f'layers.{layer}.attn.rot_q' in frozen.values else ''}{kind}"
    frozen.same(found.sum(0), frozen.at(name)[at, head], f"the {'query' if kind == 'q' else 'key'} of layer {layer}")
    return found
