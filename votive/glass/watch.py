"""Watching a model for values that are not numbers, infinite or too large. Knows no model.

Each operator's result is looked at, forward and backward; the first bad one whose inputs are good
is where the trouble began.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any, Self

import votive

from ..nn import Module
from . import values
from .address import Address
from .backward import BackwardObserver
from .display import Displayable
from .probe import Frame, Probe
from .run import tag
from .statistics import Statistics, statistics

ACTIONS = ("raise", "warn", "record")


@dataclass(frozen=True)
class Finding(Displayable):
    """A bad value: what is wrong with it, where it came from, and what went in.

    `phase` is "forward", "backward" or "input"; `inputs` and `output` are statistics.

    >>> print(votive.glass.Finding("nan", votive.glass.Address("0", 0, "log"), "forward", 1, "Log"))
    NaN in the forward of 0/log#0 (Log), run 1
    """

    kind: str  # "nan", "inf" or "overflow"
    address: Address
    phase: str
    run: int
    module: str  # the class of the module around it
    inputs: list[Statistics] = field(default_factory=list)
    output: Statistics | None = None
    parameters: dict[str, Statistics] = field(default_factory=dict)  # the module's own

    def __str__(self) -> str:
        where = str(self.address) or "(model)"
        what = {"nan": "NaN", "inf": "an infinite value", "overflow": "a value near overflow"}
        first = f"{what[self.kind]} in the {self.phase} of {where}"
        if self.phase == "input":
            first = f"{what[self.kind]} in the inputs of {where}"
        lines = [f"{first} ({self.module}), run {self.run}"]
        lines += [f"  input {i}: {s}" for i, s in enumerate(self.inputs)]
        lines += [f"  {name}: {s}" for name, s in self.parameters.items()]
        if self.output is not None:
            lines.append(f"  result: {self.output}")
        return "\n".join(lines)


class BadValue(ArithmeticError):
    """A watch has met a bad value; `finding` tells all about it.

    >>> issubclass(votive.glass.BadValue, ArithmeticError)
    True
    """

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


class Watch(Probe, Displayable):
    """Looks at every result while a `with` block runs; see `watch`.

    >>> net = votive.nn.Tanh()
    >>> with votive.glass.Watch(net) as seen:
    ...     _ = net(votive.ones(2))
    >>> seen
    <watch: 1 runs, 1 results, 0 findings>
    """

    def __init__(
        self,
        model: Module,
        *,
        nan: bool = True,
        inf: bool = True,
        overflow: float | None = None,
        every: int = 1,
        action: str = "raise",
        backward: bool = True,
        limit: int = 100,
    ) -> None:
        if action not in ACTIONS:
            raise ValueError(f"watch: action must be one of {ACTIONS}, got {action!r}.")
        if overflow is not None and not 0 < overflow <= 1:
            raise ValueError(
                f"watch: overflow is a share of the largest number of a value's type, in (0, 1], got {overflow}."
            )
        if every < 1:
            raise ValueError(f"watch: every must be positive, got {every}.")
        super().__init__(model, ops=True)
        self.nan, self.inf, self.overflow = nan, inf, overflow
        self.every, self.action, self.limit = every, action, limit
        self.findings: list[Finding] = []
        self.checked = 0  # results that were looked at
        self._observer = BackwardObserver(self._backward, lambda: not self.inactive) if backward else None

    def __enter__(self) -> Self:
        super().__enter__()
        if self._observer is not None:
            self._observer.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._observer is not None:
            self._observer.__exit__(*exc)
        super().__exit__(*exc)

    def mark(self) -> Any:
        return super().mark(), list(self.findings), self.checked

    def rewind(self, mark: Any) -> None:
        runs, findings, self.checked = mark
        super().rewind(runs)
        self.findings[:] = findings

    @property
    def first(self) -> Finding | None:
        """The first bad value."""
        return self.findings[0] if self.findings else None

    @property
    def _due(self) -> bool:
        return (self.runs - 1) % self.every == 0

    # --- what is seen -------------------------------------------------------------------------

    def entered(self, frame: Frame) -> None:
        if frame.parent is None and frame.is_module and self._due:
            kind = self._bad((frame.args, frame.kwargs))
            if kind is not None:
                self._found(kind, frame, "input", (frame.args, frame.kwargs), None)

    def left(self, frame: Frame) -> None:
        tag(frame)
        if not self._due or frame.is_module:
            return
        self.checked += 1
        self._judge(frame, "forward", frame.args, frame.output)

    def _backward(self, frame: Frame, phase: str) -> None:
        if phase == "leave" and self._due:
            self.checked += 1
            self._judge(frame, "backward", frame.args, frame.output)

    def _judge(self, frame: Frame, phase: str, given: object, result: object) -> None:
        kind = self._bad(result)
        if kind is None or _meant(kind, given):
            return
        with self.muted():
            # What came in bad was bad before, unless it is a parameter, which nothing made.
            made = [t for _, t in values.tensors(given) if not isinstance(t, votive.nn.Parameter)]
            if self._bad(made, (kind,)) is None:
                self._found(kind, frame, phase, given, result)

    def _bad(self, value: object, kinds: tuple[str, ...] = ("nan", "inf", "overflow")) -> str | None:
        """What is wrong with a value, the worst first."""
        with self.muted(), votive.no_grad():
            for _, t in values.tensors(value):
                if t.numel() == 0 or not (t.is_floating_point() or t.is_complex()):
                    continue
                t = t.detach()
                # The largest magnitude is NaN if any value is: one look tells.
                largest = float(t.abs().max())
                if math.isfinite(largest) and self.overflow is None:
                    continue
                if self.nan and "nan" in kinds and bool(t.isnan().any()):
                    return "nan"
                if self.inf and "inf" in kinds and bool(t.isinf().any()):
                    return "inf"
                if self.overflow is not None and "overflow" in kinds:
                    if self.overflow * votive.finfo(t.dtype).max <= largest < math.inf:
                        return "overflow"
        return None

    def _found(self, kind: str, frame: Frame, phase: str, given: object, result: object) -> None:
        with self.muted(), votive.no_grad():
            owner = frame if frame.is_module else frame.parent
            module = None if owner is None else owner.subject
            own = [] if module is None else list(module.named_parameters(recurse=False))
            made = values.first(result)
            finding = Finding(
                kind,
                frame.address,
                phase,
                self.runs,
                frame.name if module is None else type(module).__name__,
                [statistics(t, 0) for _, t in values.tensors(given)],
                None if made is None else statistics(made, 0),
                {name: statistics(p, 0) for name, p in own},
            )
        if len(self.findings) < self.limit:
            self.findings.append(finding)
        if self.action == "raise":
            raise BadValue(finding)
        if self.action == "warn" and len(self.findings) == 1:
            warnings.warn(f"watch: {finding}", RuntimeWarning, stacklevel=2)

    def __repr__(self) -> str:
        return f"<watch: {self.runs} runs, {self.checked} results, {len(self.findings)} findings>"


def _meant(kind: str, given: object) -> bool:
    """Whether a result is infinite because that was asked for, as masks do."""
    if kind != "inf":
        return False
    return any(
        (isinstance(a, float) and math.isinf(a)) or (isinstance(a, votive.Tensor) and a.dim() == 0 and bool(a.isinf()))
        for _, a in values.children(given)
    )


def watch(
    model: Module,
    *,
    nan: bool = True,
    inf: bool = True,
    overflow: float | None = None,
    every: int = 1,
    action: str = "raise",
    backward: bool = True,
    limit: int = 100,
) -> Watch:
    """Stop at the first value that is NaN, infinite or close to overflow, while the block runs.

    `overflow` is the share of a type's largest number from which a value counts as too large.
    `action` is what happens: "raise" a `BadValue`, "warn" at the first, or only "record" in
    `findings`. `every` looks at every n-th run only, `backward` at gradients too. Infinities that
    a mask writes are no finding.

    >>> net = votive.nn.Sequential(votive.nn.Linear(1, 1), votive.nn.ReLU())
    >>> _ = votive.nn.init.constant_(net[0].bias, float("inf"))
    >>> with votive.glass.watch(net, action="record") as seen:
    ...     _ = net(votive.ones(1, 1))
    >>> seen.first.kind, str(seen.first.address)
    ('inf', '0/linear#0')
    """
    return Watch(model, nan=nan, inf=inf, overflow=overflow, every=every, action=action, backward=backward, limit=limit)
