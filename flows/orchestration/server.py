"""The Prefect server of a night: the one that is configured, or a child of our own that dies with us."""

import logging
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError

from conf.redact import PREFECT, without_password
from conf.storage.home import Home, NightError
from flows.web.address import HERE, HOSTS, PREFECT_PORT, Address, free_port
from tasks.workers import die_with_parent

# The client keeps idle connections for longer than the server's default of 5 s; it then meets a closed one, and tries
# again only after 2 s: two to six seconds of every round.
SERVER = [sys.executable, "-m", "flows.orchestration.sqlite_server", "server", "start", "--keep-alive-timeout", "120"]
# Services that have nothing to do for one night of one's own; each would write into the same SQLite file, and a request
# that meets a lock is refused and tried again only after 2 s.
IDLE_SERVICES = ("CANCELLATION_CLEANUP", "FOREMAN", "LATE_RUNS", "PAUSE_EXPIRATIONS", "SCHEDULER", "TRIGGERS")
PAGES = HERE.url(PREFECT_PORT)  # where `nightschool ui` shows the runs, when this server is gone
DRAIN_LIMIT = 3  # seconds
START_LIMIT = 180  # seconds; a busy machine needs 25, the first start makes the database
RESTARTS = 5  # of a night's own server; the night does not need it
LOOK_AFTER = 0.5  # seconds between two looks at it

log = logging.getLogger("nightschool")


class ServerError(NightError):
    """A server of ours that ended, or never answered: one line that names its log."""


@contextmanager
def prefect_api(home: Path, port: int | None, on_loss: Callable[[str], None] = log.warning) -> Iterator[str]:
    """The URL of the API that the night's flow reports to, with Prefect's settings pointing there.

    A configured API (PREFECT_API_URL or the active profile) is used as it is. Otherwise a server is started on
    127.0.0.1, with its database under the home, so that `nightschool ui` shows its runs later; where that dies,
    `on_loss` is told, and it is started again. The tasks' results lie under the home with either. Raises InputError
    where the URL of a configured one carries a password, or where that server is not one to work with.
    """
    from prefect.settings import (
        PREFECT_API_URL,
        PREFECT_HOME,
        PREFECT_LOCAL_STORAGE_PATH,
        PREFECT_UI_URL,
        get_current_settings,
        temporary_settings,
    )

    from flows.web.health import check_prefect

    # else in ~/.prefect, whatever PREFECT_HOME is
    results: dict[Any, Any] = {PREFECT_LOCAL_STORAGE_PATH: home / "prefect" / "storage"}
    configured = get_current_settings().api.url
    if configured:
        check_prefect(without_password(configured, "PREFECT_API_URL", PREFECT))
        Home(home).make_private()
        with temporary_settings(results):
            yield configured
        return
    Home(home).make_private()
    folder = home / "prefect"
    folder.mkdir(parents=True, exist_ok=True)
    with (
        _kept_server(folder, port or free_port(), folder / "server.log", on_loss) as url,
        temporary_settings({PREFECT_API_URL: url, PREFECT_HOME: folder, PREFECT_UI_URL: PAGES} | results),
    ):
        try:
            yield url
        finally:
            _send_what_is_left()


@contextmanager
def _kept_server(folder: Path, port: int, output: Path, on_loss: Callable[[str], None]) -> Iterator[str]:
    """The URL of a server that answers, is started again on its port where it dies, and ends with the block."""
    server, url = start_server(folder, port, output)
    over = threading.Event()

    def keep() -> None:
        """On a thread that lives as long as the servers that it starts (PR_SET_PDEATHSIG)."""
        running, left = server, RESTARTS
        while left and not over.wait(LOOK_AFTER):
            if running.poll() is not None:
                left -= 1
                last = "" if left else ", for the last time: the night does without"
                with suppress(OSError):  # a full disk, perhaps
                    on_loss(f"the Prefect server died (code {running.returncode}) and is started again{last}")
                try:
                    running, _ = start_server(folder, port, output)
                except OSError as error:
                    log.warning("the Prefect server died and was not started: %s", error)
        over.wait()
        running.kill()
        running.wait()

    keeper = threading.Thread(target=keep, name="prefect-keeper", daemon=True)
    try:
        wait_until_ready(server, url, output)
        keeper.start()
        yield url
    finally:
        over.set()
        keeper.join() if keeper.ident else server.kill()
        server.wait()


def _send_what_is_left() -> None:
    """Sends the queued logs and events: what is left when the server ends would be tried again for minutes.

    A last event takes along what a server that was away could not be told (see `flows/orchestration/client.py`).
    """
    from prefect.events import emit_event
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker

    emit_event("nightschool.command-over", {"prefect.resource.id": "nightschool"})
    for worker in (APILogWorker, EventsWorker):
        worker.drain_all(timeout=DRAIN_LIMIT)


def start_server(
    folder: Path, port: int, log: Path, address: Address = HERE, idle: Sequence[str] = IDLE_SERVICES
) -> tuple[subprocess.Popen[bytes], str]:
    """Starts a Prefect server, on loopback if not told otherwise, whose files lie in `folder`.

    `idle`: the services of it that do not run. It is killed when this thread ends.
    """
    parent = os.getpid()
    pages = address.url(port)
    environment = os.environ | {
        "PREFECT_HOME": str(folder),
        "PREFECT_MEMO_STORE_PATH": str(folder / "memo_store.toml"),  # else in ~/.prefect, whatever PREFECT_HOME is
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        **{f"PREFECT_SERVER_SERVICES_{service}_ENABLED": "false" for service in idle},
        "PREFECT_UI_API_URL": f"{pages}/api",
        # by default any page that the owner's browser is on may read the API
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": ",".join(f"http://{name}:{port}" for name in address.names),
        HOSTS: ",".join(address.names),
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    }
    environment.pop("PREFECT_API_URL", None)
    if address.key:
        environment["PREFECT_SERVER_API_AUTH_STRING"] = address.key
    with log.open("ab") as output:
        server = subprocess.Popen(
            [*SERVER, "--host", address.host, "--port", str(port)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C is for the night, which ends its server itself
            preexec_fn=lambda: die_with_parent(parent),
        )
    return server, f"{pages}/api"


def wait_until_ready(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Returns when the API answers. Raises ServerError where the server ends or takes too long."""
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
