"""The runs of a patching sweep: both whole ones, and those that go on from a site.

Knows sites, columns and a metric; knows no model class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import votive

from ..data.randomness import get_random_state
from ..nn import Module
from ..tensor import Tensor
from . import values
from .address import Pattern
from .head_sites import HeadSites
from .probe import cache_of
from .resumed_run import Recording, Resumed, Site
from .sweep_columns import Chosen, Column, columns_of
from .targets import no_match

if TYPE_CHECKING:
    from .probe import Frame


Inputs = tuple[tuple[Any, ...], dict[str, Any]]


class SweepRuns:
    """Both runs, their sites, and how to run on from one of them."""

    def __init__(
        self, model: Module, wanted: list[Pattern], clean: Inputs, corrupt: Inputs, metric: Callable[[Any], Any]
    ) -> None:
        self.model, self.metric, self.inputs = model, metric, corrupt
        self.runs = 2
        self._heads: HeadSites | None = None
        self.clean = Recording(model, wanted)
        with self.clean:
            goal = model(*clean[0], **clean[1])
        if not self.clean.sites:
            raise no_match(wanted[0], [n for n, _ in model.named_modules()])
        before = get_random_state()
        self.recorded = Recording(model, wanted, beside=self.clean.skippable())
        with self.recorded:
            base = model(*corrupt[0], **corrupt[1])
        if _states(before) != _states(get_random_state()):
            raise RuntimeError(
                "sweep: the model draws random numbers, so that its runs cannot be compared; call model.eval()."
            )
        if list(self.recorded.sites) != list(self.clean.sites):
            raise ValueError("sweep: the clean and the corrupted run make different calls.")
        self.sites = sorted(self.recorded.sites.values(), key=lambda s: s.starts)
        self.samples = _samples(corrupt)
        self.goal, self.base = self.measured(goal, 1), self.measured(base, 1)
        # Which tensors grow with the batch is seen in the first run with more samples.
        self.shapes: dict[str, list[bool]] | None = None

    def measured(self, output: object, copies: int) -> Tensor:
        found = votive.as_tensor(self.metric(output)).detach()
        count = copies * self.samples
        if found.numel() != count or found.dim() > 1:
            raise ValueError(
                f"sweep: metric must give one number for each of {count} samples, got shape {tuple(found.shape)}."
            )
        return found.reshape(count)

    def product(self, site: Site, asked: Chosen) -> list[Column]:
        """What is patched at a site, for every combination of positions, heads and neurons."""
        return columns_of(site.name, self.recorded.values[site.name], self.recorded.axes[site.name], asked)

    def columns(self, site: Site, positions: int | Iterable[int] | None, heads: int | None) -> list[Column]:
        """What is patched at a site: each position, or with `heads` each head at the positions."""
        value, axes = self.recorded.values[site.name], self.recorded.axes[site.name]
        dim = axes.positions
        if dim is None or axes.shape != tuple(value.shape) or value.shape[0] != self.samples:
            raise ValueError(
                f"sweep: {site.name} is {tuple(value.shape)}, in which no dimensions are known to "
                "be those of samples and positions."
            )
        given = range(axes.start, axes.stop) if positions is None else positions
        given = [given] if isinstance(given, int) else [int(p) for p in given]
        bad = [p for p in given if not (axes.start <= p < axes.stop or axes.start - axes.stop <= p < 0)]
        if bad:
            raise IndexError(f"sweep: positions {bad} at {site.name} are not in {axes.start}..{axes.stop - 1}.")
        where, every = [p % axes.stop for p in given], slice(None)
        rows = [p - axes.start for p in where]
        if heads is None:
            before = (every,) * dim
            return [Column(p, (*before, row)) for p, row in zip(where, rows, strict=True)]
        if axes.heads is not None:
            if value.shape[axes.heads] != heads:
                raise ValueError(f"sweep: {site.name} has {value.shape[axes.heads]} heads, not {heads}.")
            chosen = every if positions is None else rows
            return [Column(h, _at_both(value.dim(), axes.heads, h, dim, chosen)) for h in range(heads)]
        if value.dim() != 3 or dim != 1 or heads < 1 or value.shape[-1] % heads:
            raise ValueError(
                f"sweep: {site.name} is {tuple(value.shape)}, whose features do not split into "
                f"{heads} heads; such sites are 'layers.*.self_attn.o_proj:in'."
            )
        self._head_sites().check(site.address, site.pattern.side, value.shape[-1], heads)
        size, chosen = value.shape[-1] // heads, every if positions is None else rows
        return [Column(h, (every, chosen, slice(h * size, h * size + size))) for h in range(heads)]

    def _head_sites(self) -> HeadSites:
        """Where heads are, seen in one more run."""
        if self._heads is None:
            with HeadSites(self.model) as self._heads:
                self.model(*self.inputs[0], **self.inputs[1])
            self.runs += 1
        return self._heads

    def patched(self, site: Site, columns: Sequence[Column]) -> Tensor:
        """The metric (columns, samples) with a site patched at each column in its own copy."""
        n, B = len(columns), self.samples
        new = self.clean.values[site.name]

        def change(old: Tensor) -> Tensor:
            if old.shape[0] != n * B:
                raise ValueError(f"sweep: {site.name} is {tuple(old.shape)} for {n * B} samples; use batch=1.")
            out = old.clone()
            for i, column in enumerate(columns):
                out[i * B : (i + 1) * B][column.index] = new[column.index].to(old.dtype)
            return out

        args, kwargs = values.mapped(self.inputs, lambda t: self._repeated(t, n))
        skips = n == 1 or self.shapes is not None
        with _Resumed(self, site, change, n, skips) as probe:
            output = self.model(*args, **kwargs)
        if not probe.fired:
            raise RuntimeError(f"sweep: {site.name} was not reached when the run was repeated.")
        if n > 1 and self.shapes is None:
            self.shapes = probe.grown
        self.runs += 1
        return self.measured(output, n).reshape(n, B)

    def _repeated(self, t: Tensor, n: int) -> Tensor:
        if n == 1 or t.dim() == 0 or t.shape[0] != self.samples:
            return t
        return t.unsqueeze(0).expand(n, *t.shape).reshape(n * t.shape[0], *t.shape[1:])

    def repeated_output(self, address: str, output: object, n: int) -> Any:
        """A recorded result as it would be with n copies of the samples."""
        if n == 1:
            return output
        assert self.shapes is not None
        grows = iter(self.shapes[address])
        return values.mapped(output, lambda t: self._repeated(t, n) if next(grows) else t)


class _Resumed(Resumed):
    """A resumed run; one that may skip nothing looks at which results grow with the batch."""

    def __init__(self, plan: SweepRuns, site: Site, change: Callable[[Tensor], Tensor], n: int, skips: bool) -> None:
        super().__init__(
            plan.model, plan.recorded, site, change, lambda address, output: plan.repeated_output(address, output, n)
        )
        self.grown: dict[str, list[bool]] = {}
        self.looks = not skips
        if self.looks:
            self.skipped = set()

    def left(self, frame: Frame) -> None:
        if self.looks and str(frame.address) in self.recorded.outputs:
            text = str(frame.address)
            old = [t for _, t in values.tensors(self.recorded.outputs[text])]
            new = [t for _, t in values.tensors(frame.output)]
            self.grown[text] = [a.shape != b.shape for a, b in zip(old, new, strict=True)]
        super().left(frame)


def fill(plan: SweepRuns, site: Site, columns: list[Column], batch: int) -> Tensor:
    """The metric (columns, samples) of one site, a batch of columns at a time."""
    old, new = plan.recorded.values[site.name], plan.clean.values[site.name]
    if old.shape != new.shape:
        raise ValueError(
            f"sweep: {site.name} is {tuple(new.shape)} in the clean run and {tuple(old.shape)} in "
            "the corrupted one; the texts must have the same length."
        )
    row = [plan.base] * len(columns)
    # Where both runs agree a patch changes nothing, and the result is known.
    differs = [i for i, c in enumerate(columns) if not votive.equal(old[c.index], new[c.index])]
    size = max(1, batch // plan.samples)
    for start in range(0, len(differs), size):
        part = differs[start : start + size]
        for i, found in zip(part, plan.patched(site, [columns[i] for i in part]), strict=True):
            row[i] = found
    return votive.stack(row)


def _at_both(dims: int, dim: int, index: int, other: int, chosen: Any) -> tuple[Any, ...]:
    """An index into one dimension and some of another."""
    found: list[Any] = [slice(None)] * dims
    found[dim], found[other] = index, chosen
    return tuple(found)


def inputs_of(given: object) -> Inputs:
    """Positional and named inputs, from one value, several, or a mapping."""
    if isinstance(given, Mapping):
        return (), dict(given)
    if isinstance(given, (tuple, list)):
        return tuple(given), {}
    return (given,), {}


def check_inputs(clean: Inputs, corrupt: Inputs) -> None:
    """Refuse inputs that cannot be patched into one another."""
    for inputs in (clean, corrupt):
        if cache_of(*inputs) is not None:
            raise ValueError("sweep: it runs whole texts; leave the cache out of the inputs.")
    a = [(p, tuple(t.shape)) for p, t in values.tensors(clean)]
    b = [(p, tuple(t.shape)) for p, t in values.tensors(corrupt)]
    if a != b or not a:
        raise ValueError(
            f"sweep: clean and corrupted inputs must have the same shapes, got {[s for _, s in a]} "
            f"and {[s for _, s in b]}."
        )


def _samples(given: Inputs) -> int:
    first = values.first(given)
    assert first is not None  # check_inputs has seen to that
    if first.dim() == 0:
        raise ValueError("sweep: the first input has no dimension of samples.")
    return int(first.shape[0])


def _states(state: dict[str, Any]) -> str:
    return repr(state["votive"])
