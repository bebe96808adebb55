"""Text from token ids that come one at a time. Knows a tokenizer's decoder; knows no model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .stages import CleanUp, Stage, build

if TYPE_CHECKING:
    from .tokenizer import Tokenizer


class StreamingDetokenizer:
    """Turns ids into text as they come: all that `add` and `finish` return is `decode` of all ids.

    A character whose bytes are spread over several tokens is returned once it is complete, so the
    text is always valid. The time for a token does not depend on how many came before.

    >>> tok = votive.text.train_bpe(["hello hello"], vocab_size=270, progress=False)
    >>> stream = votive.text.StreamingDetokenizer(tok)
    >>> [stream.add(i) for i in tok.encode("hé")] + [stream.finish()]
    ['h', '', 'é', '']
    """

    def __init__(
        self, tokenizer: Tokenizer, skip_special_tokens: bool = True, clean_up_tokenization_spaces: bool | None = None
    ) -> None:
        self._tokenizer = tokenizer
        self._skip = skip_special_tokens
        self._cleanup = tokenizer.cleans_up(clean_up_tokenization_spaces)
        self.reset()

    def reset(self) -> None:
        """Forget everything; what comes next begins a new text."""
        backend = self._tokenizer.backend
        decoder = backend.decoder
        spec = json.loads(decoder.__getstate__()) if decoder is not None else None
        self._stages: list[Stage] = build(spec, lambda pieces: decoder.decode(pieces))
        if self._cleanup:
            self._stages.append(CleanUp())
        # Tokens may have been added since; asking each time would cost more than the decoding.
        added = backend.get_added_tokens_decoder()
        self._special = {t.content for t in added.values() if t.special} if self._skip else set()
        self._done = False

    def add(self, token_id: int) -> str:
        """The text that is certain once this id has come; often '' in the middle of a character."""
        if self._done:
            raise RuntimeError("StreamingDetokenizer.add: finish() has ended this text; call reset() to begin another.")
        token = self._tokenizer.backend.id_to_token(int(token_id))
        if token is None or token in self._special:
            return ""
        return self._through([token], 0)

    def finish(self) -> str:
        """The rest of the text: what waited for tokens that did not come."""
        if self._done:
            return ""
        self._done = True
        return "".join(self._through(s.end(), i + 1) for i, s in enumerate(self._stages))

    def _through(self, pieces: list[str], start: int) -> str:
        for stage in self._stages[start:]:
            if not pieces:
                return ""
            pieces = [out for piece in pieces for out in stage.push(piece)]
        return "".join(pieces)
