"""Files of events: records with checksums, as TensorFlow writes them. Knows bytes, no message."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from functools import cache
from typing import IO

from . import protobuf as pb


@cache
def _table() -> tuple[int, ...]:
    """The remainders of CRC-32C (polynomial 0x1EDC6F41, bits turned round) of each byte."""
    rows = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        rows.append(n)
    return tuple(rows)


def masked_crc(raw: bytes) -> int:
    """The checksum of a record: CRC-32C, turned and shifted so that checksums of checksums do not cancel.

    >>> from votive.utils.tensorboard.records import masked_crc
    >>> hex(masked_crc(b"123456789"))
    '0xc78ab0e5'
    """
    table, crc = _table(), 0xFFFFFFFF
    for byte in raw:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


class RecordWriter:
    """Records at the end of a file: length, its checksum, the bytes, theirs."""

    def __init__(self, path: str) -> None:
        self.file: IO[bytes] = open(path, "wb")  # noqa: SIM115

    def write(self, raw: bytes) -> None:
        """Append one record."""
        head = struct.pack("<Q", len(raw))
        self.file.write(head + struct.pack("<I", masked_crc(head)) + raw + struct.pack("<I", masked_crc(raw)))

    def flush(self) -> None:
        """Hand everything to the system."""
        self.file.flush()

    def close(self) -> None:
        """End the file."""
        self.file.close()


_lock, _count = threading.Lock(), 0


def _number() -> int:
    global _count
    with _lock:
        _count += 1
        return _count - 1


class EventFile:
    """A file of events in a folder, under the name that TensorBoard looks for.

    Events are flushed after `flush_secs` seconds, after `max_queue` events, and at the end.
    """

    def __init__(self, folder: str, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "") -> None:
        os.makedirs(folder, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{_number()}"
        self.folder, self.path = folder, os.path.join(folder, name + filename_suffix)
        self.records = RecordWriter(self.path)
        self.max_queue, self.flush_secs = max_queue, flush_secs
        self._waiting, self._flushed = 0, time.monotonic()
        self._guard = threading.Lock()
        self.add(pb.data(3, "brain.Event:2"))
        self.flush()

    def add(self, content: bytes, step: int | None = None, walltime: float | None = None) -> None:
        """Append an event: a time, a step, and what happened."""
        when = time.time() if walltime is None else walltime
        with self._guard:
            self.records.write(pb.double(1, when) + pb.integer(2, int(step or 0)) + content)
            self._waiting += 1
            if self._waiting >= self.max_queue or time.monotonic() - self._flushed > self.flush_secs:
                self._flush()

    def _flush(self) -> None:
        self.records.flush()
        self._waiting, self._flushed = 0, time.monotonic()

    def flush(self) -> None:
        """Hand everything to the system."""
        with self._guard:
            self._flush()

    def close(self) -> None:
        """End the file."""
        with self._guard:
            self.records.close()
