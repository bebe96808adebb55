"""`generate`: continue texts, as transformers' method of that name does."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import votive
from votive import nn

from ..tensor import Tensor
from .allowed import Allowed
from .assisted import assisted, from_prompt
from .beams import beam_search
from .config import GenerationConfig, names
from .contrastive import contrastive
from .groups import group_beam_search
from .loop import Step, search
from .output import Acceptance, GenerateOutput
from .prefix import PrefixCache
from .preparing import Task, prepare, settings_of
from .prompts import Ids
from .stepping import Model, Wanted
from .stopping import Criterion
from .warpers import Processor

if TYPE_CHECKING:
    from ..text import Tokenizer
    from .streaming import BaseStreamer

# Arguments of models that `generate` fills in itself, or that make no sense to it.
_OWN = {
    *("self", "options", "kwargs", "input_ids", "attention_mask", "position_ids", "past_key_values", "inputs_embeds"),
    *("labels", "use_cache", "output_attentions", "output_hidden_states", "logits_to_keep", "token_type_ids"),
    *("encoder_outputs", "decoder_input_ids", "decoder_attention_mask", "decoder_inputs_embeds", "return_dict"),
    *("cross_attention_mask", "encoder_hidden_states", "encoder_attention_mask", "output_router_logits"),
}


def generate(
    model: Model,
    input_ids: Ids | None = None,
    *,
    attention_mask: Ids | None = None,
    generation_config: GenerationConfig | None = None,
    logits_processor: Processor | list[Processor] | None = None,
    stopping_criteria: Criterion | list[Criterion] | None = None,
    prefix_allowed_tokens_fn: Allowed | None = None,
    streamer: BaseStreamer | None = None,
    tokenizer: Tokenizer | None = None,
    assistant_model: Model | None = None,
    assistant_tokenizer: Tokenizer | None = None,
    negative_prompt_ids: Tensor | None = None,
    negative_prompt_attention_mask: Tensor | None = None,
    inputs_embeds: Tensor | None = None,
    past_key_values: nn.KVCache | PrefixCache | None = None,
    generator: votive.Generator | None = None,
    decoder_input_ids: Tensor | None = None,
    encoder_outputs: Any = None,
    **settings: Any,
) -> Any:
    """Continue texts: ids (batch, positions), the prompts included, or a `GenerateOutput`.

    `settings` are those of `GenerationConfig`, and inputs that the model takes besides ids (such as pictures), which go
    to it with the prompt. Prompts of a batch are padded on the left, as
    `attention_mask` or `pad_token_id` tells; lists of different lengths are padded here. Rows that
    end early are filled with `pad_token_id`. With nothing else said, 20 tokens are added greedily.

    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2, eos_token_id=None)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> votive.generation.generate(model, [[1, 2, 3]], max_new_tokens=4).shape
    votive.Size([1, 7])
    """
    if streamer is not None and not (hasattr(streamer, "put") and hasattr(streamer, "end")):
        raise TypeError(f"generate: streamer needs put and end, got {type(streamer).__name__}.")
    if assistant_model is not None and not hasattr(assistant_model, "config"):
        raise TypeError(f"generate: assistant_model must be a model, got {type(assistant_model).__name__}.")
    inputs, settings = split(model, settings)
    config = settings_of(model, generation_config, settings)
    wanted = Wanted(bool(config.output_attentions), bool(config.output_hidden_states))
    task = prepare(
        model,
        input_ids,
        attention_mask=attention_mask,
        config=config,
        logits_processor=logits_processor,
        stopping_criteria=stopping_criteria,
        tokenizer=tokenizer,
        past_key_values=past_key_values,
        generator=generator,
        wanted=wanted,
        decoder_input_ids=decoder_input_ids,
        encoder_outputs=encoder_outputs,
        prefix_allowed_tokens_fn=prefix_allowed_tokens_fn,
        negative_prompt_ids=negative_prompt_ids,
        negative_prompt_attention_mask=negative_prompt_attention_mask,
        inputs_embeds=inputs_embeds,
        inputs=inputs,
    )
    collector = Collector(bool(config.output_scores), bool(config.output_logits), wanted)
    acceptance = None
    whole = bool(config.return_dict_in_generate)
    if config.beams > 1:
        if config.prompt_lookup_num_tokens:
            raise ValueError("generate: prompt_lookup_num_tokens does not go with beams.")
        if assistant_model is not None or streamer is not None:
            raise ValueError("generate: beams go neither with a streamer nor an assistant_model.")
        best = (group_beam_search if config.groups > 1 else beam_search)(task, collector)
        found = GenerateOutput(sequences=best.sequences, finish_reasons=best.reasons)
        found.sequences_scores = best.scores if config.output_scores else None
        found.beam_indices = best.rows
        return _returned(found, task, collector, whole)
    steps, acceptance = steps_of(task, assistant_model, tokenizer, assistant_tokenizer)
    columns = collect(task, steps, collector, streamer)
    found = GenerateOutput(sequences=_sequences(task, columns), finish_reasons=collector.reasons)
    found.acceptance = acceptance
    return _returned(found, task, collector, whole)


def split(model: Model, settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Further inputs of the model, and settings."""
    known = set(names())
    others = [n for n in settings if n not in known]
    if not others or not isinstance(model, nn.Module):
        return {}, settings
    taken = set(inspect.signature(model.forward).parameters) - _OWN
    inputs = {n: settings[n] for n in others if n in taken and settings[n] is not None}
    return inputs, {n: v for n, v in settings.items() if n in known or n not in taken}


def steps_of(
    task: Task, assistant_model: Model | None, tokenizer: Tokenizer | None, assistant_tokenizer: Tokenizer | None
) -> tuple[Iterator[Step], Acceptance | None]:
    """The steps of the search that was asked for, and how its drafts do."""
    config = task.config
    drafting = assistant_model is not None or bool(config.prompt_lookup_num_tokens)
    if assistant_tokenizer is not None and assistant_model is None:
        raise ValueError("generate: assistant_tokenizer is that of an assistant_model; give that too.")
    if not drafting:
        return (contrastive(task) if config.penalty_alpha else search(task)), None
    if assistant_model is not None and config.prompt_lookup_num_tokens:
        raise ValueError(
            "generate: drafts come from an assistant_model or from prompt_lookup_num_tokens, not from both."
        )
    acceptance = Acceptance()
    if assistant_model is None:
        return from_prompt(task, acceptance), acceptance
    return assisted(task, assistant_model, acceptance, tokenizer, assistant_tokenizer), acceptance


def _returned(found: GenerateOutput, task: Task, collector: Collector, whole: bool) -> Any:
    if not whole:
        return found.sequences
    found.past_key_values = task.prefix or task.stepper.cache
    collector.fill(found, task)
    return found


class Collector:
    """What is collected of the steps; only what was asked for is held."""

    def __init__(self, scores: bool, logits: bool, wanted: Wanted) -> None:
        self.wanted = wanted
        self.scores: list[Any] | None = [] if scores else None
        self.logits: list[Any] | None = [] if logits else None
        self.attentions: list[Any] = []
        self.cross: list[Any] = []
        self.hidden: list[Any] = []
        self.reasons: list[Any] = []

    def add(self, step: Step) -> None:
        """Take from a step what is wanted."""
        self.reasons = step.reasons
        if self.scores is not None:
            self.scores.append(step.scores)
        if self.logits is not None:
            self.logits.append(step.logits)
        if step.fed is None:
            return
        if self.wanted.attentions:
            self.attentions.append(step.fed.attentions)
            self.cross.append(step.fed.cross_attentions)
        if self.wanted.hidden_states:
            self.hidden.append(step.fed.hidden_states)

    def fill(self, found: GenerateOutput, task: Task) -> None:
        """Put all into the record."""
        found.scores = None if self.scores is None else tuple(self.scores)
        found.logits = None if self.logits is None else tuple(self.logits)
        attentions = tuple(self.attentions) if self.wanted.attentions else None
        hidden = tuple(self.hidden) if self.wanted.hidden_states else None
        if task.encoder is None:
            found.attentions, found.hidden_states = attentions, hidden
            return
        found.decoder_attentions, found.decoder_hidden_states = attentions, hidden
        found.cross_attentions = tuple(self.cross) if self.wanted.attentions else None
        found.encoder_attentions = task.encoder.attentions
        found.encoder_hidden_states = task.encoder.hidden_states


def collect(task: Task, steps: Iterator[Step], collector: Collector, streamer: BaseStreamer | None) -> list[list[int]]:
    """Run all steps; gives the tokens of each."""
    columns = []
    if streamer is not None:
        if len(task.prompts) > 1:
            raise ValueError(f"generate: a streamer takes one text, got {len(task.prompts)} rows.")
        streamer.put(task.ids)
    for step in steps:
        collector.add(step)
        columns.append(step.tokens)
        if streamer is not None:
            streamer.put(votive.tensor(step.tokens))
    if streamer is not None:
        streamer.end()
    return columns


def _sequences(task: Task, columns: list[list[int]]) -> Tensor:
    new = votive.tensor(columns, dtype=task.ids.dtype, device=task.ids.device).transpose(0, 1)
    return votive.cat([task.ids, new], 1)
