"""Random draws inside graphs: what a captured draw adds to its counter and what became of its seed
lie in device memory and are set before each replay. Knows generators, not distributions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from ...core import rng
from . import runtime as rt

_still: dict[int, Any] = {}
_WORDS = 16  # bytes: what is added to counters, and what changes in the bits of keys


@triton.jit
def drawing(key, counter, moved):
    """The key and first counter of a draw, from those it was launched with."""
    return key ^ tl.load(moved + 1), counter + tl.load(moved)


def shift() -> int:
    """The address of what `drawing` reads: zeros but inside graphs."""
    here = rt.here
    if here.capturing:
        return here.draws().address()
    block = _still.get(here.device)
    if block is None:
        block = rt.runtime.allocator(here.device).pool(0).take(_WORDS)
        rt.runtime.driver.fill_bytes(block.ptr, 0, _WORDS, 0)
        rt.runtime.driver.synchronize()
        _still[here.device] = block
    return int(block.ptr)


class GraphDraws:
    """How far the generator of a device went while a graph was captured."""

    def __init__(self, device: int) -> None:
        self.generator = rng.default_generator(f"cuda:{device}")
        self.base, self.seed = self.generator.get_offset(), self.generator.initial_seed()
        self.taken = 0
        self.block: Any = None

    def address(self) -> int:
        if self.block is None:
            self.block = rt.here.pool.take(_WORDS)
            rt.here.kept.append(rt._Held(self.block))
        return int(self.block.ptr)

    def end(self) -> None:
        """Capturing drew nothing: the generator stands where it stood."""
        self.taken = self.generator.get_offset() - self.base
        self.generator.set_offset(self.base)
        if self.block is not None:
            self._set(0, 0)

    def advance(self) -> None:
        """Let the next replay draw what comes next."""
        if self.block is None or not self.taken:
            return
        now = self.generator.get_offset()
        self._set(now - self.base, self.generator.initial_seed() ^ self.seed)
        self.generator.set_offset(now + self.taken)

    def _set(self, moved: int, changed: int) -> None:
        words = np.array([moved % (1 << 64), changed], np.uint64)
        # Small copies from ordinary memory are taken before the call returns.
        rt.runtime.driver.to_device(
            self.block.ptr, words.__array_interface__["data"][0], _WORDS, rt.here.stream
        )


class Repeated:
    """Draws of a graph that repeats those of another one, as backward passes do: dropout must leave
    out what it left out before.
    """

    def __init__(self, draws: GraphDraws) -> None:
        self.draws, self.generator = draws, draws.generator
        self.base = self.generator.get_offset()

    def address(self) -> int:
        return self.draws.address()

    def end(self) -> None:
        self.generator.set_offset(self.base)

    def advance(self) -> None:
        pass


def recorded_only(generator: rng.Generator) -> None:
    """Refuse draws that would give the same numbers at each replay: of a generator that a graph
    does not move on.
    """
    if generator.device.type != "cuda" or not rt.here.capturing:
        return
    if generator is not rt.here.draws().generator:
        raise RuntimeError(
            "a graph can only record draws of its device's default generator; leave `generator` "
            "out and seed with votive.cuda.manual_seed()."
        )


rng.watch = recorded_only
