"""The night's own Prefect server, a configured one, and what happens when either stops answering."""

import asyncio
import base64
import stat
import subprocess
import sys
import urllib.request
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from uuid import UUID

import pytest
from prefect import flow, task
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.events import Event
from prefect.events.clients import PrefectEventsClient
from prefect.events.worker import EventsWorker
from prefect.runtime import flow_run
from prefect.settings import PREFECT_API_URL, temporary_settings
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from conf.storage.home import Home, InputError
from flows.orchestration import server as prefect_server
from flows.orchestration.client import RECONNECTIONS, tolerate_lost_server
from flows.orchestration.reconcile import show_crashed
from flows.orchestration.server import ServerError, prefect_api, wait_until_ready
from flows.web.address import free_port
from tests.tasks.doubles.processes import with_setting
from tests.waiting import awaited

NIGHT = """
import sys, time
from pathlib import Path
from flows.web.address import LOOPBACK, Address, free_port
from flows.orchestration.server import start_server, wait_until_ready

folder, password = Path(sys.argv[1]), sys.argv[2]
server, url = start_server(folder, free_port(), folder / "server.log", Address(LOOPBACK, password))
wait_until_ready(server, url, folder / "server.log")
print(url, flush=True)
time.sleep(600)
"""


def request_runs(url: str, **headers: str) -> tuple[int, Message]:
    """Return the status and the headers of the answer to a request for the latest runs."""
    headers["Content-Type"] = "application/json"
    request = urllib.request.Request(f"{url}/flow_runs/filter", b"{}", headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers
    except HTTPError as error:
        return error.code, error.headers


def assert_guarded(url: str) -> None:
    """Assert that the API needs the password, answers only to its own name, and is closed to other pages' scripts."""
    users = b"nightschool:s3cret", b"nightschool:"
    key, empty = ({"Authorization": f"Basic {base64.b64encode(user).decode()}"} for user in users)
    assert request_runs(url)[0] == request_runs(url, **empty)[0] == 401
    assert request_runs(url, **key)[0] == 200
    assert request_runs(url, **key, Host="evil.example")[0] == 400
    own = url.removesuffix("/api")
    for origin, allowed in ((own, own), ("http://evil.example", None)):
        assert request_runs(url, **key, Origin=origin)[1]["Access-Control-Allow-Origin"] == allowed
    events = f"{url.replace('http', 'ws', 1)}/events/out"
    connect(events, origin=Origin(own), subprotocols=[Subprotocol("prefect")]).close()
    with pytest.raises(InvalidStatus, match="403"):
        connect(events, origin=Origin("http://evil.example"), subprotocols=[Subprotocol("prefect")])


@pytest.mark.slow
def test_a_server_answers_and_dies_with_its_killed_parent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    command = [sys.executable, "-c", NIGHT, str(tmp_path), "s3cret"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as night:
        url = night.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), (tmp_path / "server.log").read_text()
        with urllib.request.urlopen(f"{url}/health", timeout=10) as answer:
            assert answer.read() == b"true"
        assert (tmp_path / "prefect.db").exists()
        assert (tmp_path / "memo_store.toml").exists()  # and not in ~/.prefect
        assert_guarded(url)
        show_crashed(Home(tmp_path), url, "nightschool:s3cret")
        assert not caplog.messages
        show_crashed(Home(tmp_path), url, "nightschool:wrong")
        assert "could not be shown as crashed" in caplog.text
        assert with_setting(f"PREFECT_HOME={tmp_path}")
        night.kill()
    awaited(lambda: not with_setting(f"PREFECT_HOME={tmp_path}"), "end of the server", 2)
    with pytest.raises(OSError, match="refused|reset"):
        urllib.request.urlopen(f"{url}/health", timeout=2)


def test_a_server_that_ends_at_once_is_an_error_that_names_its_log(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as server:
        server.wait()
        with pytest.raises(ServerError, match="ended with code 3") as caught:
            wait_until_ready(server, f"http://127.0.0.1:{free_port()}/api", log)
    assert str(log) in str(caught.value)


def test_a_server_that_died_is_started_again_for_what_it_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    calls: list[object] = []

    def start(_: Path, port: int, __: Path) -> tuple[subprocess.Popen[bytes], str]:
        calls.append(port)
        started.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]))
        return started[-1], "http://127.0.0.1/api"

    monkeypatch.setattr(prefect_server, "start_server", start)
    monkeypatch.setattr(prefect_server, "wait_until_ready", lambda *_: None)
    monkeypatch.setattr(prefect_server, "_send_what_is_left", calls.append)
    monkeypatch.setattr(prefect_server, "RECORD_SECONDS", 0)
    with (
        temporary_settings(restore_defaults={PREFECT_API_URL}),  # no server is configured
        prefect_api(tmp_path / "school"),
    ):
        started[0].kill()
        started[0].wait()
    port, again, limit = calls
    assert (port, limit) == (again, prefect_server.RESEND_LIMIT)
    assert [server.poll() for server in started] == [-9, -9]
    assert "the Prefect server died (code -9)" in caplog.text


@pytest.fixture
def tolerant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patch Prefect's client as in a night, and undo it after the test."""
    monkeypatch.setattr(PrefectEventsClient, "_emit", PrefectEventsClient._emit)
    monkeypatch.setattr(EventsWorker, "_client_override", None)
    tolerate_lost_server()


@pytest.mark.usefixtures("prefect_server", "tolerant")
def test_the_server_is_told_of_every_stage() -> None:
    """Otherwise its page of the night says that the run has no tasks."""

    @task(task_run_name="round 1 · sample")
    def sample() -> None:
        pass

    @flow
    def night() -> UUID:
        sample()
        return UUID(flow_run.get_id())

    selected = FlowRunFilter(id=FlowRunFilterId(any_=[night()]))
    with get_client(sync_client=True) as client:

        def runs() -> list[tuple[str, str | None]]:
            return [(run.name, run.state_name) for run in client.read_task_runs(flow_run_filter=selected)]

        awaited(lambda: runs() == [("round 1 · sample", "Completed")], "task run", 30)


@pytest.mark.usefixtures("tolerant")
def test_events_that_cannot_be_sent_are_kept() -> None:
    event = Event(event="stage", resource={"prefect.resource.id": "a"})
    with temporary_settings({PREFECT_API_URL: f"http://127.0.0.1:{free_port()}/api"}):
        client = PrefectEventsClient(reconnection_attempts=RECONNECTIONS)
        for _ in range(3):
            asyncio.run(client._emit(event))
    assert client._unconfirmed_events == [event] * 3


def test_a_transaction_that_reads_first_waits_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begun as Prefect does, the second is refused at once: database is locked."""

    from prefect.server.database.configurations import AioSqliteConfiguration  # these take seconds to import

    from flows.orchestration import sqlite_server

    async def write_both(begin: Any) -> None:
        configuration = AioSqliteConfiguration(connection_url=f"sqlite+aiosqlite:///{tmp_path / 'prefect.db'}")
        engine = await configuration.engine()
        async with engine.begin() as connection:
            await connection.execute(text("CREATE TABLE IF NOT EXISTS runs (id INTEGER)"))

        async def read_and_write() -> None:
            async with await configuration.session(engine) as session, begin(configuration, session):
                await session.execute(text("SELECT count(*) FROM runs"))
                await asyncio.sleep(0.1)
                await session.execute(text("INSERT INTO runs VALUES (1)"))

        await asyncio.gather(read_and_write(), read_and_write())
        await engine.dispose()

    asyncio.run(write_both(sqlite_server.begin_as_writer))
    with pytest.raises(OperationalError, match="database is locked"):
        asyncio.run(write_both(sqlite_server.begin_as_configured))


@pytest.mark.usefixtures("prefect_server")
def test_a_configured_server_is_used_as_it_is(tmp_path: Path) -> None:
    with prefect_api(tmp_path / "school") as url:
        assert url == PREFECT_API_URL.value()
    assert stat.S_IMODE((tmp_path / "school").stat().st_mode) == 0o700
    assert list((tmp_path / "school").iterdir()) == []


def test_a_configured_server_that_does_not_answer_is_an_input_error(tmp_path: Path) -> None:
    gone = f"http://127.0.0.1:{free_port()}/api"
    with (
        temporary_settings({PREFECT_API_URL: gone}),
        pytest.raises(InputError, match="^PREFECT_API_URL: "),
        prefect_api(tmp_path / "school"),
    ):
        raise AssertionError("the night began")
    assert list(tmp_path.iterdir()) == []
