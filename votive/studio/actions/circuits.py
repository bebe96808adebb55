"""Actions of the laboratory: attribution graphs, sweeps and probes. Each tells the Python that does the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

import votive

from ... import glass
from ...glass import circuits, probes
from ..arguments import Bounds, Index
from ..jobs import Job
from . import action
from .laboratory import coder_of, ids_of, log_lines

if TYPE_CHECKING:
    from ..workspace import Workspace


Texts = Annotated[list[Annotated[str, Bounds(1, 2000)]], Bounds(2, 400)]
# Sites of a sweep, as they are told and as they are called.
SITES = {"stream": "layers.*", "attention": "layers.*.attn_out", "mlp": "layers.*.mlp_out", "heads": "layers.*.attn.z"}
# Nodes of a graph that a page is told, of how many that are traced, and the longest text.
_TOLD, _TRACED, _LONGEST = 220, 900, 160
_SWEPT = 400


@action("laboratory.graph")
def graph(
    job: Job, node: Index | None = None, position: Index | None = None, target: Index | None = None
) -> dict[str, Any]:
    """How the text's tokens become one next token: nodes of most influence, and what each adds to which other."""
    workspace = job.workspace
    at = workspace.session._node(node)
    tokens = workspace.session.tokens_of(at)
    where = len(tokens) - 1 if position is None else position
    if where >= len(tokens):
        raise IndexError(f"There is no position {where}; the text has {len(tokens)} tokens.")
    tokens = tokens[: where + 1]
    if len(tokens) > _LONGEST:
        raise ValueError(
            f"A graph is drawn for up to {_LONGEST} tokens; this text has {len(tokens):,}. Choose an earlier token."
        )
    try:
        transcoder, said = coder_of(workspace, "transcoder")
        coders: list[Any] = [transcoder]
        loads = [f"transcoder = glass.features.load({said})"]
    except LookupError:
        coders, loads = [], []
    given = f"votive.tensor([session.tokens_of({at.id})[:{where + 1}]])"

    def make() -> tuple[Any, int]:
        found = circuits.attribution_graph(
            workspace.loaded.model,
            votive.tensor([tokens], device=workspace.loaded.model.device),
            coders=coders,
            targets=target,
            max_nodes=_TRACED,
            tokenizer=workspace.loaded.tokenizer,
            progress=lambda done, total: job.progress(done, total, "tracing"),
        )
        return found, found.edges.numel() * 4

    whole = workspace.cached(("graph", at.id, where, target), make)
    part = whole.pruned(nodes=0.8, edges=0.9)
    python = [
        *loads,
        f"graph = glass.circuits.attribution_graph(model, {given}, coders=[{'transcoder' if coders else ''}], "
        f"targets={target}, max_nodes={_TRACED}, tokenizer=tokenizer)",
        "print(graph.pruned(nodes=0.8, edges=0.9).text())",
    ]
    log_lines(job, python)
    return {**_drawn(workspace, part, tokens), "node": at.id, "position": where, "replacement": whole.replacement,
            "completeness": whole.completeness, "python": "\n".join(python)}  # fmt: skip


def _drawn(workspace: Workspace, part: Any, tokens: list[int]) -> dict[str, Any]:
    """Nodes and edges of a pruned graph: at most so many, those of most influence."""
    influence = part.influence().tolist()
    sources = list(part.sources)
    order = sorted(range(len(sources)), key=lambda i: -influence[i])
    kept = {sources[i] for i in order[:_TOLD] if influence[i] > 0 or sources[i].kind == "token"}
    logits = part.nodes[len(sources) :]
    nodes = [n for n in part.nodes if n in kept or n in logits]
    number = {n: i for i, n in enumerate(nodes)}
    size = dict(zip(sources, influence, strict=True))
    tell = workspace.loaded.text

    def label(n: Any) -> str:
        if n.kind == "token":
            return tell(tokens[n.position])
        return tell(n.number) if n.kind == "logit" else f"{n.kind} {n.number}" if n.number >= 0 else n.kind

    edges = part.edges.float().cpu().numpy()
    columns = {n: i for i, n in enumerate(sources)}
    rows = {n: i for i, n in enumerate(part.targets)}
    found = []
    for target in nodes:
        if target not in rows:
            continue
        row = edges[rows[target]]
        for source in nodes:
            if source in columns and row[columns[source]]:
                found.append([number[source], number[target], float(row[columns[source]])])
    return {
        "nodes": [
            {"kind": n.kind, "layer": n.layer, "position": n.position, "number": n.number, "label": label(n),
             "activation": float(n.activation), "influence": float(size.get(n, n.activation))}
            for n in nodes
        ],
        "edges": found,
        "layers": part.layers,
        "tokens": workspace.loaded.texts(tokens),
    }  # fmt: skip


@action("laboratory.sweep")
def sweep(
    job: Job,
    position: Index,
    word: Annotated[str, Bounds(1, 100)],
    site: Literal["stream", "attention", "mlp", "heads"] = "stream",
    node: Index | None = None,
) -> Any:
    """Where in the model one token of the text matters: it is replaced, and each place put back as it was.

    Values are shares: 0 says that putting a place back changes nothing, 1 that it brings the answer back.
    """
    workspace = job.workspace
    at = workspace.session._node(node)
    tokens = workspace.session.tokens_of(at)
    if position >= len(tokens):
        raise IndexError(f"There is no position {position}; the text has {len(tokens)} tokens.")
    layers, heads = len(workspace.loaded.parts.layers), workspace.loaded.info()["heads"]
    if layers * (heads if site == "heads" else len(tokens)) > _SWEPT * 40 or len(tokens) > _SWEPT:
        raise ValueError(f"A sweep is made for up to {_SWEPT} tokens; this text has {len(tokens):,}.")
    other = _token(workspace, word)
    corrupt = [*tokens[:position], other, *tokens[position + 1 :]]
    if corrupt == tokens:
        raise ValueError(f"{word!r} is what stands there already; name another word.")
    best = int(workspace.session.logits(at).argmax())
    by = {"by": "head"} if site == "heads" else {}
    device = workspace.loaded.model.device
    found = glass.sweep(
        workspace.loaded.model,
        votive.tensor([tokens], device=device),
        votive.tensor([corrupt], device=device),
        metric=lambda out: out.logits[:, -1].float().log_softmax(-1)[:, best],
        sites=SITES[site],
        progress=lambda done, total: job.progress(done, total, "sweeping"),
        **by,  # type: ignore[arg-type]
    )
    values = found.values.float().cpu().numpy()
    low, high = float(found.corrupt.mean()), float(found.clean.mean())
    share = (values - low) / (high - low) if abs(high - low) > 1e-6 else np.zeros_like(values)
    python = [
        f"clean = {ids_of(at)}",
        f"corrupt = votive.tensor([{corrupt!r}])",
        f"found = glass.sweep(model, clean, corrupt, sites={SITES[site]!r}"
        + (", by='head'" if by else "")
        + f", metric=lambda out: out.logits[:, -1].float().log_softmax(-1)[:, {best}])",
        "print(found.recovered)",
    ]
    log_lines(job, python)
    data = {
        "node": at.id, "position": position, "site": site, "by": "head" if by else "position",
        "word": workspace.loaded.text(other),
        "target": workspace.loaded.text(best), "clean": high, "corrupt": low, "sites": list(found.sites),
        "tokens": workspace.loaded.texts(tokens), "python": "\n".join(python),
    }  # fmt: skip
    return data, {"values": share.reshape(len(found.sites), -1).astype(np.float32)}


def _token(workspace: Workspace, word: str) -> int:
    """The one token that a word means in the middle of a text."""
    tokenizer = workspace.loaded.tokenizer
    for form in [word] if word.startswith(" ") else [f" {word}", word]:
        ids = list(tokenizer(form, add_special_tokens=False).input_ids)
        if len(ids) == 1:
            return int(ids[0])
    raise ValueError(f"{word!r} is more than one token of this model; name a shorter or more usual word.")


@action("laboratory.probe")
def probe(job: Job, first: Texts, second: Texts) -> dict[str, Any]:
    """Which layers tell two kinds of texts apart: a probe at the last token of each, scored on texts held out."""
    workspace = job.workspace
    tokenizer = workspace.loaded.tokenizer
    texts = [*first, *second]
    labels = [0] * len(first) + [1] * len(second)
    batches, order = [], []
    by_length: dict[int, list[int]] = {}
    encoded = [list(tokenizer(t).input_ids) for t in texts]
    for i, row in enumerate(encoded):
        if not row:
            raise ValueError(f"Text {i + 1} has no tokens.")
        by_length.setdefault(len(row), []).append(i)
    for mine in by_length.values():
        batches.append(votive.tensor([encoded[i] for i in mine], device=workspace.loaded.model.device))
        order += mine
    names = [n for n in (workspace.loaded.parts.named()["embedding"], *workspace.loaded.parts.names) if n]
    found = probes.probe_layers(workspace.loaded.model, batches, [labels[i] for i in order], at=names, positions=-1)
    best = found.best()
    python = [
        f"texts = {texts!r}",
        f"labels = {labels!r}",
        "batches = [tokenizer(t, return_tensors='vt').input_ids for t in texts]",
        f"found = glass.probes.probe_layers(model, batches, labels, at={names!r}, positions=-1)",
        "print(found.table(), found.best())",
    ]
    log_lines(job, python)
    return {
        "sites": list(found.sites),
        "train": [float(r[0]) for r in found.train],
        "held_out": [float(r[0]) for r in found.held_out],
        "chance": float(found.chance),
        "best": {"site": best[0], "score": float(best[2])},
        "samples": list(found.samples),
        "python": "\n".join(python),
    }
