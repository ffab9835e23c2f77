"""What `nightschool night` shows in the terminal: a progress bar, and the outcome."""

import logging
from pathlib import Path

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.commands.console import NightProgress, print_summary
from tasks.incidents import end_early
from tests.flows.commands.command import finish


def test_the_progress_bar_makes_do_with_fewer_rounds(tmp_path: Path) -> None:
    with NightProgress(load_night(STARTER, ["grpo.rounds=22"])) as progress:
        before = progress.progress.tasks[0].total
        end_early(tmp_path, 3, "no time was left", 3)
        assert before is not None
        assert progress.progress.tasks[0].total == before - 19 * 5


def test_the_progress_bar_counts_what_every_night_has() -> None:
    """Once each, however often it is announced; optional stages are shown, and do not count."""
    night = ["freeze journal", "distill", "lessons · words", "evaluate · champion", "decide"]
    a_round = [f"round 1 · {name}" for name in ("select prompts", "sample", "score", "credit", "update")]
    optional = ["enroll", "owner prompts", "round 1 · judge", "round 1 · quiz", "round 1 · refill 1 · sample"]
    log = logging.getLogger("nightschool")
    with NightProgress(load_night(STARTER, ["grpo.rounds=1"])) as progress:
        (bar,) = progress.progress.tasks
        for stage in [*night, *a_round, *optional, "decide"]:
            log.info("begins", extra={"stage": stage, "seconds": None})
            assert bar.description == stage
            log.info("done", extra={"stage": stage, "seconds": 1.0})
        assert progress.done == {*night, *a_round}
        assert bar.completed == len(night) + len(a_round)


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
