"""What a thread has switched on for its calls with distributed tensors."""

from __future__ import annotations

import threading


class Here(threading.local):
    """The switches of a thread."""

    inside: int = 0  # composites that run: what they make is the same on all ranks
    implicit: bool = False  # whether plain tensors count as whole on each rank
    loss_parallel: bool = False  # whether cross entropy computes on scores in shards


here = Here()
