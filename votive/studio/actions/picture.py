"""Actions for the picture of the model: how much flows where, one layer's inside, one head's arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...glass.address import Pattern
from ...glass.frozen_norm import freeze
from ...glass.lens import logit_lens
from ...glass.probe import Frame, Probe
from .. import replay
from ..arguments import Index
from ..jobs import Job
from ..session_json import candidates
from . import action
from .attention import maps_of
from .layers import addresses

if TYPE_CHECKING:
    from ...glass.session_tree import SessionNode
    from ...tensor import Tensor
    from ..models import Loaded


_FLOW = ("attn_out", "mlp_out", "resid_post", "attn.z", "ln1.scale", "ln2.scale")
_LAYER = (
    "resid_pre", "ln1.scale", "ln1.normalized", "attn.z", "attn_out", "resid_mid", "ln2.scale", "ln2.normalized",
    "mlp.post", "mlp_out", "resid_post",
)  # fmt: skip
_HEAD = ("attn.rot_q", "attn.q", "attn.rot_k", "attn.k", "attn.v", "attn.scores", "attn.pattern", "attn.z")
_NEURONS, _KEYS, _TOKENS = 12, 8, 8


class _Sites(Probe):
    """Hands what a run shows at named places to a function, and keeps nothing itself."""

    def __init__(self, model: Any, names: list[str], take: Callable[[str, Any], None]) -> None:
        super().__init__(model, sites=[Pattern(n) for n in names])
        self._only = {id(m): m for m in self.model.modules() if getattr(m, "runs_through_points", False)}
        self._only[id(self.model)] = self.model
        self._take, self._wanted = take, set(names)

    def left(self, frame: Frame) -> None:
        name = str(frame.address)
        if name in self._wanted:
            self._take(name, frame.output.detach())


def _run(loaded: Loaded, node: SessionNode, names: list[str], take: Callable[[str, int, Any], None]) -> None:
    """Run a node's text, and hand on what stands at named places, with the position where each part begins."""
    for p in replay.parts_of(loaded, node):
        start = p.start
        with _Sites(p.model, names, lambda name, x, start=start: take(name, start, x)):  # type: ignore[misc]
            p.model(p.ids, **p.given)


def _log(job: Job, node: SessionNode, names: str) -> None:
    ids = f"votive.tensor([session.tokens_of({node.id})])"
    job.workspace.log(job, f"with glass.capture(model, {names}) as seen: model({ids})")


def _norms(x: Tensor) -> np.ndarray:
    """The length of each vector (positions,) or (positions, heads)."""
    return np.asarray(x[0].float().norm(dim=-1).cpu().numpy(), np.float32)


@action("picture.flow")
def flow(job: Job, node: Index | None = None) -> Any:
    """How long the vectors are that flow: the stream, what attention and MLP add, heads; by layer and position."""
    workspace = job.workspace
    at = workspace.session._node(node)

    def make() -> tuple[Any, int]:
        blobs = _flow_of_places(workspace.loaded, at) if workspace.loaded.info()["places"] else _flow(workspace, at)
        return blobs, sum(b.nbytes for b in blobs.values())

    blobs = workspace.cached(("flow", at.id), make)
    _log(job, at, "['layers.*.attn_out', 'layers.*.mlp_out', 'layers.*.resid_post']")
    layers, count = blobs["attention"].shape
    return {"node": at.id, "layers": layers, "positions": count, "heads": blobs["heads"].shape[1]}, blobs


def _flow_of_places(loaded: Loaded, node: SessionNode) -> dict[str, np.ndarray]:
    layers, length = len(loaded.parts.layers), node.stop
    blank = np.full((layers, length), math.nan, np.float32)
    out = {"residual": np.full((layers + 1, length), math.nan, np.float32)}
    out |= {n: blank.copy() for n in ("attention", "mlp", "scale1", "scale2")}
    heads: dict[int, np.ndarray] = {}
    places = {"attn_out": "attention", "mlp_out": "mlp", "ln1.scale": "scale1", "ln2.scale": "scale2"}

    def take(name: str, start: int, x: Any) -> None:
        stop = start + x.shape[1]
        if name == "embed":
            out["residual"][0, start:stop] = _norms(x)
            return
        _, number, place = name.split(".", 2)
        i = int(number)
        if place == "resid_post":
            out["residual"][i + 1, start:stop] = _norms(x)
        elif place == "attn.z":
            found = heads.setdefault(i, np.full((x.shape[2], length), math.nan, np.float32))
            found[:, start:stop] = _norms(x).T
        elif place.startswith("ln"):
            out[places[place]][i, start:stop] = x[0, :, 0].float().cpu().numpy()
        else:
            out[places[place]][i, start:stop] = _norms(x)

    _run(loaded, node, ["embed", *(f"layers.{i}.{n}" for i in range(layers) for n in _FLOW)], take)
    most = max((h.shape[0] for h in heads.values()), default=0)
    out["heads"] = np.full((layers, most, length), math.nan, np.float32)
    for i, found in heads.items():
        out["heads"][i, : found.shape[0]] = found
    return out


def _flow(workspace: Any, node: SessionNode) -> dict[str, np.ndarray]:
    """The same of a model without named places: from what its modules give; nothing of heads."""
    loaded, length = workspace.loaded, node.stop
    wanted = addresses(loaded)
    embedding = loaded.parts.named()["embedding"]
    names = {*wanted, *([embedding] if embedding else [])}
    found = replay.captured(loaded, node, lambda frame: str(frame.address) in names)
    layers = len(loaded.parts.layers)
    blank = np.full((layers, length), math.nan, np.float32)
    out = {"residual": np.full((layers + 1, length), math.nan, np.float32)}
    out |= {n: blank.copy() for n in ("attention", "mlp", "scale1", "scale2")}
    out["heads"] = np.zeros((layers, 0, length), np.float32)
    for address, value in found.items():
        if value.dim() != 3 or value.shape[1] != length:
            continue
        if address == embedding:
            out["residual"][0] = _norms(value)
            continue
        layer, part = wanted[address]
        row, i = (out["residual"], layer + 1) if part == "residual" else (out[part], layer)
        row[i] = _norms(value)
    return out


@action("picture.says")
def says(job: Job, position: Index, node: Index | None = None) -> dict[str, Any]:
    """What each layer would say at one position, and the likeliest tokens in the end."""
    workspace = job.workspace
    at = workspace.session._node(node)
    _check(position, at)

    def make() -> tuple[Any, int]:
        for p in replay.parts_of(workspace.loaded, at):
            if p.stop <= position:
                p.model(p.ids, **p.given)
                continue
            found = logit_lens(p.model, p.ids, top_k=6, parts=p.parts, positions=[position], **p.given)
            ids, chances = found.ids[:, 0, 0].tolist(), found.probabilities[:, 0, 0].tolist()
            rows = [candidates(workspace, i, c) for i, c in zip(ids, chances, strict=True)]
            return {"layers": [r[0] for r in rows], "top": rows[-1]}, 1000
        raise IndexError(f"There is no position {position}; the text has {at.stop} tokens.")

    return {"node": at.id, "position": position, **workspace.cached(("says", at.id, position), make)}


@action("picture.layer")
def layer(job: Job, layer: Index, position: Index, node: Index | None = None) -> Any:
    """What happens in one layer at one position: the values of each part, heads' patterns, the strongest neurons."""
    workspace = job.workspace
    at = workspace.session._node(node)
    _check(position, at)
    _check_layer(workspace.loaded, layer)
    found: dict[str, np.ndarray] = {}

    def take(name: str, start: int, x: Any) -> None:
        if start <= position < start + x.shape[1]:
            found[name.split(".", 2)[2]] = x[0, position - start].float().cpu().numpy()

    _run(workspace.loaded, at, [f"layers.{layer}.{n}" for n in _LAYER], take)
    if not found:
        raise LookupError(f"Layer {layer} did not run: it is skipped or swapped by an edit.")
    maps = maps_of(job, at)
    pattern = maps.weights(layer, list(range(maps.heads(layer))), [position])[:, 0, : position + 1]
    neurons = found.get("mlp.post", np.zeros(0, np.float32))
    order = np.argsort(-np.abs(neurons), kind="stable")[:_NEURONS]
    _log(job, at, f"'layers.{layer}.*'")
    data = {
        "node": at.id,
        "layer": layer,
        "position": position,
        "addresses": _modules(workspace.loaded, layer),
        "sizes": {n: float(np.linalg.norm(x)) for n, x in found.items() if not n.endswith("scale")},
        "scales": {n: float(x.reshape(-1)[0]) for n, x in found.items() if n.endswith("scale")},
        "neurons": [{"number": int(i), "value": float(neurons[i])} for i in order],
        "active": float((np.abs(neurons) > 0.1 * (np.abs(neurons).max() or 1)).mean()) if neurons.size else None,
    }
    blobs = {n: x.astype(np.float32) for n, x in found.items() if not n.endswith("scale")}
    return data, {**blobs, "pattern": pattern.astype(np.float32)}


@action("picture.head")
def head(job: Job, layer: Index, head: Index, position: Index, node: Index | None = None) -> Any:
    """The arithmetic of one head at one position: query · key, weights, values, their sum, and what that says."""
    workspace = job.workspace
    at = workspace.session._node(node)
    _check(position, at)
    _check_layer(workspace.loaded, layer)
    rows: dict[str, np.ndarray] = {}
    kept: dict[str, list[np.ndarray]] = {}

    def take(name: str, start: int, x: Any) -> None:
        place = name.split(".", 2)[2]
        if place in ("attn.scores", "attn.pattern"):
            if not start <= position < start + x.shape[2]:
                return
            rows[place] = x[0, head, position - start].float().cpu().numpy()
        elif place.rpartition("_")[2].rpartition(".")[2] in ("k", "v"):
            kept.setdefault(place, []).append(x[0].float().cpu().numpy())
        elif start <= position < start + x.shape[1]:
            if head >= x.shape[2]:
                raise IndexError(f"There is no head {head}; there are {x.shape[2]}.")
            rows[place] = x[0, position - start, head].float().cpu().numpy()

    _run(workspace.loaded, at, [f"layers.{layer}.{n}" for n in _HEAD], take)
    if "attn.pattern" not in rows:
        raise LookupError(f"Layer {layer} ran no attention: it is skipped or swapped by an edit.")
    weights = rows["attn.pattern"][: position + 1]
    scores = rows.get("attn.scores", np.full_like(weights, math.nan))[: position + 1]
    tokens = workspace.loaded.texts(node_tokens(at))[: position + 1]
    values = _shared(kept.get("attn.v"), head, rows["attn.z"].shape[-1], workspace, position)
    keys = _shared(kept.get("attn.rot_k") or kept.get("attn.k"), head, None, workspace, position)
    query = rows.get("attn.rot_q", rows.get("attn.q", np.zeros(0, np.float32)))
    order = np.argsort(-weights, kind="stable")[:_KEYS]
    table = []
    for i in order:
        dot = None if keys is None or not query.size else float(query.astype(np.float64) @ keys[i])
        row = {
            "position": int(i),
            "text": tokens[i],
            "weight": float(weights[i]),
            "score": float(scores[i]),
            "dot": dot,
        }
        table.append({**row, "value": None if values is None else float(np.linalg.norm(values[i]))})
    data: dict[str, Any] = {
        "node": at.id,
        "layer": layer,
        "head": head,
        "position": position,
        "text": tokens[-1],
        "rows": table,
        "rest": float(weights.sum() - weights[order].sum()),
        "size": float(np.linalg.norm(rows["attn.z"])),
        "dimension": int(query.size),
        "root": math.sqrt(query.size) if query.size else None,
        "promotes": _promoted(workspace, at, layer, head, position),
    }
    blobs = {"z": rows["attn.z"].astype(np.float32), "weights": weights.astype(np.float32)}
    if values is not None:
        blobs["values"] = values[order].astype(np.float32)
        made = (weights[:, None] * values[: len(weights)]).sum(0)
        data["off"] = float(np.abs(made - rows["attn.z"]).max())
    _log(job, at, f"['layers.{layer}.attn.{{scores,pattern,z}}']")
    return data, blobs


def node_tokens(node: SessionNode) -> list[int]:
    """The tokens of a node's text."""
    return list(node.session.tokens_of(node))


def _shared(
    found: list[np.ndarray] | None, head: int, size: int | None, workspace: Any, position: int
) -> np.ndarray | None:
    """Keys or values (positions, features) of the group that a head belongs to; None where they cannot be told."""
    if not found:
        return None
    x = np.concatenate(found)  # (positions, heads, features)
    heads = workspace.loaded.info()["heads"]
    if x.ndim != 3 or x.shape[0] <= position or not x.shape[1] or heads % x.shape[1] or head >= heads:
        return None
    own = x[:, head // (heads // x.shape[1])]
    return own if size is None or own.shape[-1] == size else None


def _promoted(workspace: Any, node: SessionNode, layer: int, head: int, position: int) -> dict[str, Any] | None:
    """The tokens that what the head wrote makes likelier and less likely, with the last norm's scale held as it was."""
    parts = workspace.loaded.parts
    if parts.norm is None or parts.head is None:
        return None
    seen: dict[str, Any] = {}
    end = f"layers.{len(parts.layers) - 1}.resid_post"

    def take(name: str, start: int, x: Any) -> None:
        if start <= position < start + x.shape[1]:
            seen[name] = x[0, position - start]

    _run(workspace.loaded, node, [f"layers.{layer}.attn.result", end], take)
    if f"layers.{layer}.attn.result" not in seen or end not in seen:
        return None
    frozen = freeze(parts.norm, seen[end].unsqueeze(0))
    wrote = frozen.part(seen[f"layers.{layer}.attn.result"][head].double().unsqueeze(0))
    zero = parts.head((wrote * 0).to(seen[end].dtype)).float()
    logits = (parts.head(wrote.to(seen[end].dtype)).float() - zero)[0]
    logits = logits - logits.mean()
    best = logits.topk(_TOKENS)
    worst = (-logits).topk(_TOKENS)
    tell = workspace.loaded.text
    return {
        "up": [{"text": tell(i), "value": v} for v, i in zip(best[0].tolist(), best[1].tolist(), strict=True)],
        "down": [{"text": tell(i), "value": -v} for v, i in zip(worst[0].tolist(), worst[1].tolist(), strict=True)],
    }


def _modules(loaded: Loaded, layer: int) -> dict[str, str]:
    """The addresses of a layer's parts, for the debugger."""
    wanted = {part: at for at, (i, part) in addresses(loaded).items() if i == layer}
    norms = [n for n, _ in loaded.parts.layers[layer].named_children() if "norm" in n or n.startswith("ln")]
    return {**wanted, "norms": [f"{loaded.parts.names[layer]}.{n}" for n in norms]}  # type: ignore[dict-item]


def _check(position: int, node: SessionNode) -> None:
    if position >= node.stop:
        raise IndexError(f"There is no position {position}; the text has {node.stop} tokens.")


def _check_layer(loaded: Loaded, layer: int) -> None:
    if layer >= len(loaded.parts.layers):
        raise IndexError(f"There is no layer {layer}; there are {len(loaded.parts.layers)}.")
    if not loaded.info()["places"]:
        raise LookupError(
            f"{type(loaded.model).__name__} has no named places to look into; the debugger shows its values."
        )
