"""Vectors of texts, for /v1/embeddings."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from .body import Fields
from .errors import wrong
from .keys import Permissions
from .registry import Embedder, Registry

_TEXTS, _CHARACTERS = 2048, 1 << 20


@dataclass
class AskedEmbeddings:
    """A request that is understood; `run` answers it, in the thread that runs models."""

    embedder: Embedder
    texts: list[str]
    encoded: bool

    def run(self) -> dict[str, Any]:
        """The answer."""
        encoder: Any = self.embedder.model
        vectors = encoder.encode(self.texts).float().cpu()
        tokens = sum(len(row) for row in encoder._tokens(self.texts, None))
        rows: list[Any] = vectors.tolist()
        if self.encoded:
            whole = vectors.numpy().astype("<f4")
            rows = [base64.b64encode(row.tobytes()).decode() for row in whole]
        return {
            "object": "list",
            "data": [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)],
            "model": self.embedder.name,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
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
