"""MLflow's web pages, behind a password if one is set. `mlflow server --app-name nightschool` serves this app.

pyproject.toml registers the app. MLflow's own accounts (basic-auth) would need a user database and one more package.
"""

import base64
import hmac
import os

from mlflow.server.fastapi_app import app as pages
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from flows.web.address import PASSWORD, USER
from tasks.workers.worker import die_with_parent


class Guarded:
    """An app behind HTTP basic authentication (RFC 7617)."""

    def __init__(self, app: ASGIApp, password: str) -> None:
        self.app = app
        self.key = b"Basic " + base64.b64encode(f"{USER}:{password}".encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on startup and shutdown events, and requests with the right user and password. Refuse all others."""
        header = dict(scope.get("headers", [])).get(b"authorization", b"")
        if scope["type"] == "lifespan" or hmac.compare_digest(header, self.key):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            challenge = {"WWW-Authenticate": 'Basic realm="night school", charset="UTF-8"'}
            await PlainTextResponse("user and password required", 401, challenge)(scope, receive, send)


die_with_parent(os.getppid())  # otherwise uvicorn, which loads this module, would outlive MLflow's command
password = os.environ.get(PASSWORD)
app = Guarded(pages, password) if password else pages
