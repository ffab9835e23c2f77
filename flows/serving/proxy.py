"""The gate of `nightschool serve`: a proxy that keeps its port open while vLLM engines start and stop behind it.

While no engine runs, the proxy answers with 503 and a Retry-After header, so that OpenAI's clients retry by themselves.
Closing the gate does not cut off requests that are already being forwarded.
"""

import asyncio
import hmac
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import socket

import httpx
import uvicorn
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from conf.storage.home import InputError
from flows.serving.recording import Recorder
from flows.web.address import Address
from flows.web.body import TOO_LONG, body_of

SERVED = "/v1/"  # path prefix of the OpenAI API; clients may not use vLLM's other paths
CHAT, FEEDBACK = "POST /v1/chat/completions", "POST /v1/feedback"  # what is recorded, and what is said about it
# Headers that are not forwarded: those about one connection (RFC 9110, 7.6.1), and request headers for the gate itself.
OF_THE_CONNECTION = {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
OF_THE_GATE = {"authorization", "content-length", "host"}


class Gate:
    """The proxy's ASGI app. `open` and `close` may be called from any thread."""

    def __init__(self, key: str | None, recorder: Recorder | None = None) -> None:
        """`key`: the API key that clients must send, or None if they need none. `recorder`: None records nothing."""
        self._key = None if key is None else f"Bearer {key}".encode()
        self._recorder = recorder
        self._engine: Path | None = None
        self._why, self._retry_after = "it is being started", 10
        self.under_way = 0  # number of requests that are not yet answered in full

    def open(self, engine: Path) -> None:
        """Start forwarding requests to the engine that listens on the Unix socket `engine`."""
        self._engine = engine

    def close(self, why: str, retry_after: int) -> None:
        """From now on, answer requests with 503, the reason `why`, and a Retry-After of `retry_after` seconds."""
        self._why, self._retry_after = why, retry_after
        self._engine = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        self.under_way += 1  # before `_engine` is read, because a supervisor closes the gate and then reads this
        try:
            if refusal := self._refusal(request):
                await refusal(scope, receive, send)
            elif _is(FEEDBACK, request):
                await (await self._feedback(request))(scope, receive, send)
            else:
                await self._forward(request, send)
        except ClientDisconnect:  # the client left before its whole request had arrived
            pass
        finally:
            self.under_way -= 1

    def _refusal(self, request: Request) -> Response | None:
        path = request.url.path
        if self._key is not None:
            given = request.headers.get("authorization", "").encode()
            if not hmac.compare_digest(given, self._key):
                return _error(401, "the key is missing or wrong: clients send it as their API key")
        if path != "/health" and (not path.startswith(SERVED) or ".." in path.split("/")):
            return _error(404, f"{path}: OpenAI's protocol is at {SERVED}")
        if request.method == "OPTIONS":  # a browser asks whether another site's page may send a request
            return _error(405, "web pages may not ask")
        if _is(FEEDBACK, request):  # needs no engine
            return None
        if self._engine is None:
            return self._not_now()
        return Response(status_code=200) if path == "/health" else None

    def _not_now(self) -> Response:
        return _error(503, f"no model serves now: {self._why}", {"Retry-After": str(self._retry_after)})

    async def _forward(self, request: Request, send: Send) -> None:
        """Forward a request to the engine. Cancel the request if the client disconnects."""
        body = await request.body()
        asking = asyncio.ensure_future(self._ask(request, body, send))
        leaving = asyncio.ensure_future(_disconnected(request.receive))
        await asyncio.wait({asking, leaving}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        asking.cancel()  # no effect if the answer is complete
        with suppress(asyncio.CancelledError):
            await asking

    async def _ask(self, request: Request, body: bytes, send: Send) -> None:
        if (engine := self._engine) is None:  # the gate closed while the body arrived
            return await self._not_now()(request.scope, request.receive, send)
        headers = _without(request.headers.raw, OF_THE_CONNECTION | OF_THE_GATE)
        try:
            url = httpx.URL("http://engine", path=request.url.path, query=request.url.query.encode())
        except httpx.InvalidURL as error:
            return await _error(400, str(error))(request.scope, request.receive, send)
        begun = False
        try:
            async with (
                httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(engine)), timeout=None) as client,
                client.stream(request.method, url, headers=headers, content=body) as answer,
            ):
                kept = _without(answer.headers.raw, OF_THE_CONNECTION)
                await send({"type": "http.response.start", "status": answer.status_code, "headers": kept})
                begun = True
                chunks = answer.aiter_raw()
                if self._recorder and _is(CHAT, request) and answer.status_code == 200:
                    is_stream = "text/event-stream" in answer.headers.get("content-type", "")
                    chunks = self._recorder.kept(body, chunks, is_stream)
                async for chunk in chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                await send({"type": "http.response.body"})
        except httpx.TransportError:  # the engine died
            if not begun:  # otherwise break the connection: a clean end would make half an answer look whole
                await self._not_now()(request.scope, request.receive, send)

    async def _feedback(self, request: Request) -> Response:
        """Write feedback on a recorded answer to the journal, and return the response that says where it is."""
        if self._recorder is None:
            return _error(403, "nothing is recorded: start nightschool serve with --record")
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return _error(415, "send JSON (Content-Type: application/json)")  # a browser lets no other site send this
        if (body := await body_of(request)) is None:
            return _error(413, TOO_LONG)
        try:
            written = await asyncio.to_thread(self._recorder.feedback, body)
        except (ValueError, LookupError, InputError) as error:
            status = 400 if isinstance(error, ValueError) else 404 if isinstance(error, LookupError) else 507
            return _error(status, str(error))
        return JSONResponse({"journal": f"{written.file.name}:{written.line}"})


@contextmanager
def listening(app: ASGIApp, address: Address, port: socket) -> Iterator[None]:
    """Serve `app` in a background thread during the `with` block, refusing hosts that are not in `address.names`."""
    trusting = TrustedHostMiddleware(app, address.names, www_redirect=False)
    server = uvicorn.Server(uvicorn.Config(trusting, lifespan="off", ws="none", access_log=False, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [port]}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # do not log cut-off streams as errors
        server.should_exit = server.force_exit = True
        thread.join(5)


def _is(endpoint: str, request: Request) -> bool:
    return f"{request.method} {request.url.path}" == endpoint


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _without(headers: list[tuple[bytes, bytes]], names: set[str]) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in headers if name.decode("latin-1").lower() not in names]


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """Return an error response in the format that OpenAI's clients expect."""
    return JSONResponse({"error": {"message": message, "type": "nightschool", "code": status}}, status, headers)
