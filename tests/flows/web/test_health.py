"""Servers that do not answer, databases that do not open, either of another version: one line, and nothing begun."""

import base64
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path

import prefect
import pytest
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

from conf.storage.home import Home, InputError
from flows.web.health import INSTEAD, check_mlflow, check_prefect


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


def test_a_database_is_opened_and_none_is_made(home_with_mlflow: Callable[[str], Home]) -> None:
    home = home_with_mlflow("school with spaces and ü")
    check_mlflow(home.database)
    check_mlflow(f"{home.database}.none/mlflow.db")
    assert list(home.root.iterdir()) == [home.database_file]


def refused(home: Home) -> str:
    """What is said of the home's database, in one line and without its path."""
    with pytest.raises(InputError) as caught:
        check_mlflow(home.database)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{home.database_file}: ")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("SELECT 1", "(found version ffffffffffff, but expected "),
        ("DROP TABLE trace_tags", "(Can't locate revision identified by 'ffffffffffff')"),  # MLflow tries to upgrade it
    ],
)
def test_a_database_of_another_version(home_with_mlflow: Callable[[str], Home], change: str, why: str) -> None:
    home = home_with_mlflow("my school")
    with closing(sqlite3.connect(home.database_file)) as database, database:
        database.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")
        database.execute(change)
    said = refused(home)
    assert said.startswith(f"MLflow {version('mlflow')} does not work with this database (")
    assert why in said
    assert f"keep a copy and run `mlflow db upgrade '{home.database}'`; if a newer one did, go on with that" in said


@pytest.mark.parametrize("part", ["beginning", "middle", "end"])
def test_a_damaged_database(home_with_mlflow: Callable[[str], Home], part: str) -> None:
    home = home_with_mlflow("school")
    content = home.database_file.read_bytes()
    middle = len(content) // 2
    damaged = {
        "beginning": b"?" * 4096 + content[4096:],
        "middle": content[:middle] + b"?" * 12288 + content[middle + 12288 :],
        "end": content[:-8192],
    }
    home.database_file.write_bytes(damaged[part])
    said = refused(home)
    assert said.startswith("this database is damaged (")
    assert "); bring it back from a backup, or move it away: then the next night begins another" in said
    assert home.database_file.read_bytes() == damaged[part]


def test_a_database_that_cannot_be_opened(tmp_path: Path) -> None:
    (home := Home(tmp_path)).database_file.mkdir()
    assert refused(home) == (
        "this database cannot be opened (unable to open database file); see what holds it, or its rights"
    )


def test_a_database_whose_night_was_killed_while_it_wrote_is_good(home_with_mlflow: Callable[[str], Home]) -> None:
    """Its journal lies there still, and only who may write can undo what was half done."""
    home = home_with_mlflow("school")
    writes = (
        "import os, sqlite3, sys; database = sqlite3.connect(sys.argv[1]); database.execute('PRAGMA cache_size = 1');"
        "database.execute('UPDATE alembic_version SET version_num = hex(randomblob(1000))');"
        "database.execute('CREATE TABLE half AS SELECT hex(randomblob(100000))'); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", writes, home.database_file], check=False)
    assert home.database_file.with_name("mlflow.db-journal").stat().st_size > 0
    check_mlflow(home.database)


def test_prefects_cloud_speaks_every_version() -> None:
    check_prefect("https://api.prefect.cloud/api/accounts/a/workspaces/b")
