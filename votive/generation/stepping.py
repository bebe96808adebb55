"""Running a model on what is new: one way for decoders, one for encoders with a decoder.

A stepper holds the cache and knows which ids it has seen, so a loop only says what the ids are by
now. It chooses no tokens.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

import votive
from votive import nn
from votive.nn import functional as F

from ..nn.layers.kv_storage import CacheDtype
from ..tensor import Tensor


class Model(Protocol):
    """What is asked of a model that continues texts: a call, and the numbers it was made from.

    The call takes ids and `past_key_values`, `use_cache`, `logits_to_keep`, … by name, and gives a
    record with `logits`.
    """

    config: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...


@dataclass(frozen=True)
class StepOutput:
    """What a run gave for the newest positions."""

    logits: Any  # (batch, positions asked for, vocabulary), float32
    attentions: Any = None
    hidden_states: Any = None
    cross_attentions: Any = None


@dataclass(frozen=True)
class Wanted:
    """What is asked of every run besides the logits."""

    attentions: bool = False
    hidden_states: bool = False


class DecoderStepper:
    """A decoder: the prompt and what follows are one sequence.

    `mask` is that of what the model reads first, (batch, positions), or None when nothing is padding. `embeds` (batch,
    positions, features) are read instead of the first `prompt` ids; `inputs` are given to the model with the first
    positions. Lengths of texts are those of ids, `max_length` and the cache count the model's positions.
    """

    def __init__(
        self,
        model: Model,
        *,
        cache: nn.KVCache | None = None,
        mask: Tensor | None = None,
        max_length: int,
        chunk: int | None = None,
        wanted: Wanted | None = None,
        embeds: Tensor | None = None,
        prompt: int = 0,
        inputs: dict[str, Any] | None = None,
    ) -> None:
        self.model, self.cache, self.chunk = model, cache, chunk
        self.wanted = wanted or Wanted()
        self.embeds, self.prompt, self.inputs = embeds, prompt, inputs or {}
        self.ahead = 0 if embeds is None else int(embeds.shape[1]) - prompt
        # Those whose angles depend on how long the text is.
        self._ropes = (
            [m for m in model.modules() if isinstance(m, nn.RotaryEmbedding) and m.depends_on_length]
            if isinstance(model, nn.Module)
            else []
        )
        self.mask: Any = None
        self.positions: Any = None
        if mask is not None:
            rest = mask.new_ones((mask.shape[0], max_length - mask.shape[1]))
            self.mask = votive.cat([mask, rest], 1)
            # Padding has no position; that of the first token will do, as nobody sees it.
            self.positions = (self.mask.cumsum(1) - 1).clamp(min=0)

    def seen(self) -> int:
        """How many positions need not be run again."""
        return 0 if self.cache is None else int(self.cache.get_seq_length())

    def outgrown(self, length: int) -> bool:
        """Whether what the cache holds of a text is of no use once it has `length` positions."""
        if not self._ropes or not self.seen():
            return False
        assert self.cache is not None, "positions were seen"
        stretch = self.cache.stretch
        stretch = self._ropes[0].stretch(self.seen()) if stretch is None else stretch
        return stretch != self._ropes[0].stretch(self._reach(length))

    def together(self, length: int, count: int) -> int:
        """How many of `count` positions behind `length` can be run as if each came alone."""
        if self._ropes:
            stretch = self._ropes[0].stretch
            while count and stretch(self._reach(length + count)) != stretch(self._reach(length)):
                count -= 1
        return count

    def _reach(self, length: int) -> int:
        """How many positions the longest row has within the first `length` ids."""
        length += self.ahead
        return length if self.positions is None else int(self.positions[:, :length].max()) + 1

    def feed(self, ids: Tensor, keep: int = 1) -> StepOutput:
        """Run what is new in ids (batch, positions); gives the logits of the last `keep`."""
        if self.cache is not None and self.outgrown(ids.shape[1]):
            self.cache.reset()
        with ExitStack() as stack:
            for rope in self._ropes:
                stack.enter_context(rope.for_length(self._reach(ids.shape[1])))
            return self._feed(ids, keep)

    def _feed(self, ids: Tensor, keep: int) -> StepOutput:
        start, length = self.seen(), ids.shape[1] + self.ahead
        if self.embeds is not None:
            ids = self._embedded(ids, start)
        if self.chunk is None or self.cache is None or length - start <= self.chunk:
            return self._run(ids[:, start:], start, keep)
        # What is asked for lies in the last chunk, whatever its length.
        last = max(start, length - max((length - start - 1) % self.chunk + 1, keep))
        parts = [self._run(ids[:, at : min(at + self.chunk, last)], at, 1) for at in range(start, last, self.chunk)]
        return _concatenated([*parts, self._run(ids[:, last:], last, keep)])

    def _embedded(self, ids: Tensor, start: int) -> Tensor:
        """What stands for the model's positions: embeddings, or ids where those in front are not run any more."""
        assert self.embeds is not None
        rest = ids[:, self.prompt :]
        if start >= self.embeds.shape[1]:
            # What stands in front is not looked at.
            return votive.cat([ids.new_zeros((ids.shape[0], self.embeds.shape[1])), rest], 1)
        if not rest.shape[1]:
            return self.embeds
        table: Any = self.model
        return votive.cat([self.embeds, table.get_input_embeddings()(rest)], 1)

    def advance(self, tokens: Tensor) -> StepOutput:
        """Run one more token (batch, 1) per row; the cache has all before it."""
        return self._run(tokens, self.seen(), 1)

    def _run(self, ids: Tensor, start: int, keep: int) -> StepOutput:
        """Run ids, or embeddings, that begin at position `start`."""
        given: dict[str, Any] = {} if start else dict(self.inputs)
        if self.mask is not None:
            stop = start + ids.shape[1]
            given["attention_mask"] = self.mask[:, :stop]
            given["position_ids"] = self.positions[:, start:stop]
        if self.wanted.attentions:
            given["output_attentions"] = True
        if self.wanted.hidden_states:
            given["output_hidden_states"] = True
        if ids.dim() == 3:
            given["inputs_embeds"] = ids
        read = () if ids.dim() == 3 else (ids,)
        out = self.model(
            *read, past_key_values=self.cache, use_cache=self.cache is not None, logits_to_keep=keep, **given
        )
        return StepOutput(
            out.logits[:, -keep:].float(),
            out.attentions if self.wanted.attentions else None,
            out.hidden_states if self.wanted.hidden_states else None,
        )

    def reorder(self, index: Tensor) -> None:
        """Let the rows be those at `index`."""
        if self.cache is not None:
            self.cache.reorder(index)
        # Rows of a beam search come from the same prompt, so mask and positions stay.

    def expand(self, index: Tensor) -> None:
        """Let the rows be those at `index`, with what belongs to them; they may become more or fewer."""
        if self.cache is not None:
            self.cache.reorder(index)
        if self.mask is not None:
            self.mask, self.positions = self.mask.index_select(0, index), self.positions.index_select(0, index)
        if self.embeds is not None:
            self.embeds = self.embeds.index_select(0, index)

    def crop(self, length: int) -> None:
        """Forget all ids from `length` on."""
        if self.cache is not None:
            self.cache.crop(length + self.ahead)


class Seq2SeqStepper(DecoderStepper):
    """An encoder that runs once, and a decoder that looks at what it gave."""

    def __init__(
        self,
        model: Model,
        *,
        encoder_outputs: Any,
        encoder_mask: Tensor | None = None,
        cache: nn.KVCache | None = None,
        wanted: Wanted | None = None,
    ) -> None:
        super().__init__(model, cache=cache, max_length=0, wanted=wanted)
        self.encoder_outputs, self.encoder_mask = encoder_outputs, encoder_mask

    def _run(self, ids: Tensor, start: int, keep: int) -> StepOutput:
        given: dict[str, Any] = {}
        if self.wanted.attentions:
            given["output_attentions"] = True
        if self.wanted.hidden_states:
            given["output_hidden_states"] = True
        if getattr(self.model, "takes_logits_to_keep", False):
            given["logits_to_keep"] = keep
        out = self.model(
            attention_mask=self.encoder_mask,
            encoder_outputs=self.encoder_outputs,
            decoder_input_ids=ids,
            past_key_values=self.cache,
            use_cache=self.cache is not None,
            **given,
        )
        # The model adds to an empty cache what the decoder looks up in the encoder.
        self.cache = out.past_key_values if self.cache is not None else None
        return StepOutput(
            out.logits[:, -keep:].float(),
            out.decoder_attentions if self.wanted.attentions else None,
            out.decoder_hidden_states if self.wanted.hidden_states else None,
            out.cross_attentions if self.wanted.attentions else None,
        )


def _concatenated(parts: list[StepOutput]) -> StepOutput:
    """What several runs over neighbouring positions gave, as if it had been one."""
    last = parts[-1]
    if last.attentions is None and last.hidden_states is None:
        return last
    states = attentions = None
    if last.hidden_states is not None:
        layers = zip(*(p.hidden_states for p in parts), strict=True)
        states = tuple(votive.cat(list(layer), 1) for layer in layers)
    if last.attentions is not None:
        keys = last.attentions[0].shape[-1]
        layers = zip(*(p.attentions for p in parts), strict=True)
        # Positions that came later are not seen: their weights are zero.
        attentions = tuple(votive.cat([F.pad(a, (0, keys - a.shape[-1])) for a in layer], 2) for layer in layers)
    return StepOutput(last.logits, attentions, states)


def keeps_states(model: Model) -> bool:
    """Whether layers of a model sum up a text in states, which cannot go back to fewer positions.

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=16, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> votive.generation.stepping.keeps_states(votive.models.LlamaForCausalLM(config))
    False
    """
    return isinstance(model, nn.Module) and any(getattr(m, "keeps_state", False) for m in model.modules())


def sees_part(part: nn.Module) -> bool:
    """Whether a layer sees only a part of a long text: a window, or a chunk.

    >>> votive.generation.stepping.sees_part(votive.nn.Linear(2, 2))
    False
    """
    return getattr(part, "window", None) is not None or getattr(part, "chunk", None) is not None


def cache_for(model: Model, kind: str, max_length: int, dtype: CacheDtype = None) -> nn.KVCache:
    """An empty cache of a kind: "dynamic", "static" (memory taken once), either of them "offloaded", or "sliding"."""
    if kind == "static":
        return nn.StaticCache(max_length, dtype=dtype)
    if kind == "offloaded":
        return nn.OffloadedCache(overwrite=True, dtype=dtype)
    if kind == "offloaded_static":
        return nn.OffloadedStaticCache(max_length, dtype=dtype)
    if kind == "dynamic":
        return nn.DynamicCache(overwrite=True, dtype=dtype)
    config = model.config
    layers = getattr(config, "num_hidden_layers", 0)
    window_of = getattr(config, "window_of", lambda layer: None)
    windows: list[int | None] = [window_of(layer) for layer in range(layers)]
    if not any(windows):
        raise ValueError(
            f"generate: cache_implementation='sliding' needs layers that see a window, and "
            f"{type(model).__name__} has none; use 'dynamic' or 'static'."
        )
    first = windows[0] if len(set(windows)) == 1 else None
    return nn.SlidingWindowCache(windows if first is None else first, overwrite=True, dtype=dtype)
