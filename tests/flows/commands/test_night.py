"""`nightschool night`: what it refuses, which night it runs, and what it prints when one ends."""

import json
import shutil
import subprocess
import sys
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
import typer

from conf.load import STARTER, load_night
from conf.schema import NightConfig
from conf.storage.home import Home, InputError, NightError
from conf.storage.locks import NightRunningError, hold
from flows.commands import night as command
from flows.run.context import freeze_config
from flows.run.history import STARTED
from tests.conf.storage.lock_holder import holder
from tests.flows.commands.command import DATE, Outcome, Run, finish, refused

BERLIN = ["deadline=06:30", "deadline_time_zone=Europe/Berlin"]
PAST_DEADLINE = tuple(f"--set={setting}" for setting in BERLIN)
EVENING = "2026-01-21"


@pytest.fixture
def no_night(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test if a night begins."""
    monkeypatch.setattr(command, "_run", lambda *_: pytest.fail("the night began"))


@pytest.fixture
def evening(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the evening after the night of DATE, in Berlin."""
    monkeypatch.setattr(command, "clocks_in", lambda _: datetime.fromisoformat(f"{EVENING}T22:00:00+01:00"))


@pytest.mark.usefixtures("no_night")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set=grpo.ronds=4"], "--set grpo.ronds=4: unknown key; did you mean 'rounds'?"),
        (["--set=student.source={tmp}/nobody"], "student.source: {tmp}/nobody: there is no such folder"),
        (["--date=../.."], "--date: ../.. is not a date; write it as 2026-11-20"),
        (["--date=2999-01-01"], "--date: 2999-01-01 is in the future, today is "),
        ([f"--date={DATE}", *PAST_DEADLINE], f"deadline: 06:30 of the night {DATE} is past"),
        (["--set=deadline_time_zone=Mars"], '--set deadline_time_zone=Mars: "Mars" is '),
    ],
)
def test_a_wrong_input_is_one_line_and_nothing_is_written(
    run: Run, home: Home, tmp_path: Path, arguments: list[str], message: str
) -> None:
    line = refused(run("night", *(text.format(tmp=tmp_path) for text in arguments)))
    assert line.startswith(message.format(tmp=tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "setting",
    ["grpo.ronds=4", pytest.param("exam.target.problems=5", marks=pytest.mark.full)],  # the latter imports all
)
def test_a_real_process_prints_that_one_line_only(home: Home, tmp_path: Path, setting: str) -> None:
    """Whatever the imported libraries would like to print."""
    words = ["-m", "flows", "night", "--json", "--date", DATE, "--set", setting]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    refused(Outcome(done.returncode, done.stdout, done.stderr))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_night")
def test_another_night_holds_the_home(run: Run, home: Home) -> None:
    with holder(home.root) as other:
        outcome = run("night", "--date", DATE)
        assert [file.name for file in home.root.iterdir()] == ["night.lock"]
        freeze_config(home.night(DATE), load_night(STARTER), fresh=False)
        with_another_configuration = run("night", "--date", DATE, "--set", "seed=9", *PAST_DEADLINE)
    assert outcome == with_another_configuration
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err.startswith(f"nightschool: {home.root}: the night 2026-11-20 is running (process {other.pid}); ")


def test_a_begun_night_needs_neither_room_nor_time(run: Run, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has taken its room already, and its exam always has time."""
    dates: list[str] = []
    freeze_config(home.night(DATE), load_night(STARTER, BERLIN), fresh=False)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    monkeypatch.setattr(command, "_run", lambda _, __, date, *___: dates.append(date) or finish(home, *BERLIN))
    assert run("night", "--date", DATE, *PAST_DEADLINE).code == 0
    assert dates == [DATE]


EXAM_LEFT = f"which has its exam left; then the night {EVENING} starts."


@pytest.mark.usefixtures("evening")
@pytest.mark.parametrize(
    ("settings", "used_up", "error", "begun", "code", "message"),
    [
        (BERLIN, False, None, [DATE, EVENING], 0, EXAM_LEFT),
        (BERLIN, False, NightError("no registry"), [DATE, EVENING], 0, "(no registry); resume it with: nightschool ni"),
        (BERLIN, False, typer.Exit(130), [DATE], 130, ""),
        (BERLIN, False, NightRunningError("the night of another"), [DATE], 3, "the night of another"),
        ([], True, None, [DATE, EVENING], 0, EXAM_LEFT),
        ([], False, None, [DATE], 0, f"Resuming the interrupted night {DATE}; --date {EVENING} starts another."),
    ],
)
def test_the_night_before_takes_its_exam_or_goes_on_and_costs_tonight_nothing(
    run: Run,
    home: Home,
    settings: list[str],
    used_up: bool,
    error: Exception | None,
    begun: list[str],
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It goes on without a deadline unless its budget is used up. A timer starts the same command every evening."""
    dates: list[str] = []

    def night(_: Home, __: NightConfig, date: str, *___: bool) -> dict[str, Any]:
        dates.append(date)
        if error and date == DATE:
            raise error
        return {"night": date}

    freeze_config(home.night(DATE), load_night(STARTER, settings), fresh=False)
    if used_up:
        (home.night(DATE) / STARTED).write_text(json.dumps({"started": 0.0}))
    monkeypatch.setattr(command, "_run", night)
    outcome = run("night", "--json", *(f"--set={setting}" for setting in settings))
    assert (dates, outcome.code) == (begun, code)
    assert message in outcome.err
    assert outcome.out == (json.dumps({"night": begun[-1]}) + "\n" if code == 0 else "")


def test_the_clock_of_a_night_begun_anew_starts_anew(run: Run, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    since: list[float] = []
    freeze_config(home.night(DATE), load_night(STARTER), fresh=False)
    (home.night(DATE) / STARTED).write_text(json.dumps({"started": 1.0}))
    monkeypatch.setattr("flows.orchestration.server.prefect_api", lambda *_, **__: nullcontext())
    monkeypatch.setattr("flows.nightly.nightly", lambda *_: {"night": DATE})
    monkeypatch.setattr("flows.commands.console.minutes_left", lambda _, __, begun: since.append(begun))
    assert run("night", "--date", DATE, "--fresh", "--json").code == 0
    assert since == [json.loads((home.night(DATE) / STARTED).read_text())["started"]]
    assert since != [1.0]


@pytest.mark.usefixtures("no_night")
def test_a_finished_night_is_shown_and_not_run_again(run: Run, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = finish(home)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))  # it needs no room
    outcome = run("night", "--date", DATE, "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out) == summary
    assert outcome.out.count("\n") == 1
    assert "--date" in outcome.err
    assert "--fresh" in outcome.err
    (home.night(DATE) / "report.md").write_text("# The candidate was promoted, ü\n")
    shown = run("night", "--date", DATE, *PAST_DEADLINE)  # and no time
    assert shown.code == 0
    assert shown.out == "# The candidate was promoted, ü\n\n"
    assert "seed: 1 → 9" in refused(run("night", "--date", DATE, "--set", "seed=9"))


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (None, 0, "is finished, but Prefect's server could not be told: All connection"),
        (RuntimeError("the engine is on fire"), 1, "All connection attempts failed"),
        (NightError("the disk is full"), 1, "the disk is full"),
        (InputError("no such file"), 2, "no such file"),
        (KeyboardInterrupt(), 130, "Interrupted"),
    ],
)
def test_a_server_that_is_gone_for_good_hides_no_outcome(
    run: Run, home: Home, error: BaseException | None, code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nightly(*_: Any) -> None:
        try:
            if error:
                raise error
            finish(home)
            raise TypeError
        except BaseException:
            raise httpx.ConnectError("All connection attempts failed")  # as Prefect's engine does  # noqa: B904

    monkeypatch.setattr("flows.orchestration.server.prefect_api", lambda *_, **__: nullcontext())
    monkeypatch.setattr("flows.nightly.nightly", nightly)
    outcome = run("night", "--date", DATE, "--json")
    assert (outcome.code, outcome.out.count("\n")) == (code, int(code == 0))
    assert message in outcome.err
    assert ("connection attempts" in outcome.err) == ("connection" in message)


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (RuntimeError("the engine is on fire"), "and the same command resumes"),
        (NightError("ab12 is not the engine's"), "ab12 is not the engine's"),
    ],
)
def test_a_night_that_fails_says_so(run: Run, error: Exception, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends it by design is one line; anything else has its traceback."""
    monkeypatch.setattr(command, "_run", Mock(side_effect=error))
    outcome = run("night", "--date", DATE, "--json")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.splitlines()[-1].startswith("nightschool: the night failed; committed work is kept")
    assert outcome.err.splitlines()[-1].endswith(end)
    assert ("Traceback" in outcome.err) == isinstance(error, RuntimeError)


def test_ctrl_c_says_how_to_go_on(run: Run, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.orchestration.server.start_server", Mock(side_effect=KeyboardInterrupt))
    monkeypatch.setattr("prefect.settings.get_current_settings", lambda: SimpleNamespace(api=SimpleNamespace(url=None)))
    outcome = run("night", "--date", DATE)
    assert outcome.code == 130
    again = f"nightschool night --config {home.night(DATE)}/config.yaml --date {DATE}"
    assert outcome.err.splitlines()[-1] == f"Interrupted. Committed work is kept; resume with: {again}"
    with hold(home.root, "the next"):
        pass
