"""Frames are read strictly and written so that pages can take their arrays as they lie."""

from __future__ import annotations

import json
import struct
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from votive.studio.arguments import BadArgument, Bounds, signature_of
from votive.studio.protocol import LARGEST, BadFrame, Cancel, Enter, Request, read, unpack, write


def test_a_request_is_read_with_its_arguments_and_slot() -> None:
    said = read('{"id": 7, "do": "lens.grid", "args": {"node": 3}, "slot": "lens"}')
    assert said == Request(7, "lens.grid", {"node": 3}, "lens")
    assert read('{"id": 0, "do": "session.undo"}') == Request(0, "session.undo")
    assert read('{"cancel": 7}') == Cancel(7)
    assert read('{"workspace": null}') == Enter(None, None)
    assert read('{"token": "t", "workspace": "r"}') == Enter("t", "r")


@pytest.mark.parametrize(
    ("frame", "reply"),
    [
        ("", "no JSON"),
        ("{", "no JSON"),
        ("[]", "an array"),
        ("7", "a number"),
        ("null", "nothing"),
        ("{}", "'id'"),
        ('{"id": -1, "do": "a.b"}', "'id'"),
        ('{"id": true, "do": "a.b"}', "'id'"),
        ('{"id": 1.5, "do": "a.b"}', "'id'"),
        ('{"id": 9007199254740993, "do": "a.b"}', "'id'"),
        ('{"id": "7", "do": "a.b"}', "'id'"),
        ('{"id": 1}', "'do'"),
        ('{"id": 1, "do": 5}', "'do'"),
        ('{"id": 1, "do": "__import__"}', "'do'"),
        ('{"id": 1, "do": "a.b.c"}', "'do'"),
        ('{"id": 1, "do": "session.step", "args": []}', "'args'"),
        ('{"id": 1, "do": "session.step", "args": {"n": NaN}}', "NaN"),
        ('{"id": 1, "do": "session.step", "args": {"n": Infinity}}', "Infinity"),
        ('{"id": 1, "do": "session.step", "slot": 3}', "'slot'"),
        ('{"id": 1, "do": "session.step", "slot": "' + "s" * 81 + '"}', "'slot'"),
        ('{"cancel": "all"}', "'cancel'"),
        ('{"id": 1, "do": "a.b", "args": {"n": ' + "9" * 5000 + "}}", "no JSON"),
        ('{"id":1,"do":"a.b","args":' + '{"a":' * 40 + "1" + "}" * 41, "deeper"),
        ("[" * 100_000, "deeper"),
        ('{"id": 1, "do": "a.b", "args": {"t": "' + "x" * LARGEST + '"}}', "larger"),
        ('{"id": 1, "do": "a.b", "slot": "' + "\u00e9" * (LARGEST * 6 // 10) + '"}', "larger"),
        (b"\x00\x01", "binary"),
    ],
)
def test_a_frame_that_is_no_request_is_refused_with_the_reason(frame: Any, reply: str) -> None:
    with pytest.raises(BadFrame, match=reply):
        read(frame)


@settings(deadline=None)  # of a machine that is busy
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["id", "do", "args", "slot", "cancel", "workspace", "token", "x"]), inner, max_size=5
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_read_or_refused(said: Any) -> None:
    try:
        found = read(json.dumps(said))
    except BadFrame:
        return
    assert isinstance(found, (Request, Cancel, Enter))


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(BadFrame):
        read("!" + text)


def test_blobs_lie_at_multiples_of_eight_and_come_back_as_they_were() -> None:
    arrays = {
        "a": np.arange(3, dtype=np.uint8),
        "b": np.arange(6, dtype=np.float32).reshape(2, 3).T,
        "c": np.zeros((0, 4), np.int32),
        "d": np.array([1.5]),
    }
    for text in ("", "x", "xy", "é", "xyzuvw"):
        frame = write({"id": 1, "ok": True, "data": {"text": text}}, arrays)
        (length,) = struct.unpack_from("<I", frame)
        assert (4 + length) % 8 == 0
        header, blobs = unpack(frame)
        assert header["data"]["text"] == text
        assert all(b["at"] % 8 == 0 for b in header["blobs"])
        assert all(np.array_equal(blobs[n], arrays[n]) for n in arrays)


def test_numbers_that_json_lacks_become_null_and_text_of_models_stays_data() -> None:
    header, _ = unpack(write({"data": {"x": float("nan"), "y": [float("inf")], "t": "</script>"}}))
    assert header["data"] == {"x": None, "y": [None], "t": "</script>"}
    header, _ = unpack(write({"data": "half \ud83d character"}))
    assert header["data"] == "half ? character"


def example(
    job: Any,
    n: Annotated[int, Bounds(1, 9)],
    x: float = 0.0,
    kind: Literal["a", "b"] = "a",
    some: Annotated[list[int], Bounds(0, 2)] | None = None,
    on: bool = False,
    with_: str = "",
) -> None:
    """What the next tests call."""


@pytest.mark.parametrize(
    ("given", "reply"),
    [
        ({}, "'n' is missing"),
        ({"n": 0}, "1 to 9"),
        ({"n": "3"}, "a whole number"),
        ({"n": True}, "a whole number"),
        ({"n": 2.5}, "a whole number"),
        ({"n": None}, "a whole"),
        ({"n": 10**30}, "too large|1 to 9"),
        ({"n": 1, "x": 10**400}, "too large"),
        ({"n": 1, "x": "0"}, "a number"),
        ({"n": 1, "kind": "c"}, "one of"),
        ({"n": 1, "kind": ["a"]}, "one of"),
        ({"n": 1, "some": [1, 2, 3]}, "elements"),
        ({"n": 1, "some": 5}, "array"),
        ({"n": 1, "some": [[]]}, "a whole number"),
        ({"n": 1, "on": 1}, "true or false"),
        ({"n": 1, "with": 5}, "a text"),
        ({"n": 1, "y": 5}, "unknown argument 'y'"),
        ({"n": 1, "job": 5}, "unknown"),
        ({"n": 1, "with": "\ud800"}, "surrogate"),
    ],
)
def test_arguments_of_a_wrong_kind_are_refused(given: dict[str, Any], reply: str) -> None:
    with pytest.raises(BadArgument, match=reply):
        signature_of("test.example", example).check(given)


def test_arguments_of_the_right_kind_are_taken() -> None:
    found = signature_of("test.example", example).check(
        {"n": 3.0, "x": 2, "some": [1], "on": True, "with": "w", "kind": "b"}
    )
    assert found == {"n": 3, "x": 2.0, "some": [1], "on": True, "with": "w", "kind": "b"}
    assert isinstance(found["n"], int)
    assert signature_of("test.example", example).check({"n": 1, "some": None})["some"] is None
