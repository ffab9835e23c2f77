"""The classroom's web page and its API, for the owner's browser."""

import asyncio
import hmac
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.resources import files
from typing import Any

import jinja2
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from conf.storage.home import InputError
from conf.storage.journal import read_object
from flows.teaching.answers import Event, RefusedError
from flows.teaching.blame import history
from flows.teaching.card import card, report_of
from flows.teaching.chats import Chats
from flows.teaching.classroom import Classroom
from flows.teaching.entries import KINDS
from flows.web.body import TOO_LONG, body_of
from flows.web.same_origin import SameOrigin, refusal
from tasks.workers.worker import WorkerDiedError, WorkerEndedError

SCRIPTS = ("page.js", "dom.js", "cards.js", "chat.js", "compare.js", "model.js")
OF_THE_REPORT = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"

Action = Callable[[Request, dict[str, Any]], Awaitable[Response]]
Handler = Callable[[Request], Awaitable[Response]]


def make_app(classroom: Classroom, port: int, token: str, once: bool = False) -> Starlette:
    """Return the web app. `token`: the secret in the owner's link. A browser exchanges it for a session cookie.

    `once`: whether the link works for the first browser only.
    """
    api = _Endpoints(classroom, f"nightschool-{port}", token, once)  # browsers share cookies between ports
    page = jinja2.Template(_read("page.html"), autoescape=True)
    return Starlette(
        routes=[
            _file("/", page.render(name=classroom.config.name), "text/html"),
            _file("/favicon.ico", "", "image/x-icon"),
            _file("/page.css", _read("page.css"), "text/css"),
            *(_file(f"/{name}", _read(name), "text/javascript") for name in SCRIPTS),
            Route("/api/session", api.start, methods=["POST"]),
            Route("/api/ask", api.private(api.ask), methods=["POST"]),
            Route("/api/question", api.private(api.question)),
            Route("/api/chat", api.private(api.chat), methods=["POST"]),
            Route("/api/continue", api.private(api.go_on), methods=["POST"]),
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
            Route("/api/model", api.private(api.model)),
            Route("/api/night", api.private(api.night), methods=["POST"]),
            Route("/report", api.private(api.report)),
        ],
        middleware=[Middleware(SameOrigin)],
        exception_handlers={
            RefusedError: _refused,
            InputError: lambda _, error: refusal(507, str(error)),  # mostly: the journal cannot be written
            ClientDisconnect: lambda *_: Response(status_code=400),
        },
    )


class _Endpoints:
    """The page's API. Each endpoint takes a request and the JSON object in its body."""

    def __init__(self, classroom: Classroom, cookie: str, token: str, once: bool) -> None:
        self.classroom, self.cookie, self.token, self.once = classroom, cookie, token, once
        self.chats = Chats(classroom)
        self.session = secrets.token_urlsafe(32)

    def private(self, action: Action) -> Handler:
        """Return a handler that runs the action if the request has the session cookie, and refuses it otherwise."""

        async def checked(request: Request) -> Response:
            if not self._knows(request):
                return refusal(401, "open the link that `nightschool teach` printed: this browser has no session")
            return await action(request, await _body(request))

        return checked

    def _knows(self, request: Request) -> bool:
        return hmac.compare_digest(request.cookies.get(self.cookie, "").encode(), self.session.encode())

    async def start(self, request: Request) -> Response:
        """Set the session cookie if the request has the right token, or has the cookie already."""
        body = await _body(request)
        if self._knows(request):
            return JSONResponse({"ok": True})
        if not hmac.compare_digest(_text(body, "token").encode(), self.token.encode()):
            raise RefusedError(401, "the link is not valid: open the one that `nightschool teach` printed last")
        if self.once:
            self.token = secrets.token_urlsafe(32)
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

    async def go_on(self, _: Request, body: dict[str, Any]) -> Response:
        """Stream the rest of a chat's answer that was cut off."""
        events = self.chats.go_on(_text(body, "answer"))
        return _stream(_after(await anext(events), events))

    async def compare(self, _: Request, body: dict[str, Any]) -> Response:
        """Return the greedy answers of the champion and of today's copy."""
        return JSONResponse(await self.chats.compare(_text(body, "text"), _text(body, "again", "")))

    async def blame(self, _: Request, body: dict[str, Any]) -> Response:
        """Return how likely an answer was under each champion so far and after each lesson."""
        question, answer = self.classroom.questions.named(_text(body, "answer"))
        if not answer.better and not answer.finished:
            raise RefusedError(400, "this answer was stopped before its first word")
        day = self.classroom.opened()
        try:
            finished = answer.finished or bool(answer.corrections)
            steps = await day.run(history, day, question.messages, answer.better, finished)
        except (WorkerEndedError, WorkerDiedError) as error:
            raise RefusedError(503, self.classroom.why or str(error)) from None
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

    async def model(self, _: Request, body: dict[str, Any]) -> Response:
        """Return the model's card."""
        room = self.classroom
        return JSONResponse(await asyncio.to_thread(card, room.home, room.config, room.opened().champion))

    async def night(self, _: Request, body: dict[str, Any]) -> Response:
        """Start tonight's night now. The classroom closes once it has begun."""
        self.classroom.opened()
        try:
            log = await asyncio.to_thread(self.classroom.start_night)
        except InputError as error:
            raise RefusedError(409, str(error)) from None
        return JSONResponse({"log": str(log)})

    async def report(self, _: Request, body: dict[str, Any]) -> Response:
        """Return the last morning report, a page of one file."""
        if (file := report_of(self.classroom.home, self.classroom.config)) is None:
            raise RefusedError(404, "there is no report yet")
        return FileResponse(file, headers={"Content-Security-Policy": OF_THE_REPORT})


async def _body(request: Request) -> dict[str, Any]:
    if (content := await body_of(request)) is None:
        raise RefusedError(413, TOO_LONG)
    try:
        return read_object(content) if content else {}
    except ValueError as error:
        raise RefusedError(400, f"the request is {error}") from None


def _refused(_: Request, error: Any) -> Response:
    return refusal(error.status, str(error))


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
    except (RefusedError, InputError) as error:
        yield "error", {"error": str(error)}


def _stream(events: AsyncIterator[Event]) -> Response:
    """Return a response that streams server-sent events."""

    async def lines() -> AsyncIterator[str]:
        async for name, data in events:
            yield f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")


def _read(name: str) -> str:
    return files("flows.teaching").joinpath("page", name).read_text(encoding="utf-8")


def _file(path: str, content: str, kind: str) -> Route:
    return Route(path, Response(content, media_type=kind), methods=["GET"])
