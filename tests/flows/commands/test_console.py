"""What `nightschool night` shows in the terminal: a progress bar, and the outcome."""

import logging
from pathlib import Path

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.commands.console import NightProgress, print_summary
from tests.flows.commands.command import finish


@pytest.mark.parametrize(("minutes", "total"), [("30", 1800), ("null", None)])
def test_the_progress_bar_shows_the_stage_and_the_nights_hours(minutes: str, total: float | None) -> None:
    log = logging.getLogger("nightschool")
    with NightProgress(load_night(STARTER, [f"budget_minutes={minutes}"])) as progress:
        (bar,) = progress.progress.tasks
        assert bar.total == (total and pytest.approx(total, abs=5))
        reached = []
        for stage in ("distill", "round 1 · sample", "decide"):
            log.info("begins", extra={"stage": stage, "seconds": None})
            assert bar.description == stage
            reached.append(bar.completed)
        assert reached == sorted(reached)


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, "The candidate won and serves from now on."),
        ({"decision": "kept", "serving": "c0ffee"}, "The champion stays."),
        ({"serving": "c0ffee"}, "The candidate won, but c0ffee serves: the alias was moved meanwhile."),
    ],
)
def test_the_outcome(changes: dict[str, str], outcome: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(finish(Home(tmp_path)) | changes)
    printed = capsys.readouterr().out
    for text in (outcome, "61.3 %", "Verdicts in training: arithmetic: 3 correct, 1 wrong.", "the engine died once"):
        assert text in printed
    assert ("disappoint" in printed) == (changes == {})  # there a rollback would promote the candidate again
