"""`python -m flows.prefect_sqlite server start`: Prefect's server, with SQLite transactions that wait for each other.

Prefect begins a transaction as a reader (DEFERRED). One that reads and then writes is refused at once when another has
written in between (SQLITE_BUSY_SNAPSHOT, https://www.sqlite.org/isolation.html, whatever the busy timeout); the client
is answered 503 and asks again 2 s later, several times a round. Begun as writers they wait for milliseconds.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from prefect.cli import app
from prefect.server.database.configurations import AioSqliteConfiguration
from sqlalchemy.ext.asyncio import AsyncSession, AsyncSessionTransaction

begin_as_configured = AioSqliteConfiguration.begin_transaction


@asynccontextmanager
async def begin_as_writer(
    configuration: AioSqliteConfiguration, session: AsyncSession, with_for_update: bool = False
) -> AsyncGenerator[AsyncSessionTransaction, None]:
    """A transaction begun IMMEDIATE, whatever the caller asked for."""
    async with begin_as_configured(configuration, session, with_for_update=True) as transaction:
        yield transaction


if __name__ == "__main__":
    AioSqliteConfiguration.begin_transaction = begin_as_writer  # pyright: ignore[reportAttributeAccessIssue]
    app()
