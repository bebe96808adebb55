"""Attribution patching: what patching would do, estimated with one gradient. Knows no model class.

To first order, putting the clean value in place of the corrupted one changes the metric by
`(clean - corrupt) . gradient`, for all sites and positions at once: Nanda 2023, "Attribution
patching"; Syed et al. 2023, arXiv:2310.10348.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import votive

from ..nn import Module
from ..tensor import Tensor
from .gradients import gradients
from .resumed_run import Site


def estimated(
    model: Module,
    sites: Sequence[Site],
    corrupt: tuple[Sequence[object], Mapping[str, object]],
    clean: dict[str, Any],
    metric: Callable[[Any], Any],
    columns: Sequence[Sequence[Any]],
) -> Tensor:
    """The metric (sites, columns) that patching would give, averaged over samples."""
    found = gradients(model, [s.pattern for s in sites], corrupt, metric)
    rows = []
    with votive.no_grad():
        for site, own in zip(sites, columns, strict=True):
            own_value, new = found.values[site.name], clean[site.name]
            # Masked scores are minus infinity in both runs.
            change = (new - own_value).masked_fill(new == own_value, 0.0) * found.grads[site.name]
            samples = change.shape[0]
            row = votive.stack([change[c.index].sum() / samples for c in own])
            rows.append(row + found.metric.mean())
    return votive.stack(rows)


def correlation(a: Tensor, b: Tensor) -> float:
    """Pearson's correlation of two tables; NaN where one of them is constant.

    >>> from votive.glass.attribution_patching import correlation
    >>> round(correlation(votive.tensor([1.0, 2.0, 3.0]), votive.tensor([2.0, 4.0, 6.0])), 6)
    1.0
    """
    a, b = (x.double().flatten() - x.double().mean() for x in (a, b))
    size = float(a.norm() * b.norm())
    return float((a * b).sum()) / size if size else float("nan")
