"""Keeps other web pages away from the owner's page: middleware that checks where requests come from."""

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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


class SameOrigin:
    """Middleware that refuses requests from other web pages, and adds security headers to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        app = _foreign(Request(scope)) or self.app
        await app(scope, receive, send_guarded)


def _foreign(request: Request) -> Response | None:
    """Return None for a GET or HEAD request, or for JSON that this page sent, and otherwise an error response."""
    if request.method in ("GET", "HEAD"):
        return None
    if request.headers.get("origin") != f"http://{request.headers.get('host')}":
        return refusal(403, "another page may not do this (Origin)")
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return refusal(403, "another page may not do this (Sec-Fetch-Site)")
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        return refusal(415, "send JSON (Content-Type: application/json)")
    return None


def refusal(status: int, reason: str) -> Response:
    """Return an error response with a one-line reason."""
    headers = {"Retry-After": "5"} if status in (429, 503) else None
    return JSONResponse({"error": reason}, status, headers)
