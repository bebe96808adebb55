"""Memory by rank: what it counts and how it is shown."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import pytest

import votive.distributed as dist
from votive.distributed import memory
from votive.distributed.memory import MemoryByRank, RankMemory


def test_all_ranks_hear_of_all() -> None:
    found = dist.simulate(dist.memory_by_rank, 3)
    assert all(one == found[0] for one in found)
    assert [one.rank for one in found[0]] == [0, 1, 2]
    assert all((one.gpu, one.host) == (found[0][0].gpu, found[0][0].host) for one in found[0])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems tell the peak alone")
def test_what_a_process_takes_grows_with_what_it_writes() -> None:
    before, peak = memory._of_process()
    size = 64 << 20
    with mmap.mmap(-1, size) as block:  # fresh pages, whatever the process has at hand
        block.write(b"1" * size)
        after, more = memory._of_process()
    assert before is not None
    assert after is not None
    assert peak is not None
    assert more is not None
    # Other things may be given back meanwhile.
    assert after - before > size // 2
    assert more >= max(after, peak)


def test_the_table_marks_the_rank_that_takes_most() -> None:
    rows = [RankMemory(r, "a", None, 5 << 20, 1 << 20, (1 + r % 2) << 30, 1 << 30) for r in range(3)]
    lines = str(MemoryByRank(rows)).splitlines()
    assert lines[0] == "rank  host  process     peak      gpu  gpu peak  gpu reserved"
    assert [line.endswith("  <- most") for line in lines[1:]] == [False, True, False]
    assert lines[2] == "   1     a        -  5.0 MiB  1.0 MiB  2.00 GiB      1.00 GiB  <- most"
    assert "most" not in str(MemoryByRank([rows[0], rows[0]._replace(rank=1)]))


def test_without_proc_the_peak_alone_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("resource")

    def missing(_: Path) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", missing)
    process, peak = memory._of_process()
    assert process is None
    assert peak is not None
    assert peak > 1 << 20
