"""Actions that hold the session's text against another reading of it: without edits, or by another model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

import votive

from .. import replay
from ..arguments import Bounds, Index
from ..jobs import Job
from . import action
from .edits import edit_line

if TYPE_CHECKING:
    from ..models import Loaded


# So many positions are read through the head at once.
_ROWS = 64


@action("compare.text")
def text(
    job: Job,
    against: Literal["plain", "model"] = "plain",
    model: Annotated[str, Bounds(1, 300)] | None = None,
    node: Index | None = None,
) -> Any:
    """The text under the edits in force, and without them or read by another model: each token's probability.

    Where both have the same tokens, the divergence at each position too; else what can be compared are bits per
    character.
    """
    workspace = job.workspace
    at = workspace.session._node(node)
    tokens = workspace.session.tokens_of(at)
    written = workspace.session.decode(tokens)
    mine = _read(
        job, workspace.loaded, [(p.model, p.ids, p.given) for p in replay.parts_of(workspace.loaded, at)], tokens
    )
    ids = f"votive.tensor([session.tokens_of({at.id})])"
    if against == "plain":
        other, theirs = workspace.loaded, tokens
        name = "without the edits"
        if at.edits:
            workspace.log(job, f"with glass.patch(model, [{', '.join(map(edit_line, at.edits))}]): model({ids})")
        workspace.log(job, f"model({ids})")
    else:
        if model is None:
            raise ValueError("Choose a model to compare with.")
        job.busy(f"loading {model}")
        other = workspace.library.request(model).wait(lambda l: job.progress(l.done, l.total, l.text))
        if other.info().get("vision") or other.info().get("speech"):
            raise TypeError(f'"{model}" reads no text, so it cannot be compared.')
        theirs = list(other.tokenizer(written).input_ids)
        name = model
        context = other.info()["context"]
        if context and len(theirs) > context:
            raise ValueError(f"{model} reads {context:,} tokens at most; this text has {len(theirs):,}.")
        workspace.log(job, f"other = votive.models.AutoModelForCausalLM.from_pretrained({model!r})")
        workspace.log(job, f"other(votive.tensor([{theirs!r}]))")
    found = _read(
        job, other, [(other.model, votive.tensor([theirs], device=other.model.device), {"use_cache": False})], theirs
    )
    same = theirs == tokens and mine["logs"].shape == found["logs"].shape
    data: dict[str, Any] = {"node": at.id, "name": name, "same_tokens": same, "characters": len(written)}
    for side, one, whose in (("a", mine, workspace.loaded), ("b", found, other)):
        data[side] = {
            "tokens": [
                {"id": int(i), "text": whose.text(int(i)), "p": p, "best": whose.text(b), "best_p": q}
                for i, p, b, q in zip(one["tokens"], one["p"], one["best"], one["best_p"], strict=True)
            ],
            "bits": one["bits"],
            "bits_per_character": one["bits"] / max(1, len(written)),
        }
    blobs = {}
    if same:
        p = np.exp(mine["logs"])
        blobs["kl"] = np.maximum((p * (mine["logs"] - found["logs"])).sum(-1), 0).astype(np.float32)
        data["agree"] = float((mine["logs"].argmax(-1) == found["logs"].argmax(-1)).mean())
    return data, blobs


def _read(job: Job, loaded: Loaded, runs: list[tuple[Any, Any, dict[str, Any]]], tokens: list[int]) -> dict[str, Any]:
    """Probabilities of a text's tokens, the best token at each place, and all logarithms."""
    rows: list[np.ndarray] = []
    for model, ids, given in runs:
        logits = model(ids, **given).logits[0]
        for start in range(0, logits.shape[0], _ROWS):
            job.check()
            rows.append(logits[start : start + _ROWS].float().log_softmax(-1).cpu().numpy())
    logs = np.concatenate(rows)
    # What stands before a token says how probable it was; before the first stands nothing.
    own = [None, *(float(np.exp(logs[i, t])) for i, t in enumerate(tokens[1:]))]
    best = logs[:-1].argmax(-1)
    return {
        "tokens": tokens,
        "logs": logs,
        "p": own,
        "best": [0, *best.tolist()],
        "best_p": [None, *(float(np.exp(logs[i, b])) for i, b in enumerate(best))],
        "bits": float(-sum(np.log2(max(p, 1e-30)) for p in own if p is not None)),
    }
