"""Loads and stores of blocks that mostly lie inside of memory as a whole.

A mask that may end anywhere takes wide loads and stores apart into single elements, so a block that needs none
goes without. Knows addresses, not what is computed.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def guarded_load(at, inside, whole):
    """What lies at some addresses; nothing is said of those that are not `inside`. `whole`: all are."""
    if whole:
        v = tl.load(at)
    else:
        v = tl.load(at, mask=inside, other=0)
    return v


@triton.jit
def guarded_store(at, v, inside, whole):
    """Write to the addresses that are `inside`."""
    if whole:
        tl.store(at, v)
    else:
        tl.store(at, v, mask=inside)
