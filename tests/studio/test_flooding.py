"""Many connections, silent ones and large frames: the owner of the studio is never kept out."""

from __future__ import annotations

import json
import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from votive.studio import connection, server
from votive.studio.app import CONNECTIONS

from .client import Page, studio
from .test_security import get


def test_of_a_thousand_connections_those_beyond_the_limit_are_refused(the_studio: Any) -> None:
    sockets, refused = [], 0
    request = (
        f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{the_studio.port}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nOrigin: http://127.0.0.1:{the_studio.port}\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        f"Cookie: votive_studio_{the_studio.port}={the_studio.token}\r\n\r\n"
    ).encode()
    try:
        for _ in range(1000):
            s = socket.create_connection(("127.0.0.1", the_studio.port), 30)
            sockets.append(s)
            try:
                s.sendall(request)
            except OSError:
                continue
        accepted = 0
        for s in sockets:
            try:
                answer = s.recv(12)
            except OSError:
                answer = b""
            accepted += answer.startswith(b"HTTP/1.1 101")
            refused += not answer.startswith(b"HTTP/1.1 101")
        assert 0 < accepted <= CONNECTIONS
        assert refused == 1000 - accepted
    finally:
        for s in sockets:
            s.close()
    end = time.monotonic() + 30
    while the_studio.app.state.connections and time.monotonic() < end:
        time.sleep(0.05)
    with Page(the_studio) as page:
        assert page.ask("model.info")["name"] == "demo"


def test_a_client_that_never_asks_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE", 0.5)
    with studio(tmp_path) as one:
        silent = socket.create_connection(("127.0.0.1", one.port), 20)
        slow = socket.create_connection(("127.0.0.1", one.port), 20)
        slow.sendall(b"GET / HTTP/1.1\r\nHost: 127")
        end = time.monotonic() + 20
        dropped = False
        while time.monotonic() < end and not dropped:
            time.sleep(0.1)
            try:
                slow.sendall(b"x")
            except OSError:
                dropped = True
        assert dropped
        with suppress(ConnectionError):
            assert silent.recv(1) == b""
        silent.close()
        slow.close()
        with Page(one) as page:  # one that asked in time stays
            time.sleep(1.2)
            assert page.ask("console.log") == {"lines": []}


def test_a_page_that_reads_nothing_is_dropped(the_studio: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "BACKLOG", 20_000)
    with Page(the_studio) as page:
        page.ask("session.new", prompt="Once upon a time " * 20)

        def ask_much_and_read_late() -> None:
            for _ in range(40):
                page.send("session.state")  # the server may be done with it before the last one
            while True:
                page.take(20)

        with pytest.raises(ConnectionClosed):
            ask_much_and_read_late()
    with Page(the_studio) as page:
        assert page.ask("console.log") == {"lines": []}


def test_a_large_header_is_refused(the_studio: Any) -> None:
    with socket.create_connection(("127.0.0.1", the_studio.port), 20) as s:
        with suppress(ConnectionError):
            s.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * 200_000)
            assert s.recv(12) in (b"HTTP/1.1 400", b"")


def upgrade(one: Any, cookie: str = "") -> bytes:
    return (
        f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{one.port}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nOrigin: http://127.0.0.1:{one.port}\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        f"{cookie}\r\n"
    ).encode()


def test_strangers_take_no_place_from_the_owner(tmp_path: Path) -> None:
    from votive.studio.app import STRANGERS

    with studio(tmp_path) as one, ExitStack() as open_:
        silent = []
        for _ in range(CONNECTIONS + 10):
            s = open_.enter_context(socket.create_connection(("127.0.0.1", one.port), 20))
            s.sendall(upgrade(one))
            silent.append(s)
        assert silent[-1].recv(12) == b"HTTP/1.1 101"
        assert len(one.app.state.strangers) <= STRANGERS
        with Page(one) as page:  # by its cookie
            assert page.ask("model.info")["name"] == "demo"
        url, origin = f"ws://127.0.0.1:{one.port}/ws", f"http://127.0.0.1:{one.port}"
        with connect(url, origin=origin, proxy=None) as ws:  # by its token
            ws.send(json.dumps({"token": one.token}))
            assert b'"event":"hello"' in ws.recv(10)


def test_a_stranger_that_says_nothing_is_ended_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("votive.studio.app.FIRST", 0.3)
    with studio(tmp_path) as one:
        url, origin = f"ws://127.0.0.1:{one.port}/ws", f"http://127.0.0.1:{one.port}"
        with connect(url, origin=origin, proxy=None) as ws, pytest.raises(ConnectionClosed) as end:
            ws.recv(10)
        assert end.value.rcvd is not None
        assert end.value.rcvd.code == 4401
        assert one.app.state.strangers == {}


def test_connections_that_ask_for_nothing_do_not_keep_the_owner_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "OPEN", 20)
    with studio(tmp_path) as one, ExitStack() as open_:
        for _ in range(60):
            open_.enter_context(socket.create_connection(("127.0.0.1", one.port), 20))
        assert get(one, f"/?token={one.token}").status == 200
        with Page(one) as page:
            assert page.ask("model.info")["name"] == "demo"
