"""Actions about attention: the matrix of a layer, one exact row, numbers for all heads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from ...glass.attention_maps import AttentionMaps
from .. import replay
from ..arguments import Bounds, Index
from ..jobs import Job
from . import action

if TYPE_CHECKING:
    from ...glass.session_tree import SessionNode


# Bytes of one reply.
_MOST = 8 << 20
_SCORES = ("entropy", "previous", "induction")


def maps_of(job: Job, node: SessionNode) -> replay.Maps:
    """The attention of a node's whole text, kept for other views of it."""

    def make() -> tuple[Any, int]:
        found = replay.Maps(job.workspace.loaded, node)
        return found, found.nbytes()

    return job.workspace.cached(("attention", node.id), make)


@action("attention.layer")
def layer(
    job: Job,
    layer: Index,
    node: Index | None = None,
    heads: Annotated[list[Index], Bounds(1, 256)] | Literal["mean"] | None = None,
    mean: bool = False,
) -> Any:
    """The weights of some heads of a layer, or with `mean` their average, as bytes of 1/255."""
    workspace = job.workspace
    at = workspace.session._node(node)
    maps = maps_of(job, at)
    count = maps.heads(layer)
    averaged = mean or heads is None or heads == "mean"
    chosen = list(range(count)) if heads is None or heads == "mean" else heads
    if max(chosen) >= count:
        raise IndexError(f"attention: there is no head {max(chosen)}; there are {count}.")
    size = maps.length**2 * (1 if averaged else len(chosen))
    if size > _MOST:
        raise ValueError(f"attention: {size:,} bytes are more than {_MOST:,}; ask for fewer heads.")
    workspace.log(
        job,
        f"glass.attention_maps(model, votive.tensor([session.tokens_of({at.id})]))[{layer}]"
        + (".weights()" if averaged else f".weights(heads={chosen})"),
    )
    if averaged:
        total: Any = 0.0
        for head in chosen:
            job.check()
            total = total + maps.weights(layer, [head])
        found = total / len(chosen)
    else:
        found = maps.weights(layer, chosen)
    data = {
        "node": at.id,
        "layer": layer,
        "heads": chosen,
        "mean": averaged,
        "count": count,
        "tokens": workspace.loaded.texts(maps.tokens),
    }
    return data, {"weights": (found * 255 + 0.5).astype(np.uint8)}


@action("attention.row")
def row(job: Job, layer: Index, query: Index, head: Index | None = None, node: Index | None = None) -> Any:
    """Where one query looks, exactly; without a head the average of all."""
    at = job.workspace.session._node(node)
    maps = maps_of(job, at)
    count = maps.heads(layer)
    if head is not None and head >= count:
        raise IndexError(f"attention: there is no head {head}; there are {count}.")
    if query >= maps.length:
        raise IndexError(f"attention: there is no position {query}; there are {maps.length}.")
    found = maps.weights(layer, list(range(count)) if head is None else [head], [query])
    data = {"node": at.id, "layer": layer, "head": head, "query": query}
    return data, {"weights": found.mean(0)[0].astype(np.float32)}


@action("attention.heads")
def heads(job: Job, node: Index | None = None) -> Any:
    """How widely each head looks, and how much at known patterns: (layers, heads)."""
    workspace = job.workspace
    at = workspace.session._node(node)
    maps = maps_of(job, at)

    def make() -> tuple[Any, int]:
        layers = len(maps.names)
        rows: list[dict[str, Any]] = []
        for i in range(layers):
            job.progress(i, layers, maps.names[i])
            rows.append(_scores(maps, i))
        job.progress(layers, layers)
        most = max(len(r["entropy"]) for r in rows)
        blobs = {n: np.array([[*r[n], *[math.nan] * (most - len(r[n]))] for r in rows], np.float32) for n in _SCORES}
        return blobs, sum(b.nbytes for b in blobs.values())

    blobs = workspace.cached(("heads", at.id), make)
    workspace.log(
        job,
        f"maps = glass.attention_maps(model, votive.tensor([session.tokens_of({at.id})])); "
        "print(maps.entropy(), maps.score('induction'))",
    )
    count, most = blobs["entropy"].shape
    return {"node": at.id, "layers": count, "heads": most}, blobs


def _scores(maps: replay.Maps, layer: int) -> dict[str, Any]:
    """Numbers of one layer: the mean over the stretches of the text, by how long they are."""
    totals: dict[str, Any] = dict.fromkeys(_SCORES, 0.0)
    weight: dict[str, Any] = dict.fromkeys(_SCORES, 0.0)
    if not maps.seen(layer):  # it is skipped, and its row stays empty
        return dict.fromkeys(_SCORES, ())
    for _, m in maps.layer(layer):
        one = AttentionMaps([m], m.tokens)
        for name in _SCORES:
            found = (one.entropy() if name == "entropy" else one.score(name))[0].numpy()
            known = np.isfinite(found)
            totals[name] = totals[name] + np.where(known, found, 0.0) * m.shape[2]
            weight[name] = weight[name] + known * m.shape[2]
    with np.errstate(invalid="ignore", divide="ignore"):
        return {n: totals[n] / weight[n] for n in _SCORES}


# The side of a small map, and bytes of all of them.
_SIDE, _SMALL = 48, 4 << 20


@action("attention.thumbnails")
def thumbnails(job: Job, node: Index | None = None) -> Any:
    """The weights of all heads of all layers in small: bytes (layers, heads, side, side), of neighbours the largest."""
    workspace = job.workspace
    at = workspace.session._node(node)
    maps = maps_of(job, at)
    layers = len(maps.names)
    counts = [maps.heads(i) if maps.seen(i) else 0 for i in range(layers)]
    most = max(counts, default=0)
    if not most:
        raise LookupError("No layer ran attention that could be seen.")
    side = max(4, min(_SIDE, maps.length, int((_SMALL / (layers * most)) ** 0.5)))
    starts = np.unique(np.linspace(0, maps.length, side, endpoint=False).astype(np.int64))

    def make() -> tuple[Any, int]:
        out = np.zeros((layers, most, len(starts), len(starts)), np.uint8)
        for i, count in enumerate(counts):
            job.progress(i, layers, maps.names[i])
            for head in range(count):
                found = maps.weights(i, [head])[0]
                found = np.maximum.reduceat(np.maximum.reduceat(found, starts, 0), starts, 1)
                out[i, head] = (found * 255 + 0.5).astype(np.uint8)
        job.progress(layers, layers)
        return out, out.nbytes

    found = workspace.cached(("thumbnails", at.id), make)
    ids = f"votive.tensor([session.tokens_of({at.id})])"
    workspace.log(job, f"maps = glass.attention_maps(model, {ids}); print(maps)")
    return {"node": at.id, "layers": layers, "heads": most}, {"maps": found}
