"""Which night a start belongs to, and the starts that are refused, under Prefect's scheduler, too."""

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from prefect.client.orchestration import get_client
from prefect.flow_engine import run_flow
from prefect.states import Scheduled

from conf.load import STARTER, frozen_yaml, load_night
from conf.storage.home import Home, InputError
from flows.nightly import nightly
from flows.run.dates import check_deadline, checked_date, date_of_night, too_late
from tests.conf.storage.lock_holder import holder
from tests.flows.nights import finished_night
from tests.refusal import refusal

UTC = datetime.UTC


def at(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("now", "date"),
    [
        ("2026-11-20T22:30:00", "2026-11-20"),
        ("2026-11-20T12:00:00", "2026-11-20"),
        ("2026-11-21T00:00:00", "2026-11-20"),
        ("2026-11-21T11:59:59", "2026-11-20"),
        ("2026-03-01T03:00:00", "2026-02-28"),
        ("2027-01-01T01:00:00", "2026-12-31"),
        ("2026-11-21T00:30:00+13:00", "2026-11-20"),  # by the clocks of its own zone
    ],
)
def test_before_noon_it_is_still_last_night(now: str, date: str) -> None:
    assert date_of_night(at(now)) == date


def test_a_date_is_today_at_the_latest() -> None:
    now = at("2026-11-20T10:00:00+13:00")
    assert checked_date("2026-11-20", "--date", now) == "2026-11-20"
    assert checked_date("20250103", "--date", now) == "2025-01-03"
    with pytest.raises(InputError, match="^--date: 2026-11-21 is in the future, today is 2026-11-20; leave it out"):
        checked_date("2026-11-21", "--date", now)
    with pytest.raises(InputError, match="^date: ../../x is not a date; write it as 2026-11-20$"):
        checked_date("../../x", "date", now)


def test_a_deadline_that_is_past() -> None:
    config = load_night(STARTER, ["deadline=06:30", "deadline_time_zone=Europe/Berlin"])
    check_deadline(config, "2026-11-20", at("2026-11-21T05:29:59+00:00"))
    assert refusal(check_deadline, config, "2026-11-20", at("2026-11-21T05:30:00+00:00")) == (
        "deadline: 06:30 of the night 2026-11-20 is past, it was at 2026-11-21 06:30 CET; "
        "set another, or none: --set deadline=null"
    )
    check_deadline(load_night(STARTER), "2020-01-01", at("2026-11-21T05:30:00+00:00"))


@pytest.mark.parametrize(
    ("scheduled", "now", "tries", "late"),
    [
        ("2026-11-21T01:00:00", "2026-11-21T00:59:50", 1, False),
        ("2026-11-21T01:00:00", "2026-11-21T02:00:00", 1, False),
        ("2026-11-21T01:00:00", "2026-11-21T02:01:00", 1, True),
        ("2026-11-21T01:00:00", "2026-11-21T02:01:00", 2, False),  # a retry may be as late as it likes
        ("2026-03-29T00:55:00", "2026-03-29T01:10:00", 1, False),  # 01:55 CET and 03:10 CEST
        ("2026-10-25T00:30:00", "2026-10-25T02:10:00", 1, True),  # 02:30 CEST and 03:10 CET
    ],
)
def test_a_start_may_be_an_hour_late(scheduled: str, now: str, tries: int, late: bool) -> None:
    """By the clock that the night has, also while that is changed."""
    zone = ZoneInfo("Europe/Berlin")
    reason = too_late(at(f"{scheduled}+00:00").astimezone(zone), at(f"{now}+00:00").astimezone(zone), tries)
    assert (reason is not None) == late
    if reason:
        assert "minutes later; late starts (more than 60 minutes) are refused" in reason


class Outcome(NamedTuple):
    """How a flow run ended, as the server has it."""

    kind: str
    state: str
    message: str
    name: str


Start = Callable[..., Outcome]


@pytest.fixture
def home(prefect_server: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home that does not exist yet."""
    monkeypatch.setenv("NIGHTSCHOOL_HOME", str(tmp_path / "school"))
    return Home.here()


@pytest.fixture
def start(home: Home) -> Start:
    """Run the flow as a worker does: a run that was scheduled so many minutes ago."""

    def run(minutes: float, tries: int = 1, **parameters: Any) -> Outcome:
        scheduled = datetime.datetime.now(UTC) - datetime.timedelta(minutes=minutes)
        with get_client(sync_client=True) as client:
            created = client.create_flow_run(nightly, parameters=parameters, state=Scheduled(scheduled_time=scheduled))
            for number in range(tries):
                if number:
                    again = Scheduled(scheduled_time=datetime.datetime.now(UTC), name="AwaitingRetry")
                    client.set_flow_run_state(created.id, again, force=True)
                run_flow(nightly, flow_run=client.read_flow_run(created.id), parameters=parameters, return_type="state")
            ended = client.read_flow_run(created.id)
        return Outcome(ended.state.type.value, ended.state.name or "", ended.state.message or "", ended.name)

    return run


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The dates of the nights that begin; each fails."""
    dates: list[str] = []

    def run_night(night: Any) -> dict[str, Any]:
        dates.append(night.date)
        raise RuntimeError("the engine is on fire")

    monkeypatch.setattr("flows.nightly.run_night", run_night)
    return dates


def test_a_scheduled_start_has_the_date_of_its_time_and_the_homes_configuration(
    start: Start, begun: list[str], home: Home
) -> None:
    home.make_private()
    home.config_file.write_text(frozen_yaml(load_night(STARTER, ["name=mine"])))
    ended = start(45)
    date = date_of_night(datetime.datetime.now().astimezone() - datetime.timedelta(minutes=45))
    assert (ended.kind, ended.name) == ("FAILED", f"mine {date}")
    assert begun == [folder.name for folder in home.nights.iterdir()] == [date]
    assert load_night(home.night(date) / "config.yaml").name == "mine"


def test_a_start_that_comes_too_late_is_refused_and_no_failure(start: Start, begun: list[str], home: Home) -> None:
    ended = start(61)
    assert (ended.kind, ended.state) == ("COMPLETED", "Refused")
    assert "started 61 minutes later" in ended.message
    assert begun == []
    assert not home.root.exists()


def test_a_scheduled_start_of_a_finished_night_says_so(
    start: Start, begun: list[str], home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    date = date_of_night(datetime.datetime.now().astimezone())
    finished_night(home, date, load_night(STARTER), decision="kept")
    assert start(0).state == "Completed"
    monkeypatch.setenv("PREFECT__RUNTIME__DEPLOYMENT__ID", "nightly")
    ended = start(0)
    assert (ended.state, ended.message) == ("Refused", f"the night {date} is finished already")
    assert begun == []


def test_a_retry_may_begin_at_any_hour(start: Start, begun: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert start(0).kind == "FAILED"
    monkeypatch.setattr("flows.run.dates.START_WITHIN", -1)  # from now on every first try comes too late
    assert start(0, tries=2).kind == "FAILED"
    assert len(begun) == 2
    assert start(0).state == "Refused"


def test_a_second_start_is_refused_in_the_name_of_the_first(start: Start, begun: list[str], home: Home) -> None:
    with holder(home.root) as other:
        ended = start(0, date="2026-01-01")
    assert (ended.kind, ended.state) == ("COMPLETED", "Refused")
    assert f"the night 2026-11-20 is running (process {other.pid})" in ended.message
    assert begun == []
    assert [file.name for file in home.root.iterdir()] == ["night.lock"]


@pytest.mark.parametrize(
    ("date", "message"),
    [("../elsewhere", "date: ../elsewhere is not a date; "), ("2026-01-01", "deadline: 06:30 of the night 2026-01-01")],
)
def test_wrong_parameters_fail_before_a_file_is_written(begun: list[str], home: Home, date: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        nightly(load_night(STARTER, ["deadline=06:30"]), date)
    assert begun == []
    assert not home.root.exists()


def test_a_finished_night_is_not_run_again(begun: list[str], home: Home) -> None:
    folder = home.night("2026-01-01")
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text('{"night": "2026-01-01"}')
    assert nightly(load_night(STARTER), "2026-01-01") == {"night": "2026-01-01"}
    assert begun == []
