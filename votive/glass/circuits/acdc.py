"""ACDC: a circuit by trying edge after edge without it. Conmy et al. 2023, arXiv:2304.14997. Knows no family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import votive

from ...nn import Module
from ..sweep_runs import inputs_of
from ..targets import uncompiled
from .edge_run import EdgeRun, Metric, Other, measured, other_values, written
from .graph import Circuit, graph


def acdc(
    model: Module,
    clean: object,
    other: Other,
    *,
    metric: Metric,
    threshold: float,
    progress: Callable[[int, int], object] | None = None,
) -> Circuit:
    """The edges without which the metric moves by more than `threshold`, found from the logits backwards.

    Each edge in turn carries what it does in a run on `other` ("zero" or means); it stays so if that takes the mean
    metric no further than `threshold` from what it was before. Edges to what nothing reads any longer go without a
    run. `progress` is called with how many edges were looked at, and of how many. `history` of the circuit tells of
    each edge that was tried.

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=16, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config).eval()
    >>> found = votive.glass.circuits.acdc(model, votive.tensor([[1, 2, 3]]), votive.tensor([[1, 5, 3]]),
    ...     metric=lambda out: out.logits[:, -1, 4], threshold=1e6)
    >>> len(found)
    0
    """
    if threshold < 0:
        raise ValueError(f"acdc: threshold must not be negative, got {threshold}.")
    model = uncompiled(model)
    of = graph(model)
    args, kwargs = inputs_of(clean)
    history: list[dict[str, Any]] = []
    with votive.no_grad():
        own, output = written(model, of, clean)
        values = other_values(model, of, own, other)
        goal = measured(metric, output)
        kept = of.allowed.clone()
        off, seen = 0.0, 0  # how far the metric is from the whole model's
        for j in reversed(range(len(of.readers))):
            reader = of.readers[j]
            users = of.writer_of(reader)
            alive = not users or any(bool(kept[of.writers.index(w)].any()) for w in users)
            for i in reversed(range(len(of.writers))):
                if not of.allowed[i, j]:
                    continue
                seen += 1
                if progress is not None:
                    progress(seen, int(of.allowed.sum()))
                kept[i, j] = False
                if not alive:
                    continue
                with EdgeRun(model, of, ~kept, values):
                    now = abs(measured(metric, model(*args, **kwargs)) - goal)
                stays = now - off > threshold
                history.append({"edge": (of.writers[i], reader), "off": now, "kept": stays})
                if stays:
                    kept[i, j] = True
                else:
                    off = now
    return Circuit(of, kept, tuple(history)).pruned()
