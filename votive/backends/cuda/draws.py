"""Random draws inside graphs: what a captured draw adds to its counter lies in device memory and is
moved on before each replay. Knows generators, not distributions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import rng
from . import runtime as rt

_still: dict[int, Any] = {}


def shift() -> int:
    """The address of the number that draws add to their counters: 0 but inside graphs."""
    here = rt.here
    if here.capturing:
        return here.draws().address()
    block = _still.get(here.device)
    if block is None:
        block = _still[here.device] = rt.runtime.allocator(here.device).pool(0).take(8)
        rt.runtime.driver.fill_bytes(block.ptr, 0, 8, 0)
        rt.runtime.driver.synchronize()
    return int(block.ptr)


class GraphDraws:
    """How far the generator of a device went while a graph was captured."""

    def __init__(self, device: int) -> None:
        self.generator = rng.default_generator(f"cuda:{device}")
        self.base = self.generator.get_offset()
        self.taken = 0
        self.block: Any = None

    def address(self) -> int:
        if self.block is None:
            self.block = rt.here.pool.take(8)
        return int(self.block.ptr)

    def end(self) -> None:
        """Capturing drew nothing: the generator stands where it stood."""
        self.taken = self.generator.get_offset() - self.base
        self.generator.set_offset(self.base)

    def advance(self) -> None:
        """Let the next replay draw what comes next."""
        if self.block is None or not self.taken:
            return
        now = self.generator.get_offset()
        moved = np.array([now - self.base], np.int64)
        # Small copies from ordinary memory are taken before the call returns.
        rt.runtime.driver.to_device(
            self.block.ptr, moved.__array_interface__["data"][0], 8, rt.here.stream
        )
        self.generator.set_offset(now + self.taken)


def before_replay(graph: Any) -> None:
    """Give the graph's draws new numbers."""
    if graph._draws is not None:
        graph._draws.advance()
