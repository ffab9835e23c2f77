"""Servers that do not answer, that are of another version, or that are no such servers: one line, and nothing begun."""

import base64
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version

import prefect
import pytest
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

from conf.home import InputError
from flows.servers import INSTEAD, check_mlflow, check_prefect


class Stranger(ThreadingHTTPServer):
    """Answers everything alike."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.said, self.status, self.asked = "", 200, []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    """One request's answer."""

    server: Stranger

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.said.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def server() -> Iterator[Stranger]:
    stranger = Stranger()
    threading.Thread(target=stranger.serve_forever, daemon=True).start()
    yield stranger
    stranger.shutdown()
    stranger.server_close()


Said = Callable[[str], str]


@pytest.fixture
def said() -> Said:
    """What is said of a Prefect server, without its URL and the advice to do without it; nothing of a good one."""

    def ask(url: str) -> str:
        with temporary_settings({PREFECT_API_URL: url}):
            try:
                check_prefect(url)
            except InputError as error:
                return str(error).removeprefix(f"PREFECT_API_URL: {url} ").removesuffix(f", {INSTEAD}")
        return ""

    return ask


def test_a_server_of_its_own_version_is_let_through(server: Stranger) -> None:
    server.said = version("mlflow")
    check_mlflow(f"{server.url}/")
    assert [path for path, _ in server.asked] == ["/version"]


def test_another_major_version_is_one_line(server: Stranger) -> None:
    server.said = "2.22.1"
    own = version("mlflow")
    with pytest.raises(InputError) as refused:
        check_mlflow(server.url)
    assert str(refused.value) == (
        f"MLflow's server at {server.url}/version is of version 2.22.1, and this program speaks that of {own}: "
        f"run a server of version {own.split('.')[0]}, or name another"
    )


@pytest.mark.parametrize(
    ("status", "told"),
    [(404, "answers with HTTP 404: there is no MLflow server"), (401, "lets nobody in who has no key"), (500, "500")],
)
def test_what_is_no_server_of_that_kind_is_one_line(server: Stranger, status: int, told: str) -> None:
    server.status = status
    with pytest.raises(InputError, match=told):
        check_mlflow(server.url)


def test_a_server_that_is_not_there_is_one_line(said: Said) -> None:
    with pytest.raises(InputError, match=r"MLflow's server does not answer at http://127\.0\.0\.1:9/version \(Conn"):
        check_mlflow("http://127.0.0.1:9")
    assert said("http://127.0.0.1:9/api").startswith("does not answer (")


def test_prefect_servers_of_these_versions_are_worked_with(server: Stranger, said: Said) -> None:
    major, minor, _ = prefect.__version__.split(".")
    for own in (prefect.__version__, f"{major}.{minor}.0", f"{major}.{int(minor) + 1}.0"):
        server.said = f'"{own}"'
        assert said(f"{server.url}/api") == ""
    assert {path for path, _ in server.asked} == {"/api/admin/version"}


@pytest.mark.parametrize("other", ["2.20.4", "3.0.11", "4.0.0"])
def test_prefect_servers_of_other_versions_are_not(server: Stranger, said: Said, other: str) -> None:
    server.said, own = f'"{other}"', prefect.__version__
    assert said(f"{server.url}/api") == (
        f"is Prefect {other}, which does not serve a client of {own}: make it {own} or newer "
        f"(pip install prefect=={own})"
    )


@pytest.mark.parametrize(("status", "body"), [(404, "{}"), (200, "<html>"), (200, '{"detail": 1}'), (200, '"new"')])
def test_what_is_no_prefect_server(server: Stranger, said: Said, status: int, body: str) -> None:
    server.status, server.said = status, body
    assert said(f"{server.url}/api") == "is not the API of a Prefect server, whose address ends with /api; mend it"


@pytest.mark.parametrize("status", [401, 403])
def test_a_prefect_server_that_wants_a_password(server: Stranger, said: Said, status: int) -> None:
    server.status = status
    assert said(f"{server.url}/api") == "wants a password: set PREFECT_API_AUTH_STRING=user:password"


def test_the_key_is_handed_over_and_never_told(server: Stranger, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "me")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "planted")
    server.status = 403
    with pytest.raises(InputError) as refused:
        check_mlflow(server.url)
    with temporary_settings({PREFECT_API_AUTH_STRING: "me:planted"}):
        assert "planted" not in f"{refused.value}{said(f'{server.url}/api')}"
    key = f"Basic {base64.b64encode(b'me:planted').decode()}"
    assert [given for _, given in server.asked] == [key, key]


def test_a_database_is_no_server_and_prefects_cloud_speaks_every_version() -> None:
    check_mlflow("sqlite:////nowhere/mlflow.db")
    check_prefect("https://api.prefect.cloud/api/accounts/a/workspaces/b")
