"""A night's Prefect server: the configured server, or a child process that ends with the night."""

import os
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError

from conf.sections.redact import PREFECT, without_password
from conf.storage.home import Home, NightError
from conf.storage.log import log
from flows.run.child import Child, start_child
from flows.web.address import HERE, HOSTS, PREFECT_PORT, Address, free_port

# By default, the server closes idle connections after 5 s, but the client keeps using them. A request on a closed
# connection is retried only after 2 s, which costs two to six seconds per round.
SERVER = [sys.executable, "-m", "flows.orchestration.sqlite_server", "server", "start", "--keep-alive-timeout", "120"]
# Services that a single night does not need. Each would write to the same SQLite file, and the server refuses a request
# while the file is locked. The client retries only after 2 s.
IDLE_SERVICES = ("CANCELLATION_CLEANUP", "FOREMAN", "LATE_RUNS", "PAUSE_EXPIRATIONS", "SCHEDULER", "TRIGGERS")
PAGES = HERE.url(PREFECT_PORT)  # where `nightschool ui` shows the runs after this server has ended
DRAIN_LIMIT = 3  # seconds
RESEND_LIMIT = 60  # seconds, if the server was restarted
RECORD_SECONDS = 5  # seconds that a restarted server takes to record what it received
START_LIMIT = 180  # seconds; a busy machine needs 25, and the first start creates the database


class ServerError(NightError):
    """A server that this process started has failed. The message is one line that names the log to read."""


@contextmanager
def prefect_api(home: Path, meanwhile: Callable[[], object] = lambda: None) -> Iterator[str]:
    """Yield the URL of the night's Prefect API. Inside the `with` block, Prefect's settings point to this API.

    A configured API (PREFECT_API_URL or the active profile) is used as is. Without one, a server runs on 127.0.0.1
    until the block ends. Its database is under the home, so that `nightschool ui` can show its runs later. `meanwhile`
    is called while a local server starts. Raises InputError if the configured URL contains a password or its server is
    not compatible, and ServerError if the local server does not start.
    """
    from prefect.settings import PREFECT_API_URL, PREFECT_HOME, PREFECT_UI_URL, get_current_settings, temporary_settings

    from flows.web.health import check_prefect

    configured = get_current_settings().api.url
    if configured:
        check_prefect(without_password(configured, "PREFECT_API_URL", PREFECT))
        Home(home).make_private()
        yield configured
        return
    Home(home).make_private()
    folder = home / "prefect"
    folder.mkdir(parents=True, exist_ok=True)
    port, output = free_port(), folder / "server.log"
    server, url = start_server(folder, port, output)
    try:
        meanwhile()
        wait_until_ready(server, url, output)
        with temporary_settings({PREFECT_API_URL: url, PREFECT_HOME: folder, PREFECT_UI_URL: PAGES}):
            try:
                yield url
            finally:
                if server.poll() is not None:
                    log.warning("the Prefect server died (code %s); what it missed is sent now", server.returncode)
                    try:
                        server, _ = start_server(folder, port, output)
                        wait_until_ready(server, url, output)
                        _send_what_is_left(RESEND_LIMIT)
                        time.sleep(RECORD_SECONDS)
                    except ServerError as error:  # what the night has done is on disk
                        log.warning("Prefect's pages lack the end of this run: %s", error)
                else:
                    _send_what_is_left(DRAIN_LIMIT)
    finally:
        server.kill()
        server.wait()


def _send_what_is_left(seconds: float) -> None:
    """Send the queued logs and events before the server ends, because Prefect would retry the rest for minutes.

    Emitting a last event also sends the events that failed before (see `flows/orchestration/client.py`).
    """
    from prefect.events import emit_event
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker

    emit_event("nightschool.command-over", {"prefect.resource.id": "nightschool"})
    for worker in (APILogWorker, EventsWorker):
        worker.drain_all(timeout=seconds)


def start_server(
    folder: Path, port: int, log: Path, address: Address = HERE, idle: Sequence[str] = IDLE_SERVICES
) -> tuple[Child, str]:
    """Start a Prefect server with its files in `folder`. Return its process and the URL of its API.

    `idle`: the services to turn off. The server is killed when the calling thread ends.
    """
    pages = address.url(port)
    environment = os.environ | {
        "PREFECT_HOME": str(folder),
        "PREFECT_MEMO_STORE_PATH": str(folder / "memo_store.toml"),  # else in ~/.prefect, whatever PREFECT_HOME is
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",  # so that runs go after 90 days
        **{f"PREFECT_SERVER_SERVICES_{service}_ENABLED": "false" for service in idle},
        "PREFECT_UI_API_URL": f"{pages}/api",
        # by default, any page open in the owner's browser may read the API
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": ",".join(f"http://{name}:{port}" for name in address.names),
        HOSTS: ",".join(address.names),
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    }
    environment.pop("PREFECT_API_URL", None)
    if address.key:
        environment["PREFECT_SERVER_API_AUTH_STRING"] = address.key
    return start_child([*SERVER, "--host", address.host, "--port", str(port)], environment, log), f"{pages}/api"


def wait_until_ready(server: Child, url: str, log: Path) -> None:
    """Wait until the API answers. Raises ServerError if the server ends or needs more than START_LIMIT seconds."""
    limit = time.monotonic() + START_LIMIT
    while time.monotonic() < limit:
        if server.poll() is not None:
            raise ServerError(f"the Prefect server ended with code {server.returncode}; its log: {log}")
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2):
                return
        except (URLError, TimeoutError, ConnectionError):
            time.sleep(0.2)
    raise ServerError(f"the Prefect server did not answer within {START_LIMIT} s; its log: {log}")
