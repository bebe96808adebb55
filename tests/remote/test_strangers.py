"""What strangers may send to the front of a server, and what clients cannot do to each other's sessions."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

import votive
from votive.backends.remote import connections, wire
from votive.remote.server.front import DeviceServer, Settings

TOKEN = "a token that is long enough"


@pytest.fixture(scope="module")
def server() -> Iterator[DeviceServer]:
    with DeviceServer(Settings(port=0, token=TOKEN, clients=2, threads=1)) as made:
        yield made


def hello(server: DeviceServer, answer: bytes) -> bytes:
    """What the front says to a first frame."""
    with socket.create_connection(("127.0.0.1", server.port), 60) as line:
        line.settimeout(60)
        greeting = line.recv(wire.GREETING.size, socket.MSG_WAITALL)
        assert greeting.startswith(wire.MAGIC)
        line.sendall(answer)
        found = b""
        try:
            while part := line.recv(1 << 16):
                found += part
        except ConnectionResetError:
            pass
    return found


def framed(value: Any) -> bytes:
    body = wire.packed(value)
    return wire.FRAME.pack(len(body)) + body


BAD_HELLOS = {
    "huge": wire.FRAME.pack(2**32 - 1),
    "empty": wire.FRAME.pack(0),
    "list": framed([]),
    "number": framed(3),
    "not json": wire.FRAME.pack(4) + b"}{}{",
    "http": b"GET / HTTP/1.1\r\n\r\n",
    "no proof": framed({"version": wire.VERSION}),
    "no text": framed({"version": wire.VERSION, "proof": 5}),
    "wrong proof": framed({"version": wire.VERSION, "proof": "0" * 64}),
    "not ascii": framed({"version": wire.VERSION, "proof": "é" * 64}),
    "replayed proof": framed({"version": wire.VERSION, "proof": wire.proof(TOKEN, bytes(32)).hex()}),
    "version": framed({"version": 99, "proof": ""}),
    "version of text": framed({"version": "1", "proof": ""}),
}


@pytest.mark.parametrize("name", BAD_HELLOS)
def test_a_stranger_gets_no_session(name: str, server: DeviceServer) -> None:
    found = hello(server, BAD_HELLOS[name])
    assert not found or found[4] == wire.ERROR
    assert not server._workers


def test_a_session_that_was_ended_leaves_the_server_to_others(server: DeviceServer) -> None:
    first = votive.remote.connect(server.url, TOKEN, new=True)
    second = votive.remote.connect(server.url, TOKEN, new=True)
    kept = votive.ones(2, device=second)
    line = connections.of(first)._socket
    assert line is not None
    line.sendall(wire.FRAME.pack(7) + b"\xff" * 7)
    with pytest.raises(RuntimeError, match="the server ended the session: a message is longer than its frame"):
        votive.remote.synchronize(first)
    assert kept.tolist() == [1, 1]
    votive.remote.disconnect(second)
    connections.of(first).close()


def test_another_session_cannot_be_guessed(server: DeviceServer) -> None:
    place = votive.remote.connect(server.url, TOKEN, new=True)
    name = connections.of(place).session
    assert name is not None
    assert len(bytes.fromhex(name)) == 16
    stranger = votive.remote.connect(server.url, TOKEN, new=True)
    other = connections.of(stranger)
    assert other.session != name
    with pytest.raises(RuntimeError, match="was lost"):  # numbers are those of one's own session
        other.ask(wire.READ, wire.PART.pack(1 << 20, 0, other.spec_number(votive.ones(2, device=place)._spec)))
    votive.remote.disconnect(place)
    votive.remote.disconnect(stranger)
