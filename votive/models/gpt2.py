"""GPT-2. Radford et al. 2019, Language models are unsupervised multitask learners.

A decoder: layer norm before attention and MLP, learned positions, and weights stored as
(inputs, outputs), the way Hugging Face checkpoints have them.
"""

from __future__ import annotations

from dataclasses import dataclass

import votive
from votive import nn
from votive.nn.fused_linear import PRODUCTS, feed_forward
from votive.nn.points import opens, point, wanted, where
from votive.nn.residual import add_norm

from ..tensor import Tensor
from .activations import activation
from .attention import AttentionMask, Weights, attend, causal_mask
from .config import Config
from .opened import open_attend, open_heads, open_layer, open_project
from .output import BaseModelOutput
from .pretrained import DecoderLM, PreTrainedModel
from .stack import Trace, run_layers


@dataclass(kw_only=True)
class GPT2Config(Config):
    """The numbers of a GPT-2.

    >>> votive.models.GPT2Config(n_embd=64, n_head=4).hidden_size
    64
    """

    model_type = "gpt2"

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    activation_function: str = "gelu_new"
    resid_pdrop: float = 0.1
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    layer_norm_epsilon: float = 1e-5
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    # Attention is computed in float32 inside the kernel, whatever this says.
    reorder_and_upcast_attn: bool = False
    add_cross_attention: bool = False
    bos_token_id: int | None = 50256
    eos_token_id: int | list[int] | None = 50256
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        if self.n_embd % self.n_head:
            raise ValueError(f"GPT2Config: n_embd={self.n_embd} does not split into n_head={self.n_head} heads.")
        if self.add_cross_attention:
            raise ValueError("GPT2Config: add_cross_attention is not supported.")

    @property
    def hidden_size(self) -> int:
        return self.n_embd

    @property
    def num_hidden_layers(self) -> int:
        return self.n_layer

    @property
    def num_attention_heads(self) -> int:
        return self.n_head

    @property
    def max_position_embeddings(self) -> int:
        return self.n_positions


class Conv1D(nn.Module):
    """`x @ weight + bias`: a linear layer whose weight is (inputs, outputs)."""

    def __init__(self, outputs: int, inputs: int, gain: float = 1.0) -> None:
        super().__init__()
        self.gain = gain  # of the start values
        self.weight = nn.Parameter(votive.empty(inputs, outputs))
        self.bias = nn.Parameter(votive.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight.t(), self.bias)

    def extra_repr(self) -> str:
        inputs, outputs = self.weight.shape
        return f"{outputs}, {inputs}"


PRODUCTS[Conv1D] = lambda m: (m.weight.t(), m.bias)


class GPT2Attention(nn.Module):
    """Attention whose queries, keys and values come from one product."""

    def __init__(self, config: GPT2Config, layer_idx: int) -> None:
        super().__init__()
        self.layer_idx, self.heads = layer_idx, config.n_head
        self.dropout = config.attn_pdrop
        width = config.n_embd
        self.scale = (width // self.heads) ** -0.5 if config.scale_attn_weights else 1.0
        if config.scale_attn_by_inverse_layer_idx:
            self.scale /= layer_idx + 1
        self.c_attn = Conv1D(3 * width, width)
        # Each layer adds to the stream twice: smaller steps keep its size.
        self.c_proj = Conv1D(width, width, (2 * config.n_layer) ** -0.5)
        self.resid_dropout = nn.Dropout(config.resid_pdrop)

    def forward(
        self, x: Tensor, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        at = where()
        if at is not None:
            return self.opened(at, x, mask, cache, weights)
        B, T, C = x.shape
        parts = self.c_attn(x).view(B, T, 3, self.heads, -1)
        # Taken apart before they are transposed: so their gradients are put together in one pass.
        q, k, v = (part.transpose(1, 2) for part in parts.unbind(2))  # (B, H, T, D) each
        if cache is not None:
            k, v = cache.update(k, v, self.layer_idx)
        dropout = self.dropout if self.training else 0.0
        y = attend(q, k, v, mask, dropout=dropout, scale=self.scale, weights=weights)
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).reshape(B, T, C)))

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = self.c_attn(x).chunk(3, -1)
        return q, k, v

    def opened(self, at: str, x: Tensor, mask: AttentionMask, cache: nn.KVCache | None, weights: Weights) -> Tensor:
        """`forward`, with every value between the pieces shown."""
        q, k, v = open_project(self.project, x, x.shape[-1] // self.heads)
        q, k, v = (point(f"{at}.attn.{n}", part).transpose(1, 2) for n, part in zip("qkv", (q, k, v), strict=True))
        if cache is not None:
            k, v = cache.update(k, v, self.layer_idx)
        dropout = self.dropout if self.training else 0.0
        if wanted(f"{at}.attn.scores", f"{at}.attn.pattern"):
            y = open_attend(at, q, k, v, mask, scale=self.scale, dropout=dropout, weights=weights)
        else:
            y = attend(q, k, v, mask, dropout=dropout, scale=self.scale, weights=weights)
        return self.resid_dropout(open_heads(at, y.transpose(1, 2), self.c_proj))


class GPT2MLP(nn.Module):
    """`proj(act(fc(x)))`."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        inner = config.n_inner or 4 * config.n_embd
        self.c_fc = Conv1D(inner, config.n_embd)
        self.c_proj = Conv1D(config.n_embd, inner, (2 * config.n_layer) ** -0.5)
        self.act = activation(config.activation_function)
        self.dropout = nn.Dropout(config.resid_pdrop)

    def forward(self, x: Tensor) -> Tensor:
        at = where()
        if at is not None and wanted(f"{at}.mlp.pre", f"{at}.mlp.post"):
            pre = point(f"{at}.mlp.pre", self.c_fc(x))
            return self.dropout(self.c_proj(point(f"{at}.mlp.post", self.act(pre))))
        return self.dropout(feed_forward(self.c_fc, self.act, self.c_proj, x))


class GPT2Block(nn.Module):
    """Attention, then the MLP, each on a normed input and added to the stream."""

    def __init__(self, config: GPT2Config, layer_idx: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.attn = GPT2Attention(config, layer_idx)
        self.ln_2 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.mlp = GPT2MLP(config)

    def forward(
        self, x: Tensor, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        if opens(self.attn.layer_idx):
            norms, heads = (self.ln_1, None, self.ln_2, None), (self.attn.heads,) * 3
            at = f"layers.{self.attn.layer_idx}"
            return open_layer(at, x, lambda y: self.attn(y, mask, cache, weights), self.mlp, norms, heads)
        x, change = self.deferred(x, None, mask, cache, weights)
        return x + change

    def deferred(
        self, x: Tensor, change: Tensor | None, mask: AttentionMask, cache: nn.KVCache | None, weights: Weights
    ) -> tuple[Tensor, Tensor]:
        """The stream and what is still to be added to it: the next norm adds it on its way."""
        x, y = add_norm(x, change, self.ln_1)
        x, y = add_norm(x, self.attn(y, mask, cache, weights), self.ln_2)
        return x, self.mlp(y)


class _GPT2(PreTrainedModel):
    """What both GPT-2 classes share."""

    config_class = GPT2Config
    runs_through_points = True
    base_model_prefix = "transformer"
    # Old files hold the causal mask, a table.
    ignored = (r"\.attn\.bias$", r"\.attn\.masked_bias$")

    def init_weights(self, module: nn.Module) -> None:
        super().init_weights(module)
        if isinstance(module, Conv1D):
            nn.init.normal_(module.weight, std=self.config.initializer_range * module.gain)
            nn.init.zeros_(module.bias)

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings."""
        return getattr(self, self.base_model_prefix, self).wte


class GPT2Model(_GPT2):
    """The decoder without its head.

    >>> config = votive.models.GPT2Config(vocab_size=10, n_positions=4, n_embd=8, n_layer=1,
    ...     n_head=2)
    >>> votive.models.GPT2Model(config)(votive.tensor([[1, 2, 3]])).last_hidden_state.shape
    votive.Size([1, 3, 8])
    """

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        self.drop = nn.Dropout(config.embd_pdrop)
        self.h = nn.ModuleList(GPT2Block(config, i) for i in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: nn.KVCache | None = None,
        inputs_embeds: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
        token_type_ids: Tensor | None = None,
    ) -> BaseModelOutput:
        x = self.embedded(input_ids, inputs_embeds)
        cache = past_key_values
        if cache is None and use_cache:
            cache = nn.DynamicCache()
        T = x.shape[1]
        past = 0 if cache is None else cache.get_seq_length()
        if position_ids is None:
            if past + T > self.config.n_positions:
                raise IndexError(
                    f"GPT2Model: {past + T} positions are asked for; it has learned "
                    f"n_positions={self.config.n_positions}."
                )
            position_ids = votive.arange(past, past + T, device=x.device)
        places = self.wpe(position_ids)
        if wanted("pos_embed"):
            places = point("pos_embed", places.expand(x.shape))
        x = point("embed", x) + places  # (B, T, C)
        if token_type_ids is not None:
            x = x + self.wte(token_type_ids)
        x = self.drop(x)
        mask = causal_mask(attention_mask, T, past + T, cache=cache, device=x.device)
        trace = Trace(output_attentions, output_hidden_states)
        x = run_layers(self.h, GPT2Block, x, self.ln_f, trace, lambda i, layer: (mask, cache, trace.weights))
        return BaseModelOutput(
            last_hidden_state=x, past_key_values=cache, hidden_states=trace.hidden_states, attentions=trace.attentions
        )


class GPT2LMHeadModel(_GPT2, DecoderLM):
    """The decoder with a head that predicts the next token.

    >>> config = votive.models.GPT2Config(vocab_size=10, n_positions=4, n_embd=8, n_layer=1,
    ...     n_head=2)
    >>> votive.models.GPT2LMHeadModel(config)(votive.tensor([[1, 2, 3]])).logits.shape
    votive.Size([1, 3, 10])
    """

    tied = {"lm_head.weight": "transformer.wte.weight"}

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.transformer = GPT2Model(config)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.post_init()
