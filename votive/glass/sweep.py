"""Activation patching at many places: a heat map of sites and positions. Knows no model class.

The corrupted run is repeated with the clean run's value at one site and position at a time: Meng et
al. 2022, arXiv:2202.05262; Zhang and Nanda 2023, arXiv:2309.16042. What lies before a site is not
computed again, and the positions of a site run together along the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import votive

from ..data.randomness import get_random_state
from . import values
from .attribution_patching import correlation, estimated
from .heatmap import Heatmap
from .labels import token_labels
from .plots import Drawn
from .prefix import Recording, Resumed, Site
from .targets import modules_for, no_match, patterns

Inputs = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Sweep(Drawn):
    """What patching did: `values` (sites, positions) is the metric, averaged over samples.

    `per_sample` is (sites, positions, samples); `clean` and `corrupt` (samples,) are the metric of
    the two runs without patches; `estimate` is attribution patching's guess of `values`.
    """

    sites: list[str]
    positions: list[int]
    values: Any
    per_sample: Any
    clean: Any
    corrupt: Any
    tokens: Any = None  # of the corrupted text, (samples, length)
    tokenizer: Any = None
    estimate: Any = None
    runs: int = 0  # forward runs that were made

    @property
    def recovered(self) -> Any:
        """The share of the way from corrupted (0) to clean (1)."""
        span = (self.clean - self.corrupt).mean()
        return (self.values - self.corrupt.mean()) / span

    @property
    def correlation(self) -> float:
        """Pearson's correlation of the estimate with the exact values."""
        if self.estimate is None:
            raise ValueError("Sweep: it has no estimate; run it with estimate=True.")
        return correlation(self.estimate, self.values)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists."""
        told = {k: getattr(self, k) for k in ("values", "per_sample", "clean", "corrupt")}
        if self.estimate is not None:
            told["estimate"] = self.estimate
        plain = {k: v.tolist() for k, v in told.items()}
        return {"sites": list(self.sites), "positions": list(self.positions), **plain}

    def figure(self, what: str = "values", sample: int = 0) -> Heatmap:
        """A heat map of "values", of the share "recovered", or of the "estimate"."""
        if what not in ("values", "recovered", "estimate") or getattr(self, what) is None:
            raise ValueError(f"Sweep: {what!r} cannot be drawn; choose values or recovered.")
        shown = getattr(self, what)
        if what != "recovered":
            shown = shown - self.corrupt.mean()
        labels = [str(p) for p in self.positions]
        if self.tokens is not None:
            row = self.tokens[sample].tolist()
            labels = token_labels([row[p] for p in self.positions], self.tokenizer)
        return Heatmap(
            shown.tolist(), list(self.sites), labels, title=f"activation patching: {what}",
            x_name="position", y_name="site", signed=True,
            legend="share" if what == "recovered" else "change",
        )  # fmt: skip


def sweep(
    model: Any, clean: Any, corrupt: Any, *, metric: Callable[[Any], Any], sites: Any = "layers.*",
    positions: Any = None, batch: int = 32, estimate: bool = False, tokenizer: Any = None,
) -> Sweep:  # fmt: skip
    """Patch clean values into the corrupted run, one site and position at a time.

    `clean` and `corrupt` are inputs of the model: a tensor, a tuple of arguments, or a dict of
    named ones, of the same shapes. `metric` gives a number for each sample of a model's output.
    `batch` is how many samples run at once. With `estimate`, attribution patching is made too.

    >>> _ = votive.manual_seed(0)
    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=2, num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config).eval()
    >>> found = votive.glass.sweep(model, votive.tensor([[1, 2, 3]]), votive.tensor([[1, 5, 3]]),
    ...     metric=lambda out: out.logits[:, -1, 4])
    >>> found.values.shape, found.sites
    (votive.Size([2, 3]), ['model.layers.0', 'model.layers.1'])
    >>> votive.allclose(found.values[1, 2], found.clean[0])  # the last position is all clean
    True
    """
    if batch < 1:
        raise ValueError(f"sweep: batch must be positive, got {batch}.")
    wanted = patterns(sites)
    if any(p.wants_ops and not p.wants_modules for p in wanted):
        raise ValueError(f"sweep: sites must be modules, got {sites!r}.")
    modules_for(model, wanted)
    given = _inputs(clean), _inputs(corrupt)
    _check_inputs(*given)
    with votive.no_grad():
        plan = _Plan(model, wanted, *given, metric)
        found = [
            [plan.base.clone() for _ in plan.positions_of(site, positions)] for site in plan.sites
        ]
        for site, row in zip(plan.sites, found, strict=True):
            _fill(plan, site, row, plan.positions_of(site, positions), batch)
    where = plan.positions_of(plan.sites[0], positions)
    per_sample = votive.stack([votive.stack(row) for row in found])
    guess = None
    if estimate:
        guess = estimated(model, plan.sites, given[1], plan.clean.values, metric, where)
    return Sweep(
        [s.name for s in plan.sites], where, per_sample.mean(-1), per_sample, plan.goal,
        plan.base, _tokens(given[1]), tokenizer, guess, plan.runs,
    )  # fmt: skip


class _Plan:
    """Both runs, their sites, and how to run on from one of them."""

    def __init__(
        self, model: Any, wanted: Any, clean: Inputs, corrupt: Inputs, metric: Any
    ) -> None:
        self.model, self.metric, self.inputs = model, metric, corrupt
        self.runs = 2
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
                "sweep: the model draws random numbers, so that its runs cannot be compared; call "
                "model.eval()."
            )
        if list(self.recorded.sites) != list(self.clean.sites):
            raise ValueError("sweep: the clean and the corrupted run make different calls.")
        self.sites = sorted(self.recorded.sites.values(), key=lambda s: s.starts)
        self.samples = _samples(corrupt)
        self.goal, self.base = self.measured(goal, 1), self.measured(base, 1)
        # Which tensors grow with the batch is seen in the first run with more samples.
        self.shapes: dict[str, list[bool]] | None = None

    def measured(self, output: Any, copies: int) -> Any:
        found = votive.as_tensor(self.metric(output)).detach()
        count = copies * self.samples
        if found.numel() != count or found.dim() > 1:
            raise ValueError(
                f"sweep: metric must give one number for each of {count} samples, got shape "
                f"{tuple(found.shape)}."
            )
        return found.reshape(count)

    def positions_of(self, site: Site, positions: Any) -> list[int]:
        value = self.recorded.values[site.name]
        if value.dim() < 2 or value.shape[0] != self.samples:
            raise ValueError(
                f"sweep: {site.name} is {tuple(value.shape)}, which has no (samples, positions)."
            )
        length = value.shape[1]
        if positions is None:
            return list(range(length))
        given = [positions] if isinstance(positions, int) else [int(p) for p in positions]
        bad = [p for p in given if not -length <= p < length]
        if bad:
            raise IndexError(f"sweep: positions {bad} at {site.name} are not in 0..{length - 1}.")
        return [p % length for p in given]

    def patched(self, site: Site, positions: Sequence[int]) -> Any:
        """The metric (positions, samples) with a site patched at each position in its own copy."""
        n, B = len(positions), self.samples
        new = self.clean.values[site.name]

        def change(old: Any) -> Any:
            if old.shape[0] != n * B:
                raise ValueError(
                    f"sweep: {site.name} is {tuple(old.shape)} for {n * B} samples; use batch=1."
                )
            out = old.clone()
            for i, p in enumerate(positions):
                out[i * B : (i + 1) * B, p] = new[:, p].to(old.dtype)
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

    def _repeated(self, t: Any, n: int) -> Any:
        if n == 1 or t.dim() == 0 or t.shape[0] != self.samples:
            return t
        return t.unsqueeze(0).expand(n, *t.shape).reshape(n * t.shape[0], *t.shape[1:])

    def repeated_output(self, address: str, output: Any, n: int) -> Any:
        """A recorded result as it would be with n copies of the samples."""
        if n == 1:
            return output
        assert self.shapes is not None
        grows = iter(self.shapes[address])
        return values.mapped(output, lambda t: self._repeated(t, n) if next(grows) else t)


class _Resumed(Resumed):
    """A resumed run; one that may skip nothing looks at which results grow with the batch."""

    def __init__(self, plan: _Plan, site: Site, change: Any, n: int, skips: bool) -> None:
        super().__init__(
            plan.model, plan.recorded, site, change,
            lambda address, output: plan.repeated_output(address, output, n),
        )  # fmt: skip
        self.grown: dict[str, list[bool]] = {}
        self.looks = not skips
        if self.looks:
            self.skipped, self._only = set(), None

    def left(self, frame: Any) -> None:
        if self.looks and str(frame.address) in self.recorded.outputs:
            text = str(frame.address)
            old = [t for _, t in values.tensors(self.recorded.outputs[text])]
            new = [t for _, t in values.tensors(frame.output)]
            self.grown[text] = [a.shape != b.shape for a, b in zip(old, new, strict=True)]
        super().left(frame)


def _fill(plan: _Plan, site: Site, row: list[Any], positions: list[int], batch: int) -> None:
    """The results of one site, a batch of positions at a time."""
    old, new = plan.recorded.values[site.name], plan.clean.values[site.name]
    if old.shape != new.shape:
        raise ValueError(
            f"sweep: {site.name} is {tuple(new.shape)} in the clean run and {tuple(old.shape)} in "
            "the corrupted one; the texts must have the same length."
        )
    # Where both runs agree a patch changes nothing, and the result is known.
    open_ = [i for i, p in enumerate(positions) if not bool((old[:, p] == new[:, p]).all())]
    size = max(1, batch // plan.samples)
    for start in range(0, len(open_), size):
        part = open_[start : start + size]
        for i, found in zip(part, plan.patched(site, [positions[i] for i in part]), strict=True):
            row[i] = found


def _inputs(given: Any) -> Inputs:
    if isinstance(given, Mapping):
        return (), dict(given)
    if isinstance(given, (tuple, list)):
        return tuple(given), {}
    return (given,), {}


def _check_inputs(clean: Inputs, corrupt: Inputs) -> None:
    for value in (*corrupt[0], *corrupt[1].values(), *clean[0], *clean[1].values()):
        if hasattr(value, "get_seq_length"):
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
    if first.dim() == 0:
        raise ValueError("sweep: the first input has no dimension of samples.")
    return int(first.shape[0])


def _tokens(given: Inputs) -> Any:
    first = values.first(given)
    return first if first.dim() == 2 and not first.is_floating_point() else None


def _states(state: dict[str, Any]) -> str:
    return repr(state["votive"])
