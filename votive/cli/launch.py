"""`votive launch`: a script on several processes, by MPI's own launcher."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from . import Commands, UsageError, command

_MISSING = (
    "votive launch needs MPI: pip install 'votive[distributed]', which brings mpi4py and MPICH, or load the MPI of "
    "your cluster and pip install mpi4py."
)
# Set where a scheduler may let MPI's launcher start processes on other machines, even if no hostfile is given.
_SCHEDULERS = ("SLURM_JOB_ID", "PBS_NODEFILE", "LSB_HOSTS", "LSB_MCPU_HOSTS", "PE_HOSTFILE", "COBALT_NODEFILE")


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "launch",
        description="Run a script on several processes, which votive.distributed connects by MPI. What they write "
        "comes with the rank before each line; if one of them fails, all end, and it is said which and why.",
        examples="  votive launch -n 4 train.py --lr 0.1\n  votive launch --hostfile hosts -n 16 train.py\n"
        "  votive launch -n 2 -m package.train\n  votive launch -n 2:8 --max-restarts 3 train.py",
    )
    p.add_argument(
        "-n", "--nproc", metavar="COUNT", help="how many processes, or MIN:MAX of them; all slots of the hostfile"
    )
    p.add_argument(
        "--max-restarts", type=int, default=0, metavar="COUNT",
        help="how often all ranks are started again when one has failed; with MIN:MAX, with fewer where a rank was "
        "killed or a machine does not answer",
    )  # fmt: skip
    p.add_argument("--hostfile", metavar="FILE", help="machines, one per line: `name`, `name:4` or `name slots=4`")
    p.add_argument("-m", "--module", action="store_true", help="what follows is a module instead of a file")
    p.add_argument("--no-prefix", action="store_true", help="print what ranks write unchanged")
    p.add_argument(
        "--threads", type=int, metavar="COUNT", help="threads per process (default: the cores shared out evenly)"
    )
    p.add_argument("--mpiexec", metavar="PROGRAM", help="MPI's launcher, if not the one on PATH")
    p.add_argument("script", help="the script or module")
    p.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments for the script")


def run(args: argparse.Namespace) -> int:
    """Start it, show what it prints, and say which rank has failed."""
    hosts = _hosts(args.hostfile) if args.hostfile else []
    if args.threads is not None and args.threads < 1:
        raise UsageError(f"launch: --threads takes a number of at least 1; you gave {args.threads}.")
    if args.max_restarts < 0:
        raise UsageError(f"launch: --max-restarts takes a number of at least 0; you gave {args.max_restarts}.")
    fewest, count = _counts(args.nproc, hosts)
    if not args.module and not Path(args.script).is_file():
        raise UsageError(f"launch: there is no file {args.script!r}.")
    program = launcher(args.mpiexec)
    for restart in range(args.max_restarts + 1):
        code, killed, interrupted = _once(args, program, hosts, count, restart)
        if code == 0 or interrupted or restart == args.max_restarts:
            return code
        hosts = [host for host in hosts if _answers(host[0])] if fewest < count else hosts
        room = sum(slots for _, slots in hosts) if hosts else count
        if fewest < count:
            count = max(fewest, min(room, count - killed))
        if args.hostfile and room < count:
            print(f"votive launch: {room} slots are left, and {count} are needed.", file=sys.stderr)
            return code
        again = f"restart {restart + 1} of {args.max_restarts}"
        print(f"votive launch: starting again with {count} ranks ({again}).", file=sys.stderr)
    raise AssertionError("the last start has returned")


def _counts(given: str | None, hosts: list[tuple[str, int]]) -> tuple[int, int]:
    """The fewest processes to go on with, and how many to start."""
    if given is None:
        count = sum(slots for _, slots in hosts)
        if not count:
            raise UsageError("launch needs -n COUNT, how many processes to start.")
        return count, count
    found = re.fullmatch(r"(?:(\d+):)?(\d+)", given)
    if found is None:
        raise UsageError(f"launch: -n takes a number, or two of them as 2:8; you gave {given!r}.")
    count = int(found[2])
    fewest = count if found[1] is None else int(found[1])
    if not 1 <= fewest <= count:
        raise UsageError(f"launch: -n takes a number of at least 1, or MIN:MAX; you gave {given!r}.")
    return fewest, count


def _answers(host: str) -> bool:
    """Whether a machine can be reached; this one can."""
    if host in ("localhost", "127.0.0.1", socket.gethostname()):
        return True
    words = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", host, "true"]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        return subprocess.run(words, capture_output=True, check=False, timeout=30).returncode == 0
    return False


def _once(
    args: argparse.Namespace, program: str, hosts: list[tuple[str, int]], count: int, restart: int
) -> tuple[int, bool, bool]:
    """Start all ranks: the exit code, whether one was killed, and whether this command was told to end."""
    is_open_mpi = _is_open_mpi(program)
    # What ranks of other machines write comes by way of MPI's launcher.
    elsewhere = bool(hosts) or any(name in os.environ for name in _SCHEDULERS)
    from ..distributed import launched
    from .launching import Launch

    with tempfile.TemporaryDirectory(prefix="votive-launch-") as folder:
        variables = _variables(count, hosts, args.threads, folder)
        variables["TORCHELASTIC_RESTART_COUNT"] = str(restart)
        variables["TORCHELASTIC_MAX_RESTARTS"] = str(args.max_restarts)
        options = [*_placed(is_open_mpi, hosts, count, Path(folder))]
        if is_open_mpi and hosts:
            options += [word for name in sorted(_passed(variables)) for word in ("-x", name)]
        if elsewhere and not args.no_prefix:
            options.append("--tag-output" if is_open_mpi else "-prepend-rank")
        target = [*(["-m"] if args.module else []), args.script, *args.arguments]
        words = [program, "-n", str(count), *options, sys.executable, launched.__file__, *target]
        width = 0 if args.no_prefix else len(str(count - 1))
        one = Launch(words, variables, Path(folder), width, quiet=not elsewhere)
        code = one.run()
        return code, one.killed, bool(one.told)


def launcher(given: str | None) -> str:
    """MPI's launcher: the one that was named, that beside this Python, or the system's."""
    if given:
        found = shutil.which(given)
        if found is None:
            raise UsageError(f"launch: there is no program {given!r}.")
        return found
    beside = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("mpiexec") or shutil.which("mpirun")
    from ..distributed import is_mpi_available

    if found is None or not is_mpi_available():
        raise RuntimeError(_MISSING)
    return found


def _hosts(file: str) -> list[tuple[str, int]]:
    """Machines and how many processes each takes."""
    try:
        lines = Path(file).read_text().splitlines()
    except OSError as e:
        raise UsageError(f"launch: cannot read the hostfile {file!r}: {e.strerror or e}.") from None
    found = []
    for line in lines:
        text = line.partition("#")[0].strip()
        match = re.fullmatch(r"([^\s:]+)(?::(\d+)|\s+slots=(\d+)(?:\s+\S+=\S+)*)?", text)
        if text and match is None:
            raise UsageError(f"launch: {file} has a line {text!r}; write `name`, `name:4` or `name slots=4`.")
        if match:
            found.append((match[1], int(match[2] or match[3] or 1)))
    if not found:
        raise UsageError(f"launch: {file} names no machine.")
    return found


def _is_open_mpi(program: str) -> bool:
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=60)
    return any(name in version.stdout for name in ("Open MPI", "OpenRTE", "PRTE"))


def _placed(is_open_mpi: bool, hosts: list[tuple[str, int]], count: int, folder: Path) -> list[str]:
    """The options that say where processes run, in the words of this launcher."""
    if not hosts:
        # Open MPI refuses more processes than cores unless it is told to.
        return ["--oversubscribe"] if is_open_mpi and count > (os.cpu_count() or 1) else []
    file = folder / "hosts"
    lines = (f"{name} slots={slots}" if is_open_mpi else f"{name}:{slots}" for name, slots in hosts)
    file.write_text("\n".join(lines) + "\n")
    return ["--hostfile" if is_open_mpi else "-f", str(file)]


def _variables(count: int, hosts: list[tuple[str, int]], threads: int | None, folder: str) -> dict[str, str]:
    from ..distributed import launched

    here = {"MASTER_ADDR": hosts[0][0] if hosts else "127.0.0.1", launched.NOTES: folder}
    if not hosts and "MASTER_PORT" not in os.environ:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            here["MASTER_PORT"] = str(listener.getsockname()[1])
    cores = os.cpu_count() or 1
    share = threads or max(1, cores // (max(slots for _, slots in hosts) if hosts else count))
    if threads or "OMP_NUM_THREADS" not in os.environ:
        here["OMP_NUM_THREADS"] = str(share)
    if "MASTER_PORT" not in {**os.environ, **here}:
        here["MASTER_PORT"] = "29500"
    return {**os.environ, **here}


def _passed(variables: dict[str, str]) -> list[str]:
    """Which variables other machines need; MPICH passes all of them on."""
    return [
        n
        for n in variables
        if n.startswith(("MASTER_", "VOTIVE_", "OMP_", "PYTHON", "TORCHELASTIC_")) or n == "LD_LIBRARY_PATH"
    ]
