"""A run of MPI's launcher: what ranks write, shown with their number; its end, for whatever reason, and the reason."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from ..distributed.launched import SOCKET

# How long the others may take to say something after one has failed, and what ends them to take effect.
GRACE = 3.0


_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Stream:
    """One rank's stdout or stderr, passed on line by line."""

    def __init__(self, width: int) -> None:
        self.width, self.left, self.prefix, self.out = width, b"", b"", 1

    def take(self, data: bytes) -> None:
        """Show what is whole of what has come; the first line says who writes."""
        if not self.prefix:
            head, end, data = (self.left + data).partition(b"\n")
            if not end:
                self.left = head
                return
            rank, out = head.split()
            self.left, self.out, self.prefix = b"", int(out), f"[{int(rank):>{self.width}}] ".encode()
        if not self.width:
            _write(self.out, data)
            return
        *lines, self.left = (self.left + data).split(b"\n")
        self._show(lines)

    def end(self) -> None:
        """Show the last line, which nobody has ended."""
        if self.left and self.prefix:
            self._show([self.left])
        self.left = b""

    def _show(self, lines: list[bytes]) -> None:
        # Of a line that was written over, what a terminal would show at its end.
        shown = (line.rstrip(b"\r").rpartition(b"\r")[2] for line in lines)
        _write(self.out, b"".join(self.prefix + line + b"\n" for line in shown))


def _write(out: int, data: bytes) -> None:
    while data:
        data = data[os.write(out, data) :]


class Launch:
    """MPI's launcher with these words, until it has ended.

    `width` is that of the ranks before each line, 0 for none. If it is to be quiet, the launcher's own words are shown
    only where they are the only reason that there is.
    """

    def __init__(self, words: list[str], variables: dict[str, str], folder: Path, width: int, quiet: bool) -> None:
        self.words, self.variables, self.folder, self.width, self.quiet = words, variables, folder, width, quiet
        self.ears = selectors.DefaultSelector()
        self.own = bytearray()
        self.told: list[int] = []  # the signals that this process has got
        self.deadline: float | None = None  # when its processes are ended, once something has gone wrong
        self.killed = False  # whether the first rank that failed was ended from outside, as where memory runs out
        self.asked = 0  # how often they were asked to end

    def run(self) -> int:
        """Start it and wait for its end; gives the exit code of the first rank that failed."""
        self._listen()
        sys.stdout.flush()
        sys.stderr.flush()
        # An exception out of the midst of anything would leave it half done, such as the look after the process.
        # What is ignored, as `nohup` has it, stays so.
        heard = [n for n in _SIGNALS if signal.getsignal(n) is not signal.SIG_IGN]
        before = {n: signal.signal(n, lambda number, _: self.told.append(number)) for n in heard}
        process = None
        try:
            # In a session of its own: a terminal's Ctrl-C comes to this process alone, which passes it on.
            process = subprocess.Popen(
                self.words,
                env=self.variables,
                stdin=subprocess.DEVNULL if sys.stdin is None or sys.stdin.isatty() else None,
                stdout=subprocess.PIPE if self.quiet else None,
                stderr=subprocess.STDOUT if self.quiet else None,
                start_new_session=True,
            )
            if process.stdout is not None:
                self._hear(process.stdout, self.own.extend, lambda: None)
            self._until_end(process)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            if process is not None:
                _end(process)
            for key in list(self.ears.get_map().values()):
                key.fileobj.close()  # type: ignore[union-attr]
            self.ears.close()
        if self.told and self.told[0] == signal.SIGINT:
            raise KeyboardInterrupt
        return 128 + self.told[0] if self.told else self._explained(process.returncode)

    def _listen(self) -> None:
        """Let ranks of this machine write to a socket: what goes by way of MPI's launcher is lost where that ends."""
        if hasattr(socket, "AF_UNIX"):
            listener = socket.socket(socket.AF_UNIX)
            try:
                listener.bind(str(self.folder / SOCKET))
                listener.listen(1024)
            except OSError:  # the name of the folder is too long
                listener.close()
            else:
                self.ears.register(listener, selectors.EVENT_READ, lambda: self._accept(listener))
                return
        self.quiet = False

    def _accept(self, listener: socket.socket) -> None:
        stream = Stream(self.width)
        self._hear(listener.accept()[0], stream.take, stream.end)

    def _hear(self, source: socket.socket | IO[bytes], take: Callable[[bytes], None], end: Callable[[], None]) -> None:
        def read() -> None:
            data = b""
            with suppress(ConnectionError):
                data = os.read(source.fileno(), 1 << 16)
            if data:
                take(data)
                return
            self.ears.unregister(source)
            source.close()
            end()

        self.ears.register(source, selectors.EVENT_READ, read)

    def _until_end(self, process: subprocess.Popen[bytes]) -> None:
        """Show what comes until the launcher has ended and nothing comes any more."""
        passed = 0
        while True:
            ended = process.poll() is not None
            ready = self.ears.select(0.05 if ended else 0.1)
            for key, _ in ready:
                key.data()
            if ended and not ready:
                return
            if len(self.told) > passed:
                passed = len(self.told)
                self._ask(process, self.told[-1])
            self._end_when_failed(process, ended)
            if ended and self.deadline is not None and time.monotonic() > self.deadline:
                return  # programs that ranks have started write on

    def _end_when_failed(self, process: subprocess.Popen[bytes], ended: bool) -> None:
        """A while after a rank has failed, or this was interrupted, end those that have not ended by themselves."""
        now = time.monotonic()
        if self.deadline is None:
            if ended or next(self.folder.glob("failed.*"), None) is not None:
                self.deadline = now + GRACE
        elif now > self.deadline and not ended:
            self._ask(process, signal.SIGTERM)

    def _ask(self, process: subprocess.Popen[bytes], number: int) -> None:
        """Let MPI's launcher end its processes, with more force each time."""
        self.asked += 1
        self.deadline = time.monotonic() + GRACE
        if self.asked > 1:
            number = signal.SIGTERM if self.asked == 2 else signal.SIGKILL
        process.send_signal(number)

    def _explained(self, code: int) -> int:
        """Say which rank has ended the others, or what MPI's launcher has said; gives the exit code."""
        notes = [json.loads(path.read_text()) for path in self.folder.glob("failed.*")]
        if notes:
            first = min(notes, key=lambda note: (note["heard"], note["when"]))
            self.killed = "SIGKILL" in first["said"]
            print(f"votive launch: rank {first['rank']} {first['said']}; all ranks were ended.", file=sys.stderr)
            return int(first["code"])
        _write(2, bytes(self.own))
        if code == 0:
            return 0
        print(f"votive launch: MPI's launcher ended with code {code}.", file=sys.stderr)
        return code if 0 < code < 256 else 1


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            process.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
