"""The connections of this process: addresses become devices `remote:0`, `remote:1`, …"""

from __future__ import annotations

import atexit
import threading
from typing import NoReturn

from ...core.device import device
from ...core.errors import DeviceError
from .address import Address
from .connection import Connection

ALL: list[Connection] = []
_lock = threading.Lock()


def place(address: Address, *, another: bool = False) -> device:
    """The device at an address: the one that is there, or `another` session with the same server."""
    with _lock:
        if not another:
            for c in ALL:
                if c.address.url == address.url and not c.closed and (c.address == address or not c.is_open):
                    c.address = address
                    return device("remote", c.index)
        made = Connection(address, len(ALL))
        ALL.append(made)
        return device("remote", made.index)


@atexit.register
def _leave() -> None:
    """Tell the servers that nobody will come back; otherwise they would keep everything for a while."""
    for c in ALL:
        if c.is_open and c.is_own:
            c.close(within=5.0)


def at(url: str) -> device:
    """What `device("remote://host:port")` is. Nothing is sent before a tensor is placed there."""
    return place(Address.parse(url))


def of(where: device) -> Connection:
    """The connection behind a device."""
    index = 0 if where.index is None else where.index
    if index >= len(ALL):
        _none(where)
    return ALL[index]


def _none(where: device) -> NoReturn:
    known = ", ".join(f"remote:{c.index} is {c.address.url}" for c in ALL) or "none has been named yet"
    raise DeviceError(
        f"device: there is no connection for {str(where)!r}; {known}. "
        "Connect with votive.device('remote://host:port') or votive.remote.connect('remote://host:port')."
    )


def current() -> int:
    """The index that "remote" alone means: the connection that was made last and is not closed."""
    return next((c.index for c in reversed(ALL) if not c.closed), 0)


def names() -> list[str]:
    """The devices that have been named."""
    return [f"remote:{c.index}" for c in ALL if not c.closed]
