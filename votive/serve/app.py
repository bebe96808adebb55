"""The web application: which addresses there are, who may ask, how answers go out. Knows no engine's insides."""

from __future__ import annotations

import asyncio
import ipaddress
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from .._version import __version__
from . import ollama
from .body import Fields, read_json
from .embeddings import asked_embeddings
from .errors import ApiError, as_api_error, of_request
from .events import Closing, Done, Event, Failed
from .form import read_form
from .keys import Keys, Permissions
from .metrics import Measured, prometheus
from .registry import Registry
from .request_parsing import Asked, asked_chat, asked_completion
from .scheduler import Scheduler
from .streaming import EventStream, Following, Gone, failure, gathered, sse, unless_gone
from .transcriptions import asked_transcription

HEADERS = {"x-content-type-options": "nosniff", "cache-control": "no-store", "referrer-policy": "no-referrer"}
Understood = TypeVar("Understood")
Answering = Callable[[Request, Permissions], Awaitable[Any]]


class Gate:
    """Who may ask. Without keys a request must name this machine and come from no page of another site."""

    def __init__(self, keys: Keys, host: str, port: int) -> None:
        self.keys = keys
        names = {"127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host}
        self.any_address = host in ("0.0.0.0", "::", "")
        self.hosts = {f"{n}:{port}" for n in names} | ({*names} if port == 80 else set())
        self.port = port

    def admitted(self, request: Request) -> Permissions:
        """What whoever asks may do; raises for those who may not."""
        if not self.keys:
            self._check_page(request)
        found = self.keys.find(request.headers.get("authorization"))
        if found is None:
            raise ApiError(
                401,
                "give a key of this server: Authorization: Bearer KEY.",
                kind="authentication_error",
                code="invalid_api_key",
            )
        return found

    def _check_page(self, request: Request) -> None:
        hosts = request.headers.getlist("host")
        named = hosts[0].lower() if len(hosts) == 1 else ""
        name, _, port = named.rpartition(":")
        if named not in self.hosts and not (self.any_address and port == str(self.port) and _is_address(name)):
            raise ApiError(421, "this is not the host that was asked for.")
        origin = request.headers.get("origin")
        if origin is not None and origin.lower() != f"http://{named}":
            raise ApiError(403, "a page of another site may not ask this server without a key.")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


class Application:
    """What the addresses do."""

    def __init__(self, gate: Gate, registry: Registry, scheduler: Scheduler) -> None:
        self.gate, self.registry, self.scheduler = gate, registry, scheduler
        self.measured = Measured()

    # --- texts --------------------------------------------------------------------------------------

    async def chat(self, request: Request, allowed: Permissions) -> Any:
        """/v1/chat/completions."""
        body = await read_json(request)
        asked = await _understood(asked_chat, body, self.registry, allowed)
        return await self._answered(request, asked, allowed)

    async def completion(self, request: Request, allowed: Permissions) -> Any:
        """/v1/completions."""
        body = await read_json(request)
        asked = await _understood(asked_completion, body, self.registry, allowed)
        return await self._answered(request, asked, allowed)

    async def _answered(self, request: Request, asked: Asked, allowed: Permissions) -> Any:
        if asked.stream:
            return await self.streamed(request, asked, allowed, self._parts, "text/event-stream")
        await self.complete(request, asked)
        return JSONResponse(asked.answer.whole(), headers=HEADERS)

    async def complete(self, request: Request, asked: Asked) -> None:
        """Wait for all of an answer; a client that has gone ends it."""
        following = Following(asked)
        try:
            await _understood(following.begin)
            await unless_gone(request, gathered(following, asked))
        finally:
            following.cancel()

    async def streamed(
        self,
        request: Request,
        asked: Asked,
        allowed: Permissions,
        parts: Callable[[Asked, Following, Event], AsyncIterator[str]],
        media_type: str,
    ) -> EventStream:
        """An answer in parts. What is wrong before the first token is an error like any other."""
        following = Following(asked)
        try:
            await _understood(following.begin)
            first = await unless_gone(request, following.next())
            if isinstance(first, Failed):
                raise failure(first)
        except BaseException:
            following.cancel()
            raise

        def closed() -> None:
            following.cancel()
            allowed.leave()

        stream = EventStream(parts(asked, following, first), closed, media_type, HEADERS)
        # From here on the stream itself tells when the request is over.
        request.state.left = True
        return stream

    async def embeddings(self, request: Request, allowed: Permissions) -> Any:
        """/v1/embeddings."""
        body = await read_json(request)
        asked = await _understood(asked_embeddings, body, self.registry, allowed)
        for part in asked.parts():  # models are run by one thread only, which does other things in between
            await unless_gone(request, asyncio.wrap_future(self.scheduler.call(part)))
        return JSONResponse(asked.answer(), headers=HEADERS)

    async def transcription(self, request: Request, allowed: Permissions) -> Any:
        """/v1/audio/transcriptions."""
        return await self._heard(request, allowed, "transcribe")

    async def translation(self, request: Request, allowed: Permissions) -> Any:
        """/v1/audio/translations."""
        return await self._heard(request, allowed, "translate")

    async def _heard(self, request: Request, allowed: Permissions, task: str) -> Any:
        parts = await read_form(request)
        asked = await _understood(asked_transcription, parts, self.registry, allowed, task)
        gone = threading.Event()

        def between() -> None:
            if gone.is_set() or self.scheduler.ending:
                raise Closing
            self.scheduler.step()

        try:
            found = await unless_gone(request, asyncio.wrap_future(self.scheduler.call(lambda: asked.run(between))))
        finally:
            gone.set()
        if isinstance(found, str):
            return PlainTextResponse(found, headers=HEADERS)
        return JSONResponse(found, headers=HEADERS)

    async def _parts(self, asked: Asked, following: Following, event: Event) -> AsyncIterator[str]:
        while True:
            if isinstance(event, Failed):
                yield sse(as_api_error(self.logged(failure(event))).body())
                return
            for part in asked.answer.take(event):
                yield sse({**part, "usage": None} if asked.usage_in_stream else part)
            if isinstance(event, Done):
                for part in asked.answer.last_parts(asked.usage_in_stream):
                    yield sse(part)
                yield "data: [DONE]\n\n"
                return
            event = await following.next()

    # --- Ollama's interface --------------------------------------------------------------------------

    async def ollama_chat(self, request: Request, allowed: Permissions) -> Any:
        """/api/chat."""
        return await self._ollama(request, allowed, chat=True)

    async def ollama_generate(self, request: Request, allowed: Permissions) -> Any:
        """/api/generate."""
        return await self._ollama(request, allowed, chat=False)

    async def _ollama(self, request: Request, allowed: Permissions, chat: bool) -> Any:
        body = await read_json(request)
        asked = await _understood(ollama.asked_ollama, body, self.registry, allowed, chat)
        told = ollama.Told(asked, chat)
        if not asked.stream:
            await self.complete(request, asked)
            return JSONResponse(told.whole(), headers=HEADERS)

        async def parts(asked: Asked, following: Following, event: Event) -> AsyncIterator[str]:
            while True:
                if isinstance(event, Failed):
                    yield ollama.line({"error": as_api_error(self.logged(failure(event))).message})
                    return
                for part in told.parts(event):
                    yield part
                if isinstance(event, Done):
                    yield ollama.line(told.end())
                    return
                event = await following.next()

        return await self.streamed(request, asked, allowed, parts, "application/x-ndjson")

    async def ollama_embed(self, request: Request, allowed: Permissions) -> Any:
        """/api/embed."""
        body = await read_json(request)
        fields = Fields(body)
        made = {"input": fields.any("input"), "model": ollama.model_named(fields.any("model"), self.registry)}
        fields.ignored("keep_alive", "options", "truncate")
        fields.end()
        asked = await _understood(asked_embeddings, made, self.registry, allowed)
        for part in asked.parts():
            await unless_gone(request, asyncio.wrap_future(self.scheduler.call(part)))
        found = {"model": asked.embedder.name, "embeddings": asked.rows, "prompt_eval_count": asked.tokens}
        return JSONResponse(found, headers=HEADERS)

    async def ollama_tags(self, _: Request, allowed: Permissions) -> Any:
        """/api/tags."""
        return JSONResponse(ollama.listed(self.registry, allowed), headers=HEADERS)

    async def ollama_show(self, request: Request, allowed: Permissions) -> Any:
        """/api/show."""
        body = await read_json(request)
        return JSONResponse(await _understood(ollama.shown, body, self.registry, allowed), headers=HEADERS)

    async def ollama_version(self, _: Request, __: Permissions) -> Any:
        """/api/version."""
        return JSONResponse({"version": __version__}, headers=HEADERS)

    # --- about the server -----------------------------------------------------------------------------

    async def models(self, request: Request, allowed: Permissions) -> Any:
        """/v1/models and /v1/models/NAME."""
        listed = [self._model(n) for n in self.registry.names() if allowed.allows_model(n)]
        name = request.path_params.get("name")
        if name is None:
            return JSONResponse({"object": "list", "data": listed}, headers=HEADERS)
        for one in listed:
            if one["id"] == name:
                return JSONResponse(one, headers=HEADERS)
        raise ApiError(404, f"there is no model {name!r:.100}.", param="model", code="model_not_found")

    def _model(self, name: str) -> dict[str, Any]:
        found = {"id": name, "object": "model", "created": self.registry.created, "owned_by": "votive"}
        writer = self.registry.writers.get(name)
        return found if writer is None else {**found, "max_model_len": writer.engine.served.context}

    async def health(self, _: Request) -> Response:
        """/health: open to everybody, and says nothing else."""
        return JSONResponse({"status": "ok"}, headers=HEADERS)

    async def metrics(self, _: Request, __: Permissions) -> Any:
        """/metrics, for Prometheus."""
        text = prometheus(self.registry, self.measured)
        return PlainTextResponse(text, headers=HEADERS, media_type="text/plain; version=0.0.4")

    # --- around every request -------------------------------------------------------------------------

    def route(self, path: str, answering: Answering, *methods: str, measured: bool = True) -> Route:
        """An address for those who may ask."""

        async def endpoint(request: Request) -> Any:
            response: Any
            entered: Permissions | None = None
            try:
                allowed = self.gate.admitted(request)
                if measured:
                    allowed.enter()
                    entered = allowed
                response = await answering(request, allowed)
            except Gone:
                response = Response(status_code=499)
            except Exception as error:
                response = _refused(as_api_error(self.logged(error)), plain=path.startswith("/api/"))
            finally:
                if entered is not None and not getattr(request.state, "left", False):
                    entered.leave()
            if measured:
                self.measured.count(path, getattr(response, "status_code", 200))
            return response

        return Route(path, endpoint, methods=list(methods))

    def logged(self, error: Exception) -> Exception:
        """Write down what is the server's own fault."""
        if as_api_error(error).status == 500:
            print("".join(traceback.format_exception(error)), file=sys.stderr, flush=True)
        return error


async def _understood(reading: Callable[..., Understood], *given: Any) -> Understood:
    """What a function makes of a request, in a thread; what it finds wrong is the client's to mend."""
    try:
        return await run_in_threadpool(reading, *given)
    except Exception as error:
        raise of_request(error) from error


def _refused(error: ApiError, plain: bool = False) -> Response:
    headers = dict(HEADERS)
    if error.retry_after is not None:
        headers["retry-after"] = str(error.retry_after)
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    # Clients of Ollama read a text where OpenAI's read an object.
    return JSONResponse({"error": error.message} if plain else error.body(), error.status, headers=headers)


async def _missing(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    said = "this address takes another method." if status == 405 else "there is nothing at this address."
    return _refused(ApiError(status, said))


def build(app: Application) -> Starlette:
    """The application as a server runs it."""
    return Starlette(
        routes=[
            app.route("/v1/chat/completions", app.chat, "POST"),
            app.route("/v1/completions", app.completion, "POST"),
            app.route("/v1/embeddings", app.embeddings, "POST"),
            app.route("/v1/audio/transcriptions", app.transcription, "POST"),
            app.route("/v1/audio/translations", app.translation, "POST"),
            app.route("/v1/models", app.models, "GET", measured=False),
            app.route("/v1/models/{name:path}", app.models, "GET", measured=False),
            app.route("/api/chat", app.ollama_chat, "POST"),
            app.route("/api/generate", app.ollama_generate, "POST"),
            app.route("/api/embed", app.ollama_embed, "POST"),
            app.route("/api/tags", app.ollama_tags, "GET", measured=False),
            app.route("/api/show", app.ollama_show, "POST", measured=False),
            app.route("/api/version", app.ollama_version, "GET", measured=False),
            app.route("/metrics", app.metrics, "GET", measured=False),
            Route("/health", app.health, methods=["GET"]),
        ],
        exception_handlers={404: _missing, 405: _missing},
    )
