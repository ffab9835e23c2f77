"""The webhook, a real one: what it gets, how it fails, and that keys stay secret."""

import json
from collections.abc import Iterator

import pytest

from conf.storage.home import InputError
from tasks.monitoring.notify import VARIABLE, post_report, webhook
from tests.tasks.doubles.webhook import KEY, Webhook, listening

TEXT = "# Night: “kept” <b>\n| a |"


@pytest.fixture
def server() -> Iterator[Webhook]:
    with listening() as running:
        yield running


def post(monkeypatch: pytest.MonkeyPatch, url: str, limit: float = 20) -> None:
    monkeypatch.setenv(VARIABLE, url)
    post_report(TEXT, limit)


def test_the_report_is_posted(
    server: Webhook, monkeypatch: pytest.MonkeyPatch, logged: pytest.LogCaptureFixture
) -> None:
    post(monkeypatch, server.url("takes"))
    ((method, kind, body),) = server.got
    assert (method, kind) == ("POST", "application/json")
    assert json.loads(body) == {"text": TEXT}
    assert logged.text == ""


@pytest.mark.parametrize(
    ("path", "why"), [("refuses", "HTTP 403"), ("moved", "HTTP 302"), ("hangs", ""), ("drips", "no answer within")]
)
def test_a_webhook_that_fails_costs_one_line(
    path: str, why: str, server: Webhook, monkeypatch: pytest.MonkeyPatch, logged: pytest.LogCaptureFixture
) -> None:
    """A redirect is not followed, and one that hangs, or never ends its answer, is not waited for."""
    post(monkeypatch, server.url(path), limit=0.5 if path in ("hangs", "drips") else 20)
    assert [method for method, *_ in server.got] == ["POST"]
    (record,) = logged.records
    said = f"the webhook of {VARIABLE} did not accept the morning report: {why}"
    assert record.getMessage().startswith(said)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://no.such.host.invalid/", "http://127.0.0.1/a\nb "])
def test_no_webhook_is_there(url: str, monkeypatch: pytest.MonkeyPatch, logged: pytest.LogCaptureFixture) -> None:
    post(monkeypatch, url + KEY)
    (record,) = logged.records
    assert "the webhook of NIGHTSCHOOL_WEBHOOK did not accept" in record.getMessage()
    assert KEY not in logged.text


@pytest.mark.parametrize("url", [f"file:///{KEY}", KEY])
def test_a_variable_without_a_url_is_refused_and_not_repeated(
    url: str, monkeypatch: pytest.MonkeyPatch, logged: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(VARIABLE, url)
    with pytest.raises(InputError, match=f"{VARIABLE} holds no http:// or https:// URL") as error:
        webhook()
    assert KEY not in str(error.value)
    post_report("text")  # changed since the night began
    assert [record.getMessage() for record in logged.records] == [str(error.value)]
