"""The same programs on processes that MPI connects, however they were started."""

from __future__ import annotations

import pytest

from tests.distributed.processes import by_environment, mpiexec, needs_mpi
from tests.distributed.programs import PROGRAMS

pytestmark = needs_mpi


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
        ("before_a_call", "rank 1 (process"),
        ("within_a_call", "rank 1 (process"),
        ("while_a_message_is_awaited", "rank 1 (process"),
        ("by_leaving", "rank 1 has left the group, its last call was barrier"),
    ],
)
def test_a_process_that_has_ended_is_named_by_the_others_at_once(fault: str, said: str) -> None:
    # Long before the group's timeout, which is longer than what the programs are given here.
    results = by_environment(2, "-m", "tests.distributed.faults", fault)
    assert results[0][0] != 0
    assert said in results[0][1]
    assert "faults.py:" in results[0][1]
