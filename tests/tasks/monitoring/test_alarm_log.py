"""An alarm is raised once, everywhere, whatever interrupts the night: on a real Prefect server and MLflow database."""

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from prefect import flow
from prefect.artifacts import Artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

from conf.load import STARTER, load_night
from conf.storage.home import Home
from tasks.monitoring.alarm_log import AlarmLog
from tasks.monitoring.alarms import Alarm
from tasks.tracking import Tracking

SLOW = Alarm("slow_round", False, "Round 4 took <b>long</b>.", 4)
FAILING = Alarm("graders_failing", False, "The grader failed on 2 completions in round 5.", 5)
MORE = Alarm("graders_failing", False, "The grader failed on 9 completions in rounds 5, 6.", 6)
SEVERE = Alarm("graders_failing", True, "The grader failed on 99 completions in rounds 5, 6, 7.", 7)
COMMAND = [sys.executable, "-c", "import sys; open('told.jsonl', 'a').write(sys.stdin.read())"]


def in_flow(do: Callable[[], None]) -> None:
    @flow
    def ringing() -> None:
        do()

    ringing()


class Evening:
    """A night's book, which may be opened anew; everything rings inside a flow run, as in a night."""

    def __init__(self, home: Home, night: str) -> None:
        self.folder = home.night(night)
        self.folder.mkdir(parents=True)
        config = load_night(STARTER)
        self.tracking = Tracking(home, config)
        self.tracking.open_run(self.folder, config, {})

    def book(self) -> AlarmLog:
        return AlarmLog(self.folder, self.tracking, COMMAND)

    def record(self, *alarms: Alarm) -> AlarmLog:
        book = self.book()
        in_flow(lambda: book.record(alarms))
        return book

    def told(self) -> list[str]:
        """Whom the owner's command was run for."""
        file = Path("told.jsonl")
        return [json.loads(line)["sentence"] for line in file.read_text().splitlines()] if file.exists() else []

    def tags(self) -> dict[str, str]:
        tags = self.tracking.client.get_run(self.tracking.run_id).data.tags
        return {name: value for name, value in tags.items() if name.startswith("alarm")}


@pytest.fixture
def evening(
    home_with_mlflow: Callable[[str], Home],
    prefect_server: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> Evening:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logging.getLogger("nightschool"), "propagate", True)
    caplog.set_level(logging.WARNING, "nightschool")
    return Evening(home_with_mlflow("school"), "2026-11-20")


def spoken(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(record.levelno, record.getMessage()) for record in caplog.records if record.name == "nightschool"]


def artifacts() -> int:
    with get_client(sync_client=True) as client:
        wanted = ArtifactFilter(key=ArtifactFilterKey(any_=["alarms"]))
        return len(client.read_artifacts(artifact_filter=wanted))


def test_an_alarm_is_in_the_log_in_prefect_in_mlflow_and_with_the_owner(
    evening: Evening, caplog: pytest.LogCaptureFixture
) -> None:
    book = evening.record(SLOW, SEVERE)
    assert spoken(caplog) == [
        (logging.WARNING, f"alarm slow_round: {SLOW.sentence}"),
        (logging.ERROR, f"severe alarm graders_failing: {SEVERE.sentence}"),
    ]
    artifact = Artifact.get("alarms")
    assert artifact is not None
    assert artifact.flow_run_id is not None
    assert artifact.data == (
        "# Alarms of the night 2026-11-20\n\n"
        f"- severe alarm graders_failing: {SEVERE.sentence}\n"
        "- alarm slow_round: Round 4 took \\<b>long\\</b>.\n"
    )
    assert evening.tags() == {
        "alarms": "2",
        "alarm.slow_round": SLOW.sentence,
        "alarm.graders_failing": SEVERE.sentence,
    }
    assert evening.told() == [SLOW.sentence, SEVERE.sentence]
    assert book.sentences == [SEVERE.sentence, SLOW.sentence]
    assert book.severe == [SEVERE]


def test_a_night_that_goes_on_raises_none_again(evening: Evening, caplog: pytest.LogCaptureFixture) -> None:
    evening.record(SLOW)
    evening.record(SLOW, FAILING)
    before = artifacts()
    again = evening.record(SLOW, FAILING)
    assert evening.told() == [SLOW.sentence, FAILING.sentence]
    assert len(spoken(caplog)) == 2
    assert artifacts() == before
    assert list(again.alarms.values()) == [SLOW, FAILING]


def test_what_is_known_gets_the_sentence_over_later_rounds_and_never_an_earlier_one(
    evening: Evening, caplog: pytest.LogCaptureFixture
) -> None:
    evening.record(FAILING)
    evening.record(MORE)
    book = evening.record(FAILING)
    assert book.sentences == [MORE.sentence]
    assert evening.tags() == {"alarms": "1", "alarm.graders_failing": MORE.sentence}
    assert evening.told() == [FAILING.sentence]
    assert len(spoken(caplog)) == 1


def test_the_severe_one_of_the_same_name_is_another_and_stays_as_it_was(evening: Evening) -> None:
    evening.record(FAILING)
    evening.record(SEVERE)
    book = evening.record(Alarm("graders_failing", True, "More.", 9))
    assert book.sentences == [SEVERE.sentence, FAILING.sentence]
    assert evening.tags()["alarm.graders_failing"] == SEVERE.sentence
    assert evening.told() == [FAILING.sentence, SEVERE.sentence]


def test_a_night_killed_right_after_the_note_shows_the_alarm_and_runs_no_command(
    evening: Evening, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tasks.monitoring.alarm_log.tell_owner", killed)
        with pytest.raises(KeyboardInterrupt):
            evening.book().record([SLOW])
    assert evening.tags() == {}
    book = evening.book()
    in_flow(book.publish)
    assert evening.tags() == {"alarms": "1", "alarm.slow_round": SLOW.sentence}
    evening.record(SLOW)
    assert evening.told() == []


def test_without_alarms_there_is_nothing_to_show(evening: Evening) -> None:
    before = artifacts()
    evening.record()
    in_flow(evening.book().publish)
    assert (evening.tags(), artifacts()) == ({}, before)
    assert not (evening.folder / "alarms.json").exists()
