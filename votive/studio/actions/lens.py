"""Actions of the logit lens: what each layer would say at each position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from .. import replay
from ..arguments import Bounds, Index
from ..jobs import Job
from . import action

if TYPE_CHECKING:
    from ...glass.lens import Lens
    from ...glass.session_tree import SessionNode
    from ...tensor import Tensor
    from ..workspace import Workspace


# So many candidates of each cell are kept, for hovering.
_TOP = 20


def _lens(job: Job, node: SessionNode, top_k: int, target: int | None) -> Lens:
    vocab = job.workspace.loaded.info()["vocab"]
    if target is not None and vocab and target >= vocab:
        raise IndexError(f"lens: there is no token {target}; the model has {vocab}.")
    count = max(_TOP, top_k)

    def make() -> tuple[Any, int]:
        found = replay.lens(job.workspace.loaded, node, count, target, _before(job, node, count, target))
        return found, 8 * found.ids.numel() * 2

    return job.workspace.cached(("lens", node.id, count, target), make)


def _before(job: Job, node: SessionNode, count: int, target: int | None) -> Any:
    """The lens of the longest text on the way to this node that is kept, and had no edits."""
    above = node.parent
    while above is not None:
        kept = job.workspace.cache.get(("lens", above.id, count, target))
        if kept is not None and not above.plan:
            return kept[0]
        above = above.parent
    return None


@action("lens.grid")
def grid(
    job: Job, node: Index | None = None, top_k: Annotated[int, Bounds(1, 100)] = 1, target: Index | None = None
) -> Any:
    """The likeliest token of each layer and position; row 0 is the embedding."""
    workspace = job.workspace
    at = workspace.session._node(node)
    found = _lens(job, at, top_k, target)
    ids = found.ids[:, 0, :, 0].tolist()
    data: dict[str, Any] = {
        "node": at.id,
        "names": list(found.names),
        "tokens": workspace.loaded.texts(workspace.session.tokens_of(at)),
        "ids": ids,
        "texts": [workspace.loaded.texts(row) for row in ids],
    }
    blobs = {
        "p": _f32(found.probabilities[:, 0, :, 0]),
        "entropy": _f32(found.entropy[:, 0]),
        "kl": _f32(found.kl[:, 0]),
    }
    if target is not None:
        data |= {"target": target, "rank": found.rank[:, 0].tolist()}
        blobs["target_p"] = _f32(found.probability[:, 0])
    about = "" if target is None else f", target={target}"
    workspace.log(job, f"print(glass.logit_lens(model, {_ids(workspace, at)}{about}, tokenizer=tokenizer))")
    return data, blobs


@action("lens.cell")
def cell(
    job: Job, layer: Index, position: Index, node: Index | None = None, k: Annotated[int, Bounds(1, 100)] = 10
) -> Any:
    """The best tokens of one cell; `layer` is a row of the grid, 0 the embedding."""
    workspace = job.workspace
    at = workspace.session._node(node)
    found = _lens(job, at, k, None)
    if layer >= len(found.names) or position >= found.ids.shape[2]:
        raise IndexError(
            f"lens.cell: there are {len(found.names)} rows and {found.ids.shape[2]} positions, got "
            f"layer={layer} and position={position}."
        )
    ids = found.ids[layer, 0, position, :k].tolist()
    p = found.probabilities[layer, 0, position, :k].tolist()
    return {
        "node": at.id,
        "layer": layer,
        "name": found.names[layer],
        "position": position,
        "top": [{"id": i, "text": workspace.loaded.text(i), "p": x} for i, x in zip(ids, p)],
        "entropy": float(found.entropy[layer, 0, position]),
        "kl": float(found.kl[layer, 0, position]),
    }


def _ids(workspace: Workspace, node: SessionNode) -> str:
    return f"votive.tensor([session.tokens_of({node.id})])"


def _f32(tensor: Tensor) -> np.ndarray:
    return np.asarray(tensor.cpu().float().numpy(), np.float32)
