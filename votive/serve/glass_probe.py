"""Looks into the runs of a model and changes them, for some rows of a batch at once. Knows no requests and no HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..glass.address import Pattern
from ..glass.probe import Frame, Probe
from ..glass.probe_hub import EDITS
from ..glass.site_names import NAMES
from ..glass.sites import holders
from ..nn import Module
from ..tensor import Tensor
from .glass_watch import Found, Watch, changed
from .served_model import position_dim

Watched = tuple[int, Watch, int, int]  # a row, what follows its text, and the positions that are read


class RowProbe(Probe):
    """Sees the places that somebody in a batch asks for, and hands each row of their values to its own text only.

    >>> from votive.serve.glass_probe import RowProbe
    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=16, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> probe = RowProbe(votive.models.LlamaForCausalLM(config).eval())
    >>> with probe.following([]):
    ...     len(probe.table)
    0
    """

    order = EDITS

    def __init__(self, model: Module) -> None:
        super().__init__(model, sites=[Pattern(n) for n in NAMES])
        # The modules themselves run as ever: only what holds places is seen.
        self._only = {id(m): m for m in holders(self.model)}
        self.table: dict[str, list[tuple[int, int, Watch, Any]]] = {}
        self._positions = 0  # how many each row has
        self._before: dict[str, Tensor] = {}

    @contextmanager
    def following(self, rows: Sequence[Watched]) -> Iterator[None]:
        """While the block runs, do for each row what its text asks for."""
        self.table = {}
        for row, watch, start, stop in rows:
            self._positions = stop - start
            for address, wanted in watch.live(start, stop).items():
                listed = self.table.setdefault(address, [])
                listed += [(row, start, watch, one) for one in wanted]
        if not self.table:
            yield
            return
        try:
            with self:
                yield
        finally:
            self.table, self._before = {}, {}

    def wants(self, address: str) -> bool:
        # Asked for every place of every layer at every step.
        return address in self.table and super().wants(address)

    def _means(self, address: str) -> bool:
        return address in self.table

    def left(self, frame: Frame) -> None:
        wanted = self.table.get(frame.address.module)
        if wanted is None:
            return
        x: Tensor = frame.output
        found = int(x.shape[position_dim(frame.subject.layout)])
        assert found == self._positions, f"{frame.address} has {found} positions of {self._positions}"
        own = False
        for row, start, watch, (what, places) in wanted:
            if not isinstance(what, Found):
                if not own:
                    x, own = x.clone(), True
                with watch.blamed():
                    if what.do == "skip":
                        x[row] = self._before[frame.address.module.replace("resid_post", "resid_pre")][row]
                    else:
                        changed(x, row, start, what, places)
        for row, start, watch, (what, places) in wanted:
            if isinstance(what, Found):
                with watch.blamed():
                    what.take(x[row], start, places)
        if frame.address.module.endswith("resid_pre"):
            self._before[frame.address.module] = x
        if own:
            frame.output = x
