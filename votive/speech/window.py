"""One window of sound in a model: encoded once, then looked up by every search in it.

Knows how a model is run; chooses no rules and cuts no text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import votive
from votive.nn import functional as F

from ..generation import generate as search
from ..models.cross_cache import EncoderDecoderCache
from ..models.output import BaseModelOutput, EncoderOutput
from ..models.seq2seq import encoded
from ..tensor import Tensor

if TYPE_CHECKING:
    from ..generation.output import GenerateOutput
    from ..models.whisper import WhisperForConditionalGeneration as Whisper

Encoded = BaseModelOutput | EncoderOutput | tuple[Tensor, ...]


@dataclass(frozen=True)
class Hypothesis:
    """What a search wrote for one sound."""

    tokens: list[int]  # new ones, the end included where it came
    mean: float  # of the tokens' log probabilities
    total: float


class Window:
    """Windows of sound (batch, mels, frames) that a model has heard, or what its encoder gave."""

    def __init__(self, model: Whisper, features: Tensor | None = None, encoder_outputs: Encoded | None = None) -> None:
        self.model = model
        with votive.no_grad():
            if encoder_outputs is None:
                assert features is not None, "a window needs features or encoder_outputs"
                like = model.proj_out.weight
                encoder_outputs = model.get_encoder()(features.to(device=like.device, dtype=like.dtype))
            states = encoded(encoder_outputs).last_hidden_state
            assert states is not None
            self.states: Tensor = states
            self.cache = EncoderDecoderCache()
            model.model.decoder.look(self.states, self.cache)
        self._logits: dict[tuple[tuple[int, ...], ...], Tensor] = {}

    def __len__(self) -> int:
        return int(self.states.shape[0])

    def logits(self, ids: list[list[int]]) -> Tensor:
        """What the model says after texts of one length, (batch, vocabulary) in float32."""
        key = tuple(map(tuple, ids))
        if key not in self._logits:
            with votive.no_grad():
                out = self.model(
                    encoder_outputs=(self.states,),
                    past_key_values=self.cache.another(),
                    decoder_input_ids=self._tensor(ids),
                    logits_to_keep=1,
                )
            self._logits = {key: out.logits[:, -1].float()}  # only the last is asked for again
        return self._logits[key]

    def _tensor(self, ids: list[int] | list[list[int]]) -> Tensor:
        return votive.tensor(ids, dtype=votive.int64, device=self.states.device)

    def search(self, ids: list[list[int]], rows: list[int] | None = None, **settings: Any) -> GenerateOutput:
        """Continue texts of one length, one for each of `rows` (None: all); a GenerateOutput."""
        states = self.states if rows is None else self.states.index_select(0, self._tensor(rows))
        cache: Any = self.cache.another(None if rows is None else self._tensor(rows))
        return search(
            self.model,
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            decoder_input_ids=self._tensor(ids),
            past_key_values=cache,
            return_dict_in_generate=True,
            **settings,
        )

    def attention(self, ids: list[int], heads: list[list[int]], row: int = 0) -> tuple[Tensor, Tensor]:
        """Cross attention (heads, positions, sounds) of one text, in the order of `heads`
        [layer, head], and its logits (positions, vocabulary)."""
        from ..models.whisper_layers import Chosen

        by_layer: dict[int, list[int]] = {}
        for layer, head in heads:
            by_layer.setdefault(int(layer), []).append(int(head))
        found = Chosen(by_layer)
        decoder = self.model.model.decoder
        only = self._tensor([row])
        states = self.states.index_select(0, only)
        cache = self.cache.another(None if len(self) == 1 else only)
        with votive.no_grad():
            x = decoder.embed_tokens(self._tensor([ids]))
            out, _ = decoder(x, None, states, cache, crossed=found)
            logits = self.model.proj_out(out.last_hidden_state)[0].float()
        maps = {
            (layer, head): weights[0, i].float() for layer, weights in found for i, head in enumerate(by_layer[layer])
        }
        return votive.stack([maps[int(layer), int(head)] for layer, head in heads]), logits


def hypotheses(found: GenerateOutput, start: int, end: int, pad: int | None, temperature: float) -> list[Hypothesis]:
    """The texts of a search and how likely they were; `start` is the length of the prompt."""
    rows = found.sequences[:, start:].tolist()
    out = []
    for i, row in enumerate(rows):
        tokens = _ended(row, end, pad)
        logs = _logs(found, i, tokens, temperature)
        total = float(sum(logs))
        out.append(Hypothesis(tokens, total / max(len(tokens), 1), total))
    return out


def _ended(row: list[int], end: int, pad: int | None) -> list[int]:
    if end in row:
        return row[: row.index(end) + 1]
    while row and row[-1] == pad:
        row = row[:-1]
    return row


def _logs(found: GenerateOutput, row: int, tokens: list[int], temperature: float) -> list[float]:
    """The log probability of each token, as it was before the temperature."""
    if found.scores is None or not tokens:
        return [0.0] * len(tokens)
    beams = None if found.beam_indices is None else found.beam_indices[row].tolist()
    picked = votive.stack(
        [scores[row if beams is None else beams[i]] for i, scores in enumerate(found.scores[: len(tokens)])]
    )
    if temperature:
        picked = picked * temperature
    index = votive.tensor(tokens, device=picked.device).unsqueeze(1)
    return F.log_softmax(picked.float(), -1).gather(1, index).squeeze(1).tolist()
