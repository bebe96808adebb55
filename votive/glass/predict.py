"""What a capture would keep, told before the model runs. Knows no model.

A dry run goes through the model's Python code and plans every operator, but computes only small
values and integers: results of large floating-point operators are memory that nobody has touched.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import votive

from ..core.layout import Spec
from ..dispatch import make
from ..dispatch.observe import Call, Observer, attach, detach
from ..nn import Module
from ..tensor import Tensor
from . import values
from .address import Patterns
from .display import Displayable
from .probe import Frame, Probe
from .snapshot import Snapshot
from .targets import modules_for, no_match, patterns

# Masks, positions and scales decide which way a model's code takes; they are small.
_COMPUTED = 1 << 12


@dataclass
class Prediction(Displayable):
    """Addresses that would be captured, with the bytes each would take."""

    sites: dict[str, int] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return sum(self.sites.values())

    def __str__(self) -> str:
        return f"{len(self.sites)} values, {self.bytes:,} bytes"


class _Dry(Observer):
    """Answers large operators with memory that was not written."""

    def before(self, call: Call) -> Any:
        plan = call.plan
        outs = plan.outs if plan.out is None else (plan.out,)
        if call.op.kind == "view" or call.op.mutates or call.op.name == "_empty" or outs is None:
            return None
        if any(s is None or not s.dtype.is_floating_point or s.numel <= _COMPUTED for s in outs):
            return None
        made = tuple(_untouched(s) for s in outs)
        return made[0] if plan.out is not None else made


def _untouched(spec: Spec) -> Any:
    with votive.no_grad():
        found = votive.empty_strided(spec.shape, spec.layout.strides, dtype=spec.dtype, device=spec.device)
    return make(found._storage, found._data, spec)


class _Sizes(Probe):
    def __init__(self, model: Module, at: Patterns, policy: str) -> None:
        self.patterns, self.policy = patterns(at), policy
        only = modules_for(model, self.patterns)
        super().__init__(model, ops=any(p.wants_ops for p in self.patterns), only=only)
        self.found = Prediction()

    def entered(self, frame: Frame) -> None:
        self._note(frame, "in")

    def left(self, frame: Frame) -> None:
        self._note(frame, "out")

    def _note(self, frame: Frame, side: str) -> None:
        for pattern in self.patterns:
            if pattern.side == side and pattern.matches(frame.address, frame):
                value = (frame.args, frame.kwargs) if side == "in" else frame.output
                suffix = ":in" if side == "in" else ""
                self.found.sites[f"{frame.address}{suffix}"] = sum(self._bytes(t) for _, t in values.tensors(value))

    def _bytes(self, t: Tensor) -> int:
        if self.policy == "stats":
            return 0
        half = self.policy == "half" and t.is_floating_point() and t.element_size() > 2
        return int(t.numel() * (2 if half else t.element_size()))


def predict(model: Module, at: Patterns, *args: object, policy: str = "keep", **kwargs: object) -> Prediction:
    """The bytes that `capture(model, at, policy=...)` would keep of `model(*args, **kwargs)`.

    >>> net = votive.nn.Sequential(votive.nn.Linear(64, 256), votive.nn.ReLU())
    >>> print(votive.glass.predict(net, "*", votive.ones(100, 64)))
    2 values, 204,800 bytes
    """
    snapshot = Snapshot(model, args, kwargs)
    dry_run = _Dry()
    try:
        with _Sizes(model, at, policy) as probe, votive.no_grad():
            attach(dry_run)
            try:
                model(*args, **kwargs)
            finally:
                detach(dry_run)
    finally:
        # Caches and statistics must not remember values that were never computed.
        snapshot.restore()
    for pattern in probe.patterns:
        if not probe.found.sites:
            raise no_match(pattern, [n for n, _ in model.named_modules()])
    return probe.found


__all__ = ["Prediction", "predict"]
