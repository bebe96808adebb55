"""Interchange interventions, and the subspace in which they do what a hypothesis says. Knows addresses and losses.

Distributed alignment search (Geiger et al. 2024): in a rotated basis, the first dimensions of a base run's value are
put to those of a source run, `b + R R^T (s - b)`, and R is learned so that the model answers as the hypothesis does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import votive

from ...nn import Module
from ...nn import functional as F
from ...optim import Adam
from ...tensor import Tensor
from .. import values
from ..address import Pattern
from ..capture import capture
from ..edits import Edit
from ..patch import patch
from ..sweep_runs import inputs_of


@dataclass(frozen=True)
class Subspace:
    """Orthonormal columns (features, dimensions) at a site, with the losses of their training.

    >>> space = votive.glass.probes.Subspace("0", votive.eye(3)[:, :1])
    >>> space.put(votive.zeros(1, 3), votive.ones(1, 3))
    tensor([[1., 0., 0.]])
    """

    at: str
    basis: Tensor
    history: tuple[float, ...] = ()

    def put(self, base: Tensor, source: Tensor) -> Tensor:
        """A value whose part in the subspace is the source's."""
        basis = self.basis.to(device=base.device, dtype=base.dtype)
        return base + (source - base) @ basis @ basis.t()


def interchange(
    model: Module,
    base: Any,
    source: Any,
    at: str,
    *,
    subspace: Subspace | Tensor | None = None,
    positions: Sequence[int] | None = None,
) -> Any:
    """What a model gives for `base` with the value at a site taken from its run on `source`.

    Of the value only what lies in `subspace` is taken, at `positions` only. Both inputs have the same shapes.

    >>> net = votive.nn.Sequential(votive.nn.Identity(), votive.nn.Identity())
    >>> votive.glass.probes.interchange(net, votive.zeros(1, 1, 2), votive.ones(1, 1, 2), "0",
    ...     subspace=votive.tensor([[1.0], [0.0]]))
    tensor([[[1., 0.]]])
    """
    args, kwargs = inputs_of(source)
    with votive.no_grad(), capture(model, at) as seen:
        model(*args, **kwargs)
    taken = values.first(seen[at])
    if taken is None:
        raise LookupError(f"interchange: there is no tensor at {at!r}.")
    args, kwargs = inputs_of(base)
    with patch(model, [_exchange(at, taken, subspace, positions)], measure=False):
        return model(*args, **kwargs)


def _exchange(at: str, taken: Tensor, space: Subspace | Tensor | None, positions: Sequence[int] | None) -> Edit:
    here = None if positions is None else tuple(int(p) for p in positions)
    if here is not None and taken.dim() == 3:
        taken = taken[:, votive.tensor([p % taken.shape[1] for p in here])]
    if space is None:
        return Edit(at, "replace", taken, positions=here)
    held = space if isinstance(space, Subspace) else Subspace(at, space)
    return Edit(at, "call", lambda value: held.put(value, taken.to(value.dtype)), positions=here)


def train_das(
    model: Module,
    batches: Iterable[tuple[Any, Any, Tensor]],
    at: str,
    dimensions: int,
    *,
    positions: Sequence[int] | None = None,
    loss: Callable[[Any, Tensor], Tensor] | None = None,
    epochs: int = 10,
    lr: float = 0.01,
    seed: int = 0,
) -> Subspace:
    """Learn the subspace at a site whose interchange gives the answers of a hypothesis; the model stays as it is.

    Each batch is (base, source, answer): what the model should give for the base with the source's value of the
    variable. `loss` compares the model's output with the answers; without it, the cross entropy of the last position.

    >>> _ = votive.manual_seed(0)
    >>> net = votive.nn.Sequential(votive.nn.Identity(), votive.nn.Identity())
    >>> base, source = votive.randn(2, 32, 1, 4)
    >>> data = [(base, source, source[..., :1])]
    >>> space = votive.glass.probes.train_das(net, data, "0", 1, epochs=100, lr=0.1,
    ...     loss=lambda out, answer: (out[..., :1] - answer).square().mean())
    >>> abs(float(space.basis[0, 0])) > 0.99
    True
    """
    from .layers import gather

    data = [(inputs_of(b), inputs_of(s), a) for b, s, a in batches]
    data = [(b, s, a.detach()) for b, s, a in data]
    if not data:
        raise ValueError("train_das: no batch was given.")
    if Pattern(at).wants_ops and not Pattern(at).wants_modules:
        raise ValueError(f"train_das: {at!r} must name a module.")
    first = gather(model, [_again(data[0][0])], at).sites
    if len(first) != 1:
        raise ValueError(f"train_das: {at!r} means {len(first)} values; name one.")
    width = next(iter(first.values())).shape[-1]
    if not 1 <= dimensions <= width:
        raise ValueError(f"train_das: dimensions must be in 1..{width}, got {dimensions}.")
    generator = votive.Generator().manual_seed(seed)
    free = votive.randn(width, dimensions, generator=generator).requires_grad_(True)
    optimizer = Adam([free], lr=lr)
    frozen = [p for p in model.parameters() if p.requires_grad]
    for p in frozen:
        p.requires_grad_(False)
    history = []
    try:
        for _ in range(epochs):
            for base, source, answer in data:
                with votive.enable_grad():
                    # The basis follows from free numbers, so that each step stays orthonormal.
                    basis = votive.linalg.qr(free)[0]
                    out = interchange(model, _again(base), _again(source), at, subspace=basis, positions=positions)
                    value = _last_loss(out, answer) if loss is None else loss(out, answer)
                optimizer.zero_grad()
                value.backward()
                optimizer.step()
                history.append(float(value.detach()))
    finally:
        for p in frozen:
            p.requires_grad_(True)
    return Subspace(at, votive.linalg.qr(free.detach())[0], tuple(history))


def _again(inputs: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
    """Inputs in the form in which functions take them."""
    args, kwargs = inputs
    return kwargs if kwargs else args


def _last_loss(out: Any, answer: Tensor) -> Tensor:
    return F.cross_entropy(getattr(out, "logits", out)[:, -1].float(), answer)
