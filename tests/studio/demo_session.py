"""A session of a page with the demo model, and the same without a studio."""

from __future__ import annotations

from typing import Any

import votive
from votive import glass
from votive.studio import demo

from .client import Page

PROMPT = "Once upon a time there was a fox"
MODEL, TOKENIZER = demo.model(), demo.tokenizer()
MLP = "model.layers.1.mlp"


def begun(page: Page, **more: Any) -> dict[str, Any]:
    """A session that has just begun."""
    return page.ask("session.new", prompt=PROMPT, seed=3, **more)


def ids(page: Page) -> Any:
    """The tokens where a page stands."""
    state = page.ask("session.state")
    by_id = {n["id"]: n for n in state["nodes"]}
    path, at = [], state["current"]
    while by_id[at]["parent"] is not None:
        path.insert(0, by_id[at]["token"])
        at = by_id[at]["parent"]
    return votive.tensor([[t["id"] for t in state["prompt"]] + path])


def plain(tokens: Any, *edits: Any) -> Any:
    """The logits of tokens under edits, without a studio."""
    with votive.no_grad():
        if not edits:
            return MODEL(tokens).logits
        with glass.patch(MODEL, list(edits)):
            return MODEL(tokens).logits
