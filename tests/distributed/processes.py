"""Programs on real processes, by mpiexec or by the environment that torchrun sets; none can hang the tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from votive.distributed import is_mpi_available
from votive.distributed.transports import mpi

ROOT = Path(__file__).parents[2]
LIMIT = 120
needs_mpi = pytest.mark.skipif(not is_mpi_available(), reason="needs mpi4py and an MPI: pip install mpi4py mpich")


def environment() -> dict[str, str]:
    """That of a process that no launcher started, one thread each."""
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("PMI", "OMPI_", "SLURM_", "MASTER_", "TORCHELASTIC"))
    }
    found = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VOTIVE_NUM_THREADS"), "1")
    # Open MPI asks for these where tests run as root on few cores.
    allowed = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }
    return {**kept, **one, **allowed, "PATH": found, "PYTHONPATH": str(ROOT)}


def mpiexec(ranks: int, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program on ranks that MPI's own launcher starts."""
    program = shutil.which("mpiexec", path=environment()["PATH"])
    if program is None:
        pytest.skip("there is no mpiexec")
    return subprocess.run(
        [program, "-n", str(ranks), sys.executable, *command],
        env=environment(), cwd=ROOT, timeout=LIMIT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def by_environment(ranks: int, *command: str, **more: str) -> list[tuple[int, str]]:
    """Run a Python program on processes that know of one another by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT."""
    if mpi.load().get_vendor()[0] == "Open MPI":
        pytest.skip("Open MPI connects only what its own launcher has started")
    said = {
        **environment(),
        "WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        **more,
    }
    started = [
        subprocess.Popen(
            [sys.executable, *command],
            env={**said, "RANK": str(r), "LOCAL_RANK": str(r)},
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for r in range(ranks)
    ]  # fmt: skip
    end, results = time.monotonic() + LIMIT, []
    try:
        for one in started:
            text, _ = one.communicate(timeout=max(0.1, end - time.monotonic()))
            results.append((one.returncode, text))
    finally:
        for one in started:
            one.kill()
            if one.stdout is not None:
                one.stdout.close()
            one.wait()
    return results
