"""What a hostile client may send: every frame leads to an answer or to the end of its own session, nothing else."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.backends.remote import wire
from votive.backends.remote.wire import ProtocolError
from votive.remote.server.session import Session
from votive.remote.server.store import Store


class Line:
    """Keeps the answers."""

    def __init__(self) -> None:
        self.data = b""

    def sendall(self, data: Any, /) -> None:
        self.data += bytes(data)

    def last(self) -> tuple[int, Any]:
        """Kind and content of the newest answer."""
        at, found = 0, (wire.OK, b"{}")
        while at < len(self.data):
            (size,) = wire.FRAME.unpack_from(self.data, at)
            found = self.data[at + 4], self.data[at + 5 : at + 4 + size]
            at += 4 + size
        kind, body = found
        return kind, body[8:] if kind == wire.VALUES else json.loads(body)


class Client:
    """Sends messages by hand to a session without a network."""

    def __init__(self, folder: Path, limit: int | None = 1 << 20) -> None:
        self.session = Session(votive.device("cpu"), Store(folder, 1 << 22), limit)
        self.line = Line()

    def send(self, *messages: tuple[int, bytes]) -> tuple[int, Any]:
        self.session.frame(bytearray(b"".join(wire.message(k, b) for k, b in messages)), self.line)
        return self.line.last()

    def spec(self, number: int, shape: list[Any], strides: list[Any], dtype: Any = "float32") -> None:
        self.send((wire.SPEC, wire.COUNT.pack(number) + wire.packed([dtype, shape, strides])))

    def plan(self, number: int, description: Any) -> None:
        self.send((wire.PLAN, wire.COUNT.pack(number) + wire.packed(description)))

    def refuses(self, plan: Any, values: bytes) -> str:
        """What a plan and a call of it are answered with, which is no result."""
        try:
            self.plan(7, plan)
            self.send((wire.CALL, wire.CALLED.pack(7, 2) + values))
        except ProtocolError as e:
            return str(e)
        kind, answer = self.waits()
        assert kind == wire.ERROR
        assert self.send((wire.READ, wire.PART.pack(2, 0, 1)))[0] == wire.ERROR
        return str(answer["text"])

    def waits(self) -> tuple[int, Any]:
        return self.send((wire.WAIT, b""))


@pytest.fixture
def client(tmp_path: Path) -> Client:
    """One with a storage 1 of 16 floats and a spec 1 of all of them."""
    made = Client(tmp_path)
    made.spec(1, [16], [1])
    made.send((wire.EMPTY, wire.SIZED.pack(1, 64)))
    made.send((wire.DATA, wire.SLICE.pack(1, 0) + np.arange(16, dtype=np.float32).tobytes()))
    return made


def whole(n: int = 16) -> dict[str, Any]:
    return {"spec": ["float32", [n], [1]]}


def formula(nodes: Any, **changed: Any) -> dict[str, Any]:
    """A plan of a formula of one operand."""
    data = {
        "label": "f",
        "formula": nodes,
        "inputs": [whole()],
        "roles": [["float32", "float32", None]],
        "out": ["float32", [16], [1]],
        "values": ["t"],
    }
    return {**data, **changed}


def test_a_client_by_hand_computes(client: Client) -> None:
    client.plan(7, formula([["var", 0], ["const", 2.0], ["mul", 0, 1]]))
    client.send((wire.CALL, wire.CALLED.pack(7, 2) + struct.pack("<Qq", 1, 0)))
    kind, data = client.send((wire.READ, wire.PART.pack(2, 0, 1)))
    assert kind == wire.VALUES
    assert np.frombuffer(data, np.float32).tolist() == [2.0 * i for i in range(16)]


REACHES = [
    ([16], [1], 1),
    ([17], [1], 0),
    ([16], [1], -1),
    ([2], [16], 0),
    ([1], [1], 16),
    ([1], [1], 2**62),
    ([3], [2**40], 0),
    ([1], [1], -(2**63)),
]


@pytest.mark.parametrize(("shape", "strides", "offset"), REACHES)
@pytest.mark.parametrize("way", ["read", "save", "copy from", "copy to", "call", "into"])
def test_no_view_reaches_outside_of_its_storage(
    shape: list[int], strides: list[int], offset: int, way: str, client: Client
) -> None:
    client.spec(2, shape, strides)
    client.send((wire.EMPTY, wire.SIZED.pack(9, 1 << 16)))
    size = shape[0]
    client.spec(3, [size], [1])
    data = formula([["var", 0]], inputs=[{"spec": ["float32", shape, strides]}], out=["float32", shape, [1]])
    client.plan(7, data)
    client.plan(8, {**data, "inputs": [whole(size)]})
    part, other = wire.PART.pack(1, offset, 2), wire.PART.pack(9, 0, 3)
    attack = {
        "read": (wire.READ, part),
        "save": (wire.SAVE, part + b"x"),
        "copy from": (wire.COPY, other + part),
        "copy to": (wire.COPY, part + other),
        "call": (wire.CALL, wire.CALLED.pack(7, 20) + struct.pack("<Qq", 1, offset)),
        "into": (wire.INTO, wire.WRITTEN.pack(8, 1, offset, 2) + struct.pack("<Qq", 9, 0)),
    }
    with pytest.raises(ProtocolError, match="outside of its storage"):
        client.send(attack[way])


BAD_SPECS = [
    ["float32", [-1], [1]],
    ["float32", [1], [-1]],
    ["float32", [1, 2], [1]],
    ["float32", [2**63], [1]],
    ["float32", [2**40, 2**40], [2**40, 1]],
    ["float32", [2], [2**62]],
    ["float32", [True], [1]],
    ["float32", [1.0], [1]],
    ["float32", [1] * 65, [1] * 65],
    ["nothing", [1], [1]],
    ["q4_k", [256], [1]],
    [["float32"], [1], [1]],
    ["complex32", [1], [1]],
    ["float32", [1]],
    "float32",
    {"dtype": "float32"},
    None,
]


@pytest.mark.parametrize("spec", BAD_SPECS)
def test_a_spec_that_is_none_ends_the_session(spec: Any, client: Client) -> None:
    with pytest.raises(ProtocolError):
        client.send((wire.SPEC, wire.COUNT.pack(5) + wire.packed(spec)))


BAD_FORMULAS = [
    formula([]),
    formula("x0"),
    formula([["var", 1]]),
    formula([["var", -1]]),
    formula([["var", 0], ["add", 0, 2]]),
    formula([["var", 0], ["add", 0, 1]]),
    formula([["var", 0], ["add", 0]]),
    formula([["var", 0], ["sin", 0, 0]]),
    formula([["var", 0], ["__import__('os').system", 0]]),
    formula([["var", 0], ["annotated", 0]]),
    formula([["const", "1); import os"]]),
    formula([["const", None]]),
    formula([["const", 10**60]]),
    formula([[["var"], 0]]),
    formula([["var", 0]] * (wire.NODES + 1)),
    formula([["var", 0]], roles=[["float64", "float64", None]]),
    formula([["var", 0]], roles=[["float32", None, None]]),
    formula([["var", 0]], roles=[["float32", "float32"]]),
    formula([["var", 0]], roles=[]),
    formula([["var", 0]], inputs=[]),
    formula([["var", 0]], values=["i"]),
    formula([["var", 0]], values=["[t]"]),
    formula([["var", 0]], values=["tt"]),
    formula([["var", 0]], values=["[t"]),
    formula([["var", 0]], values="t"),
    formula([["var", 0]], out=["float32", [8], [1]]),
    formula([["var", 0]], out=["float32", [17], [1]]),
    formula([["var", 0]], out=["float32", [16], [2]]),
    formula([["var", 0]], out=["float32", [16], [0]]),
    formula([["var", 0]], label="a\nb"),
    formula([["var", 0]], label=3),
]


@pytest.mark.parametrize("plan", BAD_FORMULAS)
def test_a_formula_that_is_none_is_refused(plan: Any, client: Client) -> None:
    assert client.refuses(plan, struct.pack("<Qq", 1, 0))


def operator(op: str, args: list[Any], values: list[str], outs: Any = None) -> dict[str, Any]:
    return {"op": op, "args": args, "outs": outs, "values": values}


SQUARE = {"spec": ["float32", [4, 4], [4, 1]]}
BAD_OPERATORS = [
    operator("no_such_operator", [], []),
    operator("exp", [whole()], ["t"], [["float32", [16], [1]]]),  # a formula, not a name
    operator("_to_device", [whole(), {"device": "here"}, False], ["t"], [["float32", [16], [1]]]),
    operator("_region", [[whole()], None], ["[t]"], [["float32", [16], [1]]]),
    operator("matmul", [SQUARE, SQUARE], ["t", "t"], [["float32", [4, 5], [5, 1]]]),
    operator("matmul", [SQUARE, whole(5)], ["t", "t"], [["float32", [4], [1]]]),
    operator("matmul", [SQUARE], ["t"], [["float32", [4, 4], [4, 1]]]),
    operator("matmul", [SQUARE, 3], ["t", "i"], [["float32", [4, 4], [4, 1]]]),
    operator("matmul", [SQUARE, None], ["t", "n"], [["float32", [4, 4], [4, 1]]]),
    operator("_softmax", [whole(), "0"], ["t"], [["float32", [16], [1]]]),
    operator("_softmax", [whole(), [0]], ["t"], [["float32", [16], [1]]]),
    operator("_softmax", [whole(), 10**40], ["t"], [["float32", [16], [1]]]),
    operator("_softmax", [whole(), 5], ["t"], [["float32", [16], [1]]]),
    # Strides that reach outside of what is made for the result.
    operator("_copy_as", [whole(), {"dtype": "float32"}, [100]], ["t"], [["float32", [16], [100]]]),
    operator("_copy_as", [whole(), {"dtype": "float32"}, [0]], ["t"], [["float32", [16], [0]]]),
    operator("_copy_as", [whole(), {"dtype": "q4_k"}, [1]], ["t"], [["float32", [16], [1]]]),
    operator("_copy_as", [whole(), {"os": "system"}, [1]], ["t"], [["float32", [16], [1]]]),
    operator("_copy_as", [whole(), ["x"] * 3, [1]], ["t"], [["float32", [16], [1]]]),
    operator("cat", [[whole(), whole()], 0], ["[tt]"], [["float32", [33], [1]]]),
    operator("cat", [[whole(), whole()], 0], ["[t]"], [["float32", [32], [1]]]),
    operator("cat", [[whole(), whole()], 0], ["t"], [["float32", [32], [1]]]),
    {"op": "matmul"},
    {"op": ["matmul"]},
    {},
    [],
    None,
]


@pytest.mark.parametrize("plan", BAD_OPERATORS)
def test_an_operator_is_planned_by_the_servers_own_rules(plan: Any, client: Client) -> None:
    kinds = plan.get("values", []) if isinstance(plan, dict) else []
    assert client.refuses(plan, struct.pack("<Qq", 1, 0) * len("".join(kinds).strip("[]")))


def _deep(n: int) -> bytes:
    return b"[" * n + b"]" * n


BAD_MESSAGES = {
    "unknown": (99, b""),
    "short": (wire.READ, b"\0"),
    "no plan": (wire.CALL, wire.CALLED.pack(3, 2)),
    "no spec": (wire.READ, wire.PART.pack(1, 0, 77)),
    "not json": (wire.PLAN, wire.COUNT.pack(3) + b"{"),
    "deep json": (wire.PLAN, wire.COUNT.pack(3) + _deep(100_000)),
    "not text": (wire.SPEC, wire.COUNT.pack(3) + b"\xff\xfe\xfa"),
    "beyond the end": (wire.DATA, wire.SLICE.pack(1, 61) + b"1234"),
    "far beyond": (wire.DATA, wire.SLICE.pack(1, 2**63) + b"1234"),
    "taken number": (wire.EMPTY, wire.SIZED.pack(1, 8)),
    "huge": (wire.EMPTY, wire.SIZED.pack(5, 2**64 - 1)),
    "no name": (wire.DELETE, b""),
    "long name": (wire.DELETE, b"x" * 201),
    "name of bytes": (wire.DELETE, b"\xff"),
}


@pytest.mark.parametrize("name", BAD_MESSAGES)
def test_a_message_that_is_none_ends_the_session(name: str, client: Client) -> None:
    with pytest.raises(ProtocolError):
        client.send(BAD_MESSAGES[name])


def test_frames_that_lie_about_lengths_end_the_session(client: Client) -> None:
    for frame in (b"\1", wire.HEAD.pack(wire.WAIT, 1), wire.HEAD.pack(wire.FREE, 3) + b"123", b"\x20" * 7):
        with pytest.raises(ProtocolError):
            client.session.frame(bytearray(frame), client.line)


def test_random_bytes_do_no_harm(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    client = Client(tmp_path)
    kinds = [*range(1, 15), *range(32, 38)]
    ended = 0
    for _ in range(400):
        body = rng.bytes(int(rng.integers(0, 60)))
        try:
            client.send((int(rng.choice(kinds)), body))
        except ProtocolError:
            ended += 1
    assert ended > 200
    assert client.waits()[0] in (wire.OK, wire.ERROR)


def test_a_call_has_the_values_of_its_plan(client: Client) -> None:
    client.plan(7, formula([["var", 0]]))
    for values in (b"", struct.pack("<Q", 1), struct.pack("<QqQ", 1, 0, 1)):
        with pytest.raises(ProtocolError):
            client.send((wire.CALL, wire.CALLED.pack(7, 2) + values))
    client.spec(4, [4], [1])
    with pytest.raises(ProtocolError, match="does not fit"):
        client.send((wire.INTO, wire.WRITTEN.pack(7, 1, 0, 4) + struct.pack("<Qq", 1, 0)))


def test_indices_of_a_client_are_checked(client: Client) -> None:
    indices = {"spec": ["int64", [2], [1]]}
    args = [SQUARE, indices, -1, False]
    client.plan(7, operator("_embedding", args, ["t", "t"], [["float32", [2, 4], [4, 1]]]))
    client.send((wire.EMPTY, wire.SIZED.pack(3, 16)))
    client.send((wire.DATA, wire.SLICE.pack(3, 0) + struct.pack("<qq", 0, 2**40)))
    client.send((wire.CALL, wire.CALLED.pack(7, 50) + struct.pack("<QqQq", 1, 0, 3, 0)))
    kind, answer = client.waits()
    assert kind == wire.ERROR
    assert "out of bounds" in answer["text"]


def test_more_memory_than_allowed_is_told_and_not_taken(client: Client) -> None:
    client.send((wire.EMPTY, wire.SIZED.pack(5, 2 << 20)))
    kind, answer = client.waits()
    assert (kind, answer["type"]) == (wire.ERROR, "MemoryError")
    client.send((wire.UPLOAD, wire.CONTENT.pack(6, 2**40, bytes(32))), (wire.DATA, wire.SLICE.pack(6, 0) + b"1234"))
    assert client.waits()[0] == wire.ERROR
    big = ["float32", [1 << 20], [1]]
    wide = formula([["var", 0]], inputs=[{"spec": ["float32", [1], [1]]}], out=big)
    client.plan(8, wide)
    client.send((wire.CALL, wire.CALLED.pack(8, 60) + struct.pack("<Qq", 1, 0)))
    assert client.waits()[1]["type"] == "MemoryError"
    assert client.session.memory.used == 64
    assert client.waits()[0] == wire.OK


def test_names_of_saved_tensors_are_no_paths(client: Client, tmp_path: Path) -> None:
    for name in ("../../escaped", "/etc/passwd", "a\0b", "CON", ".", "ü" * 100):
        kind, _ = client.send((wire.SAVE, wire.PART.pack(1, 0, 1) + name.encode()))
        assert kind == wire.OK
        assert client.send((wire.LOAD, wire.STORAGE.pack(99) + name.encode()))[0] == wire.OK
        client.send((wire.FREE, wire.STORAGE.pack(99)))
    kept = [Path(root) / f for root, _, files in os.walk(tmp_path) for f in files]
    assert len(kept) == 6
    assert all(len(p.name) == 64 and p.parent == tmp_path / "saved" for p in kept)
    assert not (tmp_path.parent / "escaped").exists()
    kind, answer = client.send((wire.LOAD, wire.STORAGE.pack(99) + b"nothing"))
    assert (kind, answer["type"]) == (wire.ERROR, "KeyError")


def test_contents_are_what_their_digest_says(client: Client) -> None:
    data = bytes(70_000)
    lie = b"\1" * 32
    client.send((wire.UPLOAD, wire.CONTENT.pack(5, len(data), lie)), (wire.DATA, wire.SLICE.pack(5, 0) + data))
    assert client.session.store.contents() == []
    client.send((wire.KNOWN, wire.CONTENT.pack(6, len(data), lie)))
    kind, answer = client.waits()
    assert kind == wire.ERROR
    assert "no longer has these weights" in answer["text"]


def test_a_result_without_a_value_has_no_bytes(client: Client) -> None:
    client.plan(7, operator("no_such_operator", [whole()], ["t"], [["float32", [16], [1]]]))
    client.send((wire.CALL, wire.CALLED.pack(7, 2) + struct.pack("<Qq", 1, 0)))
    assert client.waits()[0] == wire.ERROR
    kind, answer = client.send((wire.READ, wire.PART.pack(2, 0, 1)))
    assert kind == wire.ERROR
    assert "lost" in answer["text"] or "never computed" in answer["text"]


def test_nothing_that_runs_code_is_used() -> None:
    root = Path(votive.__file__).parent
    for folder in (root / "remote" / "server", root / "backends" / "remote"):
        for path in sorted(folder.glob("*.py")):
            tree = ast.parse(path.read_text())
            named = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
            imported = {a.name for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
            assert not imported & {"pickle", "marshal", "shelve", "import_module"}, path
            # The client writes out a function for the kinds of its own plan; the server never does.
            assert not named & {"eval", "exec", "compile", "__import__"} or path.name == "rows.py", path


def test_a_full_disk_costs_no_session(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from votive.remote.server import store

    data = bytes(70_000)
    digest = hashlib.sha256(data).digest()

    def full(*args: Any, **options: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.os, "replace", full)
    client.send((wire.UPLOAD, wire.CONTENT.pack(5, len(data), digest)), (wire.DATA, wire.SLICE.pack(5, 0) + data))
    kind, answer = client.send((wire.SAVE, wire.PART.pack(1, 0, 1) + b"x"))
    assert kind == wire.ERROR
    assert "No space left" in answer["text"]
    monkeypatch.setattr(store.tempfile, "mkstemp", full)
    client.send((wire.UPLOAD, wire.CONTENT.pack(6, len(data), digest)), (wire.DATA, wire.SLICE.pack(6, 0) + data))
    assert client.waits()[0] == wire.OK
