"""Many streams at once, of which some are given up: the others are what they are alone, and nothing stays behind."""

from __future__ import annotations

import asyncio
import gc
import json
import random
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from votive.serve import Engine
from votive.serve.server import Server
from votive.serve.text import Ticket

from .client import engine, get, post, serving
from .test_serving_glass import VECTOR

PROMPT = "Once upon a time"
ALL = {"prompt": PROMPT, "temperature": 0, "max_tokens": 8, "ignore_eos": True}


async def streamed(one: Server, body: dict[str, Any], until: int | None, path: str = "completions") -> tuple[int, Any]:
    """The status and the parts of a stream; with `until`, the client goes after so many bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
    try:
        data = json.dumps({**body, "stream": True}).encode()
        head = f"POST /v1/{path} HTTP/1.1\r\nHost: 127.0.0.1:{one.port}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode() + data)
        await writer.drain()
        if until is not None:
            await reader.read(until) if until else None
            return 0, None
        answer = await asyncio.wait_for(reader.read(), 300)
    finally:
        writer.close()
    head_, _, rest = answer.partition(b"\r\n\r\n")
    status = int(head_.split()[1])
    if status != 200:
        return status, rest
    text = b"".join(rest.split(b"\r\n")[1::2]).decode()
    return status, [json.loads(line[6:]) for line in text.split("\n\n") if line and line != "data: [DONE]"]


def until_idle(one: Server, seconds: float = 120) -> None:
    """Wait until nothing is under way any more."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(e.busy for e in one.registry.engines()) and not one.server.server_state.connections:
            return
        time.sleep(0.01)
    raise AssertionError(f"something is left: {[e.statistics() for e in one.registry.engines()]}")


def held(one: Engine, until: Callable[[], bool], after: int = 0) -> None:
    """Let an engine do nothing, once it has written so many tokens, before something is the case."""
    step = one.step

    def waiting() -> bool:
        end = time.monotonic() + 120
        while one.counters.completion_tokens >= after and not until() and time.monotonic() < end:
            time.sleep(0.002)
        return step()

    one.step = waiting  # type: ignore[method-assign]


def tickets() -> list[Ticket]:
    """Requests that somebody still holds."""
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some objects of other libraries warn whoever asks what they are
        return [o for o in gc.get_objects() if isinstance(o, Ticket)]


def kinds() -> list[dict[str, Any]]:
    """Requests of all kinds; the third is steered, and the fourth looks inside."""
    return [
        {**ALL, "max_tokens": 24},
        {**ALL, "prompt": PROMPT + " there was a queen who had a cat" * 3, "max_tokens": 9},
        {**ALL, "max_tokens": 17, "glass": {"steer": [{"at": "layers.0.resid_post", "vector": VECTOR}]}},
        {**ALL, "max_tokens": 12, "glass": {"captures": [{"at": "layers.1.resid_post", "reduce": "mean"}]}},
        {**ALL, "temperature": 1, "seed": 6, "n": 3},
    ]


def shown(parts: list[Any]) -> dict[int, str]:
    """The texts of a stream."""
    found: dict[int, str] = {}
    for choice in (c for p in parts for c in p["choices"]):
        found[choice["index"]] = found.get(choice["index"], "") + choice["text"]
    return found


def test_hundreds_of_streams_with_random_cancellations_leave_nothing_behind() -> None:
    before = max((t.number for t in tickets()), default=0)
    one_engine = engine(max_texts=24, max_waiting=4096, chunk=32, memory=1 << 22)
    with serving(one_engine) as one:
        alone = [{c["index"]: c["text"] for c in post(one, "completions", k).json["choices"]} for k in kinds()]
        draw = random.Random(3)

        async def client(count: int) -> int:
            finished = 0
            for _ in range(count):
                which = draw.randrange(len(alone))
                until = draw.choice([None, None, 0, 1, 600, 2000])
                status, parts = await streamed(one, kinds()[which], until)
                if until is None:
                    assert status == 200, parts
                    assert shown(parts) == alone[which], which
                    finished += 1
            return finished

        async def everything() -> int:
            return sum(await asyncio.gather(*(client(6) for _ in range(32))))

        finished = asyncio.run(everything())
        assert 30 < finished < 192
        until_idle(one)
        told = one_engine.statistics()
        assert (told["waiting"], told["reading"], told["writing"]) == (0, 0, 0)
        assert told["blocks"].held == 0
        assert one_engine._batch.cache.allocated() == 0
        counters = told["counters"]
        assert counters.failed == 0
        assert counters.cancelled + counters.finished == counters.requests
        assert counters.cancelled > 0
        # What is kept of others has not been spoilt.
        for kind, expected in zip(kinds(), alone, strict=True):
            again = post(one, "completions", kind).json
            assert {c["index"]: c["text"] for c in again["choices"]} == expected
        until_idle(one)
        end = time.monotonic() + 60  # what has just been answered may still be on its way out
        while left := [t for t in tickets() if t.number > before]:
            assert time.monotonic() < end, left
            del left
    assert not [t for t in threading.enumerate() if t.name.startswith("votive ser")]


def asking(one: Server, body: dict[str, Any]) -> bytes:
    """A request as it goes over the wire."""
    data = json.dumps(body).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:{one.port}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_has_gone_ends_its_work(stream: bool) -> None:
    one_engine = engine()
    with serving(one_engine) as one:
        held(one_engine, lambda: all(t.cancelled for t in one_engine._admission.open.values()), after=8)

        async def client() -> None:
            _, writer = await asyncio.open_connection("127.0.0.1", one.port)
            writer.write(asking(one, {**ALL, "max_tokens": 400, "n": 4, "stream": stream}))
            await writer.drain()
            while one_engine.counters.completion_tokens < 8:
                await asyncio.sleep(0.002)
            writer.close()

        asyncio.run(client())
        until_idle(one)
        assert one_engine.counters.cancelled == 1
        assert one_engine.counters.completion_tokens < 20


def test_too_many_requests_are_told_when_to_come_back() -> None:
    one_engine = engine(max_texts=1, max_waiting=2)
    with serving(one_engine) as one:
        held(one_engine, lambda: one_engine.counters.refused >= 10)

        async def everything() -> list[int]:
            found = await asyncio.gather(*(streamed(one, ALL, None) for _ in range(12)))
            return [status for status, _ in found]

        assert sorted(asyncio.run(everything())) == [200] * 2 + [429] * 10
        assert post(one, "completions", ALL).status == 200

        one_engine._admission.max_waiting = 0
        held(one_engine, lambda: one_engine.counters.refused >= 11)
        first = threading.Thread(target=post, args=(one, "completions", ALL))
        first.start()
        while not one_engine.busy:
            time.sleep(0.002)
        full = post(one, "completions", ALL)
        first.join(120)
        assert full.status == 429
        assert full.error["type"] == "rate_limit_error"
        assert int(full.headers["retry-after"]) >= 1


def test_ending_the_server_ends_what_is_written_and_says_so() -> None:
    found: list[Any] = []
    one_engine = engine()
    with serving(one_engine) as one:
        held(one_engine, lambda: one.scheduler._ending, after=3)

        async def client() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
            writer.write(asking(one, {**ALL, "max_tokens": 480, "stream": True}))
            first = await asyncio.wait_for(reader.readuntil(b"data: "), 120)
            one.server.should_exit = True
            found.append(first + await asyncio.wait_for(reader.read(), 120))
            writer.close()

        asyncio.run(client())
    assert b'"code":"closing"' in found[0]
    assert b"[DONE]" not in found[0]
    assert one._thread is not None
    assert not one._thread.is_alive()
    assert not one.scheduler._thread.is_alive()


def test_an_error_in_the_middle_of_a_stream_is_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    from votive.serve.served_model import step_rows

    steps: list[int] = []

    def broken(*given: Any) -> Any:
        steps.append(1)
        if len(steps) == 5:
            raise RuntimeError("/secret/path")
        return step_rows(*given)

    monkeypatch.setattr("votive.serve.engine.step_rows", broken)
    with serving() as one:
        status, parts = asyncio.run(streamed(one, {**ALL, "max_tokens": 40}, None))
        assert status == 200
        assert parts[-1]["error"]["type"] == "server_error"
        assert "secret" not in str(parts)
        assert len(parts) > 1
        assert post(one, "completions", ALL).status == 200
        assert get(one, "/health").status == 200
