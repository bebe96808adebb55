"""The order in which ranks of a pipeline compute, one function for each schedule. Knows actions only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .actions import COSTS, Action, Order, needs


def loop(ranks: int, stages: int) -> list[int]:
    """The rank of each stage, round and round."""
    return [s % ranks for s in range(stages)]


def vee(ranks: int, stages: int) -> list[int]:
    """The rank of each stage, forth and back."""
    return [r if (s // ranks) % 2 == 0 else ranks - 1 - r for s in range(stages) for r in [s % ranks]]


def gpipe(ranks: int, microbatches: int) -> list[Order]:
    """All forward passes, then all backward passes."""
    return [
        [Action(r, "F", m) for m in range(microbatches)] + [Action(r, "B", m) for m in range(microbatches)]
        for r in range(ranks)
    ]


def one_forward_one_backward(ranks: int, microbatches: int) -> list[Order]:
    """As few forward passes ahead as keep the last stage busy, then one backward pass for each forward pass.

    >>> from votive.distributed.pipelining.orders import one_forward_one_backward
    >>> one_forward_one_backward(2, 3)[0]
    [0F0, 0F1, 0B0, 0F2, 0B1, 0B2]
    """
    found = []
    for r in range(ranks):
        ahead = min(microbatches, ranks - r)
        order = [Action(r, "F", m) for m in range(ahead)]
        for m in range(microbatches):
            order.append(Action(r, "B", m))
            if ahead + m < microbatches:
                order.append(Action(r, "F", ahead + m))
        found.append(order)
    return found


def breadth_first(ranks: int, chunks: int, microbatches: int) -> list[Order]:
    """All microbatches through a stage before the next stage of the rank begins."""
    return [
        [Action(c * ranks + r, "F", m) for c in range(chunks) for m in range(microbatches)]
        + [Action(c * ranks + r, "B", m) for c in reversed(range(chunks)) for m in range(microbatches)]
        for r in range(ranks)
    ]


def per_round(ranks: int, microbatches: int) -> int:
    """How many microbatches go through a stage of a rank before its next one has its turn."""
    rounds = max(1, microbatches // ranks)
    if microbatches % rounds:
        raise ValueError(
            f"the number of microbatches, {microbatches}, must be a multiple of the number of rounds, {rounds}, which "
            f"is microbatches // ranks."
        )
    return microbatches // rounds


def _in_turns(rank: int, ranks: int, chunks: int, microbatches: int, each: int, kind: str) -> Order:
    """All microbatches through all stages of a rank, `each` at a time; backward from the last stage."""
    found, seen = [], [0] * chunks
    for k in range(chunks * microbatches):
        c = (k // each) % chunks
        c = c if kind == "F" else chunks - 1 - c
        found.append(Action(c * ranks + rank, kind, seen[c]))
        seen[c] += 1
    return found


def interleaved(ranks: int, chunks: int, microbatches: int) -> list[Order]:
    """1F1B with several stages on each rank: the pipeline fills and drains in smaller steps.

    >>> from votive.distributed.pipelining.orders import interleaved
    >>> interleaved(2, 2, 2)[1]
    [1F0, 1F1, 3F0, 3B0, 3F1, 3B1, 1B0, 1B1]
    """
    each, found = per_round(ranks, microbatches), []
    for r in range(ranks):
        forwards = _in_turns(r, ranks, chunks, microbatches, each, "F")
        backwards = _in_turns(r, ranks, chunks, microbatches, each, "B")
        ahead = min((chunks - 1) * each + 2 * (ranks - 1 - r), len(forwards))
        order = forwards[:ahead]
        for f, b in zip(forwards[ahead:], backwards, strict=False):
            order += [f, b]
        found.append(order + backwards[len(forwards) - ahead :])
    return found


def interleaved_zero_bubble(ranks: int, chunks: int, microbatches: int) -> list[Order]:
    """Interleaved stages with backward in halves: gradients of weights are made where a rank would wait."""
    each = per_round(ranks, microbatches)
    forwards = [_in_turns(r, ranks, chunks, microbatches, each, "F") for r in range(ranks)]
    backwards = [_in_turns(r, ranks, chunks, microbatches, each, "I") for r in range(ranks)]
    # As much as 1F1B lets the first rank hold.
    limit = ranks if chunks == 1 else (chunks - 1) * each + 2 * (ranks - 1) + 1
    return _filled(
        loop(ranks, ranks * chunks),
        microbatches,
        [limit] * ranks,
        lambda rank, ready: next((forwards[rank].pop(0) for a in forwards[rank][:1] if a in ready), None),
        lambda rank, ready: next((backwards[rank].pop(0) for a in backwards[rank][:1] if a in ready), None),
    )


def zero_bubble_vee(ranks: int, microbatches: int) -> list[Order]:
    """Two stages on each rank, forth and back, with backward in halves; no more held than by 1F1B."""

    def first(rank: int, ready: set[Action]) -> Action | None:
        # The stage on the way back first: it leads to backward, which frees memory.
        return min(ready, key=lambda a: (-a.stage_index, a.microbatch), default=None)

    def oldest(rank: int, ready: set[Action]) -> Action | None:
        return min(ready, key=lambda a: (a.microbatch, -a.stage_index), default=None)

    return _filled(vee(ranks, 2 * ranks), microbatches, [2 * ranks] * ranks, first, oldest)


_Choice = Callable[[int, set[Action]], Action | None]


def _filled(
    homes: Sequence[int], microbatches: int, limits: Sequence[int], forward: _Choice, backward: _Choice
) -> list[Order]:
    """Orders as they come about if each rank does the best that is ready: I, else F within its limit, else W.

    `limits` bound of how many microbatches a rank holds activations, from F to W.
    """
    stages, ranks = len(homes), max(homes) + 1
    every = {Action(s, k, m) for s in range(stages) for k in "FIW" for m in range(microbatches)}
    todo: list[dict[str, set[Action]]] = [{k: set() for k in "FIW"} for _ in range(ranks)]
    for a in every:
        todo[homes[a.stage_index]][a.kind].add(a)
    ends: dict[Action, float] = {}
    found: list[Order] = [[] for _ in range(ranks)]
    clock, held, late = [0.0] * ranks, [0] * ranks, list(limits)
    waiting: list[Order] = [[] for _ in range(ranks)]  # W that may run
    left = len(every)
    while left:
        now, moved = min(clock), False
        for rank in range(ranks):
            if clock[rank] > now:
                continue
            action = _best(rank, now, todo[rank], ends, stages, every, held[rank] < late[rank], forward, backward)
            if action is None and waiting[rank]:
                action = waiting[rank].pop(0)
            if action is None:
                continue
            todo[rank][action.kind].discard(action)
            if action.kind == "I":
                waiting[rank].append(Action(action.stage_index, "W", action.microbatch))
            held[rank] += {"F": 1, "W": -1}.get(action.kind, 0)
            found[rank].append(action)
            clock[rank] = ends[action] = now + COSTS[action.kind]
            left, moved = left - 1, True
        if not moved:
            later = [t for t in (*clock, *ends.values()) if t > now]
            if not later:  # the limits are too tight for anybody to go on
                late = [limit + 1 for limit in late]
                continue
            for rank in range(ranks):
                clock[rank] = max(clock[rank], min(later))
        else:
            busy = [t for t in clock if t > now]
            for rank in range(ranks):
                if clock[rank] == now and busy:
                    clock[rank] = min(busy)
    return found


def _best(
    rank: int,
    now: float,
    todo: dict[str, set[Action]],
    ends: dict[Action, float],
    stages: int,
    every: set[Action],
    has_room: bool,
    forward: _Choice,
    backward: _Choice,
) -> Action | None:
    def ready(kind: str) -> set[Action]:
        return {a for a in todo[kind] if all(ends.get(b, now + 1) <= now for b in needs(a, stages, every))}

    return backward(rank, ready("I")) or (forward(rank, ready("F")) if has_room else None)
