"""The night's own Prefect server: it answers on loopback, and it is gone when the night is, however that ends."""

import asyncio
import base64
import os
import stat
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError
from uuid import UUID

import pytest

from conf.storage.home import Home, InputError
from flows.orchestration import server as prefect_server
from flows.orchestration.client import RECONNECTIONS, need_no_server
from flows.orchestration.reconcile import show_crashed
from flows.orchestration.server import ServerError, prefect_api, wait_until_ready
from flows.web.address import free_port

NIGHT = """
import sys, time
from pathlib import Path
from flows.web.address import LOOPBACK, Address
from flows.web.address import free_port
from flows.orchestration.server import start_server, wait_until_ready

folder, password = Path(sys.argv[1]), sys.argv[2]
server, url = start_server(folder, free_port(), folder / "server.log", Address(LOOPBACK, password))
wait_until_ready(server, url, folder / "server.log")
print(url, flush=True)
time.sleep(600)
"""


def processes_of(folder: Path) -> Iterator[int]:
    """Whoever runs with this folder as Prefect's home."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
        except OSError:
            continue
        if f"PREFECT_HOME={folder}\0".encode() in environment:
            yield int(process.name)


def asked(url: str, **headers: str) -> tuple[int, Message]:
    """The status that a request for the latest runs comes to, and the answer's headers."""
    headers["Content-Type"] = "application/json"
    request = urllib.request.Request(f"{url}/flow_runs/filter", b"{}", headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers
    except HTTPError as error:
        return error.code, error.headers


def assert_guarded(url: str) -> None:
    """The API wants the password, answers to no name but its own, and lets no other page's script read the answer."""
    key = {"Authorization": "Basic " + base64.b64encode(b"nightschool:s3cret").decode()}
    assert asked(url)[0] == asked(url, Authorization="Basic " + base64.b64encode(b"nightschool:").decode())[0] == 401
    assert asked(url, **key)[0] == 200
    assert asked(url, **key, Host="evil.example")[0] == 400
    own = url.removesuffix("/api")
    for origin, allowed in ((own, own), ("http://evil.example", None)):
        assert asked(url, **key, Origin=origin)[1]["Access-Control-Allow-Origin"] == allowed


def test_a_server_answers_and_dies_with_its_killed_parent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", NIGHT, str(tmp_path), "s3cret"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as night:
        assert night.stdout is not None
        url = night.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), (tmp_path / "server.log").read_text()
        with urllib.request.urlopen(f"{url}/health", timeout=10) as answer:
            assert answer.read() == b"true"
        assert (tmp_path / "prefect.db").exists()
        assert (tmp_path / "memo_store.toml").exists()  # and not in ~/.prefect
        assert_guarded(url)
        show_crashed(Home(tmp_path), url, "nightschool:s3cret")
        assert not caplog.messages  # it was let in
        show_crashed(Home(tmp_path), url, "nightschool:wrong")
        assert "could not be shown as crashed" in caplog.text
        assert list(processes_of(tmp_path))
        night.kill()
    limit = time.monotonic() + 2
    while list(processes_of(tmp_path)) and time.monotonic() < limit:
        time.sleep(0.05)
    assert not list(processes_of(tmp_path))
    with pytest.raises(OSError, match="refused|reset"):
        urllib.request.urlopen(f"{url}/health", timeout=2)


def test_a_server_that_ends_at_once_is_an_error_that_names_its_log(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as server:
        server.wait()
        with pytest.raises(ServerError, match="ended with code 3") as caught:
            wait_until_ready(server, f"http://127.0.0.1:{free_port()}/api", log)
    assert str(log) in str(caught.value)


def test_a_server_that_never_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.orchestration.server.START_LIMIT", 0.5)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as server:
        try:
            with pytest.raises(ServerError, match="did not answer within 0.5 s"):
                wait_until_ready(server, f"http://127.0.0.1:{free_port()}/api", tmp_path / "server.log")
        finally:
            server.kill()


def test_a_server_that_dies_is_started_again_on_its_port_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    ports: list[int] = []

    def start(_: Path, port: int, __: Path) -> tuple[subprocess.Popen[bytes], str]:
        started.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]))
        ports.append(port)
        return started[-1], "http://127.0.0.1/api"

    monkeypatch.setattr(prefect_server, "start_server", start)
    monkeypatch.setattr(prefect_server, "wait_until_ready", lambda *_: None)
    monkeypatch.setattr(prefect_server, "LOOK_AFTER", 0.01)
    monkeypatch.setattr(prefect_server, "RESTARTS", 2)
    from prefect.settings import PREFECT_API_URL, temporary_settings

    told: list[str] = []

    def note(what: str) -> None:
        told.append(what)
        raise OSError(28, "No space left on device")  # what cannot be noted is started again all the same

    with (
        temporary_settings(restore_defaults={PREFECT_API_URL}),  # other tests' server is none of this night's
        prefect_api(tmp_path / "school", 4321, note),
    ):
        for number in (1, 2):
            started[-1].kill()
            limit = time.monotonic() + 10
            while len(started) == number and time.monotonic() < limit:
                time.sleep(0.01)
        assert [server.poll() for server in started] == [-9, -9, None]
    assert [server.poll() for server in started] == [-9, -9, -9]
    assert ports == [4321, 4321, 4321]
    again = "the Prefect server died (code -9) and is started again"
    assert told == [again, f"{again}, for the last time: the night does without"]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a night; after the test all is as it was."""
    from prefect import task_engine
    from prefect.events.clients import PrefectEventsClient
    from prefect.events.worker import EventsWorker

    monkeypatch.setattr(task_engine, "_concurrency", task_engine._concurrency)
    monkeypatch.setattr(PrefectEventsClient, "_emit", PrefectEventsClient._emit)
    monkeypatch.setattr(EventsWorker, "_client_override", None)
    need_no_server()


@pytest.mark.usefixtures("prefect_server", "patient")
def test_a_stage_asks_the_server_for_no_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would fail where none answers; and its tags stay."""
    from prefect import flow, task
    from prefect.concurrency import services
    from prefect.runtime import task_run

    async def gone(*_: object) -> None:
        raise ConnectionRefusedError

    @task(tags=["trainer"])
    def tags() -> list[str]:
        return task_run.get_tags()

    @flow
    def night() -> list[str]:
        return tags()

    monkeypatch.setattr(services.ConcurrencySlotAcquisitionWithLeaseService, "acquire", gone)
    assert night() == ["trainer"]


@pytest.mark.usefixtures("prefect_server", "patient")
def test_the_server_is_told_of_every_stage() -> None:
    """Otherwise its page of the night says that the run has no tasks."""
    from prefect import flow, task
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
    from prefect.runtime import flow_run

    @task(task_run_name="round 1 · sample")
    def sample() -> None:
        pass

    @flow
    def night() -> UUID:
        sample()
        return UUID(flow_run.get_id())

    chosen = FlowRunFilter(id=FlowRunFilterId(any_=[night()]))
    limit, found, expected = time.monotonic() + 30, [], [("round 1 · sample", "Completed")]
    with get_client(sync_client=True) as client:
        while found != expected and time.monotonic() < limit:
            found = [(run.name, run.state_name) for run in client.read_task_runs(flow_run_filter=chosen)]
            time.sleep(0.1)
    assert found == expected


@pytest.mark.usefixtures("patient")
def test_what_a_server_could_not_be_told_is_kept_for_it() -> None:
    from prefect.events import Event
    from prefect.events.clients import PrefectEventsClient
    from prefect.settings import PREFECT_API_URL, temporary_settings

    event = Event(event="stage", resource={"prefect.resource.id": "a"})  # pyright: ignore[reportArgumentType]
    with temporary_settings({PREFECT_API_URL: f"http://127.0.0.1:{free_port()}/api"}):
        client = PrefectEventsClient(reconnection_attempts=RECONNECTIONS)
        began = time.monotonic()
        for _ in range(3):
            asyncio.run(client._emit(event))
    assert client._unconfirmed_events == [event] * 3
    assert time.monotonic() - began < 1


@pytest.mark.usefixtures("prefect_server")
def test_a_configured_server_is_used_as_it_is(tmp_path: Path) -> None:
    from prefect.settings import PREFECT_API_URL, PREFECT_LOCAL_STORAGE_PATH

    with prefect_api(tmp_path / "school", None) as url:
        assert url == PREFECT_API_URL.value()
        assert PREFECT_LOCAL_STORAGE_PATH.value() == tmp_path / "school" / "prefect" / "storage"
    assert stat.S_IMODE((tmp_path / "school").stat().st_mode) == 0o700
    assert list((tmp_path / "school").iterdir()) == []


def test_a_configured_server_that_is_not_there_is_the_users_to_mend(tmp_path: Path) -> None:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    gone = f"http://127.0.0.1:{free_port()}/api"
    with (
        temporary_settings({PREFECT_API_URL: gone}),
        pytest.raises(InputError, match=f"^PREFECT_API_URL: {gone} does not answer"),
        prefect_api(tmp_path / "school", None),
    ):
        raise AssertionError("the night began")
    assert list(tmp_path.iterdir()) == []
