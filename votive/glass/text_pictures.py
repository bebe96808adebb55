"""Which pictures there are of what a model makes of a text, and of sessions. Draws nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from .attention_maps import AttentionMap, AttentionMaps
from .attribution import Attribution
from .display import Pictures
from .heatmap import Heatmap
from .labels import TokenNames, token_labels
from .lens import Lens
from .pictures import MAPS, sample_names, shows
from .plots import Bars
from .saliency import Saliency
from .session import Session
from .session_diff import SessionDiff
from .session_file import Replay
from .session_tree import Outlook, SessionNode
from .sweep import Sweep
from .table import Table

# Tokens whose probability is drawn.
TOKENS = 60


def _of_samples(count: int, figure: Callable[[str, int], Any], names: Sequence[str]) -> Pictures:
    """A picture for each name, and for each of several samples."""
    found = {}
    for sample, suffix in sample_names(count):
        for name in names:
            found[name + suffix] = partial(lambda n, s: [figure(n, s)], name, sample)
    return found


@shows(Lens)
def _lens(lens: Lens) -> Pictures:
    names = ["probability", "entropy", "kl", *(["rank"] if lens.rank is not None else [])]

    def figure(name: str, sample: int) -> Heatmap:
        ids = lens.ids[:, sample].tolist()
        chances = lens.probabilities[:, sample].tolist()
        tips = [
            [_best(i, p, lens.tokenizer) for i, p in zip(*row, strict=True)] for row in zip(ids, chances, strict=True)
        ]
        return replace(lens.figure(name, sample), tips=tips)

    return _of_samples(lens.ids.shape[1], figure, names)


def _best(ids: Sequence[int], chances: Sequence[float], tokenizer: TokenNames | None) -> str:
    texts = token_labels(ids[:5], tokenizer)
    return ", ".join(f"{t} {p:.1%}" for t, p in zip(texts, chances, strict=False))


@shows(AttentionMap)
def _attention_map(found: AttentionMap) -> Pictures:
    samples, heads = found.shape[:2]
    out = {}
    for sample, suffix in sample_names(samples):
        out[f"mean of heads{suffix}"] = partial(_mean, found, sample)
        for head in range(heads):
            out[f"head {head}{suffix}"] = partial(lambda h, s: [found.figure(h, s)], head, sample)
    return out


def _mean(found: AttentionMap, sample: int) -> list[Any]:
    plain = found.figure(0, sample)
    # One head after the other: together they may be too much.
    heads = range(found.shape[1])
    total: Any = sum(found.weights(h, None, sample)[0, 0] for h in heads) / found.shape[1]
    title = f"{found.address}, mean of {found.shape[1]} heads"
    return [replace(plain, values=total.tolist(), title=title)]


@shows(AttentionMaps)
def _attention_maps(found: AttentionMaps) -> Pictures:
    out: dict[str, Any] = {}
    for part in ("mean", ""):
        for m in found:
            for name, make in m.pictures().items():
                if name.startswith("mean") == bool(part) and len(out) < MAPS:
                    out[f"{m.address}, {name}"] = make
    return out or {"attention": lambda: [Table(["address"], [], "no attention was seen")]}


@shows(Attribution)
def _attribution(found: Attribution) -> Pictures:
    names = ["top", *(["heads"] if found.heads else [])]
    return _of_samples(found.values.shape[1], lambda n, s: found.figure(n, sample=s), names)


@shows(Saliency)
def _saliency(found: Saliency) -> Pictures:
    return {"saliency": lambda: [found.figure()]}


@shows(Sweep)
def _sweep(found: Sweep) -> Pictures:
    names = ["values", "recovered", *(["estimate"] if found.estimate is not None else [])]
    return {n: partial(lambda n: [found.figure(n)], n) for n in names}


# --- sessions -----------------------------------------------------------------------------------


def _next(ids: Sequence[int], chances: Sequence[float], session: Session | None, entropy: float) -> Bars:
    labels = token_labels(ids[:12], None if session is None else session.tokenizer)
    return Bars(list(chances[:12]), labels, "the next token", "probability", note=f"entropy {entropy:.3f} nats")


@shows(Outlook)
def _outlook(found: Outlook) -> Pictures:
    return {"next": lambda: [_next(found.ids, found.probabilities, None, found.entropy)]}


@shows(SessionNode)
def _node(node: SessionNode) -> Pictures:
    found = node.outlook
    return {"next": lambda: [_next(found.ids, found.probabilities, node.session, found.entropy)]}


@shows(Session)
def _session(session: Session) -> Pictures:
    def text() -> list[Any]:
        path = session.path()
        drawn = [n for n in path if n.token is not None]
        shown = drawn[-TOKENS:]
        labels = token_labels([n.tokens[0] for n in shown], session.tokenizer)
        chances = [math.nan if n.logprob is None else math.exp(n.logprob) for n in shown]
        text = session.text if session.tokenizer is not None else str(session.tokens)
        note = f"the last {TOKENS} of {len(drawn):,} tokens" if len(drawn) > TOKENS else ""
        bars = Bars(chances, labels, "how probable each token was", "probability", note)
        return [Table(["text"], [[line] for line in _lines(text)]), *([bars] if shown else [])]

    def tree() -> list[Any]:
        rows: list[list[Any]] = []
        depths: list[int] = []
        nodes = session.nodes
        todo = [(n, 0) for n in reversed(nodes) if n.parent_id is None]
        while todo:
            node, depth = todo.pop()
            label = "prompt"
            if node.token is not None:
                label = token_labels([node.token], session.tokenizer)[0]
            chance = None if node.logprob is None else math.exp(node.logprob)
            here = "here" if node is session.node else ""
            rows.append([label, node.id, chance, node.how, here])
            # A text goes on at the same depth: only where it parts it is set in.
            more = len(node.children) > 1
            depths.append(depth)
            todo += [(c, depth + more) for c in reversed(node.children)]
        return [Table(["token", ">node", ">probability", "how", ""], rows, "tree", depths=depths)]

    return {"text": text, "next": lambda: session.node.figures(), "tree": tree}


def _lines(text: str, width: int = 96) -> list[str]:
    out = []
    for line in text.splitlines() or [""]:
        out += [line[i : i + width] for i in range(0, max(len(line), 1), width)]
    return out


@shows(SessionDiff)
def _diff(found: SessionDiff) -> Pictures:
    def shown(text: str | None, tokens: list[int]) -> str:
        return text if text is not None else str(tokens)

    rows: list[list[object]] = [
        ["common", shown(found.common_text, found.common), None, None],
        ["a", shown(found.a_text, found.a_tokens), found.a_in_a, found.a_in_b],
        ["b", shown(found.b_text, found.b_tokens), found.b_in_a, found.b_in_b],
    ]
    note = f"KL(a|b) {found.kl_ab:.4g}, KL(b|a) {found.kl_ba:.4g} nats"
    columns = ["", "text", ">p in a", ">p in b"]
    return {"difference": lambda: [Table(columns, rows, "two branches", note)]}


@shows(Replay)
def _replay(found: Replay) -> Pictures:
    fields = asdict(found)
    rows = [[k, fields[k]] for k in ("nodes", "compared", "drawn")]
    rows += [["differs", m] for m in found.mismatches[:50]]
    return {"replay": lambda: [Table(["", "value"], rows, str(found))]}
