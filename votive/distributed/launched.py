"""What `votive launch` starts as each rank: a script with the variables that torchrun sets, and a word if it fails.

It runs as a file, which loads no other: `python launched.py script.py arguments`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib.util
import json
import os
import runpy
import signal
import socket
import sys
import threading
import time
import traceback
from pathlib import Path
from types import TracebackType

# Where MPICH's and Open MPI's launchers say who a process is, and what torchrun calls it.
_NAMES = (
    ("RANK", ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")),
    ("WORLD_SIZE", ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")),
    ("LOCAL_RANK", ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK")),
    ("LOCAL_WORLD_SIZE", ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_SIZE")),
)
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# The folder in which ranks leave word for the launcher, its socket there, and whether another process attends to this.
NOTES, SOCKET, ATTENDED = "VOTIVE_LAUNCH_NOTES", "output", "VOTIVE_LAUNCH_ATTENDED"


def set_variables() -> None:
    """Set what programs written for torchrun read.

    >>> votive.distributed.launched.set_variables()
    """
    for name, places in _NAMES:
        found = next((os.environ[place] for place in places if place in os.environ), None)
        if found is not None:
            os.environ[name] = found


def note_failure(said: str, code: int, heard: bool = False) -> None:
    """Leave word of why this rank ends, or that it has heard of another; for a launcher on this machine.

    >>> votive.distributed.launched.note_failure("failed", 1)
    """
    place, rank = os.environ.get(NOTES), os.environ.get("RANK", "?")
    if place and Path(place).is_dir():
        text = json.dumps({"when": time.time(), "rank": rank, "said": said, "code": code, "heard": heard})
        made = Path(place, f"new.{rank}.{os.getpid()}")
        with contextlib.suppress(OSError):
            made.write_text(text)
            try:
                os.link(made, Path(place, f"failed.{rank}"))
            finally:
                made.unlink()


def _connected(stream: int) -> socket.socket | None:
    """A line to the launcher, to write by; none where it is on another machine."""
    place = os.environ.get(NOTES)
    if not place or not hasattr(socket, "AF_UNIX"):
        return None
    line = socket.socket(socket.AF_UNIX)
    try:
        line.connect(str(Path(place, SOCKET)))
    except OSError:
        line.close()
        return None
    line.sendall(f"{os.environ.get('RANK', '0')} {stream}\n".encode())
    return line


def _write_to_launcher() -> None:
    for stream in (1, 2):
        line = _connected(stream)
        if line is not None:
            os.dup2(line.fileno(), stream)
            line.close()
    # Whole lines, at once: nobody sees what ranks have not sent.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def _end_with(parent: int) -> None:
    """Let the system end this process with its parent, whatever ends that."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)


def _end_without_launcher(line: socket.socket, child: int) -> None:
    with contextlib.suppress(OSError):
        line.recv(1)  # returns when the launcher has ended
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def _attended() -> int | None:
    """Go on as a child, which gives None; its parent waits, says which signal ended it, and gives its exit code."""
    parent = os.getpid()
    _end_with(os.getppid())
    child = os.fork()
    if child == 0:
        if sys.platform == "linux":  # signals come by way of the parent only, or they would come twice
            os.setpgid(0, 0)
        _end_with(parent)
        os.environ[ATTENDED] = str(parent)
        _write_to_launcher()
        return None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda n, _: _pass_on(n, child))
    line = _connected(0)
    if line is not None:
        threading.Thread(target=_end_without_launcher, args=(line, child), daemon=True).start()
    # The line to MPI's launcher stays open here, too: it would end all others at once if it were cut.
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code > 0:
        note_failure(f"ended with exit code {code}", code)
    if code >= 0:
        return code
    said = f"was ended by signal {-code} ({signal.Signals(-code).name})"
    note_failure(said, 128 - code)
    if line is None:
        sys.stderr.write(f"[rank {os.environ.get('RANK', '?')}] {said}\n")
        sys.stderr.flush()
    return 128 - code


def _pass_on(number: int, child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)


def _own(trace: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that is the script's."""
    while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        trace = trace.tb_next
    return trace


def _say_failure(error: BaseException, code: int) -> None:
    trace = traceback.TracebackException(type(error), error, _own(error.__traceback__))
    own = [f for f in trace.stack if not f.filename.startswith(_PACKAGE)]
    said = "".join(traceback.format_exception_only(type(error), error)).strip().partition("\n")[0]
    of_all = any(kind.__name__ == "DistError" for kind in type(error).__mro__)
    if of_all:  # what votive does inside explains nothing
        trace.stack = traceback.StackSummary.from_list(own)
    where = "".join(f" at {os.path.basename(f.filename)}:{f.lineno}" for f in own[-1:])
    sys.stdout.flush()
    if isinstance(error, KeyboardInterrupt):
        sys.stderr.write(f"stopped{where}\n")
    elif isinstance(error, SystemExit):
        said = f"exit code {code}" if isinstance(error.code, int) else str(error.code)
        sys.stderr.write("" if isinstance(error.code, int) else f"{error.code}\n")
    else:
        sys.stderr.write("".join(trace.format()))
    sys.stderr.flush()
    note_failure(f"failed{where} with {said.rstrip('.:')}", code, of_all)


def main(words: list[str]) -> int:
    """Run a script, or a module after -m."""
    set_variables()
    if hasattr(os, "fork"):
        code = _attended()
        if code is not None:
            return code
    with contextlib.suppress(OSError, ValueError):
        faulthandler.enable()
    if importlib.util.find_spec("votive") is None:  # it is used from its source
        sys.path.append(os.path.dirname(os.path.dirname(_PACKAGE)))
    is_module = words[:1] == ["-m"]
    target, *arguments = words[1:] if is_module else words
    sys.argv = [target, *arguments]
    try:
        if is_module:
            sys.path[0] = os.getcwd()
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(target).resolve().parent)
            runpy.run_path(target, run_name="__main__")
    except BaseException as error:
        code = _exit_code(error)
        if code:
            _say_failure(error, code)
            _end(error)
        return code
    return 0


def _exit_code(error: BaseException) -> int:
    if isinstance(error, SystemExit):
        return 0 if error.code is None else error.code & 0xFF if isinstance(error.code, int) else 1
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def _end(error: BaseException) -> None:
    """End the other ranks, if they are connected already."""
    if "votive.distributed.world" in sys.modules:
        sys.modules["votive.distributed.world"].fail(type(error), error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
