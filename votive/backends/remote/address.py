"""Addresses of devices elsewhere: `remote://host:port`, with the token and the certificate that go with them."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ...core.errors import DeviceError

PORT = 7070
TOKEN = "VOTIVE_REMOTE_TOKEN"
CA = "VOTIVE_REMOTE_CA"


@dataclass(frozen=True)
class Address:
    """Where a server listens. `ca` is a file of certificates to trust, "system" for the machine's, None without TLS."""

    host: str
    port: int
    token: str = field(default="", repr=False)
    ca: str | None = None

    @property
    def url(self) -> str:
        return f"remote://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @classmethod
    def parse(cls, url: str, token: str | None = None, ca: str | None = None) -> Address:
        """The address of a URL; what is not given comes from the environment.

        >>> from votive.backends.remote.address import Address
        >>> Address.parse("remote://gpu-box").url
        'remote://gpu-box:7070'
        """
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            parts, host, port = urlsplit(""), None, None
        if parts.scheme != "remote" or not host or parts.path not in ("", "/") or parts.query or parts.username:
            raise DeviceError(f"device: {url!r} is no address of a device; write 'remote://host:port'.")
        token = os.environ.get(TOKEN, "") if token is None else token
        ca = (os.environ.get(CA) or None) if ca is None else ca
        return cls(host, PORT if port is None else port, token, ca)


def keep_alive(line: socket.socket) -> None:
    """Send what is written at once, and notice within a minute or two that the other machine is gone."""
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, seconds in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)
