"""Views of the page in notebooks, and as pages of their own that need no kernel and no network.

The same modules draw here and on the page. In a notebook they ask the kernel; in a saved page the
answers stand in the page itself.
"""

from __future__ import annotations

import base64
import json
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

import votive

from . import protocol
from .actions import actions
from .bundle import bundle, styles
from .jobs import Job
from .models import Loaded, Shelf
from .room import Room

# What each view asks for first; a saved page can answer no more than that.
VIEWS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "lens": [("lens.grid", {})],
    "attention": [("attention.layer", {"layer": 0, "mean": True}), ("attention.heads", {})],
    "layers": [("layers.statistics", {})],
    "profile": [("profile.run", {"repeat": 1})],
    "topk": [("session.top", {"k": 12})],
    "timeline": [], "tree": [], "edits": [],
    "console": [("console.log", {}), ("session.script", {})],
    "prompt": [], "sampler": [],
    "explain": [("explain.op", {"name": "silu"})],
}  # fmt: skip
_ALWAYS: list[tuple[str, dict[str, Any]]] = [
    ("model.info", {}), ("session.state", {}), ("edits.list", {}),
]  # fmt: skip

# `model` is the notebook's, or a stand-in that holds replies.
_ENTRY = """
async function start({ model, el }) {
  const { Store, take } = modules['state.js'];
  const { ask } = modules['ask.js'];
  const store = new Store({ link: { status: "open" }, notices: [], replies: model.get("replies") });
  store.ask = (action, args, options) => ask(model, action, args, options);
  el.classList.add("votive");
  const box = document.createElement("div");
  el.append(box);
  // As on the page: views are there first, and what they show comes after.
  const end = modules['%s'].render({ model: store, el: box });
  store.set("info", await store.ask("model.info", {}));
  store.set("edits", await store.ask("edits.list", {}));
  const state = await store.ask("session.state", {});
  if (state.nodes.length) take(store, state);
  return end;
}
"""
_WIDGET = """
export default {
  render({ model, el }) {
    let end = null;
    start({ model, el }).then((f) => { end = f; }, (error) => { el.textContent = error.message; });
    return () => end?.();
  },
};
"""
_PAGE = """
const types = { u8: Uint8Array, i32: Int32Array, f32: Float32Array, f64: Float64Array };
const said = JSON.parse(document.getElementById("replies").textContent);
const replies = {};
for (const [action, { data, blobs }] of Object.entries(said)) {
  replies[action] = data;
  for (const { name, dtype, shape, base64 } of blobs) {
    const raw = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    data[name] = Object.assign(new types[dtype](raw.buffer), { shape });
  }
}
const model = {
  get: (key) => (key === "replies" ? replies : undefined), set() {}, on() {}, off() {},
  save_changes() {}, send() {},
  ask: () => Promise.reject(new Error("A saved page answers nothing new.")),
};
start({ model, el: document.getElementById("view") });
"""


class Answers:
    """Answers the actions of a view for one session, in the thread of whoever asks."""

    def __init__(self, session: Any) -> None:
        name = getattr(session.model, "name_or_path", "") or type(session.model).__name__
        folder = Path("votive-sessions")
        loaded = Loaded(str(name), session.model, session.tokenizer)
        self.room = Room("notebook", Shelf(folder, loaded), folder)
        self.room.loading = self.room.shelf.want()
        self.room.session = session

    def answer(self, do: str, args: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Header and arrays of the reply."""
        action = actions().get(do)
        if action is None:
            error = {"type": "LookupError", "message": f"there is no action {do!r}."}
            return {"ok": False, "error": error}, {}
        with votive.no_grad():
            header, blobs = self.room._done(Job(self.room, do), action, args)
        told: dict[str, Any] = protocol.plain(header)
        return told, {n: np.ascontiguousarray(b) for n, b in (blobs or {}).items()}


def _view(view: str) -> str:
    if view not in VIEWS:
        raise ValueError(f"studio: there is no view {view!r}; there are {', '.join(VIEWS)}.")
    return f"views/{view}.js"


def _script(view: str) -> str:
    path = _view(view)
    return bundle("state.js", "ask.js", path) + _ENTRY % path


def save_html(session: Any, path: Any, view: str = "lens", **args: Any) -> None:
    """Write a view of a session as a page of its own; `args` are those of its main action.

    >>> import tempfile
    >>> from votive import glass, studio
    >>> from votive.studio import demo
    >>> session = glass.Session(demo.model(), demo.tokenizer(), "Once upon a time")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     studio.save_html(session, f"{folder}/lens.html", "lens")
    ...     len(Path(folder, "lens.html").read_text()) > 10_000
    True
    """
    answers, replies = Answers(session), {}
    script = _script(view)
    for i, (do, given) in enumerate([*VIEWS[view], *_ALWAYS]):
        header, blobs = answers.answer(do, {**given, **args} if i == 0 and VIEWS[view] else given)
        if not header.get("ok"):
            raise RuntimeError(f"save_html: {do}: {header['error']['message']}")
        replies[do] = {"data": header["data"], "blobs": [_embedded(n, b) for n, b in blobs.items()]}
    # A page ends its script at "</", whatever stands around it.
    said = json.dumps(replies, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    code = (script + _PAGE).replace("</script", "<\\/script")
    html = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>votive: {escape(view)}</title><style>{styles()}</style></head>"
        '<body><div id="view"></div>'
        f'<script type="application/json" id="replies">{said}</script>'
        f'<script type="module">{code}</script></body></html>\n'
    )
    Path(path).write_text(html, encoding="utf-8")


def _embedded(name: str, array: Any) -> dict[str, Any]:
    data = base64.b64encode(array.tobytes()).decode()
    dtype = protocol._TYPES[array.dtype.name]
    return {"name": name, "dtype": dtype, "shape": list(array.shape), "base64": data}


def widget(session: Any, view: str = "lens") -> Any:
    """A view of a session in a notebook, which asks the kernel; needs the package anywidget.

    >>> from votive import glass, studio
    >>> from votive.studio import demo
    >>> session = glass.Session(demo.model(), demo.tokenizer(), "Once upon a time")
    >>> studio.widget(session, "no such view")
    Traceback (most recent call last):
    ValueError: studio: there is no view 'no such view'; there are lens, attention, ...
    """
    _view(view)
    try:
        import anywidget
    except ImportError:
        raise ImportError(
            "studio.widget: pip install anywidget to see views in notebooks."
        ) from None
    answers = Answers(session)

    class View(anywidget.AnyWidget):  # type: ignore[misc]
        """One view; its messages are requests."""

        _esm = _script(view) + _WIDGET
        _css = styles()

        def __init__(self) -> None:
            super().__init__()
            self.session = session
            self.on_msg(self._asked)

        def _asked(self, _: Any, said: Any, buffers: Any) -> None:
            if not isinstance(said, dict) or not isinstance(said.get("do"), str):
                return
            header, blobs = answers.answer(said["do"], dict(said.get("args") or {}))
            told = [
                {"name": n, "dtype": protocol._TYPES[b.dtype.name], "shape": list(b.shape)}
                for n, b in blobs.items()
            ]
            reply = {"id": said.get("id"), **header, "blobs": told}
            self.send(reply, buffers=[b.tobytes() for b in blobs.values()])

        def save_html(self, path: Any, **args: Any) -> None:
            """Write it as a page that needs no kernel."""
            save_html(session, path, view, **args)

    return View()
