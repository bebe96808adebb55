"""Whoever is not the studio's own page gets nothing, and nobody can make the server fall over."""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from votive.studio import demo
from votive.studio.app import Gate
from votive.studio.models import Loaded

from .client import Page, Refused, studio


class Answer(NamedTuple):
    """What a server says."""

    status: int
    headers: dict[str, str]
    text: str


def get(one: Any, path: str, **headers: str) -> Answer:
    asked = http.client.HTTPConnection("127.0.0.1", one.port, timeout=30)
    try:
        asked.request("GET", path, headers=headers)
        reply = asked.getresponse()
        named = {k.lower(): v for k, v in reply.getheaders()}
        return Answer(reply.status, named, reply.read().decode())
    finally:
        asked.close()


def attempt(one: Any, **options: Any) -> int:
    """The status that a WebSocket is refused with; 101 if it is not."""
    options = {
        "origin": f"http://127.0.0.1:{one.port}",
        "proxy": None,
        "additional_headers": {"cookie": f"votive_studio_{one.port}={one.token}"},
        **options,
    }
    try:
        with connect(f"ws://127.0.0.1:{one.port}/ws", **options):
            return 101
    except InvalidStatus as e:
        return e.response.status_code


def test_the_page_needs_the_token_and_then_a_cookie(the_studio: Any) -> None:
    for path in ("/", "/?token=", "/?token=wrong", f"/?token={the_studio.token[:-1]}", "/?token=%C3%A9"):
        assert get(the_studio, path).status == 403
    reply = get(the_studio, f"/?token={the_studio.token}")
    assert reply.status == 200
    cookie = reply.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    name = f"votive_studio_{the_studio.port}"
    assert get(the_studio, "/", cookie=f"{name}={the_studio.token}").status == 200
    assert get(the_studio, "/", cookie=f"{name}=wrong").status == 403
    assert the_studio.token not in reply.text


def test_every_answer_has_the_headers_that_keep_others_out(the_studio: Any) -> None:
    for path in (f"/?token={the_studio.token}", "/", "/nothing", "/static/../app.py"):
        headers = get(the_studio, path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "", "localhost"])
def test_a_request_for_another_host_is_refused(the_studio: Any, host: str) -> None:
    reply = get(the_studio, f"/?token={the_studio.token}", host=host)
    assert reply.status in (400, 421)
    assert "set-cookie" not in reply.headers


def test_names_of_this_machine_are_known_and_others_are_not() -> None:
    def known(gate: Gate, host: str) -> bool:
        from starlette.requests import HTTPConnection

        scope = {"type": "http", "headers": [(b"host", host.encode())]}
        return gate.knows_host(HTTPConnection(scope))

    mine, wide = Gate("t", 8000), Gate("t", 8000, "0.0.0.0")
    for host in ("127.0.0.1:8000", "localhost:8000", "LOCALHOST:8000", "[::1]:8000"):
        assert known(mine, host)
    for host in ("192.168.0.7:8000", "127.0.0.1:8001", "localhost.evil.example:8000", "a:8000"):
        assert not known(mine, host)
    assert known(wide, "192.168.0.7:8000")
    assert not known(wide, "evil.example:8000")
    assert not known(wide, "192.168.0.7:8001")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1", "file://", None]
)
def test_a_socket_from_another_origin_is_refused(the_studio: Any, origin: Any) -> None:
    assert attempt(the_studio, origin=origin) == 403
    assert attempt(the_studio) == 101


def test_a_socket_without_a_cookie_must_bring_the_token_first(the_studio: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("votive.studio.app.FIRST", 0.3)
    options: dict[str, Any] = {"origin": f"http://127.0.0.1:{the_studio.port}", "proxy": None}
    url = f"ws://127.0.0.1:{the_studio.port}/ws"
    for first in ('{"token": "wrong"}', '{"id": 1, "do": "model.info"}', "garbage", None):
        with connect(url, **options) as ws:
            if first is not None:
                ws.send(first)
            with pytest.raises(ConnectionClosed) as closed:
                ws.recv(10)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 4401
    with connect(url, **options) as ws:
        ws.send(json.dumps({"token": the_studio.token}))
        assert b'"event":"hello"' in ws.recv(10)


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/../../etc/passwd",
        "/static//etc/passwd",
        "/static/%00",
        "/static/js/../../server.py",
        "/etc/passwd",
        "/static/..\\app.py",
        "/static/",
        "/static",
        "/app.py",
        "/__init__.py",
        "/%2e%2e%2f",
        "/static/js",
        "/static/index.html%00.js",
    ],
)
def test_no_path_leads_out_of_the_table_of_files(the_studio: Any, path: str) -> None:
    raw = (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{the_studio.port}\r\nConnection: close\r\n"
        f"Cookie: votive_studio_{the_studio.port}={the_studio.token}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", the_studio.port), 20) as s:
        s.sendall(raw.encode())
        answer = b""
        while part := s.recv(65536):
            answer += part
    assert answer.split()[1] in (b"404", b"400", b"307")
    assert b"root:" not in answer
    assert b"import" not in answer


@pytest.mark.parametrize(
    "name", ["../x", "..", ".hidden", "a/b", "/etc/passwd", "a\\b", "x\x00y", "é", "a" * 81, "", "x y", "x\n"]
)
def test_no_name_of_a_session_leads_out_of_the_folder(page: Page, name: str) -> None:
    page.ask("session.new", prompt="Once")
    for ask in ("session.save", "session.open"):
        with pytest.raises(Refused, match=r"BadArgument|ValueError"):
            page.ask(ask, name=name)


def test_a_link_in_the_folder_leads_nowhere(tmp_path: Path) -> None:
    folder, secret = tmp_path / "sessions", tmp_path / "secret.session"
    folder.mkdir()
    secret.write_bytes(b"mine")
    (folder / "link.session").symlink_to(secret)
    with studio(folder) as one, Page(one) as page:
        page.ask("session.new", prompt="Once")
        for ask in ("session.open", "session.save"):
            with pytest.raises(Refused, match="leads out"):
                page.ask(ask, name="link")
        assert page.ask("session.files")["files"] == []
    assert secret.read_bytes() == b"mine"


def test_a_hostile_session_file_is_an_error(the_studio: Any, page: Page) -> None:
    page.ask("session.new", prompt="Once")
    for i, content in enumerate([b"", b"\x80\x04cos\nsystem\n(S'true'\ntR.", b"{}", os.urandom(500)]):
        (the_studio.folder / f"bad{i}.session").write_bytes(content)
        with pytest.raises(Refused):
            page.ask("session.open", name=f"bad{i}")
    assert page.ask("session.state")["text"] == "Once"


BAD = [
    "",
    "{",
    "[]",
    "null",
    '"text"',
    "[" * 50_000,
    '{"id": 1}',
    '{"id": 1, "do": "no.such"}',
    '{"id": 1, "do": "session.step", "args": {"n": -1}}',
    '{"id": 1, "do": "session.step", "args": {"n": 1e308}}',
    '{"id": 1, "do": "session.step", "args": {"n": ' + "9" * 400 + "}}",
    '{"id": 1, "do": "session.step", "args": {"n": {"$gt": 0}}}',
    '{"id": 1, "do": "session.step", "args": {"__class__": 1}}',
    '{"id": 1, "do": "session.jump", "args": {"node": 99999}}',
    '{"id": 1, "do": "session.jump", "args": {"node": "__dict__"}}',
    '{"id": 1, "do": "lens.grid", "args": {"node": 0, "top_k": 1000000}}',
    '{"id": 1, "do": "attention.layer", "args": {"layer": 2147483647}}',
    '{"id": 1, "do": "value.window", "args": {"address": "' + "*" * 499 + '"}}',
    '{"id": 1, "do": "value.window", "args": {"address": "{{{{"}}',
    '{"id": 1, "do": "value.window", "args": {"address": "a:b:c/d#e"}}',
    '{"id": 1, "do": "session.settings", "args": {"temperature": -1}}',
    '{"id": 1, "do": "session.settings", "args": {"eval": "x"}}',
    '{"id": 1, "do": "session.new", "args": {"prompt": "x", "settings": {"seed": "y"}}}',
    '{"id": 1, "do": "session.new", "args": {"prompt": "\\ud800"}}',
    '{"id": 1, "do": "explain.op", "args": {"name": "__import__(\'os\')"}}',
    '{"id": 1, "do": "session.step", "args": {"n": ' + '{"a":' * 60 + "1" + "}" * 62,
    "x" * ((1 << 20) + 1),
    b"\x00\xff\xfe",
    b"",
]


def test_malformed_frames_are_answered_and_nothing_is_lost(page: Page) -> None:
    page.ask("session.new", prompt="Once upon a time")
    page._next = 100
    for frame in BAD:
        header = page.raw(frame)
        assert header["ok"] is False, frame[:80]
        assert header["error"]["message"]
        time.sleep(0.03)  # no more than fifty a second
    assert page.ask("session.step")["text"].startswith("Once upon a time")


def test_bad_utf8_and_giant_frames_end_the_connection_but_not_the_session(the_studio: Any) -> None:
    page = Page(the_studio)
    page.ask("session.new", prompt="Once")
    page.socket.send(b"\xff\xfe{", text=True)
    with pytest.raises(ConnectionClosed):
        page.take()
    page = Page(the_studio, workspace=page.workspace)
    assert page.ask("session.state")["text"] == "Once"
    with suppress(ConnectionClosed):
        page.socket.send("x" * (5 << 20))
    with pytest.raises(ConnectionClosed):
        page.take()
    with Page(the_studio, workspace=page.workspace) as again:
        assert again.ask("session.state")["text"] == "Once"


def test_text_of_models_and_pages_is_data_only(tmp_path: Path) -> None:
    evil = '<script>alert(1)</script><img src=x onerror=alert(1)>"\u2028'
    one = Loaded("<b>demo</b>", demo.model(), demo.tokenizer())
    with studio(tmp_path, one) as served, Page(served) as page:
        state = page.ask("session.new", prompt=evil)
        assert state["text"] == evil
        assert "".join(t["text"] for t in state["prompt"]).startswith(evil[:-1])
        assert page.ask("model.info")["name"] == "<b>demo</b>"
        html = get(served, f"/?token={served.token}").text
        assert "<b>demo</b>" not in html
        line = page.ask("console.log")["lines"][-1]
        assert repr(evil) in line  # a literal: what it holds cannot become code
        compile(line, "console", "exec")


def test_the_server_listens_on_this_machine_only(the_studio: Any) -> None:
    assert the_studio._socket.getsockname()[0] == "127.0.0.1"
    assert len(the_studio.token) >= 43


HALF = "\\ud800"
STRANGE = [
    *BAD,
    '{"token": 1}',
    '{"token": null}',
    '{"token": ["x"]}',
    f'{{"token": "{HALF}"}}',
    f'{{"workspace": "{HALF}", "token": "x"}}',
    '{"token": "' + "t" * 5000 + '"}',
    '{"token": 1e999}',
    '{"token": NaN}',
    '{"token": "x", "more": ' + "[" * 900 + "]" * 900 + "}",
    '{"cancel": 1}',
    f'{{"{HALF}": 1, "token": "x"}}',
    '{"token": "\\u0000"}',
]


def test_whatever_a_stranger_says_first_is_answered_with_the_close_code(the_studio: Any) -> None:
    options: dict[str, Any] = {"origin": f"http://127.0.0.1:{the_studio.port}", "proxy": None}
    url = f"ws://127.0.0.1:{the_studio.port}/ws"
    for first in STRANGE:
        with connect(url, **options) as ws:
            ws.send(first)
            with pytest.raises(ConnectionClosed) as closed:
                ws.recv(10)
            assert closed.value.rcvd is not None, first[:80]
            assert closed.value.rcvd.code == 4401, first[:80]
    assert the_studio.app.state.strangers == {}


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (f'{{"id": 7, "do": "session.new", "args": {{"prompt": "{HALF}"}}}}', "half a character"),
        (f'{{"id": 7, "do": "session.new", "args": {{"{HALF}": 1}}}}', "half a character"),
        (f'{{"id": 7, "do": "session.step", "slot": "{HALF}"}}', "half a character"),
        (f'{{"id": 7, "do": "{HALF}.x"}}', "half a character"),
        (f'{{"workspace": "{HALF}"}}', "half a character"),
        (f'{{"id": 7, "do": "edits.set", "args": {{"edits": [{{"at": "{HALF}"}}]}}}}', "half a"),
        ('{"id": 7, "do": "debug.replace", "args": {"value": 1e999}}', "too large"),
        ('{"id": 7, "do": "debug.replace", "args": {"value": -1e999}}', "too large"),
        ('{"id": 7, "do": "edits.set", "args": {"edits": [{"value": 1e999}]}}', "too large"),
        ('{"id": 7, "do": "edits.set", "args": {"edits": [' + "9" * 4000 + "]}}", "too large"),
        ('{"id": 7, "do": "session.step", "args": {"n": ' + "9" * 5000 + "}}", "no JSON"),
        ('{"id": 7, "do": "session.step", "args": {"n": NaN}}', "NaN is no number"),
        ('{"id": 7, "do": "session.step", "args": ' + "[" * 40 + "]" * 40 + "}", "deeper than 32"),
        ('{"cancel": 1e999}', "too large"),
        ('{"cancel": -1}', "whole number"),
    ],
)
def test_what_no_frame_may_hold_is_refused_wherever_it_stands(page: Page, frame: str, says: str) -> None:
    header = page.raw(frame)
    assert header["ok"] is False
    assert says in header["error"]["message"]
    page._next = 100
    assert page.ask("console.log") == {"lines": []}
