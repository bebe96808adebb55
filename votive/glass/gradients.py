"""Gradients at addresses, and their product with what is there. Knows no model class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import votive

from ..nn import Module
from .address import Pattern, Patterns
from .plots import Bars, Plottable
from .probe import Frame, Probe
from .probe_hub import CHANGES
from .resumed_run import Site, put_value, value_at
from .targets import modules_for, no_match, patterns


class _Leaves(Probe):
    """Keeps values with their graph, and starts one where there is none.

    Each value gets a node of its own, which only those read that the address means: what others do
    with the same tensor (a stream has many readers, and some modules give on what they are given)
    is not in its gradient.
    """

    order = CHANGES

    def __init__(self, model: Module, wanted: list[Pattern]) -> None:
        for p in wanted:
            if p.wants_ops and not p.wants_modules:
                raise ValueError(
                    f"gradients are taken at modules, but {p.text!r} is an operator; name the "
                    "module that it runs in, or one beside it."
                )
        modules_for(model, wanted)  # a pattern that means nothing is told before the run
        super().__init__(model, sites=wanted)
        self.wanted = list({(p.text, p.side, p.path): p for p in wanted}.values())
        self.values: dict[str, Any] = {}
        self.fired: set[int] = set()

    def entered(self, frame: Frame) -> None:
        self._keep(frame, "in")

    def left(self, frame: Frame) -> None:
        self._keep(frame, "out")

    def _keep(self, frame: Frame, side: str) -> None:
        for i, pattern in enumerate(self.wanted):
            if pattern.side != side or not pattern.matches(frame.address, frame):
                continue
            self.fired.add(i)
            name = Site(str(frame.address), pattern).name
            value = value_at(frame, pattern)
            with self.muted():
                value = value.clone() if value.requires_grad else value.detach().clone()
                self.values[name] = value.requires_grad_(True)
                # A second copy: neither those before nor those behind write into what is kept.
                put_value(frame, pattern, value.clone())


@dataclass(frozen=True)
class Gradients(Plottable):
    """Values at addresses and the gradients of a metric by them, summed over samples."""

    values: dict[str, Any]
    grads: dict[str, Any]
    metric: Any

    def product(self) -> dict[str, Any]:
        """Gradient times activation: what each number adds to the metric, to first order."""
        # Masked scores are minus infinity, and nothing depends on them.
        masked = {n: v.isinf() & (self.grads[n] == 0) for n, v in self.values.items()}
        return {n: v.masked_fill(masked[n], 0.0) * self.grads[n] for n, v in self.values.items()}

    def totals(self) -> dict[str, float]:
        """The sum of the products at each address."""
        return {n: float(p.double().sum()) for n, p in self.product().items()}

    def to_dict(self) -> dict[str, Any]:
        """The sums of products, and the norms of values and gradients."""
        norms = {n: float(v.double().norm()) for n, v in self.values.items()}
        slopes = {n: float(g.double().norm()) for n, g in self.grads.items()}
        return {"totals": self.totals(), "norms": norms, "gradient_norms": slopes}

    def figure(self, what: str = "totals") -> Bars:
        """Bars of "totals", "norms" or "gradient_norms" by address."""
        series = self.to_dict()
        if what not in series:
            raise ValueError(f"Gradients: {what!r} is none of {', '.join(series)}.")
        return Bars(list(series[what].values()), list(series[what]), title="gradient × activation", x_name=what)


def gradients(
    model: Module,
    wanted: list[Pattern],
    given: tuple[Sequence[object], Mapping[str, object]],
    metric: Callable[[Any], Any],
) -> Gradients:
    """Values at the calls that patterns mean, and the gradients of the summed metric by them."""
    leaves = _Leaves(model, wanted)
    with votive.enable_grad():
        with leaves:
            output = model(*given[0], **given[1])
        for i, pattern in enumerate(leaves.wanted):
            if i not in leaves.fired:
                raise no_match(pattern, [n for n, _ in model.named_modules()])
        found = metric(output)
        if not isinstance(found, votive.Tensor) or not found.requires_grad:
            raise ValueError(
                "the metric must be a tensor that depends on the values at these addresses: "
                f"{', '.join(list(leaves.values)[:4])}."
            )
        names = list(leaves.values)
        grads = votive.autograd.grad(found.sum(), [leaves.values[n] for n in names], allow_unused=True)
    known = {n: votive.zeros_like(leaves.values[n]) if g is None else g for n, g in zip(names, grads, strict=True)}
    return Gradients({n: leaves.values[n].detach() for n in names}, known, found.detach())


def gradient_times_activation(
    model: Module, *args: object, at: Patterns, metric: Callable[[Any], Any], **kwargs: object
) -> Gradients:
    """Run a model and give values and gradients at addresses; `metric` turns its output to numbers.

    The gradient at a result is that of all who read it; at an input, as "norm:in", it is that of
    this one reader, not of the whole stream.

    >>> net = votive.nn.Sequential(votive.nn.Identity(), votive.nn.Identity())
    >>> found = votive.glass.gradient_times_activation(net, votive.tensor([1.0, 2.0]), at="0",
    ...     metric=lambda y: (3 * y).sum())
    >>> found.product()["0"]
    tensor([3., 6.])
    """
    return gradients(model, patterns(at), (args, kwargs), metric)
