"""The decoder itself and its head, built from a design. Knows no family."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import votive
from votive import nn
from votive.nn import functional as F
from votive.nn.points import point, wanted

from ...io.source import WeightSource
from ...tensor import Tensor
from ..attention import AttentionMask, causal_mask
from ..config import Config
from ..opened import open_norm
from ..output import BaseModelOutput, CausalLMOutput, MoeCausalLMOutput, MoeModelOutput
from ..pretrained import DecoderLM, PreTrainedModel
from ..stack import Trace, run_layers
from ..stacked import Unstacked, stacked
from .attention import Rotate
from .balance import load_balancing_loss
from .config import DecoderConfig
from .design import Design, Rope, Temper
from .layer import DecoderLayer, sees
from .mixture import Mixture
from .norms import made_norm
from .positions import COMPUTED, alibi
from .products import Conv1D

if TYPE_CHECKING:
    from ..fused_decoder import FusedDecoder


class DecoderBase(PreTrainedModel):
    """What decoders share, with a head or without."""

    config_class: ClassVar[type[Config]] = DecoderConfig
    runs_through_points = True

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__(config)
        self.design: Design = config.design  # what the decoder is made of
        first, more = self.design.layers, self.design.more_layers
        if more:
            stack = re.escape(self.design.stack)
            numbers = "|".join(str(i) for i in range(first, first + more))
            self.__dict__["ignored"] = (*self.ignored, rf"(^|\.){stack}\.({numbers})\.")

    def init_weights(self, module: nn.Module) -> None:
        super().init_weights(module)
        if isinstance(module, Conv1D):
            nn.init.normal_(module.weight, std=self.config.initializer_range * module.gain)
            nn.init.zeros_(module.bias)
        own = getattr(module, "start_values", None)
        if own is not None:
            own(self.config)

    def adapted(self, source: WeightSource) -> WeightSource:
        # Files of released models have one matrix per expert, newer ones all in one tensor.
        experts = self.design.experts
        return source if experts is None else Unstacked(source, experts.files)

    def filed(self, weights: dict[str, Any]) -> dict[str, Any]:
        experts = self.design.experts
        return weights if experts is None or experts.files is None else stacked(weights, experts.files)

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings."""
        base = getattr(self, self.base_model_prefix, self)
        return getattr(base.body, base.design.embedding)


class Decoder(DecoderBase):
    """A decoder without its head.

    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.LlamaModel(config)(votive.tensor([[1, 2, 3]])).last_hidden_state.shape
    votive.Size([1, 3, 8])
    """

    layer_class: ClassVar[type[DecoderLayer]] = DecoderLayer

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__(config)
        d = self.design
        if d.body:
            setattr(self, d.body, nn.Module())
        body = self.body
        narrow = d.embedding_width or d.width
        setattr(body, d.embedding, nn.Embedding(d.vocabulary, narrow, padding_idx=d.padding))
        if d.places and d.places_kind == "learned":
            setattr(body, d.places, nn.Embedding(d.positions + d.places_offset, d.width))
        if d.embedding_norm:
            setattr(body, d.embedding_norm, made_norm(d.norm, d.width, d.eps))
        if narrow != d.width:
            into, out = d.embedding_products
            setattr(body, out, nn.Linear(d.width, narrow, bias=False))
            setattr(body, into, nn.Linear(narrow, d.width, bias=False))
        setattr(body, d.stack, nn.ModuleList(self.layer_class(d, i) for i in range(d.layers)))
        if d.last_norm:
            setattr(
                body, d.last_norm, made_norm(d.norm, d.width, d.eps if d.last_norm_eps is None else d.last_norm_eps)
            )
        for rope in d.ropes:
            setattr(self, rope.name, rotary(d, rope))
        self.post_init()

    @property
    def body(self) -> nn.Module:
        """The module that holds embeddings and layers: the model, in most families."""
        name = self.design.body
        return getattr(self, name) if name else self

    @property
    def stack(self) -> nn.ModuleList:
        """The layers."""
        found = getattr(self.body, self.design.stack)
        assert isinstance(found, nn.ModuleList), "made so"
        return found

    def rotations(self, length: int, past: int, position_ids: Tensor | None) -> Callable[[int], Rotate]:
        """What gives, for a layer, the function that turns its queries and keys."""
        d = self.design
        growth = None if d.temper is None else growth_of(d.temper, length, past, position_ids, self.device)
        turns: list[Rotate] = []
        for rope in d.ropes:
            module = getattr(self, rope.name)
            turns.append(Turn(module, module.angles(length, past, position_ids), growth))
        same = Turn(None, None, growth)

        def of(layer: int) -> Rotate:
            which = d.rope(layer)
            return same if which is None else turns[which]

        return of

    def start(self, x: Tensor, past: int, position_ids: Tensor | None, attention_mask: Tensor | None) -> Tensor:
        """The stream before the first layer, from embeddings."""
        d, body = self.design, self.body
        if x.shape[-1] != d.width:
            x = getattr(body, d.embedding_products[0])(x)
        x = point("embed", x)
        if d.places:
            x = x + self.placed(x, past, position_ids, attention_mask)
        if d.embedding_norm:
            x = getattr(body, d.embedding_norm)(x)
        return F.dropout(x, d.embedding_dropout, self.training) if d.embedding_dropout else x

    def placed(self, x: Tensor, past: int, position_ids: Tensor | None, attention_mask: Tensor | None) -> Tensor:
        """Embeddings of positions."""
        d, T = self.design, x.shape[1]
        if position_ids is None:
            if past + T > d.positions and d.places_kind != "sines":
                key = next(k for k in ("n_positions", "max_position_embeddings") if k in vars(self.config))
                raise IndexError(
                    f"{type(self).__name__}: {past + T} positions are asked for; it has learned {key}={d.positions}."
                )
            position_ids = votive.arange(past, past + T, device=x.device)
            if d.places_skip_padding and attention_mask is not None and attention_mask.dim() == 2:
                real = attention_mask.long()
                position_ids = (real.cumsum(1) * real - 1)[:, past:]
        if d.places_kind == "learned":
            found = getattr(self.body, d.places)(position_ids + d.places_offset if d.places_offset else position_ids)
        else:
            found = COMPUTED[d.places_kind](position_ids, d).to(x.dtype)
        return point("pos_embed", found.expand(x.shape)) if wanted("pos_embed") else found

    def embedded(self, input_ids: Tensor | None, inputs_embeds: Tensor | None) -> Tensor:
        x = super().embedded(input_ids, inputs_embeds)
        scale = self.design.embedding_scale
        if scale == 1.0 or (inputs_embeds is not None and not self.scales_given):
            return x
        # Rounded to the type of the weights, as in training.
        return x * votive.tensor(scale, dtype=x.dtype, device=x.device)

    scales_given: ClassVar[bool] = False  # whether `inputs_embeds` are scaled, too
    states_behind: ClassVar[bool] = False  # whether hidden states are those behind layers, not before them

    def biased(
        self, mask: AttentionMask, queries: int, keys: int, real: Tensor | None, device: votive.device
    ) -> AttentionMask:
        """A mask with what falls with the distance of keys, one slope a head; `real` is 0 at padding."""
        if not self.design.alibi:
            return mask
        if real is not None and real.dim() == 4:
            keys = real.shape[-1]  # memory of a static cache, more than there is yet
        return mask.biased(alibi(self.design, queries, keys, real, self.dtype, device))

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
        output_router_logits: bool | None = None,
    ) -> BaseModelOutput:
        d = self.design
        x = self.embedded(input_ids, inputs_embeds)
        cache = past_key_values
        if cache is None and use_cache:
            cache = self.new_cache()
        T = x.shape[1]
        past = 0 if cache is None else cache.get_seq_length()
        x = self.start(x, past, position_ids, attention_mask)
        rope = self.rotations(T, past, position_ids)
        if cache is not None:
            for own in d.ropes:
                getattr(self, own.name).check_cache(cache)
        masks: dict[tuple[int | None, int | None], AttentionMask] = {}
        trace = Trace(output_attentions, output_hidden_states)
        device = x.device

        def arguments(i: int, layer: nn.Module) -> tuple[Any, ...]:
            sight = sees(d, i, layer)
            if sight not in masks:
                window, chunk = sight
                found = causal_mask(attention_mask, T, past + T, window=window, chunk=chunk, cache=cache, device=device)
                masks[sight] = self.biased(found, T, past + T, attention_mask, device)
            return rope(i), masks[sight], cache, trace.weights

        norm = getattr(self.body, d.last_norm) if d.last_norm else None
        last, norm = (norm, None) if self.states_behind and trace.keeps_states else (None, norm)
        routers = self._routers(output_router_logits)
        logits: list[Tensor] = []
        if routers:
            with heard(routers, logits):
                x = run_layers(self.stack, DecoderLayer, x, norm, trace, arguments)
        else:
            x = run_layers(self.stack, DecoderLayer, x, norm, trace, arguments)
        if last is not None:
            x = open_norm(last, x, "ln_final")
            trace.add_state(x)
        if d.embedding_width not in (None, d.width):
            x = getattr(self.body, d.embedding_products[1])(x)
        states = trace.hidden_states
        found: dict[str, Any] = {
            "last_hidden_state": x,
            "past_key_values": cache,
            "hidden_states": None if states is None else (*states[last is not None : -1], x),
            "attentions": trace.attentions,
        }
        if d.experts is None:
            return BaseModelOutput(**found)
        return MoeModelOutput(**found, router_logits=tuple(logits) if logits else None)

    def new_cache(self) -> nn.KVCache:
        """An empty cache, for texts that begin."""
        return nn.DynamicCache()

    def _routers(self, asked: bool | None) -> list[nn.Module]:
        if self.design.experts is None:
            if asked:
                raise ValueError(f"{type(self).__name__}: output_router_logits=True, but it has no experts.")
            return []
        wants = getattr(self.config, "output_router_logits", False) if asked is None else asked
        return [m.router for m in self.modules() if isinstance(m, Mixture)] if wants else []


class Turn:
    """Rotates queries or keys by angles that are looked up already; `growth` is what queries may be multiplied by."""

    def __init__(self, module: nn.Module | None, angles: Any, growth: Tensor | None = None) -> None:
        self.module, self.angles, self.growth = module, angles, growth

    def __call__(self, part: Tensor) -> Tensor:
        return part if self.module is None else self.module.rotate(part, self.angles)


def growth_of(temper: Temper, length: int, past: int, position_ids: Tensor | None, device: votive.device) -> Tensor:
    """What queries are multiplied by, (batch or 1, 1, positions, 1) in float32.

    >>> from votive.models.decoder.design import Temper
    >>> votive.models.decoder.model.growth_of(Temper(weight=1.0, length=2), 3, 0, None, "cpu").flatten()
    tensor([1.0000, 1.0000, 1.6931])
    """
    at = votive.arange(past, past + length, device=device)
    if position_ids is not None and temper.by_ids:
        at = position_ids
    steps = ((at.float() + temper.first) / temper.length).floor()
    grown = 1 + temper.weight * votive.log1p(steps)
    return grown.view(-1, 1, length, 1)


def rotary(d: Design, rope: Rope) -> nn.RotaryEmbedding:
    """The rotary embedding that a design describes.

    >>> votive.models.decoder.model.rotary(votive.models.LlamaConfig().design, votive.models.decoder.Rope())
    RotaryEmbedding(128, max_position_embeddings=2048, base=10000.0)
    """
    features = rope.features or int(d.head_dim * rope.part)
    return nn.RotaryEmbedding(features, d.positions, rope.theta, scaling=rope.scaling, interleaved=rope.interleaved)


class DecoderForCausalLM(DecoderBase, DecoderLM):
    """A decoder with a head that predicts the next token.

    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.LlamaForCausalLM(config)(votive.tensor([[1, 2, 3]])).logits.shape
    votive.Size([1, 3, 10])
    """

    model_class: ClassVar[type[Decoder]] = Decoder

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__(config)
        d = self.design
        setattr(self, self.base_model_prefix, self.model_class(config))
        setattr(self, d.head, nn.Linear(d.embedding_width or d.width, d.vocabulary, bias=d.head_bias))
        self.post_init()

    def scores(self, x: Tensor) -> Tensor:
        d = self.design
        logits = getattr(self, d.head)(x)
        if d.logit_scale != 1.0:
            logits = logits * d.logit_scale
        return logits if d.logit_cap is None else d.logit_cap * votive.tanh(logits / d.logit_cap)

    def predictions(
        self, found: BaseModelOutput, labels: Tensor | None, logits_to_keep: int, attention_mask: Tensor | None
    ) -> CausalLMOutput | MoeCausalLMOutput:
        made = super().predictions(found, labels, logits_to_keep, attention_mask)
        experts = self.design.experts
        if experts is None:
            return made
        made = MoeCausalLMOutput(**dict(made.items()))
        made.router_logits = logits = found.router_logits if isinstance(found, MoeModelOutput) else None
        # Of padding only a mask of positions tells.
        told = attention_mask is None or attention_mask.dim() == 2
        if logits and experts.balanced and not told and made.loss is not None:
            raise ValueError(
                f"{type(self).__name__}: an even use of experts is told by an attention_mask (batch, positions) alone."
            )
        if logits and experts.balanced and told:
            made.aux_loss = load_balancing_loss(logits, experts.chosen, attention_mask)
            if made.loss is not None:
                made.loss = made.loss + self.config.router_aux_loss_coef * made.aux_loss
        return made

    def fused_decoder(self) -> FusedDecoder | None:
        from ..fused_decoder import FusedDecoder

        return FusedDecoder.of(self)


@contextmanager
def heard(modules: Sequence[nn.Module], found: list[Tensor]) -> Iterator[None]:
    """Put the results of modules into a list while the block runs, in the order of their calls.

    >>> layer, found = votive.nn.Linear(2, 2), []
    >>> with votive.models.decoder.model.heard([layer], found):
    ...     _ = layer(votive.ones(1, 2))
    >>> len(found)
    1
    """
    handles = [m.register_forward_hook(lambda m, args, y: found.append(y)) for m in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
