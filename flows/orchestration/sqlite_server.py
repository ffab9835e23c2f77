"""`python -m flows.orchestration.sqlite_server server start`: Prefect's server with three changes.

1. Every SQLite transaction begins as a writer (IMMEDIATE), and waits a few milliseconds if another is writing. Prefect
begins transactions as readers (DEFERRED). Such a transaction fails at once if another one writes between its read and
its write (SQLITE_BUSY_SNAPSHOT, https://www.sqlite.org/isolation.html), whatever the busy timeout is. The client then
gets a 503 and retries after 2 s, which would happen several times per round.
2. To prevent DNS rebinding, the server rejects requests for any host name but its own.
3. It refuses WebSockets that another site's page opens, which browsers' same-origin rules do not cover.
"""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from prefect.cli import app
from prefect.server.api import server
from prefect.server.database.configurations import AioSqliteConfiguration
from sqlalchemy.ext.asyncio import AsyncSession, AsyncSessionTransaction
from starlette.datastructures import Headers
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketClose

from flows.web.address import HOSTS

begin_as_configured = AioSqliteConfiguration.begin_transaction
create_open_app = server.create_app


@asynccontextmanager
async def begin_as_writer(
    configuration: AioSqliteConfiguration, session: AsyncSession, with_for_update: bool = False
) -> AsyncGenerator[AsyncSessionTransaction, None]:
    """Begin an IMMEDIATE transaction, whatever `with_for_update` is."""
    async with begin_as_configured(configuration, session, with_for_update=True) as transaction:
        yield transaction


def create_app(*args: Any, final: bool = False, **kwargs: Any) -> Any:
    """Create Prefect's app. The app that is served (`final`) accepts only the host names in NIGHTSCHOOL_PAGES_HOSTS."""
    pages = create_open_app(*args, final=final, **kwargs)
    if not final:
        return pages

    async def own_sockets(scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "websocket" else Headers()
        if (origin := headers.get("origin")) and origin != f"http://{headers.get('host')}":
            await WebSocketClose(1008)(scope, receive, send)
        else:
            await pages(scope, receive, send)

    return TrustedHostMiddleware(own_sockets, os.environ[HOSTS].split(","), www_redirect=False)


if __name__ == "__main__":
    server.create_app = create_app
    AioSqliteConfiguration.begin_transaction = begin_as_writer  # pyrefly: ignore[bad-assignment]
    app()
