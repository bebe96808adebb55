"""Two runs side by side, stopped where they part. Knows no model.

Each model runs under its own debugger; both wait after each call until the other has made the same
one. What is compared is dropped at once, so two large models need no memory for it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Self

from ..nn import Module
from ..tensor import Tensor
from . import values
from .address import Pattern, PatternLike
from .capture import Capture
from .debugger import Debugger
from .difference import METRICS, Comparison, Difference
from .display import Displayable
from .probe import cache_of
from .text_table import table


class Lockstep(Displayable):
    """What two runs have in common and where they part; see `lockstep`.

    It is a context manager: inside, `a` and `b` are the debuggers that wait at the divergence.

    >>> net = votive.nn.Sequential(votive.nn.Tanh())
    >>> with votive.glass.lockstep(net, net, votive.ones(2)) as found:
    ...     found, found.growth
    (<lockstep: 1 values agree>, [('0', 0.0)])
    """

    def __init__(self, rows: list[Difference], a: Debugger, b: Debugger | None, unmatched: list[str]) -> None:
        self.rows, self.a, self.b, self.unmatched = rows, a, b, unmatched

    @property
    def first(self) -> Difference | None:
        """The first difference that is not tolerated; None if there is none."""
        return next((r for r in self.rows if not r.within), None)

    @property
    def agrees(self) -> bool:
        """Whether no difference was too large."""
        return self.first is None

    @property
    def growth(self) -> list[tuple[str, float]]:
        """The error at each address, in the order of the run."""
        return [(r.address, r.error) for r in self.rows]

    def __str__(self) -> str:
        shown = [
            (
                r.address or "(model)",
                f"{r.error:.3g}",
                f"{r.relative:.3g}",
                f"{r.max:.3g}",
                f"{r.cosine:.3g}",
                "" if r.within else f"<- {r.note or 'diverges'}",
            )
            for r in self.rows
        ]
        text = table("", ["address", ">error", ">relative", ">max", ">cosine", ""], shown)
        if self.unmatched:
            text += f"\nonly one of them has: {', '.join(self.unmatched[:8])}"
        return text

    def close(self) -> None:
        """End both runs."""
        for side in (self.a, self.b):
            if isinstance(side, Debugger):
                side.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.first is None:
            return f"<lockstep: {len(self.rows)} values agree>"
        return f"<lockstep: {self.first.address or '(model)'} diverges, {self.first.error:.3g}>"


class _Side:
    """One of the two runs: gives the value after each call that matches."""

    def __init__(self, debugger: Debugger, places: PatternLike) -> None:
        self.debugger, self.places = debugger, places

    def next(self) -> tuple[str, Any] | None:
        """To the next call's end; None at the end of the run."""
        address = self.debugger.run(until=self.places, phase="leave")
        if address is None or self.debugger.frame is None:
            return None
        if self.debugger.phase == "error":
            assert self.debugger.error is not None
            raise self.debugger.error
        return str(address), self.debugger.frame.output


def lockstep(
    model_a: Module,
    model_b: Module | Capture | Mapping[str, Any],
    *inputs: object,
    inputs_b: tuple[Any, ...] | None = None,
    map_b: Mapping[str, str] | Callable[[str], str] | None = None,
    at: PatternLike | None = None,
    ops: bool = False,
    rtol: float = 1e-3,
    atol: float = 1e-5,
    metric: str | Callable[[Any, Any], float] = "relative",
    limit: float | None = None,
    stop: bool = True,
    **kwargs: Any,
) -> Lockstep:
    """Run two models side by side and stop after the first call whose results differ too much.

    `model_b` may also be a capture, or a mapping from addresses to values, of an earlier run.
    `map_b` tells the address in b of one in a. With `ops`, operators are compared too; `at` limits
    what is compared. Values differ too much if a number is off by more than `atol + rtol * |a|`,
    or, with a `limit`, if the `metric` is above it. `stop=False` goes on to the end. Inputs with
    decimals are given to b in its own type, unless `inputs_b` are given.

    >>> a = votive.nn.Sequential(votive.nn.Linear(4, 4), votive.nn.Linear(4, 4))
    >>> b = votive.nn.Sequential(a[0], votive.nn.Linear(4, 4))
    >>> with votive.glass.lockstep(a, b, votive.ones(1, 4)) as found:
    ...     [(r.address, r.within) for r in found.rows]
    [('0', True), ('1', False)]
    """
    measure = _measure(metric)
    places = _places(at, ops)
    mapped = _mapping(map_b)
    judge = Comparison(rtol, atol, measure, limit)
    ops = ops or (at is not None and Pattern(at).wants_ops)
    with contextlib.ExitStack() as opened:
        left = opened.enter_context(Debugger(model_a, *inputs, ops=ops, **kwargs))
        if not isinstance(model_b, Module):
            found = _against(left, places, _stored(model_b), mapped, judge, stop)
        else:
            if inputs_b is None:
                if cache_of(inputs, kwargs) is not None:
                    raise ValueError(
                        "lockstep: both models would write into the same cache; give a second one with inputs_b."
                    )
                inputs_b, kwargs = values.mapped((inputs, kwargs), partial(_fitting, model_b))
            right = opened.enter_context(Debugger(model_b, *inputs_b, ops=ops, **kwargs))
            # By other names, a pattern of the first says nothing about the second.
            others = places if map_b is None else lambda frame: True
            found = _together(_Side(left, places), _Side(right, others), mapped, judge, stop)
        # Only after an error nobody needs them: else they wait at the divergence.
        opened.pop_all()
    return found


def _together(a: _Side, b: _Side, mapped: Callable[[str], str], judge: Comparison, stop: bool) -> Lockstep:
    rows: list[Difference] = []
    early: dict[str, Any] = {}  # what b has made and a has not yet
    skipped: list[str] = []
    ended = False
    while (made := a.next()) is not None:
        address, value = made
        wanted = mapped(address)
        while wanted not in early and not ended:
            other = b.next()
            if other is None:
                ended = True
            else:
                early[other[0]] = other[1]
        if wanted not in early:
            skipped.append(address)
            continue
        rows.append(judge(address, wanted, value, early.pop(wanted)))
        if stop and not rows[-1].within:
            break
    return _checked(Lockstep(rows, a.debugger, b.debugger, [*skipped, *early]))


def _against(
    left: Debugger,
    places: PatternLike,
    stored: Callable[[str], Any],
    mapped: Callable[[str], str],
    judge: Comparison,
    stop: bool,
) -> Lockstep:
    a = _Side(left, places)
    rows: list[Difference] = []
    skipped: list[str] = []
    while (made := a.next()) is not None:
        address, value = made
        other = stored(mapped(address))
        if other is None:
            skipped.append(address)
            continue
        rows.append(judge(address, mapped(address), value, other))
        if stop and not rows[-1].within:
            break
    return _checked(Lockstep(rows, left, None, skipped))


def _checked(found: Lockstep) -> Lockstep:
    if not found.rows:
        found.close()
        raise LookupError(
            "lockstep: the two have no address in common; use map_b to map the names of the first "
            f"to those of the second. Unmatched: {', '.join(found.unmatched[:6]) or 'none'}."
        )
    return found


def _measure(metric: str | Callable[[Any, Any], float]) -> Any:
    if callable(metric) or metric in METRICS:
        return metric
    raise ValueError(f"lockstep: metric must be one of {METRICS} or a function, got {metric!r}.")


def _places(at: PatternLike | None, ops: bool) -> Any:
    """What to compare: the model's parts, and operators if asked for; not the whole."""
    if at is not None:
        return at
    if ops:
        return lambda frame: frame.kind == "op" or bool(frame.address.module)
    return lambda frame: frame.is_module and bool(frame.address.module)


def _mapping(given: Mapping[str, str] | Callable[[str], str] | None) -> Callable[[str], str]:
    if given is None:
        return lambda address: address
    if callable(given):
        return given
    table = dict(given)

    def mapped(address: str) -> str:
        if address in table:
            return table[address]
        # A name for a module holds for all below it; the longest that fits decides.
        heads = [k for k in table if k and address.startswith((f"{k}.", f"{k}/", f"{k}#"))]
        best = max(heads, key=len, default=None)
        return address if best is None else table[best] + address[len(best) :]

    return mapped


def _stored(run: Capture | Mapping[str, Any]) -> Callable[[str], Any]:
    """How to look values up in a stored run."""
    return lambda address: run[address] if address in run else None  # noqa: SIM401 - a capture has no `get`


def _fitting(model: Module, t: Tensor) -> Tensor:
    """An input as a model takes it: decimals in the type of its parameters."""
    like = next((p for p in model.parameters() if p.is_floating_point()), None)
    if like is None:
        return t
    return t.to(device=like.device, dtype=like.dtype if t.is_floating_point() else None)
