"""The same programs on processes that MPI connects, however they were started."""

from __future__ import annotations

import re
import subprocess
import sys
import threading

import pytest

from tests.distributed.processes import by_environment, mpiexec, needs_mpi
from tests.distributed.programs import PROGRAMS
from votive.distributed.transports import liveness

pytestmark = needs_mpi
GONE = r" at faults.py:\d+: rank 1 \(process \d+\) has ended unexpectedly\."


@pytest.mark.parametrize("ranks", [2, 3])
def test_processes_of_mpiexec_agree(ranks: int) -> None:
    done = mpiexec(ranks, "-m", "tests.distributed.programs")
    assert done.returncode == 0, done.stdout + done.stderr
    for r in range(ranks):
        assert f"PASSED {r} {len(PROGRAMS)}" in done.stdout


def test_processes_that_only_have_an_environment_agree() -> None:
    for rank, (code, text) in enumerate(by_environment(2, "-m", "tests.distributed.programs")):
        assert code == 0, text
        assert f"PASSED {rank} {len(PROGRAMS)}" in text


@pytest.mark.parity
def test_processes_of_torchrun_agree() -> None:
    # What its agent does, without the seconds that its start takes.
    agent = pytest.importorskip("torch.distributed").TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    said = {"MASTER_PORT": str(agent.port), "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RUN_ID": "1"}
    for rank, (code, text) in enumerate(by_environment(2, "-m", "tests.distributed.programs", **said)):
        assert code == 0, text
        assert f"PASSED {rank} {len(PROGRAMS)}" in text


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("tell", r"all_reduce float32 \(50000,\) SUM" + GONE),
        ("all_reduce", r"rank 0 waits in all_reduce .*" + GONE),
        ("split", r"rank 0 waits in new_group \[0, 1\]" + GONE),
        ("send", r"recv from rank 1 of rank 0, .*" + GONE),
        ("by_leaving", r"SUM at faults.py:\d+: rank 1 has left the group, its last call was barrier at faults.py"),
        ("with_an_error", r"SUM at faults.py:\d+: rank 1 has failed with KeyError: 'of rank 1', its last call"),
        ("never_there", r"init_process_group: Timed out after 2.0 seconds; of 2 ranks these are not there: 1\."),
    ],
)
def test_a_process_that_has_ended_is_named_by_the_others_at_once(fault: str, said: str) -> None:
    # Long before the group's timeout, which is longer than what the programs are given here.
    results = by_environment(2, "-m", "tests.distributed.faults", fault)
    assert results[0][0] != 0
    assert re.search(said, results[0][1]), results[0][1]


def test_a_process_that_is_gone_is_told_from_one_that_runs() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    place, own = liveness.identity()
    watch = liveness.Watch([(place, own), (place, own), (place, gone.pid), ("elsewhere", gone.pid)], 0)
    assert watch.failure(0.0) == f"rank 2 (process {gone.pid}) has ended unexpectedly"
    assert liveness.Watch([(place, own), (place, own), ("elsewhere", gone.pid)], 0).failure(0.0) is None


def test_what_mpi_does_not_come_back_from_ends_with_its_name_after_the_timeout() -> None:
    said, ended = list[str](), threading.Event()
    watch = liveness.Watch([liveness.identity()], 0, lambda text: (said.append(text), ended.set())[-1])
    watch.enter("all_reduce at x.py:1", 1e9)
    watch.leave()
    watch.enter("barrier at x.py:2", 0.0)
    assert ended.wait(60)
    watch.leave()
    assert said == ["rank 0 waits in barrier at x.py:2: not done after 0 seconds, the group's timeout. "
                    "This process ends, too."]  # fmt: skip
