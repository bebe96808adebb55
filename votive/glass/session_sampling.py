"""Drawing the next token so that a draw can be repeated. Knows no tree and no model."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import votive

from ..core.rng import Generator
from ..generation.config import DEFAULTS, SAMPLING, GenerationConfig, checked
from ..generation.drawing import best, drawn
from ..generation.preparing import off_value, settings_of
from ..generation.processing import Read, processors_for
from ..nn import Module
from ..tensor import Tensor
from .edit_plan import digest as digest_of
from .session_tree import Outlook

if TYPE_CHECKING:
    from ..text import Tokenizer

# One text, one cache of its own, no search over several: these have no meaning here. What to do instead, where there is
# something else to say than that.
_REFUSED: dict[str, str | None] = {
    **dict.fromkeys(("num_beams", "num_return_sequences", "num_beam_groups", "early_stopping", "length_penalty")),
    **dict.fromkeys(("diversity_penalty", "use_cache", "cache_implementation", "cache_config", "max_cache_len")),
    **dict.fromkeys(("max_time", "prefill_chunk_size", "num_assistant_tokens", "num_assistant_tokens_schedule")),
    **dict.fromkeys(("assistant_confidence_threshold", "prompt_lookup_num_tokens", "max_matching_ngram_size")),
    **dict.fromkeys(("compile", "disable_compile", "low_memory")),
    **dict.fromkeys(("seed", "cache_dtype"), "give {}= to the session"),
    **dict.fromkeys(("penalty_alpha", "dola_layers"), "each token is found from the last logits alone"),
    "guidance_scale": "it runs the model on its own text alone",
    "token_healing": "give the prompt with its last token left out, and choose",
    **dict.fromkeys(("return_dict_in_generate", "output_scores", "output_logits"), "logits(node) gives them"),
    **dict.fromkeys(("output_attentions", "output_hidden_states"), "hidden(...) captures them"),
}


def config_for(model: Module, settings: Mapping[str, Any]) -> GenerationConfig:
    """The settings of a session, over the model's own, over the defaults."""
    _check(settings)
    found = settings_of(model, None, dict(settings))
    # A model's file may ask for beams or another cache; a session has neither.
    return found.updated(**{n: DEFAULTS.get(n) for n in _REFUSED})


def updated(config: GenerationConfig, settings: Mapping[str, Any]) -> GenerationConfig:
    """Other settings; those not named stay."""
    _check(settings)
    new = config.updated(**settings).resolved()
    idle = [n for n in SAMPLING if settings.get(n) not in (None, off_value(n))]
    if idle and not new.do_sample:
        warnings.warn(f"Session: {', '.join(idle)} has no effect without do_sample=True.", stacklevel=3)
    return new


def _check(settings: Mapping[str, Any]) -> None:
    checked(settings)
    for name in _REFUSED:
        if settings.get(name) not in (None, DEFAULTS.get(name)):
            hint = (_REFUSED[name] or "it writes one text at a time").format(name)
            raise ValueError(f"Session: the setting {name!r} does not apply here; {hint}.")


def counter(seed: int, salt: int, position: int) -> bytes:
    """The state of the generator for one draw, from what the draw depends on.

    >>> from votive.glass.session_sampling import counter
    >>> counter(0, 0, 5) == counter(0, 0, 5), counter(0, 0, 5) == counter(0, 1, 5)
    (True, False)
    """
    key = hashlib.blake2b(f"session {seed} {salt}".encode(), digest_size=8).digest()
    generator = Generator().manual_seed(int.from_bytes(key, "little"))
    # Each position has its own counter; a draw takes no more than one of these.
    generator.set_offset(position * 4)
    return generator.get_state()


class Picker:
    """Chooses the token after some others, by the settings."""

    def __init__(
        self,
        config: GenerationConfig,
        tokens: Sequence[int],
        prompt: int,
        *,
        model: Module | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        self.config, self.tokens = config, tokens
        longest = config.max_length or 1 << 62
        if config.max_new_tokens is not None:
            longest = prompt + config.max_new_tokens
        self.processors = processors_for(
            config,
            prompt_length=prompt,
            max_length=longest,
            model=model,
            tokenizer=tokenizer,
            read=Read(votive.tensor([list(tokens[:prompt])], device=getattr(model, "device", None)), None),
        )

    def scores(self, logits: Tensor) -> Tensor:
        """Logits (vocabulary,) after all that the settings do to them."""
        ids = votive.tensor([list(self.tokens)], device=logits.device)
        with votive.no_grad():
            return self.processors(ids, logits.unsqueeze(0).clone())[0]

    def pick(self, logits: Tensor, state: bytes) -> int:
        """The best token, or the one that a generator in this state draws."""
        scores = self.scores(logits)
        if not self.config.do_sample:
            return int(best(scores.unsqueeze(0))[0])
        generator = Generator()
        generator.set_state(state)
        number = float(votive.rand(1, dtype=votive.float64, generator=generator))
        return int(drawn(scores.unsqueeze(0), [number])[0])


def outlook_of(logits: Tensor, count: int, *, digest: bool = True) -> Outlook:
    """Best tokens, entropy and digest of logits (vocabulary,)."""
    with votive.no_grad():
        logs = logits.double().log_softmax(-1)
        p = logs.exp()
        best = votive.topk(p, min(count, p.shape[0]))
        # A forbidden token counts nothing: 0 log 0 is 0.
        entropy = -float((p * logs).nansum())
    ids = tuple(int(i) for i in best[1].tolist())
    values = tuple(float(v) for v in best[0].tolist())
    return Outlook(ids, values, entropy, digest_of(logits) if digest else "")
