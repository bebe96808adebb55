"""Vectors of texts, for /v1/embeddings."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .body import Fields
from .errors import wrong
from .keys import Permissions
from .registry import Embedder, Registry

_TEXTS, _CHARACTERS = 2048, 1 << 20
_AT_ONCE = 16


@dataclass
class AskedEmbeddings:
    """A request that is understood; `parts` are done one by one in the thread that runs models, beside other work."""

    embedder: Embedder
    texts: list[str]
    encoded: bool
    rows: list[Any] = field(default_factory=list)
    tokens: int = 0

    def parts(self) -> list[Callable[[], None]]:
        """The work."""
        return [partial(self._part, start) for start in range(0, len(self.texts), _AT_ONCE)]

    def _part(self, start: int) -> None:
        encoder: Any = self.embedder.model
        texts = self.texts[start : start + _AT_ONCE]
        vectors = encoder.encode(texts).float().cpu()
        self.tokens += sum(len(row) for row in encoder._tokens(texts, None))
        if self.encoded:
            self.rows += [base64.b64encode(row.tobytes()).decode() for row in vectors.numpy().astype("<f4")]
        else:
            self.rows += vectors.tolist()

    def answer(self) -> dict[str, Any]:
        """What the parts have come to."""
        return {
            "object": "list",
            "data": [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(self.rows)],
            "model": self.embedder.name,
            "usage": {"prompt_tokens": self.tokens, "total_tokens": self.tokens},
        }


def asked_embeddings(body: dict[str, Any], registry: Registry, allowed: Permissions) -> AskedEmbeddings:
    """A request to /v1/embeddings."""
    fields = Fields(body)
    embedder = registry.embedder(fields.any("model"), allowed)
    given = fields.any("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not 0 < len(texts) <= _TEXTS or not all(isinstance(t, str) and t for t in texts):
        rule = f"a text or a list of 1 to {_TEXTS:,} texts, none of them empty; tokens are not taken here"
        raise fields.wrong("input", rule)
    if sum(map(len, texts)) > _CHARACTERS:
        raise fields.wrong("input", f"of at most {_CHARACTERS:,} characters in all")
    form = fields.one_of("encoding_format", ("float", "base64"))
    width = int(embedder.model.width)
    if fields.whole("dimensions", low=1) not in (None, width):
        raise wrong(f"dimensions: the vectors of this model have {width} numbers.", "dimensions", "unsupported")
    fields.ignored("user")
    fields.end()
    return AskedEmbeddings(embedder, texts, form == "base64")
