"""An alarm is raised once, everywhere, whatever interrupts the night."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prefect import flow
from prefect.artifacts import Artifact

from conf.load import STARTER, load_night
from conf.storage.home import Home
from tasks.monitoring.alarms import Alarm
from tasks.monitoring.notify import AlarmLog
from tasks.monitoring.tracking import Tracking

SLOW = Alarm("slow_round", False, "Round 4 took <b>long</b>.", 4)
FAILING = Alarm("graders_failing", False, "The grader failed on 2 completions in round 5.", 5)
MORE = Alarm("graders_failing", False, "The grader failed on 9 completions in rounds 5, 6.", 6)
SEVERE = Alarm("graders_failing", True, "The grader failed on 99 completions in rounds 5, 6, 7.", 7)


class Evening:
    """A night whose log may be opened anew, as after an interruption, with a run that only keeps its tags."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tags: dict[str, str] = {}
        self.shown: list[str] = []

    def tag(self, **tags: str) -> None:
        self.tags |= tags

    def record(self, *alarms: Alarm) -> AlarmLog:
        tracking: Any = self
        log = AlarmLog(self.folder, tracking)
        log.record(alarms)
        return log


@pytest.fixture
def evening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Evening:
    found = Evening(tmp_path)
    monkeypatch.setattr("tasks.monitoring.notify.show_text", lambda _, text, __: found.shown.append(text))
    return found


def test_an_alarm_is_in_the_log_in_prefect_and_in_mlflow(
    home_with_mlflow: Callable[[str], Home], prefect_server: None, tmp_path: Path, logged: pytest.LogCaptureFixture
) -> None:
    home, config = home_with_mlflow("school"), load_night(STARTER)
    home.night("2026-11-20").mkdir(parents=True)
    tracking = Tracking(home, config)
    tracking.open_run(home.night("2026-11-20"), config, {})
    log = AlarmLog(home.night("2026-11-20"), tracking)

    @flow
    def night() -> None:
        log.record([SLOW, SEVERE])

    night()
    messages = [(one.levelno, one.getMessage()) for one in logged.records if one.name == "nightschool"]
    assert messages == [
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
    tags = tracking.client.get_run(tracking.run_id).data.tags
    assert {name: value for name, value in tags.items() if name.startswith("alarm")} == {
        "alarms": "2",
        "alarm.slow_round": SLOW.sentence,
        "alarm.graders_failing": SEVERE.sentence,
    }
    assert log.sentences == [SEVERE.sentence, SLOW.sentence]
    assert log.severe == [SEVERE]


def test_a_resumed_night_raises_no_alarm_again(evening: Evening, logged: pytest.LogCaptureFixture) -> None:
    evening.record(SLOW)
    evening.record(SLOW, FAILING)
    again = evening.record(SLOW, FAILING)
    assert len(logged.records) == 2
    assert len(evening.shown) == 2
    assert list(again.alarms.values()) == [SLOW, FAILING]


def test_a_known_alarm_gets_later_rounds_sentence(evening: Evening, logged: pytest.LogCaptureFixture) -> None:
    evening.record(FAILING)
    evening.record(MORE)
    assert evening.record(FAILING).sentences == [MORE.sentence]
    assert evening.tags == {"alarms": "1", "alarm.graders_failing": MORE.sentence}
    assert len(logged.records) == 1


def test_a_severe_alarm_of_the_same_name_is_another_and_keeps_its_sentence(evening: Evening) -> None:
    evening.record(FAILING)
    evening.record(SEVERE)
    log = evening.record(Alarm("graders_failing", True, "More.", 9))
    assert log.sentences == [SEVERE.sentence, FAILING.sentence]
    assert evening.tags["alarm.graders_failing"] == SEVERE.sentence
