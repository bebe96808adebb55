"""Random draws inside graphs: what a captured draw adds to its counter and what became of its seed
lie in device memory and are set before each replay. Knows generators, not distributions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from ....core import rng
from .. import runtime as rt
from ..runtime.tables import Table

_still: dict[int, Any] = {}
_WORDS = 16  # bytes: what is added to counters, and what changes in the bits of keys


@triton.jit
def philox_state(key, counter, moved):
    """The key and first counter of a draw, from those it was launched with."""
    return key ^ tl.load(moved + 1), counter + tl.load(moved)


def shift() -> int:
    """The address of what `drawing` reads: zeros but inside graphs."""
    here = rt.here
    if here.capturing:
        return here.generator().address()
    block = _still.get(here.device)
    if block is None:
        block = _still[here.device] = Table(np.zeros(_WORDS, np.uint8), here.device)
    return int(block.ptr)


class GraphGenerator:
    """How far the generator of a device went while a graph was captured."""

    def __init__(self, device: int) -> None:
        self.generator = rng.default_generator(f"cuda:{device}")
        self.base, self.seed = self.generator.get_offset(), self.generator.initial_seed()
        self.taken = 0
        # Not in the graph's memory: what it lets go of before its first draw would lie there too.
        self.table = Table(np.zeros(_WORDS, np.uint8), device)

    def address(self) -> int:
        return self.table.ptr

    def end(self) -> None:
        """Capturing drew nothing: the generator stands where it stood."""
        self.taken = self.generator.get_offset() - self.base
        self.generator.set_offset(self.base)

    def advance(self) -> None:
        """Let the next replay draw what comes next."""
        if not self.taken:
            return
        now = self.generator.get_offset()
        changed = self.generator.initial_seed() ^ self.seed
        words = np.array([(now - self.base) % (1 << 64), changed], np.uint64)
        # Small copies from ordinary memory are taken before the call returns.
        rt.runtime.driver.to_device(self.table.ptr, words.__array_interface__["data"][0], _WORDS, rt.here.stream)
        self.generator.set_offset(now + self.taken)


class RepeatedGenerator:
    """Draws of a graph that repeats those of another one, as backward passes do: dropout must leave
    out what it left out before.
    """

    def __init__(self, original: GraphGenerator) -> None:
        self.original, self.generator = original, original.generator
        self.base = self.generator.get_offset()

    def address(self) -> int:
        return self.original.address()

    def end(self) -> None:
        self.generator.set_offset(self.base)

    def advance(self) -> None:
        pass


def recorded_only(generator: rng.Generator, seeding: bool) -> None:
    """Refuse draws that would give the same numbers at each replay, of a generator that a graph
    does not move on, and seeds, which replays do not set.
    """
    if generator.device.type != "cuda" or not rt.here.capturing:
        return
    if seeding:
        raise RuntimeError(
            "manual_seed: a generator cannot be seeded while a graph is captured; seed before, or before a replay."
        )
    if generator is not rt.here.generator().generator:
        raise RuntimeError(
            "a graph can only record draws of its device's default generator; leave `generator` "
            "out and seed with votive.cuda.manual_seed()."
        )


rng.watch = recorded_only
