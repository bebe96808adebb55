"""Vectors that are learned so that a model, with them added, says what is wanted. Knows addresses and losses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import votive

from ...nn import Module
from ...nn import functional as F
from ...optim import Adam
from ...tensor import Tensor
from ..edits import Edit
from ..patch import patch
from ..probes.layers import gather
from ..sweep_runs import inputs_of
from .directions import Direction


def learn_vector(
    model: Module,
    batches: Iterable[tuple[Any, Any]],
    at: str,
    *,
    loss: Callable[[Any, Any], Tensor] | None = None,
    steps: int = 50,
    lr: float = 0.1,
    max_norm: float | None = None,
    positions: Sequence[int] | None = None,
) -> Direction:
    """Learn the vector which, added at a site, makes a loss small; the model itself stays as it is.

    Each batch is (inputs, answers); `loss(output, answers)`, without it the cross entropy of the last position. The
    vector begins at zero and is kept no longer than `max_norm`. `about["history"]` has the losses.

    >>> net = votive.nn.Sequential(votive.nn.Identity())
    >>> found = votive.glass.steering.learn_vector(net, [(votive.zeros(1, 1, 2), votive.ones(1, 1, 2))], "0",
    ...     loss=lambda y, wanted: (y - wanted).square().mean(), steps=200)
    >>> found.vector.round(decimals=2)
    tensor([1., 1.])
    """
    data = [(inputs_of(given), answers) for given, answers in batches]
    if not data or steps < 1:
        raise ValueError("learn_vector: give at least one batch and one step.")
    (args, kwargs), _ = data[0]
    sites = gather(model, [kwargs or args], at).sites
    if len(sites) != 1:
        raise ValueError(f"learn_vector: {at!r} means {len(sites)} values; name one.")
    vector = votive.zeros(next(iter(sites.values())).shape[-1]).requires_grad_(True)
    optimizer = Adam([vector], lr=lr)
    frozen = [p for p in model.parameters() if p.requires_grad]
    for p in frozen:
        p.requires_grad_(False)
    history = []
    where = None if positions is None else tuple(positions)
    try:
        for step in range(steps):
            (args, kwargs), answers = data[step % len(data)]
            # A function, because an edit's own value is only read.
            edit = Edit(at, "call", lambda x: x + vector.to(device=x.device, dtype=x.dtype), positions=where)
            with votive.enable_grad(), patch(model, [edit], measure=False):
                out = model(*args, **kwargs)
                value = _last_loss(out, answers) if loss is None else loss(out, answers)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            history.append(float(value.detach()))
            if max_norm is not None:
                with votive.no_grad():
                    vector.mul_(min(1.0, max_norm / max(float(vector.norm()), 1e-30)))
    finally:
        for p in frozen:
            p.requires_grad_(True)
    return Direction(at, vector.detach(), {"method": "learned", "history": history})


def _last_loss(out: Any, answers: Tensor) -> Tensor:
    return F.cross_entropy(getattr(out, "logits", out)[:, -1].float(), answers)
