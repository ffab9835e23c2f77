"""A Prefect server that is configured: of which versions it may be, and what is said of all that is none."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import prefect
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from conf.home import InputError
from flows.prefect_server import free_port
from flows.prefect_version import INSTEAD, check_server


@contextmanager
def answering(status: int, body: str) -> Iterator[str]:
    """The URL of a server that answers all questions alike."""

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *arguments: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/api"
        server.shutdown()


Said = Callable[[str], str]


@pytest.fixture
def said() -> Said:
    """What is said of a server, without its URL and the advice to do without it; nothing of one to work with."""

    def ask(url: str) -> str:
        with temporary_settings({PREFECT_API_URL: url}):
            try:
                check_server(url)
            except InputError as error:
                return str(error).removeprefix(f"PREFECT_API_URL: {url} ").removesuffix(f", {INSTEAD}")
        return ""

    return ask


def test_servers_of_these_versions_are_worked_with(said: Said) -> None:
    major, minor, _ = prefect.__version__.split(".")
    for version in (prefect.__version__, f"{major}.{minor}.0", f"{major}.{int(minor) + 1}.0"):
        with answering(200, f'"{version}"') as url:
            assert said(url) == ""


@pytest.mark.parametrize("version", ["2.20.4", "3.0.11", "4.0.0"])
def test_servers_of_other_versions_are_not(said: Said, version: str) -> None:
    own = prefect.__version__
    with answering(200, f'"{version}"') as url:
        assert said(url) == (
            f"is Prefect {version}, which does not serve a client of {own}: make it {own} or newer "
            f"(pip install prefect=={own})"
        )


@pytest.mark.parametrize(("status", "body"), [(404, "{}"), (200, "<html>"), (200, '{"detail": 1}'), (200, '"new"')])
def test_what_is_no_prefect_server(said: Said, status: int, body: str) -> None:
    with answering(status, body) as url:
        assert said(url) == "is not the API of a Prefect server, whose address ends with /api; mend it"


def test_a_server_that_wants_a_password(said: Said) -> None:
    with answering(401, "{}") as url:
        assert said(url) == "wants a password: set PREFECT_API_AUTH_STRING=user:password"


def test_a_server_that_is_not_there(said: Said) -> None:
    assert said(f"http://127.0.0.1:{free_port()}/api").startswith("does not answer (")
