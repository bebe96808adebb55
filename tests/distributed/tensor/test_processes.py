"""The same on processes that MPI connects."""

from __future__ import annotations

from tests.distributed.processes import mpiexec, needs_mpi

pytestmark = needs_mpi


def test_processes_compute_with_distributed_tensors_as_threads_do() -> None:
    ranks = 4
    done = mpiexec(ranks, "-m", "tests.distributed.tensor.programs")
    assert done.returncode == 0, done.stdout + done.stderr
    for r in range(ranks):
        assert f"PASSED {r}" in done.stdout
