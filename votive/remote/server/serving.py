"""A session on a line: welcomes, reads frames, runs them, until the client leaves or the line breaks."""

from __future__ import annotations

import select
import socket
import zlib
from typing import Any

from ..._version import __version__
from ...backends.base import OWN, TABLE, switched_off
from ...backends.remote import wire
from ...backends.remote.errors import error_data
from ...backends.remote.wire import ProtocolError
from ...core.device import device
from ...ops.registry import OPS
from .session import Session, tell

# Seconds for the rest of a frame that has begun, and for an answer to be taken.
FRAME_TIME = 60.0


def operators(place: device) -> dict[str, tuple[int, bool]]:
    """What this side runs: for each operator a checksum of its schema, and whether it has a kernel of its own here."""
    found = {}
    for name, op in OPS.items():
        if op.kind == "structured" and not op.own_process:
            own = any(r.label in OWN and r.label not in switched_off for r in TABLE.get((name, place.type), ()))
            # A network of the CPU is one operator also where NumPy computes it, see ops/recurrent.py.
            own = own or (place.type == "cpu" and name == "_recurrent")
            found[name] = (zlib.crc32(str(op.schema).encode()), own)
    return found


def welcome(session: Session, name: str, grace: float) -> dict[str, Any]:
    """What a client is told when it has come in."""
    return {
        "votive": __version__,
        "device": str(session.place),
        "session": name,
        "frames": session.frames,
        "grace": grace,
        "memory": session.memory.limit,
        "keeps": True,
        "contents": session.store.contents(),
        "operators": operators(session.place),
    }


def serve(session: Session, line: socket.socket, *, told: dict[str, Any], other: Any = None) -> None:
    """Run what comes on a line. Returns when it breaks, when `other` can be read (somebody comes in their place), or
    when the session has ended.
    """
    try:
        line.settimeout(FRAME_TIME)
        tell(line, wire.OK, wire.packed(told))
        head = bytearray(wire.FRAME.size)
        while not session.ended:
            if _first(line, other) is other:
                return
            if not _fill(line, head):
                return
            (length,) = wire.FRAME.unpack(head)
            if not 0 < length <= wire.FRAME_LIMIT:
                raise ProtocolError(f"a frame of {length} bytes; 1 to {wire.FRAME_LIMIT} are allowed.")
            data = bytearray(length)
            if not _fill(line, data):
                return
            session.frame(data, line)
    except ProtocolError as e:
        session.ended = True
        _last_word(line, e)
    except OSError:
        return
    except Exception as e:  # of ours; the others go on
        session.ended = True
        _last_word(line, e)
        raise


def _first(line: socket.socket, other: Any) -> Any:
    """Which of the two can be read."""
    if other is None:
        select.select([line], [], [])
        return line
    ready = select.select([line, other], [], [])[0]
    return other if other in ready else line


def _fill(line: socket.socket, data: bytearray) -> bool:
    """Read so many bytes; False when the line ends first."""
    view, at = memoryview(data), 0
    while at < len(data):
        got = line.recv_into(view[at:], min(len(data) - at, 1 << 20))
        if not got:
            return False
        at += got
    return True


def _last_word(line: socket.socket, e: Exception) -> None:
    try:
        data = error_data(e)
        tell(line, wire.ERROR, wire.packed({**data, "text": f"remote: the server ended the session: {data['text']}"}))
    except OSError:
        pass
