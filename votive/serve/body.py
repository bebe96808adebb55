"""Reading requests: sizes, times, text and nesting are bounded before anything looks at them."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from ..core.similar import did_you_mean
from .errors import ApiError, wrong

LARGEST = 8 << 20
SECONDS = 30.0
DEEPEST = 64


async def read_bytes(request: Request, largest: int = LARGEST, seconds: float = SECONDS) -> bytes:
    """The body of a request, of at most `largest` bytes that must come within some seconds."""
    told = request.headers.get("content-length")
    if told is not None and told.isascii() and told.isdigit() and int(told) > largest:
        raise _large(largest)

    async def parts() -> bytes:
        found = bytearray()
        async for part in request.stream():
            found += part
            if len(found) > largest:
                raise _large(largest)
        return bytes(found)

    try:
        return await asyncio.wait_for(parts(), seconds)
    except TimeoutError:
        raise ApiError(408, f"the request did not come within {seconds:g} seconds.") from None
    except ClientDisconnect:
        raise ApiError(400, "the connection was closed before the request was complete.") from None


def _large(largest: int) -> ApiError:
    return ApiError(413, f"a request has at most {largest:,} bytes.")


async def read_json(request: Request, largest: int = LARGEST) -> dict[str, Any]:
    """The JSON object that a request brings."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        # A page of another site may send other types without being asked; it must not be able to ask this server.
        raise ApiError(415, "send Content-Type: application/json.")
    return await run_in_threadpool(parsed, await read_bytes(request, largest))


def parsed(body: bytes) -> dict[str, Any]:
    """JSON in UTF-8, without numbers that are none, not nested deeper than sixty-four times.

    >>> from votive.serve.body import parsed
    >>> parsed(b'{"n": 1}')
    {'n': 1}
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise wrong(f"the request is not UTF-8: {error.reason} at byte {error.start}.") from None
    try:
        found = json.loads(
            text, parse_constant=_no_number, parse_int=_whole, parse_float=_finite, object_pairs_hook=_object
        )
    except ApiError:
        raise
    except RecursionError:
        raise wrong(f"the request is nested deeper than {DEEPEST} times.") from None
    except ValueError as error:
        raise wrong(f"the request is not JSON: {error}.") from None
    if _deeper(found):
        raise wrong(f"the request is nested deeper than {DEEPEST} times.")
    if not isinstance(found, dict):
        raise wrong("the request must be a JSON object.")
    try:
        text = json.dumps(found, ensure_ascii=False)
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise wrong("the request has half characters (surrogates).") from None
    return found


def _deeper(value: Any) -> bool:
    """Whether lists and objects lie in each other more than `DEEPEST` times."""
    level = [value]
    for _ in range(DEEPEST + 1):
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inner += one.values()
            elif isinstance(one, list):
                inner += one
        level = [v for v in inner if isinstance(v, (dict, list))]
        if not level:
            return False
    return True


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise wrong(f"the request has {next(n for n in names if names.count(n) > 1)!r:.100} twice in one object.")
    return found


def _no_number(name: str) -> Any:
    raise wrong(f"the request is not JSON: {name} is no number there.")


def _whole(text: str) -> int:
    if len(text) > 40:
        raise wrong("the request has a number of more than 40 digits.")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise wrong("the request has a number beyond all bounds.")
    return value


class Fields:
    """The fields of an object, each read once by its type; what nobody has read is an error at the end.

    >>> from votive.serve.body import Fields
    >>> fields = Fields({"n": 2, "tmperature": 1})
    >>> fields.whole("n", low=1, high=8), fields.number("temperature")
    (2, None)
    >>> fields.end()
    Traceback (most recent call last):
    votive.serve.errors.ApiError: there is no field 'tmperature'. Did you mean 'temperature'?
    """

    def __init__(self, values: dict[str, Any], name: str = "") -> None:
        self.values, self.name = values, name
        self._read: set[str] = set()

    def path(self, name: str) -> str:
        """A field as messages call it."""
        return f"{self.name}.{name}" if self.name else name

    def wrong(self, name: str, rule: str) -> ApiError:
        """The error of a field whose value is none of its own."""
        return wrong(f"{self.path(name)} must be {rule}.", self.path(name))

    def any(self, name: str) -> Any:
        """A value of any type; None where it is not there."""
        self._read.add(name)
        return self.values.get(name)

    def text(self, name: str, *, longest: int | None = None) -> str | None:
        """A text."""
        value = self.any(name)
        if value is not None and not isinstance(value, str):
            raise self.wrong(name, "a text")
        if value is not None and longest is not None and len(value) > longest:
            raise self.wrong(name, f"at most {longest:,} characters long")
        return value

    def truth(self, name: str, default: bool = False) -> bool:
        """True or false."""
        value = self.any(name)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return default if value is None else value

    def whole(self, name: str, *, low: int | None = None, high: int | None = None) -> int | None:
        """A whole number within bounds."""
        value = self.any(name)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(name, "a whole number")
        if (low is not None and value < low) or (high is not None and value > high):
            raise self.wrong(name, _bounds(low, high))
        return value

    def number(self, name: str, *, low: float | None = None, high: float | None = None) -> float | None:
        """A number within bounds."""
        value = self.any(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong(name, "a number")
        if (low is not None and value < low) or (high is not None and value > high):
            raise self.wrong(name, _bounds(low, high))
        return float(value)

    def listed(self, name: str, *, most: int = 4096) -> list[Any] | None:
        """A list."""
        value = self.any(name)
        if value is not None and not isinstance(value, list):
            raise self.wrong(name, "a list")
        if value is not None and len(value) > most:
            raise self.wrong(name, f"a list of at most {most:,}")
        return value

    def table(self, name: str) -> dict[str, Any] | None:
        """An object."""
        value = self.any(name)
        if value is not None and not isinstance(value, dict):
            raise self.wrong(name, "an object")
        return value

    def one_of(self, name: str, allowed: tuple[str, ...]) -> str | None:
        """One of some texts."""
        value = self.text(name)
        if value is not None and value not in allowed:
            raise self.wrong(name, f"one of {', '.join(allowed)}")
        return value

    def ignored(self, *names: str) -> None:
        """Fields that say nothing about the answer."""
        self._read |= set(names)

    def only(self, name: str, *allowed: Any, instead: str) -> None:
        """A field of which this server can do nothing but the usual."""
        value = self.any(name)
        if value is not None and value not in allowed:
            raise wrong(f"{self.path(name)} is not supported here; {instead}.", self.path(name), "unsupported")

    def end(self) -> None:
        """Raise for a field that nobody has read: it would be silently without effect."""
        unknown = [n for n in self.values if n not in self._read]
        if unknown:
            hint = did_you_mean(unknown[0], sorted(self._read))
            raise wrong(f"there is no field {self.path(unknown[0])!r:.100}.{hint}", self.path(unknown[0])[:100])


def _bounds(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"between {low:g} and {high:g}"
    return f"at least {low:g}" if low is not None else f"at most {high:g}"
