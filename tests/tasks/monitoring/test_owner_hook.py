"""The owner's command is a real process: what it gets, how it fails, and that nothing of it stays."""

import json
import logging
import sys
import time
from pathlib import Path

import pytest

from tasks.monitoring.alarms import Alarm
from tasks.monitoring.notify import tell_owner

ALARM = Alarm("no_signal", False, "Hardly any “group” had a signal; $(touch owned)", 4)
READS = "import os, sys; print(sys.stdin.read(), os.environ['NIGHTSCHOOL_ALARM'], *sys.argv[1:], sep='\\n')"
# A child in the same session that would live on, and hold the output open; its number is printed first.
LEAVES = """
import subprocess, sys, time
print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid, flush=True)
time.sleep(float(sys.argv[1]))
"""


@pytest.fixture
def output(tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(logging.getLogger("nightschool"), "propagate", True)
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.WARNING, "nightschool")
    return tmp_path / "logs" / "alarms-command.log"


def python(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", program, *arguments]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(pid: int) -> bool:
    limit = time.monotonic() + 5
    while is_running(pid) and time.monotonic() < limit:
        time.sleep(0.02)
    return not is_running(pid)


def test_the_command_gets_the_alarm(output: Path, caplog: pytest.LogCaptureFixture) -> None:
    tell_owner(python(READS, "two words", "$HOME; *"), ALARM, "2026-11-20", output)
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
    assert caplog.text == ""


def test_one_that_does_not_listen_is_all_right(output: Path, caplog: pytest.LogCaptureFixture) -> None:
    tell_owner(["true"], ALARM, "2026-11-20", output)
    assert caplog.text == ""


def test_a_failure_is_logged_without_its_arguments(output: Path, caplog: pytest.LogCaptureFixture) -> None:
    tell_owner(python("import sys; print('no network'); sys.exit(7)", "key-1234"), ALARM, "2026-11-20", output)
    assert f"alarms.command: {sys.executable} ended with code 7; see {output}" in caplog.text
    assert output.read_text() == "no network\n"
    tell_owner(["/no/such/program", "key-1234"], ALARM, "2026-11-20", output)
    assert "alarms.command: /no/such/program cannot be run: [Errno 2]" in caplog.text
    tell_owner([str(output.parent), "key-1234"], ALARM, "2026-11-20", output)
    assert "cannot be run: [Errno 13]" in caplog.text
    assert "key-1234" not in caplog.text


def test_one_that_hangs_is_ended_with_all_that_it_started(output: Path, caplog: pytest.LogCaptureFixture) -> None:
    tell_owner(python(LEAVES, "600"), ALARM, "2026-11-20", output, limit=4)
    assert "was not through after 4 s and was ended" in caplog.text
    assert gone(int(output.read_text()))


def test_what_it_started_ends_with_it(output: Path, caplog: pytest.LogCaptureFixture) -> None:
    tell_owner(python(LEAVES, "0"), ALARM, "2026-11-20", output)
    assert caplog.text == ""
    assert gone(int(output.read_text()))
