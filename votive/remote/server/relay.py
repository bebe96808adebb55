"""Carries bytes between a line with TLS and the process behind, which gets them in the clear. Knows no messages."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl

PIECE = 256 << 10


def relay(outside: ssl.SSLSocket, inside: socket.socket) -> None:
    """Until either side closes. One thread serves both directions: a TLS line must not be used by two at once."""
    outside.setblocking(False)
    inside.setblocking(False)
    outward, inward = bytearray(), bytearray()  # what still has to be written
    awaits_writing = False  # TLS may have to write before it can read
    while True:
        reads: list[socket.socket] = []
        if len(inward) < PIECE:
            reads.append(outside)
        if len(outward) < PIECE:
            reads.append(inside)
        writes: list[socket.socket] = []
        if outward or awaits_writing:
            writes.append(outside)
        if inward:
            writes.append(inside)
        # What TLS has decrypted already does not show as readable.
        waiting = outside in reads and outside.pending() > 0
        readable, writable, _ = select.select(reads, writes, [], 0 if waiting else None)
        if waiting and outside not in readable:
            readable.append(outside)
        awaits_writing = False
        try:
            if outside in readable or (outside in writable and outside in reads and not outward):
                try:
                    got = outside.recv(PIECE)
                    if not got:
                        return
                    inward += got
                except ssl.SSLWantReadError:
                    pass
                except ssl.SSLWantWriteError:
                    awaits_writing = True
            if inside in readable:
                got = inside.recv(PIECE)
                if not got:
                    _rest(outside, outward)
                    return
                outward += got
            if outward:
                with contextlib.suppress(ssl.SSLWantWriteError, ssl.SSLWantReadError):
                    del outward[: outside.send(outward)]
            if inward:
                with contextlib.suppress(BlockingIOError):
                    del inward[: inside.send(inward)]
        except OSError:
            return


def _rest(outside: ssl.SSLSocket, data: bytearray) -> None:
    """The last answer of a session that has ended."""
    outside.settimeout(10)
    if data:
        outside.sendall(data)
