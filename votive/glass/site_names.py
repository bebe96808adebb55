"""What places in a decoder are called, here and in TransformerLens. Pure text; knows no models.

The names are those of `votive.nn.points`: `layers.3.attn.pattern`. Other programs' `blocks.3.attn.hook_pattern` or,
without its layer, `hook_pattern` mean the same.
"""

from __future__ import annotations

import re

from ..nn.points import BESIDE_LAYERS, IN_LAYER

NAMES = (*IN_LAYER, *BESIDE_LAYERS)
# What is called otherwise there.
_RENAMED = {"attn_scores": "scores", "out": "logits"}
_BRACES = re.compile(r"\{([^{}]*)\}")


def translated(text: str) -> str:
    """A pattern in these names; a text that is in no other ones comes back as it is.

    >>> from votive.glass.site_names import translated
    >>> translated("blocks.3.attn.hook_pattern"), translated("hook_mlp_out"), translated("layers.3.mlp")
    ('layers.3.attn.pattern', 'mlp_out', 'layers.3.mlp')
    """
    if "hook_" not in text:
        return text
    path, _, last = text.rpartition(".")
    name, colon, rest = last.partition(":")
    name, number, count = name.partition("#")
    if not name.startswith("hook_"):
        return text
    name = _RENAMED.get(name.removeprefix("hook_"), name.removeprefix("hook_"))
    path = re.sub(r"(^|\.)blocks(?=\.|$)", r"\1layers", path)
    path = re.sub(r"(^|\.)unembed$", "", path)
    if not path:
        own = [n for n in NAMES if n.rpartition(".")[2] == name]
        if not own:
            return text
        if len(own) > 1:
            raise ValueError(f"{text!r} may mean any of {', '.join(own)}; say which, as in 'layers.*.{own[0]}'.")
        return own[0] + number + count + colon + rest
    found = f"{path}.{name}"
    return found + number + count + colon + rest if means_site(found) else text


def means_site(text: str) -> bool:
    """Whether a pattern's text ends in the name of a place, which must be spelled out.

    >>> from votive.glass.site_names import means_site
    >>> means_site("layers.*.attn.{q,k}"), means_site("logits"), means_site("layers.*")
    (True, True, False)
    """
    text = text.partition(":")[0].partition("#")[0].removeprefix("^")
    return any(any(t == n or t.endswith(f".{n}") for n in NAMES) for t in _alternatives(text))


def _alternatives(text: str) -> list[str]:
    found = _BRACES.search(text)
    if found is None or "/" in text:
        return [] if "/" in text else [text]
    head, tail = text[: found.start()], text[found.end() :]
    return [a for part in found[1].split(",") for a in _alternatives(head + part + tail)]
