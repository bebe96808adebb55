"""How much memory each rank takes, so that the one that will run out shows before it does."""

from __future__ import annotations

import re
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..core.errors import size_text
from .objects import all_gather_object
from .world import group_of


class RankMemory(NamedTuple):
    """Bytes that a rank takes: its process in main memory, and its tensors on its current GPU, now and at most.

    `process` is None where the system does not tell.

    >>> votive.distributed.memory.RankMemory(0, "here", None, 1 << 20, 0, 0, 0).peak
    1048576
    """

    rank: int
    host: str
    process: int | None
    peak: int | None
    gpu: int
    gpu_peak: int
    gpu_reserved: int


class MemoryByRank(list[RankMemory]):
    """The memory of ranks in their order; printed as a table, with the rank that takes most marked.

    >>> row = votive.distributed.memory.RankMemory(0, "here", 1 << 20, 2 << 20, 0, 0, 0)
    >>> print(votive.distributed.memory.MemoryByRank([row]))
    rank  host  process     peak  gpu  gpu peak  gpu reserved
       0  here  1.0 MiB  2.0 MiB  0 B       0 B           0 B
    """

    def __str__(self) -> str:
        names = [name.replace("_", " ") for name in RankMemory._fields]
        rows = [[str(one.rank), one.host, *("-" if n is None else size_text(n) for n in one[2:])] for one in self]
        if len({one[2:] for one in self}) > 1:
            most = max(range(len(self)), key=lambda i: (self[i].gpu_peak, self[i].peak or 0))
            rows[most].append("<- most")
        widths = [max(len(row[i]) for row in [names, *rows]) for i in range(len(names))]
        lines = []
        for row in [names, *rows]:
            shown = [text.rjust(width) for text, width in zip(row, widths, strict=False)]
            lines.append("  ".join(shown + row[len(names) :]))
        return "\n".join(lines)


def memory_by_rank(group: Any = None) -> MemoryByRank:
    """How much memory each rank of a group takes; all of them call this, and all get the answer.

    Ranks that are threads of one process share what that process takes.

    >>> found = votive.distributed.simulate(votive.distributed.memory_by_rank, 2)[0]
    >>> [one.rank for one in found]
    [0, 1]
    """
    g = group_of(group)
    process, peak = _of_process()
    gpu = gpu_peak = gpu_reserved = 0
    cuda = sys.modules.get("votive.cuda")
    if cuda is not None:  # else no tensor is there
        gpu, gpu_peak = cuda.memory_allocated(), cuda.max_memory_allocated()
        gpu_reserved = cuda.memory_reserved()
    rank = g.ranks[g.rank()]
    own = RankMemory(rank, socket.gethostname(), process, peak, gpu, gpu_peak, gpu_reserved)
    every: list[Any] = [None] * g.size()
    all_gather_object(every, tuple(own), g)
    return MemoryByRank(RankMemory(*one) for one in every)


def _of_process() -> tuple[int | None, int | None]:
    """What this process takes of main memory, and the most that it took."""
    with suppress(OSError):
        found = dict(re.findall(r"^Vm(RSS|HWM):\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.M))
        if len(found) == 2:
            return int(found["RSS"]) * 1024, int(found["HWM"]) * 1024
    with suppress(ImportError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return None, peak if sys.platform == "darwin" else peak * 1024
    return None, None
