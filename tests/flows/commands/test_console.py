"""What `nightschool night` shows in the terminal: a progress bar."""

import logging

import pytest

from conf.load import STARTER, load_night
from flows.commands.console import NightProgress


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
