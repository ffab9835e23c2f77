"""Servers that do not answer, that are of another version, or that are no such servers: one line, and nothing begun."""

import base64
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version

import pytest

from conf.home import InputError
from flows.servers import check_mlflow, check_prefect


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


def test_its_own_version_is_let_through(server: Stranger) -> None:
    server.said = version("mlflow")
    check_mlflow(f"{server.url}/")
    server.said = f'"{version("prefect")}"'  # Prefect's answer is JSON
    check_prefect(f"{server.url}/api")
    assert [path for path, _ in server.asked] == ["/version", "/api/admin/version"]


def test_another_major_version_is_one_line(server: Stranger) -> None:
    server.said = "2.22.1"
    own = version("mlflow")
    with pytest.raises(InputError) as refused:
        check_mlflow(server.url)
    assert str(refused.value) == (
        f"MLflow's server at {server.url}/version is of version 2.22.1, and this program speaks that of {own}: "
        f"run a server of version {own.split('.')[0]}, or name another"
    )
    with pytest.raises(InputError, match=r"Prefect's server at .* is of version 2\.22\.1, and this program speaks"):
        check_prefect(server.url)


@pytest.mark.parametrize(
    ("status", "said"),
    [(404, "answers with HTTP 404: there is no MLflow server"), (401, "lets nobody in who has no key"), (500, "500")],
)
def test_what_is_no_server_of_that_kind_is_one_line(server: Stranger, status: int, said: str) -> None:
    server.status = status
    with pytest.raises(InputError, match=said):
        check_mlflow(server.url)


def test_a_server_that_is_not_there_is_one_line() -> None:
    with pytest.raises(InputError, match=r"MLflow's server does not answer at http://127\.0\.0\.1:9/version \(Conn"):
        check_mlflow("http://127.0.0.1:9")


def test_the_key_is_handed_over_and_never_told(server: Stranger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "me")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "planted")
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", "me:planted")
    server.status = 403
    for check in (check_mlflow, check_prefect):
        with pytest.raises(InputError) as refused:
            check(server.url)
        assert "planted" not in str(refused.value)
    key = f"Basic {base64.b64encode(b'me:planted').decode()}"
    assert [given for _, given in server.asked] == [key, key]


def test_a_database_is_no_server_and_prefects_cloud_speaks_every_version() -> None:
    check_mlflow("sqlite:////nowhere/mlflow.db")
    check_prefect("")
    check_prefect("https://api.prefect.cloud/api/accounts/a/workspaces/b")
