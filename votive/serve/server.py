"""Running a server: a port, a thread for the models, an end at which nothing is lost. Knows no requests."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import sys
import threading
import time

import uvicorn

from .app import Application, Gate, build
from .connections import Patient
from .keys import Keys
from .registry import Registry
from .scheduler import Scheduler


class _Server(uvicorn.Server):
    """Ends what is being written before it waits for connections to close."""

    def __init__(self, config: uvicorn.Config, scheduler: Scheduler) -> None:
        super().__init__(config)
        self.scheduler = scheduler

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.scheduler.close)
        await super().shutdown(sockets)


class Server:
    """Serves the models of a registry on a port of this machine.

    >>> from votive.serve.registry import Registry
    >>> server = Server(Registry())
    >>> server.url.startswith("http://127.0.0.1:")
    True
    >>> server.close()
    """

    def __init__(self, registry: Registry, *, host: str = "127.0.0.1", port: int = 0, keys: Keys | None = None) -> None:
        keys = Keys() if keys is None else keys  # one without any may have limits all the same
        if not keys and not is_loopback(host):
            raise ValueError(
                f"serve: other machines can reach {host}, so those who ask need a key; give --api-key KEY or "
                "--api-key-file FILE."
            )
        self.host, self.registry = host, registry
        self._socket = _bound(host, port)
        self.port = int(self._socket.getsockname()[1])
        self.scheduler = Scheduler(registry.engines())
        self.application = Application(Gate(keys, host, self.port), registry, self.scheduler)
        config = uvicorn.Config(
            build(self.application),
            http=Patient,
            ws="none",
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=5,
            h11_max_incomplete_event_size=16384,
            lifespan="off",
        )
        self.server = _Server(config, self.scheduler)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where it is reached; clients of OpenAI's interface add `/v1`."""
        name = "127.0.0.1" if self.host in ("0.0.0.0", "::", "") else self.host
        return f"http://[{name}]:{self.port}" if ":" in name else f"http://{name}:{self.port}"

    def run(self) -> None:
        """Serve until `stop`, or until the process is asked to end."""
        self.scheduler.start()
        try:
            self.server.run(sockets=[self._socket])
        except KeyboardInterrupt:  # how it is meant to end
            print("\nStopped by Ctrl-C.", file=sys.stderr)
        finally:
            self.scheduler.close()
            self.close()

    def start(self) -> Server:
        """Serve in a thread of its own."""
        self._thread = threading.Thread(target=self.run, name="votive server", daemon=True)
        self._thread.start()
        while not self.server.started and self._thread.is_alive():
            time.sleep(0.005)
        if not self.server.started:
            raise RuntimeError("serve: the server has ended before it began; its log says why.")
        return self

    def stop(self) -> None:
        """End, and wait for it."""
        self.server.should_exit = True
        if self._thread is not None:
            self._thread.join(20)

    def close(self) -> None:
        """Give the port back."""
        self._socket.close()

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> from votive.serve.server import is_loopback
    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(512)
    except OSError as e:
        made.close()
        if isinstance(e, socket.gaierror):
            text = f"this machine does not know the address {host!r}; leave out --host"
        elif e.errno == errno.EADDRINUSE:
            text = f"port {port} is in use; choose another with --port, or --port 0 to take a free one"
        else:
            text = f"port {port} of {host} cannot be opened ({e.strerror}); choose another with --port"
        raise OSError(f"serve: {text}.") from None
    return made
