"""The classroom's web page and its API, for the owner's browser on this machine."""

import asyncio
import hmac
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from importlib.resources import files
from typing import Any

import jinja2
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flows.teaching.answers import Event, RefusedError
from flows.teaching.blame import history
from flows.teaching.chats import Chats
from flows.teaching.classroom import Classroom
from flows.teaching.entries import KINDS

LONGEST = 64_000  # maximum bytes in a request's body
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
SCRIPTS = ("page.js", "dom.js", "cards.js", "chat.js", "compare.js")

Action = Callable[[Request, dict[str, Any]], Awaitable[Response]]
Handler = Callable[[Request], Awaitable[Response]]


def make_app(classroom: Classroom, port: int, token: str) -> Starlette:
    """Return the web app. `token`: the secret in the owner's link. A browser exchanges it for a session cookie."""
    api = _Endpoints(classroom, f"nightschool-{port}", token)  # browsers share cookies between ports
    page = jinja2.Template(_read("page.html"), autoescape=True)
    return Starlette(
        routes=[
            Route("/", _fixed(page.render(name=classroom.config.name), "text/html")),
            Route("/favicon.ico", _fixed("", "image/x-icon")),
            Route("/page.css", _fixed(_read("page.css"), "text/css")),
            *(Route(f"/{name}", _fixed(_read(name), "text/javascript")) for name in SCRIPTS),
            Route("/api/session", partial(_answer, api.start), methods=["POST"]),
            Route("/api/ask", api.private(api.ask), methods=["POST"]),
            Route("/api/question", api.private(api.question)),
            Route("/api/chat", api.private(api.chat), methods=["POST"]),
            Route("/api/compare", api.private(api.compare), methods=["POST"]),
            Route("/api/blame", api.private(api.blame), methods=["POST"]),
            Route("/api/conversations", api.private(api.conversations)),
            Route("/api/conversations/{name}", api.private(api.conversation), methods=["GET", "DELETE"]),
            Route("/api/stop", api.private(api.stop), methods=["POST"]),
            Route("/api/lesson", api.private(api.lesson), methods=["POST"]),
            Route("/api/lesson/{lesson}", api.private(api.undo), methods=["DELETE"]),
            Route("/api/live", api.private(api.live), methods=["POST"]),
            Route("/api/state", api.private(api.state)),
            Route("/api/events", api.private(api.events)),
        ],
        middleware=[Middleware(_Guard)],
    )


class _Endpoints:
    """The page's API. Each endpoint takes a request and the JSON object in its body."""

    def __init__(self, classroom: Classroom, cookie: str, token: str) -> None:
        self.classroom, self.cookie, self.token = classroom, cookie, token
        self.chats = Chats(classroom)
        self.session = secrets.token_urlsafe(32)

    def private(self, action: Action) -> Handler:
        """Return a handler that runs the action if the request has the session cookie, and refuses it otherwise."""

        async def checked(request: Request) -> Response:
            given = request.cookies.get(self.cookie, "")
            if not hmac.compare_digest(given.encode(), self.session.encode()):
                return _refusal(401, "open the link that `nightschool teach` printed: this browser has no session")
            return await _answer(action, request)

        return checked

    async def start(self, _: Request, body: dict[str, Any]) -> Response:
        """Set the session cookie if the request has the right token."""
        if not hmac.compare_digest(_text(body, "token").encode(), self.token.encode()):
            raise RefusedError(401, "the token is wrong: open the link that `nightschool teach` printed last")
        response = JSONResponse({"ok": True})
        response.set_cookie(self.cookie, self.session, httponly=True, samesite="strict", path="/")
        return response

    async def ask(self, _: Request, body: dict[str, Any]) -> Response:
        """Stream five answers to a question."""
        events = self.classroom.ask(_text(body, "text"), body.get("follow_up") is True, _text(body, "again", ""))
        first = await anext(events)  # a refusal is raised here, before the response begins
        return _stream(_after(first, events))

    async def question(self, _: Request, body: dict[str, Any]) -> Response:
        """Return the latest question as its `done` event did, with its text; or {} if there is none."""
        found = self.classroom.questions.latest
        if found is None or not found.answers or found.conversation:
            return JSONResponse({})
        return JSONResponse(found.described() | {"text": found.messages[-1]["content"]})

    async def chat(self, _: Request, body: dict[str, Any]) -> Response:
        """Stream one answer to a text in a conversation."""
        events = self.chats.say(_text(body, "text"), _text(body, "conversation", ""))
        return _stream(_after(await anext(events), events))

    async def compare(self, _: Request, body: dict[str, Any]) -> Response:
        """Return the greedy answers of the champion and of today's copy."""
        return JSONResponse(await self.chats.compare(_text(body, "text"), _text(body, "conversation", "")))

    async def blame(self, _: Request, body: dict[str, Any]) -> Response:
        """Return how likely an answer was under each champion so far and after each lesson."""
        question, answer = self.classroom.answer_named(_text(body, "answer"))
        day = self.classroom.opened()
        steps = await day.run(history, day, question, answer)
        return JSONResponse({"steps": steps})

    async def conversations(self, _: Request, body: dict[str, Any]) -> Response:
        return JSONResponse(await asyncio.to_thread(self.chats.listed))

    async def conversation(self, request: Request, body: dict[str, Any]) -> Response:
        """Return a conversation, or delete it."""
        name = request.path_params["name"]
        if request.method == "DELETE":
            return JSONResponse(await self.chats.forget(name))
        return JSONResponse(await asyncio.to_thread(self.chats.shown, name))

    async def stop(self, _: Request, body: dict[str, Any]) -> Response:
        await self.classroom.stop()
        return JSONResponse({"ok": True})

    async def lesson(self, _: Request, body: dict[str, Any]) -> Response:
        """Teach a lesson, and return its outcome."""
        kind: Any = body.get("kind")
        if kind not in KINDS:
            raise RefusedError(400, f"kind: {str(kind)[:40]!r} is not one of {', '.join(KINDS)}")
        start = body.get("from_char", -1)
        if not isinstance(start, int):
            raise RefusedError(400, "from_char: not a whole number")
        answer = _text(body, "answer") if kind != "words" else None
        return JSONResponse(await self.classroom.teach(kind, answer, _text(body, "text", ""), start))

    async def undo(self, request: Request, body: dict[str, Any]) -> Response:
        return JSONResponse(await self.classroom.undo(request.path_params["lesson"]))

    async def live(self, _: Request, body: dict[str, Any]) -> Response:
        """Turn immediate learning on or off."""
        self.classroom.set_live(body.get("on") is True)
        return JSONResponse({"live": self.classroom.live})

    async def state(self, _: Request, body: dict[str, Any]) -> Response:
        return JSONResponse(self.classroom.state())

    async def events(self, _: Request, body: dict[str, Any]) -> Response:
        """Stream the classroom's state, now and whenever it changes."""
        return _stream(("state", state) async for state in self.classroom.watch())


class _Guard:
    """Middleware that refuses requests from other web pages, and adds security headers to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        app = _foreign(Request(scope)) or self.app
        await app(scope, receive, send_guarded)


def _foreign(request: Request) -> Response | None:
    """Return None for a GET or HEAD request, or for JSON that this page sent, and otherwise an error response."""
    if request.method in ("GET", "HEAD"):
        return None
    if request.headers.get("origin") != f"http://{request.headers.get('host')}":
        return _refusal(403, "another page may not do this (Origin)")
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return _refusal(403, "another page may not do this (Sec-Fetch-Site)")
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        return _refusal(415, "send JSON (Content-Type: application/json)")
    return None


async def _answer(action: Action, request: Request) -> Response:
    """Run an action on a request's JSON body. If the request is refused, return an error with a one-line reason."""
    try:
        return await action(request, await _body(request))
    except RefusedError as error:
        return _refusal(error.status, str(error))
    except ClientDisconnect:
        return Response(status_code=400)


async def _body(request: Request) -> dict[str, Any]:
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > LONGEST:
            raise RefusedError(413, f"the request is longer than {LONGEST:,} bytes: shorten the text")
    if not content:
        return {}
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise RefusedError(400, "the request is not JSON") from None
    if not isinstance(body, dict):
        raise RefusedError(400, "the request is not a JSON object")
    return body


def _text(body: dict[str, Any], key: str, default: str | None = None) -> str:
    found = body.get(key, default)
    if not isinstance(found, str):
        raise RefusedError(400, f"{key}: {'is missing' if found is None else 'not a text'}")
    return found


async def _after(first: Event, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    yield first
    try:
        async for event in events:
            yield event
    except RefusedError as error:
        yield "error", {"error": str(error)}


def _stream(events: AsyncIterator[Event]) -> Response:
    """Return a response that streams server-sent events."""

    async def lines() -> AsyncIterator[str]:
        async for name, data in events:
            yield f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")


def _read(name: str) -> str:
    return files("flows.teaching").joinpath("page", name).read_text(encoding="utf-8")


def _fixed(content: str, kind: str) -> Handler:
    async def answer(_: Request) -> Response:
        return Response(content, media_type=kind)

    return answer


def _refusal(status: int, reason: str) -> Response:
    headers = {"Retry-After": "5"} if status in (429, 503) else None
    return JSONResponse({"error": reason}, status, headers)
