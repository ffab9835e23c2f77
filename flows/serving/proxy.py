"""The gate of `nightschool serve`: it keeps the port, and hands requests on to the engine of the moment.

Engines come and go behind it. While there is none, it answers 503 and says when to ask again; OpenAI's clients do so by
themselves. What is under way when it closes is still answered.
"""

import asyncio
import hmac
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
from starlette.types import Receive, Scope, Send

from flows.web.address import Address

SERVED = "/v1/"  # OpenAI's protocol; what else vLLM answers is for those who run it
# They are of one connection and not of a message (RFC 9110, 7.6.1); the key and the name are the gate's own.
OF_THE_CONNECTION = {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
OF_THE_GATE = {"authorization", "content-length", "host"}


class Gate:
    """An ASGI app. `open` and `close` may be called from another thread than the one that serves it."""

    def __init__(self, key: str | None) -> None:
        """`key`: what clients must send as OpenAI's API key; None: nothing."""
        self._key = None if key is None else f"Bearer {key}".encode()
        self._engine: Path | None = None
        self._why, self._retry_after = "it is being started", 10
        self.under_way = 0  # requests that the engine has not answered in full

    def open(self, engine: Path) -> None:
        """From now on requests go to the engine that listens on this socket file."""
        self._engine = engine

    def close(self, why: str, retry_after: int) -> None:
        """From now on requests are answered 503, with the reason, and seconds after which to ask again."""
        self._why, self._retry_after = why, retry_after
        self._engine = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        request = Request(scope, receive)
        self.under_way += 1  # before looking: who closes looks the other way round
        try:
            if refusal := self._refusal(request):
                await refusal(scope, receive, send)
            else:
                await self._hand_on(request, send)
        except ClientDisconnect:  # before it had asked
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
        if self._engine is None:
            return self._not_now()
        return Response(status_code=200) if path == "/health" else None

    def _not_now(self) -> Response:
        return _error(503, f"no model serves now: {self._why}", {"Retry-After": str(self._retry_after)})

    async def _hand_on(self, request: Request, send: Send) -> None:
        """Asks the engine, and stops asking when the client has gone: nobody would read the rest."""
        body = await request.body()
        asking = asyncio.ensure_future(self._ask(request, body, send))
        leaving = asyncio.ensure_future(_left(request.receive))
        await asyncio.wait({asking, leaving}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        asking.cancel()  # does nothing where it is done
        with suppress(asyncio.CancelledError):
            await asking

    async def _ask(self, request: Request, body: bytes, send: Send) -> None:
        if (engine := self._engine) is None:  # it closed while the body came
            return await self._not_now()(request.scope, request.receive, send)
        headers = _without(request.headers.raw, OF_THE_CONNECTION | OF_THE_GATE)
        url = httpx.URL("http://engine", path=request.url.path, query=request.url.query.encode())
        begun = False
        try:
            async with (
                httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(engine)), timeout=None) as client,
                client.stream(request.method, url, headers=headers, content=body) as answer,
            ):
                kept = _without(answer.headers.raw, OF_THE_CONNECTION)
                await send({"type": "http.response.start", "status": answer.status_code, "headers": kept})
                begun = True
                async for chunk in answer.aiter_raw():
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                await send({"type": "http.response.body"})
        except httpx.TransportError:  # the engine died
            if not begun:  # else the connection breaks off: an end would make half an answer look whole
                await self._not_now()(request.scope, request.receive, send)


@contextmanager
def listening(gate: Gate, address: Address, port: socket) -> Iterator[None]:
    """Serves the gate on a port, from a thread of its own.

    Under its own names alone: a page of the web whose name was made to point here (DNS rebinding) is told nothing.
    """
    app = TrustedHostMiddleware(gate, address.names, www_redirect=False)
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", ws="none", access_log=False, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [port]}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = server.force_exit = True
        thread.join(5)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _without(headers: list[tuple[bytes, bytes]], names: set[str]) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in headers if name.decode("latin-1").lower() not in names]


def _error(status: int, said: str, headers: dict[str, str] | None = None) -> Response:
    """An error as OpenAI's clients read it."""
    return JSONResponse({"error": {"message": said, "type": "nightschool", "code": status}}, status, headers)
