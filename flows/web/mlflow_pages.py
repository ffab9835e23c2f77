"""MLflow's pages, behind a password if there is one: what `mlflow server --app-name nightschool` serves.

The name stands in pyproject.toml. MLflow's own accounts (basic-auth) want a database of users, and a package that
nothing else here needs.
"""

import base64
import hmac
import os

from mlflow.server.fastapi_app import app as pages
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from flows.web.address import PASSWORD, USER
from tasks.workers import die_with_parent


class Guarded:
    """An app of which nobody sees anything without user and password (HTTP basic authentication, RFC 7617)."""

    def __init__(self, app: ASGIApp, password: str) -> None:
        self.app = app
        self.key = b"Basic " + base64.b64encode(f"{USER}:{password}".encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hands on what carries the key, and what comes from the server itself (its start and end)."""
        given = dict(scope.get("headers", [])).get(b"authorization", b"")
        if scope["type"] == "lifespan" or hmac.compare_digest(given, self.key):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            ask = {"WWW-Authenticate": 'Basic realm="night school", charset="UTF-8"'}
            await PlainTextResponse("user and password, please", 401, ask)(scope, receive, send)


die_with_parent(os.getppid())  # uvicorn, which loads this, is a child of MLflow's command, and would outlive it
password = os.environ.get(PASSWORD)
app = Guarded(pages, password) if password else pages
