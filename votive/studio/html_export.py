"""Pages that need no kernel and no network: a view, or a result, with all it shows inside."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np

from ..glass.display import Displayable
from ..glass.parts import find_parts
from ..glass.session import Session
from ..serialization.atomic import replacing
from . import protocol, results
from .bundle import bundle, styles
from .notebook_backend import SessionBackend

Ask = tuple[str, dict[str, Any]]
# What each view asks for with no choice; a saved page holds that, and what can be chosen.
_FIXED: dict[str, list[Ask]] = {
    "lens": [("lens.grid", {})],
    "attention": [("attention.heads", {})],
    "layers": [("layers.statistics", {})],
    "profile": [("profile.run", {"repeat": 1, "ops": True})],
    "compiled": [("compiled.run", {})],
    "quantization": [("quantization.types", {}), ("quantization.error", {})],
    "topk": [("session.top", {"k": 12})],
    "timeline": [],
    "tree": [],
    "edits": [],
    "console": [("console.log", {}), ("session.script", {})],
    "prompt": [],
    "sampler": [],
    "explain": [("explain.op", {"name": "silu"})],
}
_JOINED = ("topk", "lens", "attention", "layers")
VIEWS = {**_FIXED, "session": [ask for view in _JOINED for ask in _FIXED[view]]}
_ALWAYS: list[Ask] = [("model.info", {}), ("session.state", {}), ("edits.list", {})]
# Bytes of what can be chosen, in one page, and cells of a lens of which the best tokens are told.
LARGEST, CELLS = 8 << 20, 1500
RESULT = "views/result.js"
_TAIL = """
const held = JSON.parse(document.getElementById("held").textContent);
const { mountView, mountResult, savedModel } = modules["notebook.js"];
const mount = held.replies ? mountView : mountResult;
const model = savedModel(held.values ?? {}, held.replies, held.chosen);
mount({ model, el: document.getElementById("view"), render: modules["%s"].render });
"""


def view_path(view: str) -> str:
    """The module of a view."""
    if view not in VIEWS:
        raise ValueError(f"studio: there is no view {view!r}; there are {', '.join(VIEWS)}.")
    return f"views/{view}.js"


def script(path: str) -> str:
    """A view's module with all that it needs to stand alone."""
    return bundle("notebook.js", path)


def save_html(thing: object, path: str | os.PathLike[str], view: str | None = None, **args: Any) -> None:
    """Write a result, or a view of a session, as a page that needs no kernel and no network.

    A result is anything of the glass engine that has pictures. `view` names a view of a session;
    `args` are those of its main action, of "attention" the `layer` and `head` to begin with.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from votive import glass, studio
    >>> from votive.studio import demo
    >>> session = glass.Session(demo.model(), demo.tokenizer(), "Once upon a time")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     studio.save_html(session, f"{folder}/lens.html", "lens")
    ...     studio.save_html(glass.statistics(session.logits()), f"{folder}/logits.html")
    ...     len(Path(folder, "lens.html").read_text()) > 10_000
    True
    """
    if isinstance(thing, Session):
        view = view or "session"
        code, held = script(view_path(view)), _held(thing, view, args)
    elif isinstance(thing, Displayable):
        if view is not None or args:
            raise TypeError(f"save_html: a {type(thing).__name__} has no views, got {view!r}.")
        view = type(thing).__name__
        code, held = script(RESULT), {"values": {"result": results.result_json(thing, whole=True)}}
    else:
        raise TypeError(f"save_html: there are no pictures of a {type(thing).__name__}.")
    tail = _TAIL % (view_path(view) if "replies" in held else RESULT)
    with replacing(os.fspath(path)) as f:
        f.write(page(f"votive: {view}", code + tail, held).encode())


def page(title: str, code: str, held: object) -> str:
    """A page of HTML; nothing in it can become markup or code."""
    # A page ends its script at "</", whatever stands around it.
    said = json.dumps(held, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    said = said.encode("utf-8", "replace").decode()  # half characters have no bytes
    code = code.replace("</script", "<\\/script")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{styles()}</style></head>"
        '<body><div id="view"></div>'
        f'<script type="application/json" id="held">{said}</script>'
        f'<script type="module">{code}</script></body></html>\n'
    )


def _held(session: Session, view: str, args: dict[str, Any]) -> dict[str, Any]:
    """All that a view shows of a session, and what can be chosen in it as far as there is space."""
    answers, fixed, values = SessionBackend(session), {}, {}
    if view == "attention" and args:
        wrong = sorted(set(args) - {"layer", "head"})
        if wrong:
            raise TypeError(f"save_html: attention takes layer and head, got {wrong[0]!r}.")
        values["selection"] = {"node": None, "position": None, "layer": None, "head": None, "address": None, **args}
        args = {}
    if args and not VIEWS[view]:
        raise TypeError(f"save_html: the view {view!r} takes no {sorted(args)[0]!r}.")
    for i, (do, given) in enumerate([*VIEWS[view], *_ALWAYS]):
        fixed[do] = _reply(answers, do, {**given, **args} if i == 0 and VIEWS[view] else given)
    chosen: dict[str, Any] = {}
    used = 0
    for do, given in _choices(session, view):
        reply = _reply(answers, do, given)
        used += len(json.dumps(reply))
        if used > LARGEST:
            break
        chosen[_key(do, given)] = reply
    return {"replies": fixed, "chosen": chosen, "values": values}


def _choices(session: Session, view: str) -> Iterator[Ask]:
    """What may be asked for besides, the most likely first."""
    parts = find_parts(session.model)
    layers, positions = len(parts.layers), len(session.tokens)
    if view in ("attention", "session"):
        yield from (("attention.layer", {"layer": i, "mean": True}) for i in range(layers))
        heads = int(getattr(session.model.config, "num_attention_heads", 0) or 0)
        for i in range(layers):
            yield from (("attention.layer", {"layer": i, "heads": [h]}) for h in range(heads))
    if view in ("lens", "session"):
        first = max(0, positions - CELLS // (layers + 1))
        for position in range(positions - 1, first - 1, -1):
            for layer in range(layers + 1):
                yield "lens.cell", {"layer": layer, "position": position, "k": 8}


def _key(do: str, args: dict[str, Any]) -> str:
    parts = [f"{k}={json.dumps(args[k], separators=(',', ':'))}" for k in sorted(args) if k != "k"]
    return "&".join([do, *parts])


def _reply(answers: SessionBackend, do: str, args: dict[str, Any]) -> dict[str, Any]:
    header, blobs = answers.answer(do, args)
    if not header.get("ok"):
        raise RuntimeError(f"save_html: {do}: {header['error']['message']}")
    return {"data": header["data"], "blobs": [_embedded(n, b) for n, b in blobs.items()]}


def _embedded(name: str, array: np.ndarray) -> dict[str, Any]:
    data = base64.b64encode(array.tobytes()).decode()
    dtype = protocol._TYPES[array.dtype.name]
    return {"name": name, "dtype": dtype, "shape": list(array.shape), "base64": data}
