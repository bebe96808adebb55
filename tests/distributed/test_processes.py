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
