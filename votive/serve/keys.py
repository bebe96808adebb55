"""Who may ask, for what, and how much. Keys are compared in constant time and never shown."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from .errors import ApiError

GLASS = ("captures", "edits")


@dataclass
class Permissions:
    """What a key allows.

    `models` are names, None for all; `glass` is which of "captures" and "edits" (steering and skips are edits) may be
    asked for; `concurrent` how many requests at once, `per_minute` how many in a minute, `capture_bytes` how much of
    what is captured one request may bring back.

    >>> from votive.serve.keys import Permissions
    >>> Permissions.from_dict({"name": "lab", "glass": False}).glass
    ()
    """

    name: str = "anybody"
    models: tuple[str, ...] | None = None
    glass: tuple[str, ...] = GLASS
    max_tokens: int | None = None
    concurrent: int | None = None
    per_minute: int | None = None
    capture_bytes: int = 16 << 20
    running: int = field(default=0, repr=False)
    _times: deque[float] = field(default_factory=deque, repr=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Permissions:
        """From what a file of keys says of one; an unknown name is an error."""
        known = {f.name for f in fields(cls)} - {"running", "_times"}
        wrong = sorted(set(values) - known)
        if wrong:
            raise ValueError(f"keys: there is no {wrong[0]!r}; a key has {', '.join(sorted(known))}.")
        found = dict(values)
        glass = found.get("glass", True)
        if isinstance(glass, bool):
            found["glass"] = GLASS if glass else ()
        else:
            strange = sorted(set(glass) - set(GLASS))
            if strange:
                raise ValueError(f"keys: glass is true, false or some of {', '.join(GLASS)}; not {strange[0]!r}.")
            found["glass"] = tuple(glass)
        if found.get("models") is not None:
            found["models"] = tuple(found["models"])
        for name in ("max_tokens", "concurrent", "per_minute", "capture_bytes"):
            value = found.get(name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise ValueError(f"keys: {name} must be a whole number of at least 0, got {value!r}.")
        return cls(**found)

    def allows_model(self, name: str) -> bool:
        """Whether a model may be asked."""
        return self.models is None or name in self.models

    def enter(self) -> None:
        """Count a request; raises where there are too many. `leave` ends it."""
        if self.concurrent is not None and self.running >= self.concurrent:
            raise _too_many(f"this key allows {self.concurrent} requests at once.", 1)
        if self.per_minute is not None:
            now = time.monotonic()
            while self._times and self._times[0] <= now - 60:
                self._times.popleft()
            if len(self._times) >= self.per_minute:
                wait = 60 - (now - self._times[0]) if self._times else 60
                raise _too_many(f"this key allows {self.per_minute} requests a minute.", int(wait) + 1)
            self._times.append(now)
        self.running += 1

    def leave(self) -> None:
        """Know that a request has ended."""
        self.running -= 1


def _too_many(message: str, after: int) -> ApiError:
    return ApiError(429, message, kind="rate_limit_error", code="rate_limit_exceeded", retry_after=after)


class Keys:
    """All keys of a server; without any, everybody who reaches it may ask for what `allowed` says.

    >>> from votive.serve.keys import Keys
    >>> keys = Keys(["secret"])
    >>> keys.find("Bearer secret").name, keys.find("Bearer wrong")
    ('key 1', None)
    """

    def __init__(
        self, keys: Iterable[str] = (), allowed: Permissions | None = None, *, named: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self._open = allowed or Permissions()
        self._known: list[tuple[bytes, Permissions]] = []
        for i, key in enumerate(keys):
            self._add(_digest(key), replace(self._open, name=f"key {i + 1}", _times=deque()))
        for entry in named:
            values = dict(entry)
            key, digest = values.pop("key", None), values.pop("sha256", None)
            if (key is None) == (digest is None):
                raise ValueError("keys: each entry has a key, or the sha256 of one.")
            limits = {"max_tokens": self._open.max_tokens, "capture_bytes": self._open.capture_bytes}
            found = Permissions.from_dict({**limits, **values})
            self._add(_digest(key) if key is not None else _bytes_of(digest), found)

    def _add(self, digest: bytes, allowed: Permissions) -> None:
        if len(digest) != 32:
            raise ValueError("keys: a sha256 has 64 hexadecimal digits.")
        if any(secrets.compare_digest(digest, other) for other, _ in self._known):
            raise ValueError(f"keys: the key of {allowed.name!r} is given twice.")
        self._known.append((digest, allowed))

    @classmethod
    def read(cls, path: str | Path, keys: Iterable[str] = (), allowed: Permissions | None = None) -> Keys:
        """From a file with a key in each line, or with JSON: `{"keys": [{"name": …, "key": … or "sha256": …, …}]}`."""
        text = Path(path).expanduser().read_text(encoding="utf-8")
        if not text.lstrip().startswith(("{", "[")):
            lines = [line.strip() for line in text.splitlines()]
            found = [line for line in lines if line and not line.startswith("#")]
            if not found:
                raise ValueError(f"{path} holds no keys; write one in each line.")
            return cls([*keys, *found], allowed)
        try:
            said = json.loads(text)
        except ValueError as error:
            raise ValueError(f"{path} is neither lines of keys nor JSON: {error}.") from None
        listed = said.get("keys") if isinstance(said, dict) else None
        if not isinstance(listed, list) or not all(isinstance(e, dict) for e in listed):
            raise ValueError(f'{path} is no file of keys: it must be {{"keys": [{{"name": …, "key": …}}, …]}}.')
        return cls(keys, allowed, named=listed)

    def __bool__(self) -> bool:
        return bool(self._known)

    def find(self, header: str | None) -> Permissions | None:
        """What whoever sends this Authorization header may do; None for strangers."""
        if not self._known:
            return self._open
        kind, _, given = (header or "").partition(" ")
        if kind.lower() != "bearer" or not given.strip():
            return None
        digest, found = _digest(given.strip()), None
        for known, allowed in self._known:  # all of them are compared, whichever it is
            if secrets.compare_digest(digest, known):
                found = allowed
        return found


def _bytes_of(digest: Any) -> bytes:
    try:
        return bytes.fromhex(digest)
    except (TypeError, ValueError):
        raise ValueError("keys: a sha256 has 64 hexadecimal digits.") from None


def _digest(key: str) -> bytes:
    if not key:
        raise ValueError("keys: a key must not be empty.")
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
