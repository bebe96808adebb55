"""Actions of the laboratory: features and steering by them. Each tells the Python that does the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import votive

from ...glass import features
from ...glass.edits import Edit
from .. import replay
from ..arguments import Index
from ..jobs import Job
from . import action
from .edits import set_edits

if TYPE_CHECKING:
    from ...glass.features import SAE
    from ...glass.session_tree import SessionNode
    from ..workspace import Workspace


def coder_of(workspace: Workspace, part: Literal["sae", "transcoder"]) -> tuple[SAE, str]:
    """A coder that belongs to the loaded model, and the argument that loads it in Python."""
    loaded = workspace.loaded

    def make() -> tuple[Any, int]:
        from ...models.checkpoint import bundled

        name = loaded.name
        if name in bundled():
            found = features.load(name, part)
            said = repr(name) if part == "sae" else f"{name!r}, {part!r}"
        else:
            try:
                place = Path(workspace.library.place_of(name)) / "features" / part
            except FileNotFoundError:  # it was given in memory
                place = Path("features") / part
            if not place.is_dir():
                raise LookupError(
                    f"There is no {_KIND[part]} for {name}. Train one (docs/laboratory/train_a_sparse_autoencoder.md) "
                    f"and save it as features/{part} in the model's folder."
                )
            found, said = features.load(place), repr(str(place))
        return (found, said), sum(p.numel() * 4 for p in found.parameters())

    coder: tuple[SAE, str] = workspace.cached(("coder", loaded.name, part), make)
    return coder


_KIND = {"sae": "sparse autoencoder", "transcoder": "transcoder"}


def ids_of(node: SessionNode) -> str:
    """The tokens of a node as Python."""
    return f"votive.tensor([session.tokens_of({node.id})])"


def log_lines(job: Job, python: list[str]) -> None:
    """Keep lines of Python in the console."""
    for line in python:
        job.workspace.log(job, line)


@action("laboratory.features")
def features_(job: Job, node: Index | None = None, position: Index | None = None) -> Any:
    """The features that fire in the text: the strongest ones, at one position or anywhere, with their values."""
    workspace = job.workspace
    at = workspace.session._node(node)
    sae, said = coder_of(workspace, "sae")
    found = _encoded(workspace, at, sae)
    if position is not None and position >= len(found):
        raise IndexError(f"There is no position {position}; the text has {len(found)} tokens.")
    weight = found[position] if position is not None else found.max(0)
    order = [int(i) for i in np.argsort(-weight, kind="stable")[:40] if weight[i] > 0]
    names = _promoted(workspace, sae, order)
    python = [
        f"sae = glass.features.load({said})",
        f"place = glass.features.splice(model, {sae.config.site!r}, sae)",
        "with place, glass.capture(model, place.features) as seen:",
        f"    model({ids_of(at)})",
        f"print(seen[place.features][0, {-1 if position is None else position}].topk(10))",
    ]
    log_lines(job, python)
    data = {
        "node": at.id,
        "position": position,
        "site": sae.config.site,
        "count": int(found.shape[1]),
        "rows": [
            {"feature": i, "value": float(weight[i]), "at": int(found[:, i].argmax()), "promotes": n}
            for i, n in zip(order, names, strict=True)
        ],
        "python": "\n".join(python),
    }
    return data, {"values": np.ascontiguousarray(found[:, order].T).astype(np.float32)}


def _encoded(workspace: Workspace, node: SessionNode, sae: SAE) -> np.ndarray:
    def make() -> tuple[Any, int]:
        seen = replay.captured(workspace.loaded, node, sae.config.site)
        value = next(iter(seen.values()))
        found = sae.encode(value.float())[0].cpu().numpy().astype(np.float32)
        return found, found.nbytes

    kept: np.ndarray = workspace.cached(("features", node.id), make)
    return kept


def _promoted(workspace: Workspace, sae: SAE, order: list[int]) -> list[list[str]]:
    """The tokens that each feature makes likelier, by its direction read through the model's head."""
    parts = workspace.loaded.parts
    if not order or parts.head is None or parts.norm is None:
        return [[] for _ in order]
    rows = _direction(sae, dict.fromkeys(order, 1.0), one_by_one=True).to(workspace.loaded.model.dtype)
    logits = parts.head(rows * getattr(parts.norm, "weight", 1.0)).float()
    tell = workspace.loaded.text
    return [[tell(int(t)) for t in row] for row in logits.topk(4)[1].tolist()]


def _direction(sae: SAE, strengths: dict[int, float], *, one_by_one: bool = False) -> Any:
    """What raising features by so much adds where the coder writes: (hidden,), or a row for each."""
    count = sae.config.d_sae
    bad = [i for i in strengths if not 0 <= i < count]
    if bad:
        raise IndexError(f"There is no feature {bad[0]}; there are {count}.")
    steps = votive.zeros(len(strengths), count)
    for row, (i, size) in enumerate(strengths.items()):
        steps[row, i] = size
    if not one_by_one:
        steps = steps.sum(0, keepdim=True)
    # Decoding is linear beside its bias.
    made = sae.decode(steps) - sae.decode(votive.zeros_like(steps))
    return made if one_by_one else made[0]


@action("laboratory.feature")
def feature(job: Job, feature: Index, node: Index | None = None) -> dict[str, Any]:
    """One feature: where it fires in what was written, how strongly, what it makes likelier, which are near."""
    workspace = job.workspace
    at = workspace.session._node(node)
    sae, said = coder_of(workspace, "sae")
    if feature >= sae.config.d_sae:
        raise IndexError(f"There is no feature {feature}; there are {sae.config.d_sae}.")
    ends = [n for n in workspace.session.nodes if not n.children_ids][-8:]
    ids = [workspace.session.tokens_of(n) for n in {x.id: x for x in (at, *ends)}.values()]
    texts = [votive.tensor([row]) for row in [*ids, *_sentences(workspace)]]
    board = features.dashboard(
        workspace.loaded.model,
        sae,
        texts,
        [feature],
        tokenizer=workspace.loaded.tokenizer,
        examples=5,
        around=6,
        skip=1,
    )[feature]
    python = [
        f"sae = glass.features.load({said})",
        f"texts = [{ids_of(at)}]",
        f"print(glass.features.dashboard(model, sae, texts, [{feature}], tokenizer=tokenizer)[{feature}])",
    ]
    log_lines(job, python)
    return {
        "node": at.id,
        "feature": feature,
        "rate": board.rate,
        "top": board.top,
        "places": board.places,
        "counts": list(board.counts),
        "examples": [
            {"value": e.value, "tokens": list(e.tokens), "values": [float(v) for v in e.values]} for e in board.examples
        ],
        "promoted": [{"text": t, "value": v} for t, v in board.promoted],
        "suppressed": [{"text": t, "value": v} for t, v in board.suppressed],
        "similar": [{"feature": i, "value": v} for i, v in board.similar],
        "together": [{"feature": i, "value": v} for i, v in board.together],
        "python": "\n".join(python),
    }


_SENTENCES = (
    "He walked all night and all day, and in the evening he came to a castle.",
    "The next morning the king sent for his three sons.",
    "An old woman sat by the fire and spun.",
    "They rode seven days and seven nights through the forest.",
    "The fox said to the wolf, Come with me.",
    "When the sun rose at dawn the giant was turned to stone.",
    "Once there was a poor miller who had a daughter.",
    "She gave him bread and wine, and he thanked her and went on.",
)


def _sentences(workspace: Workspace) -> list[list[int]]:
    """Sentences beside the session's own texts, so that a feature has something to fire at."""
    return [list(workspace.loaded.tokenizer(s).input_ids) for s in _SENTENCES]


@action("laboratory.steer", changes=True)
def steer(job: Job, strengths: dict, from_start: bool = True) -> dict[str, Any]:
    """Raise features by so much wherever their site is: an edit, in place of an earlier one of this kind."""
    workspace = job.workspace
    sae, said = coder_of(workspace, "sae")
    wanted: dict[int, float] = {}
    for key, value in strengths.items():
        if not str(key).isdecimal() or isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError("Strengths are numbers by the number of their feature.")
        if not abs(float(value)) <= 1e6:
            raise ValueError("A strength must be between −1,000,000 and 1,000,000.")
        if value:
            wanted[int(key)] = float(value)
    kept = [e for e in workspace.session.edits if not _steers(workspace, e)]
    if wanted:
        vector = _direction(sae, wanted).to(device=workspace.loaded.model.device)
        edit = Edit(_module(workspace, sae), "add", vector)
        kept.append(edit)
    reply = set_edits(job, kept, from_start, log=False)
    python = [f"sae = glass.features.load({said})"]
    if wanted:
        python += [
            f"place = glass.features.splice(model, {sae.config.site!r}, sae)",
            f"with place, glass.patch(model, {{place.features: glass.features.steer({wanted!r})}}):",
            f"    print(model({ids_of(workspace.session.node)}).logits[0, -1].topk(5))",
        ]
    else:
        python.append(f"print(model({ids_of(workspace.session.node)}).logits[0, -1].topk(5))")
    log_lines(job, python)
    return {**reply, "strengths": {str(k): v for k, v in wanted.items()}, "python": "\n".join(python)}


def _module(workspace: Workspace, sae: SAE) -> str:
    """The address of the module whose output a coder reads and writes."""
    site = sae.config.writes or sae.config.site
    names = dict(workspace.loaded.model.named_modules())
    return site if site in names else f"model.{site}"


def _steers(workspace: Workspace, edit: Edit) -> bool:
    sae, _ = coder_of(workspace, "sae")
    return edit.do == "add" and edit.at == _module(workspace, sae) and isinstance(edit.value, votive.Tensor)
