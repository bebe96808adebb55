"""Whoever has no key gets nothing, no request opens a file, and nobody can make the server fall over."""

from __future__ import annotations

import builtins
import hmac
import io
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from votive.serve import connections
from votive.serve.app import Gate
from votive.serve.keys import Keys, Permissions
from votive.serve.server import Server

from .client import Answer, engine, get, post, send, serving

TALK = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}
TEXT = {"prompt": "Once", "max_tokens": 2}
PATHS = ("/v1/models", "/v1/models/tiny", "/metrics")


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server with keys."""
    path = tmp_path_factory.mktemp("keys") / "keys.txt"
    path.write_text("# those who may\nsecret-one\n\nsecret-two\n")
    with serving(engine(), engine("other"), keys=Keys.read(path, ["third"])) as one:
        yield one


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Bearer secret-on",
        "Bearer secret-one2",
        "bearer SECRET-ONE",
        "Basic secret-one",
        "secret-one",
        "Bearer secret-one secret-two",
        "Bearer \xe9",
    ],
)
def test_without_a_key_there_is_nothing(locked: Server, header: str | None) -> None:
    headers = {} if header is None else {"authorization": header}
    answers = [get(locked, path, **headers) for path in PATHS]
    answers += [post(locked, path, TALK, **headers) for path in ("chat/completions", "completions", "embeddings")]
    for answer in answers:
        assert answer.status == 401
        assert answer.error["type"] == "authentication_error"
        assert answer.error["code"] == "invalid_api_key"
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "secret" not in answer.text
    assert get(locked, "/health", **headers).json == {"status": "ok"}


def test_every_key_opens(locked: Server) -> None:
    for key in ("secret-one", "secret-two", "third"):
        assert get(locked, "/v1/models", authorization=f"Bearer {key}").status == 200
        assert post(locked, "completions", {**TEXT, "model": "tiny"}, authorization=f"bearer  {key}").status == 200


def test_keys_are_compared_in_constant_time_all_of_them_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Keys(["first", "second", "third"])
    compared: list[tuple[int, int]] = []

    def counted(a: bytes, b: bytes) -> bool:
        compared.append((len(a), len(b)))
        return hmac.compare_digest(a, b)

    monkeypatch.setattr("votive.serve.keys.secrets.compare_digest", counted)
    for given in ("first", "third", "none", "x" * 100_000):
        compared.clear()
        keys.find(f"Bearer {given}")
        assert compared == [(32, 32)] * 3  # digests, whose lengths say nothing either


def test_keys_are_never_shown() -> None:
    keys = Keys(["topsecret"], named=[{"name": "lab", "key": "othersecret"}])
    assert "secret" not in repr(keys) + repr(keys.find("Bearer topsecret")) + str(vars(keys))


def test_files_of_keys_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    digest = "ab" * 32
    path.write_text(json.dumps({"keys": [{"name": "a", "sha256": digest, "models": ["x"], "per_minute": 3}]}))
    assert bool(Keys.read(path))
    for text, says in [
        ("", "holds no keys"),
        ("{", "JSON"),
        ("[]", "no file of keys"),
        ('{"keys": [{"name": "a"}]}', "a key, or the sha256"),
        ('{"keys": [{"key": "a", "sha256": "00"}]}', "a key, or the sha256"),
        ('{"keys": [{"sha256": "xyz"}]}', "64 hexadecimal"),
        ('{"keys": [{"sha256": "00"}]}', "64 hexadecimal"),
        ('{"keys": [{"key": "a", "admin": true}]}', "there is no 'admin'"),
        ('{"keys": [{"key": "a", "glass": ["all"]}]}', "some of captures, edits"),
        ('{"keys": [{"key": "a", "max_tokens": -1}]}', "at least 0"),
        ('{"keys": [{"key": "a"}, {"key": "a"}]}', "given twice"),
        ('{"keys": [{"key": ""}]}', "must not be empty"),
    ]:
        path.write_text(text)
        with pytest.raises(ValueError, match=says):
            Keys.read(path)


def test_a_key_may_ask_for_its_models_as_much_and_as_often_as_it_says() -> None:
    named = [
        {"name": "one", "key": "a", "models": ["tiny"], "max_tokens": 4},
        {"name": "often", "key": "b", "per_minute": 2},
        {"name": "at once", "key": "c", "concurrent": 0},
    ]
    with serving(engine(), engine("other"), keys=Keys(named=named)) as one:

        def ask(key: str, **more: Any) -> Answer:
            return post(one, "completions", {**TEXT, "model": "tiny", **more}, authorization=f"Bearer {key}")

        assert [m["id"] for m in get(one, "/v1/models", authorization="Bearer a").json["data"]] == ["tiny"]
        assert get(one, "/v1/models/other", authorization="Bearer a").status == 404
        hidden = ask("a", model="other")
        assert (hidden.status, hidden.error["code"]) == (404, "model_not_found")
        assert ask("a", max_tokens=5).error["param"] == "max_tokens"
        assert ask("a", max_tokens=4).status == 200
        assert [ask("b", model="other").status for _ in range(3)] == [200, 200, 429]
        full = ask("b")
        assert full.error["type"] == "rate_limit_error"
        assert 0 < int(full.headers["retry-after"]) <= 61
        assert ask("c").status == 429
        assert ask("a").status == 200


def test_other_machines_are_served_with_keys_only() -> None:
    from votive.serve.registry import Registry

    with pytest.raises(ValueError, match="--api-key"):
        Server(Registry(), host="0.0.0.0")
    Server(Registry(), host="0.0.0.0", keys=Keys(["k"])).close()


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "", "localhost"])
def test_without_keys_a_request_for_another_host_is_refused(the_server: Server, host: str) -> None:
    """Or a name that is made to lead here would let pages of other sites ask."""
    for answer in (get(the_server, "/v1/models", host=host), post(the_server, "completions", TEXT, host=host)):
        assert answer.status in (400, 421)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "file://"])
def test_without_keys_pages_of_other_sites_are_refused(the_server: Server, origin: str) -> None:
    assert post(the_server, "completions", TEXT, origin=origin).status == 403
    assert send(the_server, "OPTIONS", "/v1/completions", origin=origin).status == 405
    assert post(the_server, "completions", TEXT, origin=f"http://127.0.0.1:{the_server.port}").status == 200


def test_names_of_this_machine_are_known() -> None:
    mine, wide = Gate(Keys(), "127.0.0.1", 8000), Gate(Keys(), "0.0.0.0", 8000)
    assert "127.0.0.1:8000" in mine.hosts
    assert "localhost:8000" in mine.hosts
    assert "192.168.0.7:8000" not in mine.hosts
    assert wide.any_address
    assert not mine.any_address


ODD = ["/etc/passwd", "../../etc/passwd", "file:///etc/passwd", "C:\\secret", "~/.ssh/id_rsa", "\x00", "http://x/y"]


def test_no_request_opens_a_file(the_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of models, texts, schemas, templates' variables: whatever looks like a path is a text."""
    for body in (TALK, {**TALK, "response_format": {"type": "text"}}):
        post(the_server, "chat/completions", body)  # what is imported late is imported now
    opened: list[str] = []

    def watched(path: Any, *rest: Any, **named: Any) -> Any:
        opened.append(str(path))
        raise AssertionError(f"opened {path}")

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", watched)
        patch.setattr(io, "open", watched)
        patch.setattr(os, "open", watched)
        for odd in ODD:
            bodies: list[dict[str, Any]] = [
                {**TALK, "model": odd},
                {**TALK, "messages": [{"role": "user", "content": odd}]},
                {**TALK, "messages": [{"role": "user", "content": "x", "name": odd}]},
                {**TALK, "chat_template_kwargs": {"chat_template": odd}},
                {**TALK, "chat_template_kwargs": {"path": odd}},
                {**TALK, "stop": odd},
                {**TALK, "glass": {"captures": [{"at": odd}]}},
                {**TALK, "glass": {"skip": [odd]}},
                {**TALK, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": odd}}},
                {**TALK, "tools": [{"type": "function", "function": {"name": odd}}]},
                {**TALK, "user": odd, "metadata": {odd: odd}},
            ]
            for body in bodies:
                answer = post(the_server, "chat/completions", body)
                assert answer.status in (200, 400, 404), answer.text
            for path in ("embeddings", "completions"):
                assert post(the_server, path, {"model": odd, "input": odd, "prompt": odd}).status in (400, 404)
    assert opened == []


def test_schemas_cannot_lead_anywhere(the_server: Server) -> None:
    pytest.importorskip("llguidance", reason="forms of texts are found by llguidance")
    for ref in ("file:///etc/passwd", "http://127.0.0.1:9/x", "/etc/passwd"):
        schema = {"type": "object", "properties": {"a": {"$ref": ref}}, "required": ["a"]}
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        answer = post(the_server, "chat/completions", {**TALK, "response_format": form})
        assert answer.status == 400
        assert "root:" not in answer.text
    for body in ({"regex": "("}, {"grammar": "start: %import"}, {"regex": "(a{1000}){1000}{1000}"}):
        assert post(the_server, "chat/completions", {**TALK, **body}).status == 400


@pytest.mark.parametrize(
    "path",
    ["/../../etc/passwd", "/v1/models/../../etc/passwd", "/v1/models/%2e%2e%2fetc%2fpasswd", "/v1/%00", "//etc/passwd"]
    + ["/v1/models//etc/passwd", "/static/../app.py", "/v1/models/..%5c", "/%2e%2e", "/v1/models/\xff"],
)
def test_no_path_leads_to_a_file(the_server: Server, path: str) -> None:
    raw = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{the_server.port}\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", the_server.port), 60) as s:
        s.sendall(raw.encode("latin-1"))
        answer = b""
        while part := s.recv(65536):
            answer += part
    assert answer.split()[1] in (b"404", b"400")
    assert b"root:" not in answer
    assert b"import" not in answer


def test_errors_of_the_server_say_nothing_of_its_insides(
    the_server: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("/secret/path of the server")

    monkeypatch.setattr("votive.serve.request_parsing.messages_of", broken)
    answer = post(the_server, "chat/completions", TALK)
    assert (answer.status, answer.error["type"]) == (500, "server_error")
    assert "secret" not in answer.text
    assert "/secret/path" in capfd.readouterr().err


def test_every_answer_has_the_headers_that_keep_others_out(the_server: Server) -> None:
    for answer in (get(the_server, "/health"), get(the_server, "/nothing"), post(the_server, "completions", TEXT)):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers


def test_whoever_connects_and_does_not_ask_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as one:
        with monkeypatch.context() as patch:
            patch.setattr(connections, "PATIENCE", 0.3)
            for said in (b"", b"POST /v1/completions HTTP/1.1\r\nHost: "):
                with socket.create_connection(("127.0.0.1", one.port), 60) as s:
                    s.sendall(said)
                    assert s.recv(100) == b""
        assert get(one, "/health").status == 200


def test_of_too_many_connections_those_that_ask_nothing_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "OPEN", 8)
    with serving() as one:
        silent = [socket.create_connection(("127.0.0.1", one.port), 60) for _ in range(40)]
        try:
            for _ in range(3):
                assert get(one, "/health").status == 200
        finally:
            for s in silent:
                s.close()


def test_a_request_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from votive.serve import body

    monkeypatch.setattr(body.read_bytes, "__defaults__", (body.LARGEST, 0.3))
    with serving() as one, socket.create_connection(("127.0.0.1", one.port), 60) as s:
        head = f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:{one.port}\r\nContent-Type: application/json\r\n"
        s.sendall(head.encode() + b"Content-Length: 100\r\n\r\n{")
        assert b" 408 " in s.recv(4096)


def test_a_body_in_pieces_without_a_length_is_bounded_too(the_server: Server) -> None:
    with socket.create_connection(("127.0.0.1", the_server.port), 60) as s:
        head = f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:{the_server.port}\r\n"
        s.sendall(head.encode() + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        piece = b"10000\r\n" + b" " * 65536 + b"\r\n"
        answer = b""
        for _ in range(200):
            try:
                s.sendall(piece)
            except OSError:
                break
        s.settimeout(60)
        try:
            answer = s.recv(4096)
        except OSError:
            return  # it was cut off while it still sent
        assert b" 413 " in answer or answer == b""


def test_permissions_are_counted_back_whatever_happens() -> None:
    keys = Keys(named=[{"name": "one", "key": "a", "concurrent": 1}])
    allowed = keys.find("Bearer a")
    assert isinstance(allowed, Permissions)
    with serving(keys=keys) as one:
        for body in (TALK, {**TALK, "stream": True}, {**TALK, "x": 1}, {**TALK, "stream": True, "n": 0}, {}):
            assert post(one, "chat/completions", body, authorization="Bearer a").status in (200, 400)
            assert post(one, "chat/completions", TALK, authorization="Bearer a").status == 200
    assert allowed.running == 0
