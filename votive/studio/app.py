"""The web application: which addresses there are and who may ask. Knows no actions.

A page needs the server's token, once in its address and then as a cookie. Every request must name
this server as its host, which a page of another site that has bent a name to this machine does
not; and a WebSocket must come from a page of this server.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from . import protocol
from .actions import actions
from .connection import FIRST, Connection, receive
from .workspaces import Workspaces

STATIC = Path(__file__).parent / "static"
CONNECTIONS = 64
# WebSockets that have not shown the token yet; of more, those that have waited longest are ended.
STRANGERS = 16
_KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".json": "application/json",
}
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Gate:
    """Who may ask: the token, and the names this server is called by."""

    def __init__(self, token: str, port: int, host: str = "127.0.0.1") -> None:
        self.token, self.port = token, port
        self.cookie = f"votive_studio_{port}"  # cookies do not tell ports apart
        names = {"127.0.0.1", "localhost", "[::1]"}
        # Another host was asked for: its name, and any address, which no rebound name can be.
        self.any_address = host in ("0.0.0.0", "::", "")
        names.add(f"[{host}]" if ":" in host else host)
        self.hosts = {f"{n}:{port}" for n in names} | ({*names} if port == 80 else set())

    def knows_host(self, request: HTTPConnection) -> bool:
        """Whether a request names this server."""
        hosts = request.headers.getlist("host")
        if len(hosts) != 1:
            return False
        if hosts[0].lower() in self.hosts:
            return True
        name, _, port = hosts[0].rpartition(":")
        return self.any_address and port == str(self.port) and _is_address(name)

    def knows_origin(self, request: HTTPConnection) -> bool:
        """Whether a request comes from a page of this server."""
        origins = request.headers.getlist("origin")
        return len(origins) == 1 and origins[0].lower() == f"http://{request.headers['host']}".lower()

    def is_token(self, given: str | None) -> bool:
        if given is None:
            return False
        # What is no text is no token either, and must not be an error.
        said = given.encode("utf-8", "surrogatepass")
        return secrets.compare_digest(said, self.token.encode())

    def has_cookie(self, request: HTTPConnection) -> bool:
        return self.is_token(request.cookies.get(self.cookie))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def static_files(root: Path = STATIC) -> dict[str, Path]:
    """The table of files that are served, by address; nothing else can be asked for."""
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.suffix in _KINDS:
            name = path.relative_to(root).as_posix()
            found[f"/static/{name}"] = path
    return found


def build(gate: Gate, workspaces: Workspaces, *, static: Path = STATIC) -> Starlette:
    """The application."""
    actions()  # imported before the first request, which would wait for it
    files = static_files(static)
    index = static / "index.html"
    connections: set[Connection] = set()
    strangers: dict[WebSocket, asyncio.Task[Any]] = {}  # the one that came first is first

    def refused(request: Request) -> Response | None:
        if not gate.knows_host(request):
            return PlainTextResponse("This is not the host you asked for.", 421, HEADERS)
        if not gate.has_cookie(request) and not gate.is_token(request.query_params.get("token")):
            text = "Open the address that votive studio printed: it has a token."
            return PlainTextResponse(text, 403, HEADERS)
        return None

    async def page(request: Request) -> Response:
        if (no := refused(request)) is not None:
            return no
        if not index.is_file():
            return PlainTextResponse("This installation has no page.", 500, HEADERS)
        response = FileResponse(index, headers=HEADERS, media_type="text/html")
        response.set_cookie(gate.cookie, gate.token, httponly=True, samesite="strict", path="/")
        return response

    async def file(request: Request) -> Response:
        if (no := refused(request)) is not None:
            return no
        path = files.get(request.url.path)
        if path is None:
            return PlainTextResponse("There is no such file.", 404, HEADERS)
        return FileResponse(path, headers=HEADERS, media_type=_KINDS[path.suffix])

    async def socket(ws: WebSocket) -> None:
        known = gate.has_cookie(ws)
        # Who has not shown the token takes no place from those who have.
        status = _admitted(ws, gate, len(connections) if known else 0)
        if status is not None:
            await ws.send_denial_response(PlainTextResponse(status[1], status[0], HEADERS))
            return
        one = Connection(ws, workspaces)
        first: str | None = None
        try:
            if known:
                connections.add(one)
                await ws.accept()
            else:
                first = await introduced(ws)
                if first is None:
                    return
                if len(connections) >= CONNECTIONS:
                    await ws.close(1013, _FULL)
                    return
                connections.add(one)
            await one.serve(first)
        except (WebSocketDisconnect, RuntimeError):
            pass  # it has gone
        finally:
            connections.discard(one)

    async def introduced(ws: WebSocket) -> str | None:
        """The first frame, without the token that it must bring; None where it does not."""
        await ws.accept()
        waiting = asyncio.ensure_future(_introduction(ws))
        strangers[ws] = waiting
        while len(strangers) > STRANGERS:
            # Not the new one is refused: it may be the owner's.
            oldest = next(iter(strangers))
            strangers.pop(oldest).cancel()
        try:
            said = await waiting
        except asyncio.CancelledError:
            if not waiting.cancelled():
                raise  # the server ends
            said = None
        finally:
            strangers.pop(ws, None)
        if said is not None and gate.is_token(said.token):
            return json.dumps({"workspace": said.workspace})
        await ws.close(4401, "the token is missing or wrong")
        return None

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async def sweeping() -> None:
            while True:
                await asyncio.sleep(min(1.0, workspaces.grace / 4))
                workspaces.sweep()

        task = asyncio.create_task(sweeping())
        try:
            yield
        finally:
            task.cancel()
            workspaces.close_all()

    app = Starlette(
        routes=[
            Route("/", page, methods=["GET"]),
            Route("/static/{path:path}", file, methods=["GET"]),
            WebSocketRoute("/ws", socket),
        ],
        exception_handlers={404: _missing, 405: _missing},
        lifespan=lifespan,
    )
    app.state.connections, app.state.strangers = connections, strangers
    app.state.workspaces = workspaces
    return app


async def _missing(request: Request, error: Exception) -> Response:
    return PlainTextResponse("There is nothing here.", getattr(error, "status_code", 404), HEADERS)


def _admitted(ws: WebSocket, gate: Gate, count: int) -> tuple[int, str] | None:
    """Why a WebSocket is refused; None lets it in."""
    if not gate.knows_host(ws):
        return 421, "This is not the host you asked for."
    if not gate.knows_origin(ws):
        return 403, "Only the studio's own page may connect."
    if count >= CONNECTIONS:
        return 503, _FULL
    return None


_FULL = f"There are {CONNECTIONS} connections already; close a tab."


async def _introduction(ws: WebSocket) -> protocol.Enter | None:
    """What a page without a cookie says of itself in its first frame, in time."""
    try:
        said = protocol.read(await asyncio.wait_for(receive(ws), FIRST))
    except (TimeoutError, protocol.BadFrame):
        return None
    return said if isinstance(said, protocol.Enter) else None
