"""The tokens that a tokenizer puts around a text by itself. Knows the backend only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .special import as_added

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Backend


def token_text(token: dict[str, Any] | str | None) -> str | None:
    """The text of a token given as text or as in a config file."""
    return token["content"] if isinstance(token, dict) else token


def set_ends(backend: Backend, bos: str | None, eos: str | None) -> None:
    """Put these tokens around every text; None for none."""
    from tokenizers import processors

    if bos is None and eos is None:
        backend.post_processor = processors.ByteLevel(trim_offsets=False)
        return
    for token in (bos, eos):
        if token is not None and backend.token_to_id(token) is None:
            backend.add_special_tokens([as_added(token, special=True)])
    one = [*([f"{bos}:0"] * bool(bos)), "$A:0", *([f"{eos}:0"] * bool(eos))]
    two = [t.replace(":0", ":1").replace("$A", "$B") for t in one]
    backend.post_processor = processors.TemplateProcessing(
        single=one, pair=[*one, *two], special_tokens=[(t, backend.token_to_id(t)) for t in {bos, eos} if t is not None]
    )
