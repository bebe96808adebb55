"""The next token of each row: every row has its own settings, and those with equal ones are done together.

Texts are those of `generate` with the same settings and seed: the same processors in the same order, the same streams
of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import votive
from votive.nn import functional as F

from ..generation.drawing import Stream, best, drawn
from ..generation.grammar import GrammarLogitsProcessor, asked
from ..generation.processing import processors_for
from ..tensor import Tensor
from .events import Chosen

if TYPE_CHECKING:
    from ..generation import GenerationConfig

# Settings that look at the scores of the moment alone.
_MOMENTARY = ("temperature", "top_h", "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff")


class Chooser:
    """How one text's tokens are chosen.

    >>> from votive.serve.sampling import Chooser
    >>> config = votive.generation.GenerationConfig(do_sample=False).resolved()
    >>> Chooser(config, [1, 2], 10, None, None, None).key
    ('greedy',)
    """

    def __init__(
        self,
        config: GenerationConfig,
        prompt: Sequence[int],
        max_length: int,
        stream: Stream | None,
        model: Any,
        tokenizer: Any,
    ) -> None:
        self.prompt, self.stream = len(prompt), stream if config.do_sample else None
        self.processors = processors_for(
            config, prompt_length=len(prompt), max_length=max_length, model=model, tokenizer=tokenizer
        )
        self.vocabulary = 1 if model is None else int(model.config.vocab_size)
        self._followers: list[Any] = [p for p in self.processors if hasattr(p, "follow")]
        self._following = False
        self.key = self._key(config)

    def _key(self, config: GenerationConfig) -> tuple[Any, ...] | None:
        """Equal for rows that can be done together; None for one that is done alone."""
        if any(getattr(p, "reads", True) for p in self.processors) or asked(config):
            return None
        if not self.processors and self.stream is None:
            return ("greedy",)
        if config.sequence_bias or config.suppress_tokens or config.exponential_decay_length_penalty:
            return None
        if config.remove_invalid_values or config.renormalize_logits or config.watermarking_config:
            return None
        return (bool(config.do_sample), *(getattr(config, name) for name in _MOMENTARY))

    def try_form(self) -> None:
        """Raise for a form with which no text can begin, before anybody waits for it."""
        for processor in self.processors:
            if isinstance(processor, GrammarLogitsProcessor):
                allowed = processor(votive.zeros(1, self.prompt, dtype=votive.int64), votive.zeros(1, self.vocabulary))
                if not bool((allowed == 0).any()):
                    raise ValueError(f"{processor.kind}: no text has this form, or it is too large to be followed.")

    def follow(self, ids: Sequence[int], newest: int | None, size: int) -> None:
        """Tell what counts tokens of the newest one."""
        for processor in self._followers:
            if not self._following or newest is None:
                processor.follow(votive.tensor([list(ids)], dtype=votive.int64), size)
            else:
                processor.add(votive.tensor([newest], dtype=votive.int64))
        self._following = True

    def scores(self, ids: Sequence[int], logits: Tensor) -> Tensor:
        """What is chosen by, of logits (1, vocabulary)."""
        read = votive.tensor([list(ids)], dtype=votive.int64, device=logits.device) if self.processors.read else None
        return self.processors(read, logits)  # type: ignore[arg-type]  # None where nobody reads


def chosen(rows: Sequence[tuple[Chooser, Sequence[int], bool]], logits: Tensor) -> list[int | Exception]:
    """A token for each row (its chooser, ids so far, whether this is its first), of logits (rows, vocabulary).

    A row of which nothing can be chosen has the error in its place; the others are not concerned.
    """
    found: list[Any] = [None] * len(rows)
    groups: dict[Any, list[int]] = {}
    for i, (chooser, ids, first) in enumerate(rows):
        chooser.follow(ids, None if first else ids[-1], int(logits.shape[-1]))
        groups.setdefault(("alone", i) if chooser.key is None else chooser.key, []).append(i)
    for members in groups.values():
        some = logits if len(members) == len(rows) else logits[votive.tensor(members, device=logits.device)]
        try:
            tokens = _of_group([rows[i] for i in members], some)
        except Exception as error:
            if len(members) > 1:
                for i in members:  # one of them is to blame
                    found[i] = _alone(rows[i], logits[i : i + 1])
                continue
            found[members[0]] = error
            continue
        for i, token in zip(members, tokens, strict=True):
            found[i] = token
    return found


def _alone(row: tuple[Chooser, Sequence[int], bool], logits: Tensor) -> int | Exception:
    try:
        return _of_group([row], logits)[0]
    except Exception as error:
        return error


def _of_group(rows: Sequence[tuple[Chooser, Sequence[int], bool]], logits: Tensor) -> list[int]:
    scores = rows[0][0].scores(rows[0][1], logits)
    streams = [chooser.stream for chooser, _, _ in rows]
    if streams[0] is None:
        tokens = best(scores)
    else:
        numbers = [s.next() for s in streams if s is not None]
        try:
            tokens = drawn(scores, numbers)
        except Exception:
            for stream, number in zip(streams, numbers, strict=True):
                assert stream is not None, "rows done together all draw"
                stream._left.append(number)  # nothing was drawn: the row gets the same number again
            raise
    return [int(t) for t in tokens.tolist()]


def described(logits: Tensor, token: int, top: int | None) -> Chosen:
    """A token with its log probability as the model gave it, and the likeliest ones; nothing where not asked for.

    >>> from votive.serve.sampling import described
    >>> described(votive.tensor([-votive.inf, 0.0]), 1, 1)
    Chosen(token=1, logprob=0.0, top=((1, 0.0),))
    """
    if top is None:
        return Chosen(token)
    logprobs = F.log_softmax(logits, -1)
    best_of: tuple[tuple[int, float], ...] = ()
    if top:
        values, indices = votive.topk(logprobs, min(top, int(logprobs.shape[-1])))
        best_of = tuple(zip(indices.tolist(), values.tolist(), strict=True))
    return Chosen(token, float(logprobs[token]), best_of)
