"""What `nightschool night` shows in the terminal: a progress bar."""

import json
import logging
from pathlib import Path

import pytest
from rich.console import Console

from conf.load import STARTER, load_night
from flows.commands.console import NightProgress
from tasks.workers.worker import HoursOverError


@pytest.mark.parametrize(("minutes", "total"), [("30", 1800), ("null", None)])
def test_the_progress_bar_shows_stage_hours_and_reward(tmp_path: Path, minutes: str, total: float | None) -> None:
    log = logging.getLogger("nightschool")
    with NightProgress(load_night(STARTER, [f"budget_minutes={minutes}"]), tmp_path) as progress:
        (bar,) = progress.progress.tasks
        assert bar.total == (total and pytest.approx(total, abs=5))
        for stage in ("distill", "round 1 · sample", "decide"):
            log.info("begins", extra={"stage": stage, "seconds": None})
            assert bar.description == stage
        before = bar.completed
        shown = progress.progress.get_renderable()  # within a stage, too
        assert bar.completed > before
        screen = Console(width=200)
        with screen.capture() as text:
            screen.print(shown)
        assert ("about 30 min left" in text.get()) == (total is not None)
        both, learned = {"reward": 0.5, "reward/learned": 1.5}, {"reward/learned": 2.4}
        rounds = [(both, "reward 0.50"), (learned, "learned reward 2.40")]
        for number, (metrics, said) in enumerate(rounds, start=1):
            round_ = tmp_path / f"round-{number:02d}" / "checkpoint"
            round_.mkdir(parents=True)
            (round_ / "metrics.json").write_text(json.dumps(metrics))
            (round_ / "manifest.json").write_text("{}")
            log.info("begins", extra={"stage": f"round {number + 1} · sample", "seconds": None})
            assert bar.fields["last"] == f"round {number}: {said}"


def test_only_unexpected_errors_of_prefect_are_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    runs = logging.getLogger("prefect.task_runs")
    with NightProgress(load_night(STARTER), tmp_path):
        for error in (HoursOverError("time ran out before save_state began"), OSError("no space")):
            message = 'Finished in state Failed("Task run encountered an exception %s: %s")'
            runs.error(message, type(error).__name__, error)
    assert "no space" in caplog.text
    assert "ran out" not in caplog.text
