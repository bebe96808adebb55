"""A machine elsewhere as a device: `votive.device("remote://host:port")`, and what goes with it. See docs/remote.md.

Tensors on such a device live on the server that `votive device serve` started there. Operators are sent and not
waited for; reading a value waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..backends.base import BACKENDS
from ..backends.remote import connections, wire
from ..backends.remote.address import Address
from ..backends.remote.connection import Connection
from ..backends.remote.errors import RemoteConnectionError, RemoteError
from ..backends.remote.views import RemoteStorage, RemoteView
from ..core import rng
from ..core.device import DeviceLike, device, resolve
from ..core.errors import DeviceError
from ..dispatch import make
from ..tensor import Tensor

__all__ = [
    "RemoteConnectionError",
    "RemoteError",
    "connect",
    "delete",
    "disconnect",
    "load",
    "resume",
    "save",
    "saved",
    "serve",
    "status",
    "synchronize",
]


def connect(url: str, token: str | None = None, ca: str | None = None, *, new: bool = False) -> device:
    """Connect to a server now, and give the device that stands for it.

    `token` is what the server was started with (else `VOTIVE_REMOTE_TOKEN`). `ca` is a file with the certificate to
    trust, or "system", and asks for TLS (else `VOTIVE_REMOTE_CA`). With `new` it is a session of its own beside one
    that this process has already.

    >>> try:
    ...     votive.remote.connect("remote://127.0.0.1:1")
    ... except votive.remote.RemoteConnectionError as e:
    ...     print("nothing answers" in str(e))
    True
    """
    _ = BACKENDS["remote"]
    place = connections.place(Address.parse(url, token, ca), another=new)
    connections.of(place).open()
    return place


def serve(host: str = "127.0.0.1", port: int = 7070, *, device: str = "cpu", **options: Any) -> Any:
    """Serve this machine from Python, as `votive device serve` does: a server with `url`, `wait()` and `close()`.

    `options` are those of `votive.remote.server.front.Settings`: token, certificate, key, memory (bytes of each
    client), clients, grace (seconds), store, store_limit, threads. Port 0 takes a free one.

    >>> with votive.remote.serve(port=0) as server:
    ...     place = votive.remote.connect(server.url)
    ...     total = votive.ones(3, device=place).sum().item()
    ...     votive.remote.disconnect(place)
    >>> total
    3.0
    """
    from .server.front import DeviceServer, Settings

    return DeviceServer(Settings(host, port, device, **options))


def _connection(where: DeviceLike) -> Connection:
    place = resolve("remote" if where is None else where)
    if place.type != "remote":
        raise DeviceError(f"remote: {str(place)!r} is a device of this machine.")
    return connections.of(place)


def synchronize(device: DeviceLike = None) -> None:
    """Wait until everything sent was computed; raises what went wrong meanwhile.

    >>> try:
    ...     votive.remote.synchronize("cpu")
    ... except RuntimeError as e:
    ...     print(e)
    remote: 'cpu' is a device of this machine.
    """
    _connection(device).wait()


def disconnect(device: DeviceLike = None) -> None:
    """End the session: what it holds on the server is freed. Nothing can be computed with its tensors any more.

    >>> try:
    ...     votive.remote.disconnect("cpu")
    ... except RuntimeError as e:
    ...     print(e)
    remote: 'cpu' is a device of this machine.
    """
    connection = _connection(device)
    connection.close()
    rng.forget(resolve(connection.device))


def resume(device: DeviceLike = None) -> dict[str, int]:
    """Connect again after the connection broke, and say how many tensors the server still has and how many are lost.

    Lost is what had not reached the server, and everything if the session is over. Reading a lost tensor raises.

    >>> try:
    ...     votive.remote.resume("cpu")
    ... except RuntimeError as e:
    ...     print(e)
    remote: 'cpu' is a device of this machine.
    """
    connection = _connection(device)
    connection.open(again=True)
    return {"kept": len(connection.live), "lost": len(connection.lost)}


def status(device: DeviceLike = None) -> dict[str, Any]:
    """What is known of a connection: its address, the server's device, and counts of messages, waits and bytes.

    >>> try:
    ...     votive.remote.status("cpu")
    ... except RuntimeError as e:
    ...     print(e)
    remote: 'cpu' is a device of this machine.
    """
    return _connection(device).status()


def save(name: str, tensors: Tensor | Mapping[str, Tensor]) -> None:
    """Keep tensors on their server under a name, for as long as the server runs; a state_dict is kept whole.

    >>> try:
    ...     votive.remote.save("w", votive.zeros(2))
    ... except RuntimeError as e:
    ...     print(e)
    remote.save: takes tensors of a remote device, got one on cpu.
    """
    many = isinstance(tensors, Mapping)
    for key, t in dict(tensors).items() if isinstance(tensors, Mapping) else [("", tensors)]:
        if not isinstance(t, Tensor) or t.device.type != "remote":
            what = f"one on {t.device}" if isinstance(t, Tensor) else type(t).__name__
            raise DeviceError(f"remote.save: takes tensors of a remote device, got {what}.")
        data: RemoteView = t.detach()._data
        connection = data.connection
        whole = _name(f"{name}/{key}" if many else name)
        with connection.lock:
            part = wire.PART.pack(data.id, data.offset, connection.spec_number(data.spec))
            connection.ask(wire.SAVE, part + whole)


def load(name: str, device: DeviceLike = None) -> Any:
    """What was saved under a name, as new tensors on the server: a tensor, or a dict of them.

    >>> try:
    ...     votive.remote.load("w", "cpu")
    ... except RuntimeError as e:
    ...     print(e)
    remote: 'cpu' is a device of this machine.
    """
    connection = _connection(device)
    known = connection.ask(wire.LIST, b"")
    if name in known:
        return _loaded(connection, name)
    keys = [k for k in known if k.startswith(f"{name}/")]
    if not keys:
        raise KeyError(f"nothing was saved as {name!r} on {connection.address.url}; there is {', '.join(known) or '-'}")
    return {k[len(name) + 1 :]: _loaded(connection, k) for k in keys}


def _loaded(connection: Connection, name: str) -> Tensor:
    number = connection.number()
    answer = connection.ask(wire.LOAD, wire.STORAGE.pack(number) + _name(name))
    spec = wire.spec_of(answer, device("remote", connection.index))
    connection.holds(range(number, number + 1))
    storage = RemoteStorage(connection, number, spec.nbytes)
    return make(storage, RemoteView(storage, spec), spec)


def saved(device: DeviceLike = None) -> list[str]:
    """The names of what was saved on a server.

    >>> try:
    ...     votive.remote.saved("cpu")
    ... except RuntimeError as e:
    ...     print(e)
    remote: 'cpu' is a device of this machine.
    """
    return list(_connection(device).ask(wire.LIST, b""))


def delete(name: str, device: DeviceLike = None) -> None:
    """Forget what was saved under a name.

    >>> try:
    ...     votive.remote.delete("w", "cpu")
    ... except RuntimeError as e:
    ...     print(e)
    remote: 'cpu' is a device of this machine.
    """
    connection = _connection(device)
    known = connection.ask(wire.LIST, b"")
    found = [k for k in known if k == name or k.startswith(f"{name}/")]
    if not found:
        raise KeyError(f"nothing was saved as {name!r} on {connection.address.url}.")
    for k in found:
        connection.ask(wire.DELETE, _name(k))


def _name(name: str) -> bytes:
    if not isinstance(name, str) or not 0 < len(name) <= wire.NAME_LIMIT:
        raise ValueError(f"remote: a name is a text of 1 to {wire.NAME_LIMIT} characters, got {name!r}.")
    return name.encode()
