"""What machines can do: the constants of the cost model, and where each is from. Knows no models."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from ...core.similar import did_you_mean
from ...ops.registry import F

# Assumed, not measured: which part of a peak programs reach, and what a message costs beside its bytes.
COMPUTES, CARRIES = 0.45, 0.8
NEAR, FAR = 3e-6, 8e-6


@dataclass(frozen=True)
class Machine:
    """A kind of accelerator and its links. Rates are numbers a second, `flops` those of matrix products in 16 bits.

    `memory_rate` and `memory` are of its memory, `near` of the link to others of its node, `far` to other nodes, each
    in one direction. `sources` says where each constant is from.

    >>> votive.distributed.planning.MACHINES["h200"].memory >> 30
    131
    """

    name: str
    flops: float
    memory: int
    memory_rate: float
    near: float
    far: float
    per_node: int = 8
    near_delay: float = NEAR
    far_delay: float = FAR
    computes: float = COMPUTES
    carries: float = CARRIES
    sources: dict[str, str] = field(default_factory=dict)

    def transfer(self, op: str, nbytes: int, ranks: int, spans_nodes: bool) -> float:
        """Seconds of a collective in which each rank holds, or gets, `nbytes` in all; rings, as NCCL's.

        >>> h100 = votive.distributed.planning.MACHINES["h100"]
        >>> h100.transfer("all_reduce", 1 << 30, 8, False) > h100.transfer("all_gather", 1 << 30, 8, False)
        True
        """
        if ranks == 1 or not nbytes:
            return 0.0
        rate = (self.far if spans_nodes else self.near) * self.carries
        delay = self.far_delay if spans_nodes else self.near_delay
        steps, share = {
            "all_reduce": (2 * (ranks - 1), 2 * (ranks - 1) / ranks),
            "send": (1, 1.0),
            "all_to_all": (ranks - 1, (ranks - 1) / ranks),
        }.get(op, (ranks - 1, (ranks - 1) / ranks))
        return nbytes * share / rate + steps * delay


def _cited(sheet: str) -> dict[str, str]:
    assumed = "assumed"
    cited = dict.fromkeys(("flops", "memory", "memory_rate", "near"), f"cited: {sheet}")
    return {**cited, "far": "cited: one network adapter for each GPU, as in that DGX", "per_node": "cited: DGX",
            "computes": assumed, "carries": assumed, "near_delay": assumed, "far_delay": assumed}  # fmt: skip


MACHINES = {
    "a100": Machine("A100 80 GB SXM", 312e12, 80 * 10**9, 2.039e12, 300e9, 25e9,
                    sources=_cited("NVIDIA A100 data sheet: 312 TFLOPS, 80 GB, 2,039 GB/s, NVLink 600 GB/s both ways")),
    "h100": Machine("H100 80 GB SXM", 989.4e12, 80 * 10**9, 3.35e12, 450e9, 50e9,
                    sources=_cited("NVIDIA H100 data sheet: 989 TFLOPS dense, 80 GB, 3.35 TB/s, NVLink 900 GB/s")),
    "h200": Machine("H200 141 GB SXM", 989.4e12, 141 * 10**9, 4.8e12, 450e9, 50e9,
                    sources=_cited("NVIDIA H200 data sheet: 989 TFLOPS dense, 141 GB, 4.8 TB/s, NVLink 900 GB/s")),
}  # fmt: skip


def machine_named(name: str) -> Machine:
    """A machine by its name, in letters of any size."""
    found = MACHINES.get(name.lower())
    if found is None:
        raise ValueError(f"unknown machine {name!r}; there are {', '.join(MACHINES)}." + did_you_mean(name, MACHINES))
    return found


def measured_here(group: Any = None, size: int = 512, memory: int = 8 << 30) -> Machine:
    """This machine, as the ranks of a group find it: products of float32 and all-reduces are timed. All ranks call it.

    >>> here = votive.distributed.simulate(lambda: votive.distributed.planning.measured_here(size=64), 2)[0]
    >>> here.sources["flops"], here.flops > 0
    ('measured: products of float32 (64, 64)', True)
    """
    from ..groups import get_world_size
    from ..reductions import all_reduce

    x = F.ones((size, size))
    small, large = F.ones(16), F.ones(1 << 18)

    def best(call: Any) -> float:
        times = []
        for _ in range(4):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return min(times[1:])

    product = best(lambda: x @ x)
    moved = best(lambda: F.add(large, 1.0))
    count = get_world_size(group)
    delay = best(lambda: all_reduce(small, group=group)) / max(1, 2 * (count - 1))
    carried = best(lambda: all_reduce(large, group=group)) - delay * 2 * (count - 1)
    rate = 2 * (count - 1) / count * large.nbytes / max(carried, 1e-9) if count > 1 else 1e12
    said = {
        "flops": f"measured: products of float32 ({size}, {size})",
        "memory_rate": "measured: an addition of 1 MiB", "near": "measured: all_reduce of 1 MiB",
        "far": "the same as near", "near_delay": "measured: all_reduce of 64 bytes", "far_delay": "the same as near",
        "memory": "given", "per_node": "given", "computes": "1: what was measured is reached", "carries": "1",
    }  # fmt: skip
    return Machine("here", 2 * size**3 / product, memory, 2 * large.nbytes / moved, rate, rate, count, delay, delay,
                   1.0, 1.0, said)  # fmt: skip
