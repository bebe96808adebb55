"""RWKV 4: weighted means that fade in place of attention, and nets that read the position before, too.

Peng et al. 2023, arXiv:2305.13048.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import votive
from votive import nn
from votive.nn import functional as F
from votive.nn.points import inside, opens, point

from ..tensor import Tensor
from .attention import AttentionMask, Weights
from .config import Config
from .decoder import Decoder, DecoderConfig, DecoderForCausalLM, Design, decoder_classes
from .decoder.attention import Rotate
from .decoder.layer import DecoderLayer
from .decoder.mixer import Started, StateMixer
from .decoder.model import DecoderBase
from .decoder.norms import made_norm
from .decoder.scan import NOTHING, weighted_mean
from .decoder.short_conv import unpadded
from .opened import Norms, open_norm, wide


@dataclass(kw_only=True)
class RwkvConfig(DecoderConfig):
    """The numbers of an RWKV 4.

    >>> votive.models.RwkvConfig(hidden_size=64).intermediate_size
    256
    """

    model_type = "rwkv"
    aliases: ClassVar[dict[str, str]] = {"max_position_embeddings": "context_length"}

    vocab_size: int = 50277
    context_length: int = 1024
    hidden_size: int = 4096
    num_hidden_layers: int = 32
    attention_hidden_size: int | None = None
    intermediate_size: int | None = None
    layer_norm_epsilon: float = 1e-5
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 0
    rescale_every: int = 6

    def __post_init__(self) -> None:
        if self.attention_hidden_size is None:
            self.attention_hidden_size = self.hidden_size
        if self.intermediate_size is None:
            self.intermediate_size = 4 * self.hidden_size

    def sizes(self) -> dict[str, Any]:
        return {
            "vocabulary": self.vocab_size,
            "width": self.hidden_size,
            "layers": self.num_hidden_layers,
            "heads": 1,
            "shared": 1,
            "head_dim": self.attention_hidden_size,
            "inner": self.intermediate_size,
            "positions": self.context_length,
            "norm": "layer",
            "eps": self.layer_norm_epsilon,
            "norms": ("ln1", "", "ln2", ""),
            "attention": "attention",
            "mixers": ("weighted mean",) * self.num_hidden_layers,
            "net": "feed_forward",
            "embedding": "embeddings",
            "stack": "blocks",
            "last_norm": "ln_out",
            "last_norm_eps": 1e-5,
            "head": "head",
            "extra": {"rescale_every": self.rescale_every},
        }


def _share(width: int, power: float) -> Tensor:
    return (votive.arange(width, dtype=votive.float32) / width).pow(power).view(1, 1, -1)


def _shifted(x: Tensor, before: Tensor | None) -> Tensor:
    """Each position's predecessor; zeros before a text."""
    first = votive.zeros_like(x[:, :1]) if before is None else before.unsqueeze(1).to(x.dtype)
    return votive.cat([first, x[:, :-1]], 1)


def _mixed(x: Tensor, before: Tensor, share: Tensor) -> Tensor:
    return x * share + before * (1 - share)


class RwkvAttention(StateMixer):
    """`output(sigmoid(receptance) * means)`; keeps the last position and its means."""

    def __init__(self, d: Design, layer_idx: int) -> None:
        super().__init__()
        self.layer_idx, inner = layer_idx, d.head_dim
        self.place = layer_idx / max(d.layers - 1, 1), 1 - layer_idx / d.layers
        self.time_decay = nn.Parameter(votive.zeros(inner))
        self.time_first = nn.Parameter(votive.zeros(inner))
        for name in ("key", "value", "receptance"):
            setattr(self, f"time_mix_{name}", nn.Parameter(votive.zeros(1, 1, d.width)))
            setattr(self, name, nn.Linear(d.width, inner, bias=False))
        self.output = nn.Linear(inner, d.width, bias=False)

    def start_values(self, config: Config) -> None:
        """Channels fade at different speeds, and read more of the position before in later layers."""
        late, early = self.place
        width, inner = self.time_mix_key.shape[-1], self.time_decay.shape[0]
        at = votive.arange(inner, dtype=votive.float32) / max(inner - 1, 1)
        with votive.no_grad():
            self.time_decay.copy_(-5 + 8 * at.pow(0.7 + 1.3 * late))
            nn.init.ones_(self.time_first)
            self.time_mix_key.copy_(_share(width, early))
            self.time_mix_value.copy_(_share(width, early) + 0.3 * late)
            self.time_mix_receptance.copy_(_share(width, 0.5 * early))

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        kept = None if cache is None else cache.states(self.layer_idx)
        x, kind = unpadded(x, mask), wide(x.dtype)
        before = _shifted(x, None if kept is None else kept[0])
        key = self.key(_mixed(x, before, self.time_mix_key)).to(kind)
        if mask.padding is not None:
            key = key.masked_fill(~mask.padding.unsqueeze(-1), NOTHING)
        value = self.value(_mixed(x, before, self.time_mix_value))
        open_ = votive.sigmoid(self.receptance(_mixed(x, before, self.time_mix_receptance)))
        means, state = weighted_mean(
            key,
            value.to(kind),
            -votive.exp(self.time_decay.to(kind)),
            self.time_first.to(kind),
            None if kept is None else (kept[1], kept[2], kept[3]),
        )
        if cache is not None:
            rest = () if kept is None else kept[4:]
            cache.keep(self.layer_idx, [x[:, -1].clone(), *(s.clone() for s in state), *rest], x.shape[1])
        return self.output(open_ * means.to(x.dtype))


class RwkvFeedForward(Started):
    """`sigmoid(receptance) * value(relu(key)^2)`; keeps the last position behind what attention keeps."""

    def __init__(self, d: Design, layer_idx: int) -> None:
        super().__init__()
        self.layer_idx, self.early = layer_idx, 1 - layer_idx / d.layers
        self.time_mix_key = nn.Parameter(votive.zeros(1, 1, d.width))
        self.time_mix_receptance = nn.Parameter(votive.zeros(1, 1, d.width))
        self.key = nn.Linear(d.width, d.inner, bias=False)
        self.receptance = nn.Linear(d.width, d.width, bias=False)
        self.value = nn.Linear(d.inner, d.width, bias=False)

    def start_values(self, config: Config) -> None:
        """Later layers read more of the position before."""
        with votive.no_grad():
            for share in (self.time_mix_key, self.time_mix_receptance):
                share.copy_(_share(share.shape[-1], self.early))

    def forward(self, x: Tensor, mask: AttentionMask, cache: nn.KVCache | None = None) -> Tensor:
        kept, x = None if cache is None else cache.states(self.layer_idx), unpadded(x, mask)
        before = _shifted(x, kept[4] if kept is not None and len(kept) > 4 else None)
        if cache is not None:
            assert kept is not None, "attention has kept its own"
            cache.keep(self.layer_idx, [*kept[:4], x[:, -1].clone()], 0)
        y = self.value(F.relu(self.key(_mixed(x, before, self.time_mix_key))).square())
        return votive.sigmoid(self.receptance(_mixed(x, before, self.time_mix_receptance))) * y


class RwkvLayer(DecoderLayer):
    """A layer whose results, outside of training, are halved every few layers, so that half types do not overflow."""

    def __init__(self, d: Design, layer_idx: int) -> None:
        nn.Module.__init__(self)
        self.layer_idx, every = layer_idx, d.extra["rescale_every"]
        if layer_idx == 0:
            self.pre_ln = made_norm(d.norm, d.width, d.eps)
        self.ln1, self.ln2 = made_norm(d.norm, d.width, d.eps), made_norm(d.norm, d.width, d.eps)
        self.attention, self.feed_forward = RwkvAttention(d, layer_idx), RwkvFeedForward(d, layer_idx)
        self.share = 0.5 ** (layer_idx // every) if every > 0 else 1.0
        self.halves = every > 0 and (layer_idx + 1) % every == 0
        self.parallel, self.residual_scale = False, 1.0

    @property
    def mixer(self) -> nn.Module:
        return self.attention

    @property
    def net(self) -> nn.Module:
        return self.feed_forward

    def norms(self) -> Norms:
        return self.ln1, None, self.ln2, None

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        share = 1.0 if self.training else self.share
        last = 0.5 if self.halves and not self.training else 1.0
        if not opens(self.layer_idx):
            x = x + _times(self.attention(self.ln1(x), rope, mask, cache, weights), share)
            return _times(x + _times(self.feed_forward(self.ln2(x), mask, cache), share), last)
        at = f"layers.{self.layer_idx}"
        x = point(f"{at}.resid_pre", x)
        read = open_norm(self.ln1, point(f"{at}.attn_in", x), f"{at}.ln1")
        with inside(at):
            y = self.attention(read, rope, mask, cache, weights)
        x = point(f"{at}.resid_mid", x + point(f"{at}.attn_out", _times(y, share)))
        read = open_norm(self.ln2, point(f"{at}.mlp_in", x), f"{at}.ln2")
        with inside(at):
            y = self.feed_forward(read, mask, cache)
        return point(f"{at}.resid_post", _times(x + point(f"{at}.mlp_out", _times(y, share)), last))


def _times(x: Tensor, share: float) -> Tensor:
    return x if share == 1.0 else x * share


def _start(model: DecoderBase, module: nn.Module) -> None:
    """Products that keep lengths, and embeddings close to zero."""
    if isinstance(module, nn.Linear):
        rows, columns = module.weight.shape
        gain = math.sqrt(max(rows / columns, 1.0))
        if (rows, columns) == (model.design.vocabulary, model.design.width):
            gain *= 0.5
        nn.init.orthogonal_(module.weight, gain=gain)
    elif isinstance(module, nn.Embedding):
        nn.init.orthogonal_(module.weight, gain=1e-4 * math.sqrt(max(module.weight.shape)))


class _RwkvHead(DecoderForCausalLM):
    def init_weights(self, module: nn.Module) -> None:
        super().init_weights(module)
        _start(self, module)


class _Rwkv(Decoder):
    """A decoder whose embeddings are normed by the first layer's own norm."""

    layer_class = RwkvLayer
    states_behind = True

    def init_weights(self, module: nn.Module) -> None:
        super().init_weights(module)
        _start(self, module)

    def start(self, x: Tensor, past: int, position_ids: Tensor | None, attention_mask: Tensor | None) -> Tensor:
        return point("embed", self.stack[0].pre_ln(x)) if len(self.stack) else point("embed", x)


RwkvModel, RwkvForCausalLM = decoder_classes("Rwkv", RwkvConfig, prefix="rwkv", base=_Rwkv, head=_RwkvHead)
