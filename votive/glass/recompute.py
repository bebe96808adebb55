"""Edits and checkpointing: a second run of a region is edited as the first was. Knows no purpose.

What a checkpointed function computed is computed again in backward. Edits must then be made at the
same addresses, in what counts as the same run, and their receipts must not tell of them twice.
"""

from __future__ import annotations

import contextlib
import copy
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..autograd import checkpoint
from ..core.mode import mode
from .probe_hub import EDITS, HUB, active_probes

if TYPE_CHECKING:
    from .patch import Patch
    from .probe import Probe


_COUNTS = ("runs", "_strip", "_replacement", "_replacements")


class _Place:
    """Where an edit's probe stands in a run: what numbers and addresses are counted from."""

    def __init__(self, probe: Probe) -> None:
        self.counts = {name: getattr(probe, name) for name in _COUNTS}
        self.calls = Counter(probe._calls)
        self.stack = [(frame, Counter(frame.ops)) for frame in probe.stack]

    def restore(self, probe: Probe) -> None:
        for name, value in self.counts.items():
            setattr(probe, name, value)
        probe._calls = Counter(self.calls)
        probe.stack[:] = [frame for frame, _ in self.stack]
        for frame, ops in self.stack:
            frame.ops = Counter(ops)


def _fired(probe: Patch) -> Counter[tuple[int, str]]:
    """How often each edit was made at each address."""
    edits = probe.receipt.edits
    return Counter({(i, a): n for i, edit in enumerate(edits) for a, n in edit.items()})


class Region:
    """The edits that are attached while a checkpointed function runs for the first time."""

    def __init__(self, probes: list[Any]) -> None:
        self.path = mode.module_path
        self.edits = [(p, _Place(p), _fired(p)) for p in probes]

    def ended(self) -> None:
        """The function has run: only those edits count that were made in it."""
        made = [(p, place, _fired(p) - before) for p, place, before in self.edits]
        self.edits = [e for e in made if e[2]]

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """Inside, the function runs as it did, under the edits that were made in it and no others.

        A receipt that this changes is a copy; what is followed is not followed again.
        """
        for probe, _, made in self.edits:
            if probe.inactive or not any(p is probe for p in HUB.probes):
                raise RuntimeError(_over(made))
        now = [(p, _Place(p), p.receipt, p.tracker) for p, _, _ in self.edits]
        path, repeating = mode.module_path, mode.recomputing
        mode.module_path, mode.recomputing = self.path, tuple(p for p, _, _ in self.edits)
        mode.renew()
        try:
            for probe, place, _ in self.edits:
                place.restore(probe)
                probe.receipt, probe.tracker = copy.deepcopy(probe.receipt), None
            before = [_fired(p) for p, _, _ in self.edits]
            yield
            for (probe, _, made), had in zip(self.edits, before, strict=True):
                if _fired(probe) - had != made:
                    raise RuntimeError(_unlike(made, _fired(probe) - had))
        finally:
            mode.module_path, mode.recomputing = path, repeating
            mode.renew()
            for probe, place, receipt, tracker in now:
                place.restore(probe)
                probe.receipt, probe.tracker = receipt, tracker


def _addresses(made: Counter[tuple[int, str]]) -> str:
    return ", ".join(sorted({a or "(model)" for _, a in made})[:4]) or "nowhere"


def _over(made: Counter[tuple[int, str]]) -> str:
    return (
        f"checkpoint: this part of the model ran under edits ({_addresses(made)}) whose block has ended,"
        " so that backward cannot compute its values again; call backward() inside the `with` "
        "block of the edits, or run the model without checkpointing."
    )


def _unlike(made: Counter[tuple[int, str]], again: Counter[tuple[int, str]]) -> str:
    return (
        f"checkpoint: edits were made at {_addresses(made)} in the forward pass, and at {_addresses(again)} "
        "when backward computed its values again; run the model without checkpointing."
    )


def region() -> Region:
    """What a checkpointed function that is about to run must be repeated under."""
    return Region([p for p in active_probes() if p.order == EDITS and not p.inactive])


checkpoint.regions.append(region)
