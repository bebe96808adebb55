"""When a profiler records: by the number of a step. Measures nothing."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum


class ProfilerAction(Enum):
    """What a profiler does in a step.

    >>> votive.profiler.ProfilerAction.RECORD
    <ProfilerAction.RECORD: 2>
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Steps of a program as cycles: `wait` without recording, `warmup`, then `active` that are recorded.

    The first `skip_first` steps belong to no cycle; `repeat` cycles are done, or as many as there are steps if it is 0.
    `skip_first_wait` leaves out the waiting of the first cycle.

    >>> plan = votive.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError("Invalid profiler schedule arguments")

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        length = wait + warmup + active
        if repeat and step >= repeat * length:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == length - 1 else ProfilerAction.RECORD

    return action
