"""The owner's command and webhook, real ones: what they get, how they fail, and that keys stay secret."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conf.storage.home import InputError
from tasks.monitoring.alarms import Alarm
from tasks.monitoring.notify import post_report, run_alarm_command, webhook
from tests.tasks.doubles.processes import gone_within
from tests.tasks.doubles.webhook import KEY, Webhook, listening

ALARM = Alarm("no_signal", False, "Hardly any “group” had a signal; $(touch owned)", 4)
READS = "import os, sys; print(sys.stdin.read(), os.environ['NIGHTSCHOOL_ALARM'], *sys.argv[1:], sep='\\n')"
# A child in the same session that would live on, and hold the output open; its number is printed first.
LEAVES = """
import subprocess, sys, time
print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid, flush=True)
time.sleep(float(sys.argv[1]))
"""
VARIABLE = "MORNING_URL"
TEXT = "# Night: “kept” <b>\n| a |"


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "logs" / "alarms-command.log"


@pytest.fixture
def server() -> Iterator[Webhook]:
    with listening() as running:
        yield running


def python(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", program, *arguments]


def test_the_command_gets_the_alarm(output: Path, logged: pytest.LogCaptureFixture) -> None:
    run_alarm_command(python(READS, "two words", "$HOME; *"), ALARM, "2026-11-20", output)
    line, _, sentence, *arguments = output.read_text().splitlines()
    assert json.loads(line) == {
        "night": "2026-11-20",
        "name": "no_signal",
        "severe": False,
        "sentence": ALARM.sentence,
        "round": 4,
    }
    assert sentence == ALARM.sentence
    assert arguments == ["two words", "$HOME; *"]  # no shell was between
    assert not (output.parent.parent / "owned").exists()
    run_alarm_command(["true"], ALARM, "2026-11-20", output)  # reads nothing
    assert logged.text == ""


def test_a_failing_command_is_logged_without_its_arguments(output: Path, logged: pytest.LogCaptureFixture) -> None:
    fails = python("import sys; print('no network'); sys.exit(7)", "key-1234")
    run_alarm_command(fails, ALARM, "2026-11-20", output)
    assert f"alarms.command: {sys.executable} exited with code 7; see {output}" in logged.text
    assert output.read_text() == "no network\n"
    for program, why in (("/no/such/program", "[Errno 2]"), (str(output.parent), "[Errno 13]")):
        run_alarm_command([program, "key-1234"], ALARM, "2026-11-20", output)
        assert f"alarms.command: {program} cannot be run: {why}" in logged.text
    assert "key-1234" not in logged.text


@pytest.mark.parametrize(("seconds", "warning"), [("600", "took longer than 2 s and was ended"), ("0", "")])
def test_what_it_started_ends_with_it(
    output: Path, logged: pytest.LogCaptureFixture, seconds: str, warning: str
) -> None:
    run_alarm_command(python(LEAVES, seconds), ALARM, "2026-11-20", output, limit=2 if warning else 30)
    assert (warning in logged.text) if warning else (logged.text == "")
    assert gone_within(5, int(output.read_text()))


def post(monkeypatch: pytest.MonkeyPatch, url: str, limit: float = 20) -> None:
    monkeypatch.setenv(VARIABLE, url)
    post_report(VARIABLE, TEXT, limit)


def test_the_report_is_posted(
    server: Webhook, monkeypatch: pytest.MonkeyPatch, logged: pytest.LogCaptureFixture
) -> None:
    post(monkeypatch, server.url("takes"))
    ((method, kind, body),) = server.got
    assert (method, kind) == ("POST", "application/json")
    assert json.loads(body) == {"text": TEXT}
    assert logged.text == ""


@pytest.mark.parametrize(("path", "why"), [("refuses", "HTTP 403"), ("moved", "HTTP 302"), ("hangs", "")])
def test_a_webhook_that_fails_costs_one_line(
    path: str, why: str, server: Webhook, monkeypatch: pytest.MonkeyPatch, logged: pytest.LogCaptureFixture
) -> None:
    """A redirect is not followed, and one that hangs is not waited for."""
    post(monkeypatch, server.url(path), limit=0.5 if path == "hangs" else 20)
    assert [method for method, *_ in server.got] == ["POST"]
    (record,) = logged.records
    said = f"morning.webhook_variable: the webhook of {VARIABLE} did not accept the morning report: {why}"
    assert record.getMessage().startswith(said)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://no.such.host.invalid/", "http://127.0.0.1/a\nb "])
def test_no_webhook_is_there(url: str, monkeypatch: pytest.MonkeyPatch, logged: pytest.LogCaptureFixture) -> None:
    post(monkeypatch, url + KEY)
    (record,) = logged.records
    assert "the webhook of MORNING_URL did not accept" in record.getMessage()
    assert KEY not in logged.text


@pytest.mark.parametrize(
    ("url", "state"),
    [("", "is not set"), (f"file:///{KEY}", "holds no http:// or https:// URL"), (KEY, "holds no http:// or https://")],
)
def test_a_variable_without_a_url_is_refused_and_not_repeated(
    url: str, state: str, monkeypatch: pytest.MonkeyPatch, logged: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(VARIABLE, url)
    with pytest.raises(InputError, match=f"morning.webhook_variable: MORNING_URL {state}") as error:
        webhook(VARIABLE)
    assert KEY not in str(error.value)
    post_report(VARIABLE, "text")  # unset since the night began
    assert [record.getMessage() for record in logged.records] == [str(error.value)]
