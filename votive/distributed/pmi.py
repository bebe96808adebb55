"""How MPICH's processes find one another without mpiexec: the words of PMI-1, answered beside the first of them.

MPI libraries ask a process manager for their rank and for one another's addresses. Where torchrun, `mp.spawn` or a
shell loop started the processes there is none, so rank 0 starts this file as a process of its own, which answers.
(A thread would not do: MPI starts while Python's lock is held.) No data passes here: MPI connects by itself.
Balaji et al. 2010, PMI: A Scalable Parallel Process-Management Interface for Extreme-Scale Systems.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable

# Set by the process managers that MPI libraries know.
MANAGED = ("PMI_RANK", "PMI_FD", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
_LONGEST = 1 << 16


def managed() -> bool:
    """Whether a process manager of MPI's started this process.

    >>> votive.distributed.pmi.managed() in (True, False)
    True
    """
    return any(name in os.environ for name in MANAGED)


def launched_size() -> int | None:
    """How many processes the process manager says there are.

    >>> votive.distributed.pmi.launched_size() is None or votive.distributed.pmi.managed()
    True
    """
    names = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
    found = next((os.environ[n] for n in names if n in os.environ), None)
    return None if found is None else int(found)


class PMIServer:
    """Answers `size` processes."""

    def __init__(self, size: int) -> None:
        self.size = size
        # MPI calls shared memory after it: two runs at a time, or what one that was killed has left, must differ.
        self.name = f"votive-{os.getpid()}-{os.urandom(6).hex()}"
        self.kept: dict[str, str] = {}
        self.changed = threading.Condition()
        self.arrived = self.round = self.open = self.here = 0
        self.listener = socket.create_server(("", 0))
        self.port: int = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, name="pmi", daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        self._count(1)
        try:
            with contextlib.suppress(OSError, KeyError), connection, connection.makefile("rb") as lines:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while line := lines.readline(_LONGEST):
                    told = dict(part.split("=", 1) for part in line.decode().split() if "=" in part)
                    command = told.get("cmd", "")
                    answer = _ANSWERS.get(command)
                    text = answer(self, told) if answer else f"cmd={command}_result rc=-1 msg=unknown_command\n"
                    connection.sendall(text.encode())
                    if command in ("finalize", "abort"):
                        return
        finally:
            self._count(-1)

    def _count(self, change: int) -> None:
        with self.changed:
            self.open += change
            self.changed.notify_all()

    def _here(self, told: dict[str, str]) -> str:
        with self.changed:
            self.here += 1
            self.changed.notify_all()
        return f"cmd=here_result id={told.get('id', '')}\n"

    def _put(self, told: dict[str, str]) -> str:
        with self.changed:
            self.kept[told["key"]] = told["value"]
        return "cmd=put_result rc=0 msg=success\n"

    def _get(self, told: dict[str, str]) -> str:
        found = self.kept.get(told["key"])
        if found is None:
            return "cmd=get_result rc=-1 msg=key_not_found\n"
        return f"cmd=get_result rc=0 msg=success value={found}\n"

    def _barrier(self, _: dict[str, str]) -> str:
        with self.changed:
            mine = self.round
            self.arrived += 1
            if self.arrived == self.size:
                self.arrived, self.round = 0, mine + 1
                self.changed.notify_all()
            while self.round == mine:
                self.changed.wait()
        return "cmd=barrier_out rc=0\n"


_Answer = Callable[[PMIServer, dict[str, str]], str]
_ANSWERS: dict[str, _Answer] = {
    "initack": lambda s, told: (
        f"cmd=initack rc=0\ncmd=set size={s.size}\ncmd=set rank={told.get('pmiid', '0')}\ncmd=set debug=0\n"
    ),
    "init": lambda s, told: "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n",
    "get_maxes": lambda s, told: "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n",
    "get_appnum": lambda s, told: "cmd=appnum rc=0 appnum=0\n",
    "get_my_kvsname": lambda s, told: f"cmd=my_kvsname rc=0 kvsname={s.name}\n",
    "get_universe_size": lambda s, told: f"cmd=universe_size rc=0 size={s.size}\n",
    "put": PMIServer._put,
    "get": PMIServer._get,
    "barrier_in": PMIServer._barrier,
    "here": PMIServer._here,
    "abort": lambda s, told: f"cmd=abort_result rc={told.get('exitcode', '1')}\n",
    "finalize": lambda s, told: "cmd=finalize_ack rc=0\n",
}


class Manager:
    """Rank 0's end of the process that answers: its port, and whether all ranks know it."""

    def __init__(self, size: int) -> None:
        command = [sys.executable, "-E", "-S", os.path.abspath(__file__), str(size)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None, "asked for above"
        return self.process.stdout.readline()

    def wait_for_all(self, limit: float) -> bool:
        """Whether all others know where it is, before so many seconds are over.

        None asks this process then, which stands still as MPI starts.
        """
        waiter = threading.Thread(target=self._line, daemon=True)
        waiter.start()
        waiter.join(limit)
        return not waiter.is_alive()


def announce(address: str, limit: float) -> None:
    """Tell the process that answers that this rank knows it."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=limit) as connection:
        connection.sendall(b"cmd=here\n")
        connection.recv(_LONGEST)


def introduce(rank: int, size: int, address: str) -> None:
    """Tell the MPI library of this process where a `PMIServer` answers, before it starts."""
    os.environ.update(PMI_PORT=address, PMI_ID=str(rank), PMI_RANK=str(rank), PMI_SIZE=str(size))


def _say_when_all_are_here(server: PMIServer) -> None:
    with server.changed:
        server.changed.wait_for(lambda: server.here == server.size - 1)
    print("all", flush=True)


def main() -> None:
    """Answer until whoever started this is gone, and all that had connected."""
    server = PMIServer(int(sys.argv[1]))
    print(server.port, flush=True)
    threading.Thread(target=_say_when_all_are_here, args=(server,), daemon=True).start()
    sys.stdin.read()
    with server.changed:
        if server.here == server.size - 1:  # else MPI cannot start any more, and whoever waits for that must hear of it
            server.changed.wait_for(lambda: server.open == 0, timeout=10)


if __name__ == "__main__":
    main()
