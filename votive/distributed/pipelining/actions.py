"""What ranks of a pipeline do in which order, as data: checked, timed, and printed. Knows no tensors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

# What an action takes if the forward pass of a stage takes 1: backward is twice that, half of it for the weights.
COSTS = {"F": 1.0, "B": 2.0, "I": 1.0, "W": 1.0}
_TEXT = re.compile(r"(\d+)([FBIW])(\d+)")


class Action(NamedTuple):
    """One stage and one microbatch: F forward, B backward, or its halves I (of inputs) and W (of weights).

    >>> from votive.distributed.pipelining.actions import Action
    >>> Action.parse("2F0"), Action(2, "F", 0)
    (2F0, 2F0)
    """

    stage_index: int
    kind: str
    microbatch: int

    def __repr__(self) -> str:
        return f"{self.stage_index}{self.kind}{self.microbatch}"

    @classmethod
    def parse(cls, text: str) -> Action:
        """What `repr` has written."""
        found = _TEXT.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text!r} is no action; one is written as stage, kind and microbatch, such as 2F0.")
        return cls(int(found[1]), found[2], int(found[3]))


Order = list[Action]


class Slot(NamedTuple):
    """An action and when it runs."""

    action: Action
    start: float
    end: float


class Deadlock(ValueError):
    """Ranks would wait for one another."""


def needs(action: Action, stages: int, kinds: set[Action]) -> list[Action]:
    """What must have run before an action; `kinds` are all actions that there are."""
    s, kind, m = action
    if kind == "F":
        return [Action(s - 1, "F", m)] if s else []
    if kind == "W":
        return [Action(s, "I", m)]
    found = [Action(s, "F", m)]
    if s < stages - 1:
        whole = Action(s + 1, "B", m)
        found.append(whole if whole in kinds else Action(s + 1, "I", m))
    return found


def timed(orders: Sequence[Order], stages: int, costs: dict[str, float] | None = None) -> list[list[Slot]]:
    """When each rank does what, if nothing but computing takes time; raises where ranks would wait for ever.

    >>> from votive.distributed.pipelining.actions import Action, timed
    >>> orders = [[Action(0, "F", 0), Action(0, "B", 0)], [Action(1, "F", 0), Action(1, "B", 0)]]
    >>> timed(orders, 2)[0]
    [Slot(action=0F0, start=0.0, end=1.0), Slot(action=0B0, start=4.0, end=6.0)]
    """
    costs = costs or COSTS
    every = {a for order in orders for a in order}
    ends: dict[Action, float] = {}
    found: list[list[Slot]] = [[] for _ in orders]
    at, clock = [0] * len(orders), [0.0] * len(orders)
    left = sum(len(order) for order in orders)
    while left:
        moved = False
        for rank, order in enumerate(orders):
            while at[rank] < len(order):
                action = order[at[rank]]
                before = needs(action, stages, every)
                if any(b not in ends for b in before):
                    break
                start = max([clock[rank], *(ends[b] for b in before)])
                end = start + costs[action.kind]
                ends[action] = clock[rank] = end
                found[rank].append(Slot(action, start, end))
                at[rank] += 1
                left -= 1
                moved = True
        if not moved:
            waits = ", ".join(f"rank {r} at {o[at[r]]}" for r, o in enumerate(orders) if at[r] < len(o))
            raise Deadlock(f"the schedule never ends: {waits}.")
    return found


def check(orders: Sequence[Order], stages: int, microbatches: int, trains: bool = True) -> None:
    """Raise unless every stage sees every microbatch once, in an order that ends, and always on one rank."""
    home: dict[int, int] = {}
    seen: set[Action] = set()
    for rank, order in enumerate(orders):
        for action in order:
            if home.setdefault(action.stage_index, rank) != rank:
                raise ValueError(f"stage {action.stage_index} is on rank {home[action.stage_index]} and on {rank}.")
            if action in seen:
                raise ValueError(f"{action} is there twice.")
            if not (0 <= action.stage_index < stages and 0 <= action.microbatch < microbatches):
                raise ValueError(f"{action} is not one of {stages} stages and {microbatches} microbatches.")
            seen.add(action)
    for s in range(stages):
        for m in range(microbatches):
            if Action(s, "F", m) not in seen:
                raise ValueError(f"{Action(s, 'F', m)} is missing.")
            halves = Action(s, "I", m) in seen, Action(s, "W", m) in seen
            whole = Action(s, "B", m) in seen
            if trains and (whole == halves[0] or halves[0] != halves[1]):
                raise ValueError(f"stage {s} and microbatch {m} need either B, or I and W.")
    timed(orders, stages)


def bubble(slots: Sequence[Sequence[Slot]]) -> float:
    """Which part of the time ranks have nothing to do, of all ranks together.

    >>> from votive.distributed.pipelining.actions import bubble, timed, Action
    >>> bubble(timed([[Action(0, "F", 0)], [Action(1, "F", 0)]], 2))
    0.5
    """
    end = max((s.end for row in slots for s in row), default=0.0)
    busy = sum(s.end - s.start for row in slots for s in row)
    return 1 - busy / (end * len(slots)) if end else 0.0


def held_at_most(order: Order) -> int:
    """Of how many microbatches a rank holds activations at once: from F to B, or to W."""
    most = now = 0
    for action in order:
        now += {"F": 1, "B": -1, "W": -1}.get(action.kind, 0)
        most = max(most, now)
    return most


def table(orders: Sequence[Order], stages: int) -> str:
    """Time from left to right, a row for each rank: one column is the forward pass of a stage.

    >>> from votive.distributed.pipelining.actions import Action, table
    >>> print(table([[Action(0, "F", 0), Action(0, "B", 0)], [Action(1, "F", 0), Action(1, "B", 0)]], 2))
    rank 0  0F0   .   .   . 0B0   =
    rank 1    . 1F0 1B0   =   .   .
    """
    slots = timed(orders, stages)
    end = round(max((s.end for row in slots for s in row), default=0.0))
    width = max((len(repr(s.action)) for row in slots for s in row), default=1)
    lines = []
    for rank, row in enumerate(slots):
        cells = ["."] * end
        for s in row:
            cells[round(s.start)] = repr(s.action)
            for t in range(round(s.start) + 1, round(s.end)):
                cells[t] = "="
        lines.append(f"rank {rank}  " + " ".join(c.rjust(width) for c in cells))
    return "\n".join(lines)
