"""Actions about all layers at once: how large what they add is, and how the stream grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import replay
from ..arguments import Index
from ..jobs import Job
from . import action

if TYPE_CHECKING:
    from ..models import Loaded


_PARTS = {"attention": ("attn", "attention"), "mlp": ("mlp", "feed_forward", "ffn", "moe")}


@action("layers.statistics")
def statistics(job: Job, node: Index | None = None) -> dict[str, Any]:
    """Norm (averaged over positions), mean and deviation of the stream, attention and MLP."""
    workspace = job.workspace
    at = workspace.session._node(node)

    def make() -> tuple[Any, int]:
        wanted = addresses(workspace.loaded)
        # A layer that is swapped makes other calls than it has parts.
        found = replay.captured(workspace.loaded, at, lambda frame: str(frame.address) in wanted)
        rows = []
        for address, (layer, part) in wanted.items():
            if address not in found:
                continue
            x = found[address].float()
            rows.append(
                {
                    "address": address,
                    "part": part,
                    "layer": layer,
                    "norm": float(x.norm(dim=-1).mean()),
                    "mean": float(x.mean()),
                    "std": float(x.std(correction=0)),
                }
            )
        return rows, 100 * len(rows)

    rows = workspace.cached(("layers", at.id), make)
    workspace.log(job, f"print(glass.layer_statistics(model, votive.tensor([session.tokens_of({at.id})])))")
    return {"node": at.id, "rows": rows}


def addresses(loaded: Loaded) -> dict[str, tuple[int, str]]:
    """The address of each layer, its attention and its MLP."""
    out: dict[str, tuple[int, str]] = {}
    for i, (name, layer) in enumerate(zip(loaded.parts.names, loaded.parts.layers, strict=True)):
        children = [n for n, _ in layer.named_children()]
        for part, signs in _PARTS.items():
            fits = [n for n in children if any(s in n.lower() for s in signs) and "norm" not in n]
            if fits:
                out[f"{name}.{fits[0]}"] = (i, part)
        out[name] = (i, "residual")
    return out
