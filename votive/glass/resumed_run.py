"""Runs that begin in the middle: calls that ended before a site are not made again. Knows no model.

One run is recorded: which calls it made in which order, and what those gave that stand beside the
sites. A later run with the same inputs, perhaps repeated along the batch, skips each call that had
ended before its site began.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import votive

from ..nn import Module
from ..tensor import Tensor
from . import values
from .address import Pattern
from .axes import Axes, Place
from .probe import Frame, Probe
from .probe_hub import CHANGES


@dataclass
class Site:
    """A place to patch: which value of which call."""

    address: str
    pattern: Pattern
    starts: int = -1  # the event at which the call begins

    @property
    def name(self) -> str:
        chosen = "." + ".".join(self.pattern.path) if self.pattern.path else ""
        if self.pattern.side == "in":
            return f"{self.address}:in{chosen}"
        return f"{self.address}:out{chosen}" if chosen else self.address


class Recording(Probe):
    """One run: the order of its calls, and the values at sites and beside them."""

    def __init__(self, model: Module, wanted: list[Pattern], *, beside: set[str] | None = None) -> None:
        super().__init__(model, sites=wanted)
        self.wanted = wanted
        self.beside = beside  # addresses whose results to keep; None keeps none
        self.sites: dict[str, Site] = {}
        self.values: dict[str, Any] = {}  # at sites
        self.axes: dict[str, Axes] = {}  # of these values
        self.outputs: dict[str, Any] = {}
        self.began: dict[str, int] = {}  # address: the event at which its call began
        self.ended: dict[str, int] = {}
        self.holders: set[str] = set()  # calls inside which there is a site
        self.parents: dict[str, str | None] = {}
        self._event = 0
        self._modules: list[tuple[int, str]] = []
        self._inside: dict[str, list[str]] = {}

    def entered(self, frame: Frame) -> None:
        self._event += 1
        text = str(frame.address)
        self.began[text] = self._event
        self._modules.append((self._event, frame.address.module))
        self.parents[text] = None if frame.parent is None else str(frame.parent.address)
        for pattern in self.wanted:
            if pattern.matches(frame.address, frame):
                site = Site(text, pattern, self._event)
                self.sites.setdefault(site.name, site)
                holder = frame.parent
                while holder is not None:
                    self.holders.add(str(holder.address))
                    holder = holder.parent
                if pattern.side == "in":
                    self._take(site, frame, pattern)

    def left(self, frame: Frame) -> None:
        self._event += 1
        text = str(frame.address)
        self.ended[text] = self._event
        if self.beside is not None and text in self.beside:
            self.outputs[text] = frame.output
        for pattern in self.wanted:
            if pattern.side == "out" and pattern.matches(frame.address, frame):
                self._take(Site(text, pattern), frame, pattern)

    def _take(self, site: Site, frame: Frame, pattern: Pattern) -> None:
        value = self.values[site.name] = value_at(frame, pattern)
        self.axes[site.name] = Place(self.model, frame, pattern, self.past).axes(value)

    def inside(self, address: str) -> list[str]:
        """Modules called inside a call: if it is skipped, later ones keep their numbers."""
        if address not in self._inside:
            start, end = self.began[address], self.ended[address]
            self._inside[address] = [m for at, m in self._modules if start < at < end]
        return self._inside[address]

    def skippable(self) -> set[str]:
        """The calls directly inside those that hold a site: what a later run may skip whole."""
        return {a for a, p in self.parents.items() if p is None or p in self.holders}


def tensor_path(frame: Frame, pattern: Pattern) -> tuple[Any, values.Path]:
    """A call's value with the way to the tensor that a pattern means."""
    if pattern.side == "in":
        whole: Any = (frame.args, frame.kwargs)
        if pattern.path and pattern.path[0] in frame.kwargs:
            return whole, (1, *pattern.path)
        if pattern.path:
            return whole, (0, *pattern.path)
    else:
        whole = frame.output
        if pattern.path:
            return whole, pattern.path
    path = values.first_path(whole)
    if path is None:
        raise LookupError(f"{frame.address} has no tensor that could be patched.")
    return whole, path


def value_at(frame: Frame, pattern: Pattern) -> Tensor:
    """The tensor that a pattern means at a call."""
    whole, path = tensor_path(frame, pattern)
    found = values.get(whole, path)
    if not isinstance(found, votive.Tensor):
        raise LookupError(f"{pattern.text!r} is not a tensor at {frame.address}.")
    return found


def put_value(frame: Frame, pattern: Pattern, new: Tensor) -> None:
    """Give a call another value where a pattern means it."""
    whole, path = tensor_path(frame, pattern)
    changed = values.put(whole, path, new)
    if pattern.side == "in":
        frame.args, frame.kwargs = changed
    else:
        frame.output = changed


class Resumed(Probe):
    """A run that skips what a recording knows, and changes the value at one site."""

    order = CHANGES

    def __init__(
        self,
        model: Module,
        recorded: Recording,
        site: Site,
        change: Callable[[Tensor], Tensor],
        given: Callable[[str, Any], Any],
    ) -> None:
        skipped = {a for a in recorded.outputs if recorded.ended[a] < site.starts}
        # All modules are seen, as by the recording. What patches did is in the recorded values.
        super().__init__(model, sites=recorded.wanted)
        self.recorded, self.site, self.change, self.given = recorded, site, change, given
        self.skipped = skipped
        self.fired = False

    def answer(self, frame: Frame) -> None:
        text = str(frame.address)
        if text in self.skipped:
            self._calls.update(self.recorded.inside(text))
            with self.muted():
                frame.answer(self.given(text, self.recorded.outputs[text]))

    def entered(self, frame: Frame) -> None:
        if str(frame.address) == self.site.address and self.site.pattern.side == "in":
            self._change(frame)

    def left(self, frame: Frame) -> None:
        if str(frame.address) == self.site.address and self.site.pattern.side == "out":
            self._change(frame)

    def _change(self, frame: Frame) -> None:
        self.fired = True
        with self.muted():
            old = value_at(frame, self.site.pattern)
            put_value(frame, self.site.pattern, self.change(old))
