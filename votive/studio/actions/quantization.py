"""Actions that compare a model with what blocks of few bits make of it: the error by layer and by weight."""

from __future__ import annotations

import copy
import math
from typing import Annotated, Any

import votive

from ...glass import QuantizationError, quantization_error
from ...quant import quantize_
from ...quant.known import known_types
from ...quant.places import places
from ...surface.block_tensor import BlockTensor
from ..arguments import Bounds, Index
from ..jobs import Job
from . import action


@action("quantization.types", computes=False)
def types(job: Job) -> dict[str, Any]:
    """The types that a copy of the model may be quantized to, and whether the model is in blocks itself."""
    model = job.workspace.loaded.model
    return {"types": known_types(), "in_blocks": _in_blocks(model)}


@action("quantization.error")
def error(
    job: Job,
    type: Annotated[str, Bounds(1, 40)] = "q4_k_m",
    original: Annotated[str, Bounds(1, 300)] | None = None,
    each: bool = False,
    node: Index | None = None,
) -> dict[str, Any]:
    """Errors by layer on the node's text: of a quantized copy, or of a model in blocks beside its original."""
    workspace = job.workspace
    at = workspace.session._node(node)
    loaded = workspace.loaded
    model: Any = loaded.model
    ids = votive.tensor([at.session.tokens_of(at)], device=model.device)
    tell = lambda name, done, total: job.progress(done, total, name)
    lines = ["import copy"]
    if _in_blocks(model):
        if original is None:
            raise ValueError("The model is in blocks already. Choose the model that it was made from.")
        wanted = workspace.library.request(original)
        wanted.wait(lambda loading: job.progress(loading.done, loading.total, loading.text))
        assert wanted.loaded is not None, "waiting ends with a model or an error"
        first: Any = wanted.loaded.model
        # A copy: layers are exchanged in it for a moment, and another tab may be using the model.
        first = copy.deepcopy(first)
        made, key = model, ("quantization", at.id, original, each)
        lines.append(f"original = votive.models.AutoModelForCausalLM.from_pretrained({original!r})")
        call = f"glass.quantization_error(model, original, votive.tensor([session.tokens_of({at.id})]), each={each})"
    else:
        if original is not None:
            raise ValueError("The model holds numbers: it is compared with a quantized copy of itself.")
        if type not in known_types():
            raise ValueError(f"There is no type {type!r:.60}; there are {', '.join(known_types())}.")
        first, made = copy.deepcopy(model), copy.deepcopy(model)
        quantize_(made, type, progress=tell)
        key = ("quantization", at.id, type, each)
        lines += ["quantized = copy.deepcopy(model)", f"votive.quantize_(quantized, {type!r})"]
        call = f"glass.quantization_error(quantized, model, votive.tensor([session.tokens_of({at.id})]), each={each})"
    lines.append(f"print({call})")

    def make() -> tuple[Any, int]:
        found = quantization_error(made, first, ids, each=each, progress=tell)
        return found, 200 * len(found.sites)

    found = workspace.cached(key, make)
    for line in lines:
        workspace.log(job, line)
    return {"node": at.id, "python": "\n".join(lines), **_told(found, loaded.parts.names)}


def _in_blocks(model: Any) -> bool:
    return any(isinstance(p.weight, BlockTensor) for p in places(model))


def _told(found: QuantizationError, layers: tuple[str, ...]) -> dict[str, Any]:
    """The errors as JSON has them: what cannot be told is None."""
    numbers = {name: i for i, name in enumerate(layers)}
    rows = [
        {
            "name": x.name,
            "layer": numbers.get(x.name),
            "weight": _known(x.weight),
            "stream": _known(x.stream),
            "kl": _known(x.kl),
        }
        for x in found.layers
    ]
    sites = [
        {
            "address": s.name,
            "layer": numbers.get(s.layer),
            "format": s.format,
            "bits": s.bits,
            "weight": _known(s.weight),
            "output": _known(s.output),
        }
        for s in found.sites
    ]
    whole = {
        "tokens": found.tokens,
        "kl": _known(found.kl),
        "same_top": _known(found.same_top),
        "perplexity": _known(found.perplexity),
        "perplexity_original": _known(found.perplexity_original),
    }
    return {"layers": rows, "sites": sites, **whole}


def _known(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
