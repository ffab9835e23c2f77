"""Servers that do not answer, databases that do not open, either of another version: one line, and nothing begins."""

import base64
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.metadata import version

import prefect
import pytest
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

from conf.storage.home import Home, InputError
from flows.web.health import INSTEAD, check_mlflow, check_prefect
from tests.models.support.chat_server import Reply, Request, http_server
from tests.refusal import refusal


class FakeServer:
    """Answers every request with `answer` and `status`, and keeps paths and keys in `requests`."""

    def __init__(self) -> None:
        self.url, self.answer, self.status = "", "", 200
        self.requests: list[tuple[str, str | None]] = []

    def reply(self, request: Request) -> Reply:
        self.requests.append((request.path, request.headers.get("Authorization")))
        return Reply(self.answer.encode(), self.status)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    fake = FakeServer()
    with http_server(fake.reply) as fake.url:
        yield fake


def refused_prefect(url: str) -> str:
    """What a Prefect server is refused with, without its URL and the advice to do without it; "" for a good one."""
    with temporary_settings({PREFECT_API_URL: url}):
        try:
            check_prefect(url)
        except InputError as error:
            return str(error).removeprefix(f"PREFECT_API_URL: {url} ").removesuffix(f", {INSTEAD}")
    return ""


def test_an_mlflow_server_must_have_the_same_major_version(server: FakeServer) -> None:
    server.answer = installed = version("mlflow")
    check_mlflow(f"{server.url}/")
    assert [path for path, _ in server.requests] == ["/version"]
    server.answer = "2.22.1"
    assert refusal(check_mlflow, server.url) == (
        f"MLflow's server at {server.url}/version has version 2.22.1, and this program {installed}: "
        f"run a server of version {installed.split('.')[0]}, or name another"
    )


@pytest.mark.parametrize(
    ("status", "message"), [(404, "answers with HTTP 404"), (401, "requires a login"), (500, "500")]
)
def test_what_is_not_an_open_mlflow_server(server: FakeServer, status: int, message: str) -> None:
    server.status = status
    with pytest.raises(InputError, match=message):
        check_mlflow(server.url)


def test_prefect_servers_of_this_version_or_newer_are_good(server: FakeServer) -> None:
    major, minor, _ = prefect.__version__.split(".")
    for newer in (prefect.__version__, f"{major}.{minor}.0", f"{major}.{int(minor) + 1}.0"):
        server.answer = f'"{newer}"'
        assert refused_prefect(f"{server.url}/api") == ""
    assert {path for path, _ in server.requests} == {"/api/admin/version"}
    check_prefect("https://api.prefect.cloud/api/accounts/a/workspaces/b")  # serves every version


@pytest.mark.parametrize("other", ["2.20.4", "3.0.11", "4.0.0"])
def test_prefect_servers_of_other_versions(server: FakeServer, other: str) -> None:
    server.answer, client = f'"{other}"', prefect.__version__
    assert refused_prefect(f"{server.url}/api") == (
        f"is Prefect {other}, which does not serve a client of {client}: make it {client} or newer "
        f"(pip install prefect=={client})"
    )


@pytest.mark.parametrize(("status", "answer"), [(404, "{}"), (200, "<html>"), (200, '"new"'), (401, "{}"), (403, "{}")])
def test_not_an_open_prefect_server(server: FakeServer, status: int, answer: str) -> None:
    server.status, server.answer = status, answer
    not_prefect = "is not the API of a Prefect server, whose address ends with /api; correct it"
    closed = "asks for a password: set PREFECT_API_AUTH_STRING=user:password"
    assert refused_prefect(f"{server.url}/api") == (closed if status in (401, 403) else not_prefect)


def test_keys_are_never_printed(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "me")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "planted")
    server.status = 403
    line = refusal(check_mlflow, server.url)
    with temporary_settings({PREFECT_API_AUTH_STRING: "me:planted"}):
        assert "planted" not in f"{line}{refused_prefect(f'{server.url}/api')}"
    key = f"Basic {base64.b64encode(b'me:planted').decode()}"
    assert [given for _, given in server.requests] == [key, key]


def test_an_address_without_http_is_refused() -> None:
    with pytest.raises(InputError, match="the address of a server begins with http://"):
        check_mlflow("localhost:5000")


def test_a_database_is_opened_and_none_is_made(home_with_mlflow: Callable[[str], Home]) -> None:
    home = home_with_mlflow("school with spaces and ü")
    check_mlflow(home.database)
    check_mlflow(f"{home.database}.none/mlflow.db")
    assert list(home.root.iterdir()) == [home.database_file]


def refused(home: Home) -> str:
    """What the home's database is refused with, in one line and without its path."""
    return refusal(check_mlflow, home.database).removeprefix(f"{home.database_file}: ")


def test_a_database_of_another_version(home_with_mlflow: Callable[[str], Home]) -> None:
    home = home_with_mlflow("my school")
    with closing(sqlite3.connect(home.database_file)) as database, database:
        database.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")
    message = refused(home)
    assert message.startswith(f"MLflow {version('mlflow')} does not work with this database (")
    assert "(found version ffffffffffff, but expected " in message
    assert f"keep a copy and run `mlflow db upgrade '{home.database}'`; if a newer one did, install that one" in message


def test_a_damaged_database(home_with_mlflow: Callable[[str], Home]) -> None:
    """At its beginning, in the middle, or cut off."""
    home = home_with_mlflow("school")
    content = home.database_file.read_bytes()
    middle = len(content) // 2
    middle_lost = content[:middle] + b"?" * 12288 + content[middle + 12288 :]
    for damaged in (b"?" * 4096 + content[4096:], middle_lost, content[:-8192]):
        home.database_file.write_bytes(damaged)
        message = refused(home)
        assert message.startswith("this database is damaged or cannot be opened (")
        assert "restore it from a backup, or move it away: then the next night starts from the student's" in message
        assert home.database_file.read_bytes() == damaged


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
