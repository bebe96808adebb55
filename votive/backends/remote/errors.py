"""What goes wrong with a device elsewhere, and errors of the server as exceptions here. Knows no connection."""

from __future__ import annotations

import builtins
from typing import Any

from ...core import errors
from ...core.errors import DeviceError


class RemoteError(DeviceError):
    """A device elsewhere did not do what was asked.

    >>> issubclass(votive.remote.RemoteError, RuntimeError)
    True
    """


class RemoteConnectionError(RemoteError, ConnectionError):
    """The connection to a device elsewhere broke; the message says what is lost and what can be got back.

    >>> issubclass(votive.remote.RemoteConnectionError, ConnectionError)
    True
    """


# What operators raise; a server names one of these, never anything else.
_KNOWN: dict[str, type[Exception]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)
}
_KNOWN |= {
    name: getattr(builtins, name)
    for name in [
        "ValueError",
        "TypeError",
        "IndexError",
        "KeyError",
        "RuntimeError",
        "NotImplementedError",
        "OverflowError",
        "ZeroDivisionError",
        "ArithmeticError",
        "FloatingPointError",
    ]
}
_KNOWN["MemoryError"] = errors.OutOfMemoryError
_KNOWN["RemoteError"] = RemoteError


def error_data(e: Exception) -> dict[str, str]:
    """An exception as its nearest known name and its text."""
    name = next((c.__name__ for c in type(e).__mro__ if _KNOWN.get(c.__name__) is c), "RemoteError")
    if isinstance(e, MemoryError):
        name = "MemoryError"
    return {"type": name, "text": str(e)[:4000]}


def raised(data: Any) -> Exception:
    """The exception that a server's answer describes."""
    if not isinstance(data, dict):
        return RemoteError("the server answered with an error that it did not describe.")
    kind = _KNOWN.get(str(data.get("type")), RemoteError)
    return kind(str(data.get("text")))
