"""A node's whole text run again under its edits, so that every position can be looked at.

A session feeds a text in parts and keeps only keys and values. Here the text is fed at once, or in
as few parts as its edits allow: one ends where another set of edits begins. Draws no tokens.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import votive

from .. import nn
from ..glass import values
from ..glass.attention_maps import AttentionMaps, attention_maps
from ..glass.capture import capture
from ..glass.lens import Lens, logit_lens
from ..glass.parts import Parts
from ..glass.session_tree import SessionNode
from ..glass.targets import NoMatch
from .edited_model import EditedModel
from .models import Loaded

if TYPE_CHECKING:
    from ..glass.address import Patterns
    from ..glass.edit_plan import EditPlan
    from ..tensor import Tensor


@dataclass(frozen=True)
class Part:
    """A stretch of a text, ready to be run: `model(ids, **given)`."""

    start: int
    stop: int
    model: Any
    parts: Parts
    ids: Any
    given: dict[str, Any]


def stretches(node: SessionNode, plan: EditPlan | None = None) -> list[tuple[int, int, list[Any]]]:
    """Where the edits of a node's text change: beginnings, ends and edits; those of another plan, if one is given."""
    plan = node.plan if plan is None else plan
    cuts = {0, node.stop}
    for timed in plan:
        cuts |= {at for at in (timed.since, timed.until) if at is not None and 0 < at < node.stop}
    return [
        (start, stop, [e.edit for e in plan if e.during(start, stop)])
        for start, stop in itertools.pairwise(sorted(cuts))
    ]


def parts_of(
    loaded: Loaded, node: SessionNode, *, measure: bool = False, plan: EditPlan | None = None
) -> Iterator[Part]:
    """The parts of a node's text, in order; each must be run before the next is asked for."""
    tokens = node.session.tokens_of(node)
    found = stretches(node, plan)
    cache = nn.DynamicCache() if len(found) > 1 else None
    for start, stop, edits in found:
        model = EditedModel(loaded.model, edits, measure=measure) if edits else loaded.model
        given: dict[str, Any] = {"use_cache": False}
        if cache is not None:
            given = {"use_cache": True, "past_key_values": cache}
        ids = votive.tensor([tokens[start:stop]], device=loaded.model.device)
        yield Part(start, stop, model, replace(loaded.parts, model=model), ids, given)


def lens(loaded: Loaded, node: SessionNode, top_k: int, target: int | None, before: Lens | None = None) -> Lens:
    """The logit lens of all layers and positions.

    `before` is that of a text that this one begins with: without edits, only what was added since
    is read through the head, which is most of the work.
    """
    read = 0 if before is None or node.plan else len(before.positions)
    found = [
        logit_lens(
            p.model,
            p.ids,
            top_k=top_k,
            target=target,
            parts=p.parts,
            positions=list(range(read, node.stop)) if read else None,
            **p.given,
        )
        for p in parts_of(loaded, node)
    ]
    if read and before is not None:
        found.insert(0, before)
    if len(found) == 1:
        return found[0]
    names = ("ids", "probabilities", "entropy", "kl", "rank", "probability")
    whole: dict[str, Any] = {
        n: None if getattr(found[0], n) is None else votive.cat([getattr(f, n) for f in found], 2) for n in names
    }
    return replace(found[0], positions=[p for f in found for p in f.positions], **whole)


class Maps:
    """The attention of a whole text: of each layer, any head and query."""

    def __init__(self, loaded: Loaded, node: SessionNode) -> None:
        self.length = node.stop
        self.tokens = node.session.tokens_of(node)
        self.pieces: list[tuple[int, AttentionMaps]] = []
        for p in parts_of(loaded, node):
            # The ids of all that lies before too, which patterns of attention are about.
            found = attention_maps(p.model, p.ids, tokens=self.tokens[: p.stop], **p.given)
            self.pieces.append((p.start, found))
        self.names = loaded.parts.names

    def layer(self, index: int) -> list[tuple[int, Any]]:
        """The maps of a layer, each with the position of its first query."""
        if not 0 <= index < len(self.names):
            raise IndexError(f"attention: there is no layer {index}; there are {len(self.names)}.")
        found = self.seen(index)
        if not found:
            raise LookupError(
                f"attention: {self.names[index]} ran no attention that could be seen; a layer that "
                "is skipped runs none."
            )
        return found

    def seen(self, index: int) -> list[tuple[int, Any]]:
        """The maps of a layer, as `layer` gives them; none where it is skipped."""
        name = self.names[index]
        return [
            (start, m)
            for start, maps in self.pieces
            for m in maps
            if m.address.startswith(f"{name}.") or m.address.startswith(f"{name}/")
        ]

    def heads(self, index: int) -> int:
        return int(self.layer(index)[0][1].shape[1])

    def weights(self, index: int, heads: list[int], queries: list[int] | None = None) -> np.ndarray:
        """The weights (heads, queries, positions) of a layer, as an array."""
        wanted = list(range(self.length)) if queries is None else queries
        out = votive.zeros(len(heads), len(wanted), self.length)
        for start, m in self.layer(index):
            rows = [(i, q - start) for i, q in enumerate(wanted) if 0 <= q - start < m.shape[2]]
            if rows:
                found = m.weights(heads, [q for _, q in rows])[0].cpu().float()
                first, last = rows[0][0], rows[-1][0] + 1
                out[:, first:last, m.first_key : m.first_key + m.shape[3]] = found
        return out.numpy()

    def nbytes(self) -> int:
        """Bytes of queries and keys that are held."""
        total = 0
        for _, maps in self.pieces:
            for m in maps:
                kept = (m.query, m.key, m.mask, m.lse, m.made)
                total += sum(t.numel() * t.element_size() for t in kept if t is not None)
        return total


def captured(loaded: Loaded, node: SessionNode, at: Patterns, *, plan: EditPlan | None = None) -> dict[str, Any]:
    """The first tensor at each address that matches, over the whole text where it has positions."""
    found: dict[str, list[Any]] = {}
    for p in parts_of(loaded, node, plan=plan):
        seen = capture(p.model, at)
        try:
            with seen:
                p.model(p.ids, **p.given)
        except NoMatch as e:
            if any(timed.edit.do in ("swap", "skip") for timed in (node.plan if plan is None else plan)):
                raise NoMatch(f"{at!r} is not called: a module around it is skipped or swapped for another.") from e
            raise
        for address in seen:
            value = values.first(seen[address])
            if value is not None:
                found.setdefault(address, []).append((p, value.detach()))
    return {a: _concatenated(v) for a, v in found.items()}


def _concatenated(found: list[tuple[Part, Any]]) -> Tensor:
    """Values of several parts as one where dimension 1 is that of positions; else the last."""
    tensors = [t for _, t in found]
    if len(tensors) > 1 and all(t.dim() >= 2 and t.shape[1] == p.stop - p.start for p, t in found):
        return votive.cat(tensors, 1)
    return tensors[-1]


def next_token_chances(loaded: Loaded, node: SessionNode) -> tuple[list[Any], list[Any]]:
    """The probability of each token of a text after those before it, and the entropy there.

    The first token comes after nothing and has none.
    """
    tokens = node.session.tokens_of(node)
    chances: list[Any] = [None]
    entropies: list[Any] = []
    for p in parts_of(loaded, node):
        logits = p.model(p.ids, **p.given).logits[0]
        for start in range(0, logits.shape[0], 64):
            logs = logits[start : start + 64].float().log_softmax(-1)
            at = p.start + start
            following = tokens[at + 1 : at + 1 + logs.shape[0]]
            rows = votive.arange(len(following))
            picked = logs[rows, votive.tensor(following, dtype=votive.int64)] if following else None
            chances += [] if picked is None else picked.exp().tolist()
            entropies += (-(logs.exp() * logs).nansum(-1)).tolist()
    return chances, entropies
