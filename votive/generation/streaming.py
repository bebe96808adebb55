"""Text while it is written: an iterator of events, and objects that `generate` tells each token.

What is shown is always whole characters, and never a part of a stop string.
"""

from __future__ import annotations

import math
import queue
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import votive
from votive import nn
from votive.nn import functional as F

from ..tensor import Tensor
from .allowed import Allowed
from .config import GenerationConfig
from .loop import Step
from .prefix import PrefixCache
from .preparing import Task, prepare, settings_of
from .prompts import Ids
from .stepping import Model
from .stopping import Criterion
from .warpers import Processor

if TYPE_CHECKING:
    from ..text import Tokenizer


@dataclass(frozen=True)
class Event:
    """One token of a text that is being written.

    `text` is what can be shown by now: several tokens may make up one character, and what may
    begin a stop string waits. `logprob` is the logarithm of the probability that the model gave the
    token, before any processing. The last event says why the text ended: "eos", "length", "stop"
    (then `stop` is the string), "time" or "criteria".

    >>> event = votive.generation.Event(token=5, text="hi", logprob=0.0)
    >>> event.probability, event.finish_reason
    (1.0, None)
    """

    token: int
    text: str
    logprob: float
    finish_reason: str | None = None
    stop: str | None = None

    @property
    def probability(self) -> float:
        """The probability that the model gave the token."""
        return math.exp(self.logprob)


def stream(
    model: Model,
    tokenizer: Tokenizer,
    prompt: str | Ids,
    *,
    generation_config: GenerationConfig | None = None,
    attention_mask: Ids | None = None,
    logits_processor: Processor | list[Processor] | None = None,
    stopping_criteria: Criterion | list[Criterion] | None = None,
    prefix_allowed_tokens_fn: Allowed | None = None,
    assistant_model: Model | None = None,
    assistant_tokenizer: Tokenizer | None = None,
    negative_prompt_ids: Tensor | None = None,
    negative_prompt_attention_mask: Tensor | None = None,
    past_key_values: nn.KVCache | PrefixCache | None = None,
    generator: votive.Generator | None = None,
    **settings: Any,
) -> Iterator[Event]:
    """Continue a prompt, a text or ids, and give an event for each token as it comes.

    Arguments are those of `generate`; mistakes in them are raised at once. Closing the iterator, or
    leaving the loop, ends the work.

    >>> tok = votive.text.train_bpe(["one two two"], vocab_size=260, progress=False)
    >>> config = votive.models.LlamaConfig(vocab_size=260, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2, eos_token_id=None)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> events = list(votive.generation.stream(model, tok, "one", max_new_tokens=3))
    >>> [e.finish_reason for e in events]
    [None, None, 'length']
    """
    from .generating import split, steps_of

    inputs, settings = split(model, settings)
    config = settings_of(model, generation_config, settings)
    if config.beams > 1:
        raise ValueError("stream: beams are known only at their end; use generate.")
    if tokenizer is None:
        raise ValueError("stream: a tokenizer is needed to show text.")
    ids: Any = prompt
    if isinstance(prompt, str):
        ids = [tokenizer(prompt).input_ids]
    elif not isinstance(prompt, votive.Tensor) and prompt and isinstance(prompt[0], int):
        ids = [prompt]
    elif isinstance(prompt, votive.Tensor) and prompt.dim() == 1:
        ids = prompt.unsqueeze(0)
    task = prepare(
        model,
        ids,
        attention_mask=attention_mask,
        config=config,
        tokenizer=tokenizer,
        read=True,
        logits_processor=logits_processor,
        stopping_criteria=stopping_criteria,
        past_key_values=past_key_values,
        generator=generator,
        prefix_allowed_tokens_fn=prefix_allowed_tokens_fn,
        negative_prompt_ids=negative_prompt_ids,
        negative_prompt_attention_mask=negative_prompt_attention_mask,
        inputs=inputs,
    )
    if task.ids.shape[0] != 1:
        raise ValueError(f"stream: one text at a time, got {task.ids.shape[0]}.")
    return _events(task, steps_of(task, assistant_model, tokenizer, assistant_tokenizer)[0])


def _events(task: Task, steps: Iterator[Step]) -> Iterator[Event]:
    assert task.ending.readers is not None
    reader = task.ending.readers[0]
    try:
        for step in steps:
            assert step.texts is not None
            token, reason = step.tokens[0], step.reasons[0]
            with votive.no_grad():
                logprob = F.log_softmax(step.logits, -1)[0, token].item()
            yield Event(token, step.texts[0], logprob, reason, reader.stop)
    finally:
        steps.close()  # type: ignore[attr-defined]


class BaseStreamer:
    """Receives the prompt and each token from `generate`; subclasses define what happens with them.

    >>> class Count(votive.generation.BaseStreamer):
    ...     seen = 0
    ...     def put(self, value): self.seen += value.numel()
    ...     def end(self): pass
    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2, eos_token_id=None)
    >>> count = Count()
    >>> _ = votive.generation.generate(votive.models.LlamaForCausalLM(config), [[1, 2]],
    ...     max_new_tokens=3, streamer=count)
    >>> count.seen
    5
    """

    def put(self, value: Tensor) -> None:
        """Take ids: the prompt (1, positions) first, then one token after the other."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it does with ids.")

    def end(self) -> None:
        """Know that the text has ended."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it does at the end.")


class TextStreamer(BaseStreamer):
    """Prints text as it is written; with `skip_prompt`, without the prompt.

    >>> tok = votive.text.train_bpe(["one two two"], vocab_size=260, progress=False)
    >>> streamer = votive.generation.TextStreamer(tok)
    >>> streamer.put(votive.tensor([tok.encode("one two")]))
    one two
    >>> streamer.end()
    <BLANKLINE>
    """

    def __init__(self, tokenizer: Tokenizer, skip_prompt: bool = False, skip_special_tokens: bool = False) -> None:
        self.tokenizer, self.skip_prompt = tokenizer, skip_prompt
        self.skip_special_tokens = skip_special_tokens
        self._begin()

    def _begin(self) -> None:
        from ..text import StreamingDetokenizer

        self._text = StreamingDetokenizer(self.tokenizer, self.skip_special_tokens)
        self._prompt = True

    def put(self, value: Tensor) -> None:
        """Show the text of ids."""
        if value.dim() > 1 and value.shape[0] > 1:
            raise ValueError(f"{type(self).__name__}: it shows one text, got {value.shape[0]}.")
        prompt, self._prompt = self._prompt, False
        if not (prompt and self.skip_prompt):
            self.on_finalized_text("".join(self._text.add(i) for i in value.flatten().tolist()))

    def end(self) -> None:
        """Show the rest, and begin anew."""
        rest = self._text.finish()
        self._begin()
        self.on_finalized_text(rest, stream_end=True)

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        """Print a piece of text; subclasses do something else with it."""
        print(text, flush=True, end="\n" if stream_end else "")


class TextIteratorStreamer(TextStreamer):
    """Gives text as an iterator, for a `generate` that runs in another thread.

    `timeout` is how many seconds to wait for a piece before `queue.Empty` is raised.

    >>> tok = votive.text.train_bpe(["one two two"], vocab_size=260, progress=False)
    >>> streamer = votive.generation.TextIteratorStreamer(tok)
    >>> streamer.put(votive.tensor([tok.encode("one two")]))
    >>> streamer.end()
    >>> "".join(streamer)
    'one two'
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        skip_prompt: bool = False,
        timeout: float | None = None,
        skip_special_tokens: bool = False,
    ) -> None:
        super().__init__(tokenizer, skip_prompt, skip_special_tokens)
        self.timeout = timeout
        self._pieces: queue.Queue[str | None] = queue.Queue()

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        """Put a piece into the queue."""
        self._pieces.put(text)
        if stream_end:
            self._pieces.put(None)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        piece = self._pieces.get(timeout=self.timeout)
        if piece is None:
            raise StopIteration
        return piece
