"""The webhook is a real server on loopback: what it gets, how it fails, and that its URL stays secret."""

import json
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from conf.storage.home import InputError
from tasks.monitoring.notify import tell_morning, webhook

VARIABLE = "MORNING_URL"
KEY = "T00key1234"


class Webhook(ThreadingHTTPServer):
    """Notes what is posted; the answer depends on the path."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.got: list[tuple[str, str, str]] = []  # method, type, body
        self.done = threading.Event()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{path}/{KEY}"


class Answers(BaseHTTPRequestHandler):
    server: Webhook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.got.append((self.command, self.headers["Content-Type"], body))
        path = self.path.split("/")[1]
        if path == "hangs":
            self.server.done.wait(20)
        self.send_response({"refuses": 403, "moved": 302}.get(path, 200))
        self.send_header("Location", self.server.url("takes"))
        self.end_headers()

    def do_GET(self) -> None:
        self.server.got.append((self.command, "", ""))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@contextmanager
def listening() -> Iterator[Webhook]:
    """A webhook on loopback, for as long as it is needed."""
    with Webhook() as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        try:
            yield found
        finally:
            found.done.set()
            found.shutdown()


@pytest.fixture
def server() -> Iterator[Webhook]:
    with listening() as found:
        yield found


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("nightschool"), "propagate", True)
    caplog.set_level(logging.DEBUG)


def tell(monkeypatch: pytest.MonkeyPatch, url: str, limit: float = 20) -> None:
    monkeypatch.setenv(VARIABLE, url)
    tell_morning(VARIABLE, "# Night: “kept” <b>\n| a |", limit)


def test_the_text_arrives_once_as_json(
    server: Webhook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tell(monkeypatch, server.url("takes"))
    ((method, kind, body),) = server.got
    assert (method, kind) == ("POST", "application/json; charset=utf-8")
    assert json.loads(body) == {"text": "# Night: “kept” <b>\n| a |"}
    assert caplog.text == ""


@pytest.mark.parametrize(("path", "why"), [("refuses", "HTTP 403"), ("moved", "HTTP 302")])
def test_a_refusal_is_one_line_and_a_redirect_is_one(
    path: str, why: str, server: Webhook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tell(monkeypatch, server.url(path))
    assert [method for method, *_ in server.got] == ["POST"]
    said = f"morning.webhook_variable: the webhook of {VARIABLE} did not take the morning report: {why}"
    assert [record.getMessage() for record in caplog.records] == [said]


def test_one_that_does_not_answer_is_not_waited_for(
    server: Webhook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    started = time.monotonic()
    tell(monkeypatch, server.url("hangs"), limit=0.5)
    assert time.monotonic() - started < 15  # the server itself would take 20
    assert "did not take the morning report: " in caplog.text


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://no.such.host.invalid/", "http://127.0.0.1/a\nb "])
def test_nobody_there(url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    tell(monkeypatch, url + KEY)
    (record,) = caplog.records
    assert record.getMessage().startswith("morning.webhook_variable: the webhook of MORNING_URL did not take")
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    ("url", "state"),
    [("", "is not set"), (f"file:///{KEY}", "holds no http:// or https:// URL"), (KEY, "holds no http:// or https://")],
)
def test_what_is_no_url_is_refused_and_not_repeated(
    url: str, state: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(VARIABLE, url)
    with pytest.raises(InputError, match=f"morning.webhook_variable: MORNING_URL {state}") as error:
        webhook(VARIABLE)
    assert KEY not in str(error.value)
    tell_morning(VARIABLE, "text")  # unset since the night began
    assert [record.getMessage() for record in caplog.records] == [str(error.value)]
