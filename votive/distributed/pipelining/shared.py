"""Weights that several stages share, such as a table of embeddings that is also the head: their gradients are added up.

Knows stages and messages, not schedules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd.modes import no_grad
from ...core.errors import AutogradError
from ...ops.registry import F
from ...tensor import Tensor
from ..fsdp.sharding import marked, sharding_of
from ..messages import irecv, isend
from .links import LAST_TAG
from .stage import PipelineStage


class Shared:
    """The weights of this rank that stages elsewhere have, too. The first stage that has one adds the gradients."""

    def __init__(self, stages: Sequence[PipelineStage], homes: Sequence[int]) -> None:
        self.group, self.here = stages[0].group, stages[0].group_rank
        self.pairs: list[tuple[int, list[Tensor], list[int]]] = []  # number, those of this rank, all ranks
        self.before: list[list[Tensor | None]] = []
        self._agreed = False
        of_stage = {s.stage_index: s for s in stages}
        for i, (_, holders) in enumerate(sorted(_told(stages).items())):
            mine = [_parameter(of_stage[s], path) for s, path in sorted(holders.items()) if s in of_stage]
            ranks = list(dict.fromkeys(homes[s] for s in sorted(holders)))
            own = list({id(p): p for p in mine}.values())
            if own and (len(ranks) > 1 or len(own) > 1):
                self.pairs.append((i, own, ranks))

    def begin(self) -> None:
        """Before a step: let all have the first one's values, and lay gradients of earlier steps aside."""
        if not self._agreed:
            for i, own, ranks in self.pairs:
                with no_grad():
                    self._spread(i, own, ranks, own[0].detach().clone())
            self._agreed = True
        self.before = [[p._grad for p in own] for _, own, _ in self.pairs]
        for _, own, _ in self.pairs:
            for p in own:
                p._grad = None

    @no_grad()
    def finish(self) -> None:
        """Behind a step: gradients are those of all uses together."""
        for (i, own, ranks), before in zip(self.pairs, self.before, strict=True):
            total: Any = None
            for p in own:
                if p._grad is not None:
                    total = p._grad if total is None else total + p._grad
            total = F.zeros_like(own[0].detach()) if total is None else total.clone()
            if self.here == ranks[0]:
                for other in ranks[1:]:
                    part = F.empty_like(total)
                    _wait(irecv(part, group=self.group, group_src=other, tag=LAST_TAG - i))
                    total = total + part
            else:
                _wait(isend(total.contiguous(), group=self.group, group_dst=ranks[0], tag=LAST_TAG - i))
            total = self._sent(i, ranks, total)
            for p, old in zip(own, before, strict=True):
                p._grad = marked(total.clone() if old is None else old + total, sharding_of(p))
        self.before = []

    def _sent(self, i: int, ranks: Sequence[int], t: Tensor) -> Tensor:
        """The first rank's tensor, on all ranks that have the weight."""
        if self.here == ranks[0]:
            for other in ranks[1:]:
                _wait(isend(t.contiguous(), group=self.group, group_dst=other, tag=LAST_TAG - i))
            return t
        found = F.empty_like(t)
        _wait(irecv(found, group=self.group, group_src=ranks[0], tag=LAST_TAG - i))
        return found

    def _spread(self, i: int, own: Sequence[Tensor], ranks: Sequence[int], value: Tensor) -> None:
        found = self._sent(i, ranks, value)
        for p in own:
            p.copy_(found)


def shared_elsewhere(stages: Sequence[PipelineStage]) -> set[int]:
    """The weights of these stages, by `id`, that an earlier stage has, too: there they count."""
    of_stage = {s.stage_index: s for s in stages}
    found: dict[int, bool] = {}
    for holders in _told(stages).values():
        for s, path in holders.items():
            if s in of_stage:
                key = id(_parameter(of_stage[s], path))
                found[key] = found.get(key, True) and s != min(holders)
    return {key for key, is_later in found.items() if is_later}


def _told(stages: Sequence[PipelineStage]) -> dict[str, dict[int, str]]:
    """What parts say of weights that they share: by name, the stages that have it and how it is called there."""
    found: dict[str, dict[int, str]] = {}
    for stage in stages:
        for name, holders in getattr(stage.plain, "shared_weights", {}).items():
            if found.setdefault(name, holders) != holders:
                raise ValueError(f"stages disagree on who has {name}: {found[name]} and {holders}.")
    return found


def _parameter(stage: PipelineStage, name: str) -> Tensor:
    for path, p in stage.plain.named_parameters(remove_duplicate=False):
        if path == name:
            return p
    raise AutogradError(f"stage {stage.stage_index} has no weight {name}, which it is said to share.")


def _wait(work: Any) -> None:
    work.wait()
